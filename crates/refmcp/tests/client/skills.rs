//! Skills: what is verified is shown and saved, and nothing else.

use std::fs;

use refmcp_client::skill::Digest;
use serde_json::{Value, json};

use crate::scripted;
use crate::support::User;

const NAME: &str = "check-mcp-server";
const URI: &str = "skill://refmcp/check-mcp-server/SKILL.md";

#[test]
fn skills_are_listed_shown_and_verified() {
    let user = User::new();
    let ended = user.with_stdio(&["skills", "list", "--json"]);
    let document: Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!((ended.code, document["skills"].as_array().unwrap().len()), (0, 3), "{ended:?}");
    assert_eq!(
        (&document["skills"][2]["uri"], &document["skills"][2]["approval"]),
        (&json!(URI), &json!("none"))
    );
    for word in [NAME, URI] {
        let ended = user.with_stdio(&["skills", "show", word]);
        assert!(ended.code == 0 && ended.out.starts_with("---\nname: check-mcp-server\n"), "{ended:?}");
    }
    let ended = user.with_stdio(&["skills", "show", NAME, "scripts/check.sh"]);
    assert!(ended.out.starts_with("#!/bin/sh\n"), "{ended:?}");
    for missing in [&["skills", "show", NAME, "../x"][..], &["skills", "show", "check-mcp-serve"]] {
        let ended = user.with_stdio(missing);
        assert!(ended.code != 0 && ended.out.is_empty(), "{ended:?}");
    }
    let ended = user.with_stdio(&["skills", "verify"]);
    assert_eq!((ended.code, ended.out.matches("verified: ").count()), (0, 3), "{ended:?}");
    let ended = user.with_stdio(&["list", "skills"]);
    assert!(ended.out.contains(URI), "{ended:?}");
}

#[test]
fn a_skill_is_saved_once_it_is_approved() {
    let user = User::new();
    let into = user.word("pulled");
    let pull = |more: &[&str]| user.with_stdio(&[&["skills", "pull", NAME, "--into", &into], more].concat());
    let ended = pull(&[]);
    assert!(ended.code == 1 && ended.err.contains("--yes"), "{ended:?}");
    assert!(!user.path("pulled").exists());
    let ended = pull(&["--yes"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let folder = user.path("pulled").join(NAME);
    let shown = user.with_stdio(&["skills", "show", NAME]).out;
    assert_eq!(fs::read_to_string(folder.join("SKILL.md")).unwrap(), shown);
    assert!(folder.join("references/exit-codes.md").is_file() && folder.join("scripts/check.sh").is_file());
    let origin = fs::read_to_string(user.path("pulled").join("check-mcp-server.origin.json")).unwrap();
    let origin: Value = serde_json::from_str(&origin).unwrap();
    assert_eq!((&origin["uri"], origin["resources"].as_array().unwrap().len()), (&json!(URI), 3));
    let again = pull(&[]);
    assert!(again.code == 1 && again.err.contains("is there already"), "{again:?}");
    // The approval is kept, so that it is not asked for again.
    fs::remove_dir_all(user.path("pulled")).unwrap();
    assert_eq!(pull(&[]).code, 0);
    let trusted = user.done(&["trust", "list"]);
    assert!(trusted.contains(URI), "{trusted}");
    let server = [crate::REFMCP, "stdio"];
    let revoked = user.with(&["trust", "revoke", "--skill", URI], &server);
    assert_eq!(revoked.code, 0, "{revoked:?}");
    fs::remove_dir_all(user.path("pulled")).unwrap();
    assert_eq!(pull(&[]).code, 1);
}

const TEXT: &str = "---\\nname: a\\ndescription: A\\n---\\nbody\\n";

/// A server that says this of its skill, whose text is always the same.
fn lying(description: &str, digest_of: &str, size: usize, more: Option<Value>) -> String {
    let uri = "skill://a/SKILL.md";
    let digest = Digest::of(digest_of.as_bytes()).to_string();
    let files = [json!({ "uri": uri, "digest": digest, "size": size })].into_iter().chain(more);
    let files: Vec<Value> = files.collect();
    let entry =
        json!({ "uri": uri, "frontmatter": { "name": "a", "description": description }, "resources": files });
    let list = format!(r#""result":{}"#, json!({ "skills": [entry] }));
    let read = format!(r#""result":{{"contents":[{{"uri":"{uri}","text":"{TEXT}"}}]}}"#);
    let capabilities = r#"{"resources":{},"extensions":{"io.modelcontextprotocol/skills":{}}}"#;
    scripted(capabilities, &[("skills/list", &list), ("resources/read", &read)])
}

#[test]
fn nothing_of_a_skill_that_does_not_fit_is_shown_or_saved() {
    let user = User::new();
    let text = TEXT.replace("\\n", "\n");
    let right = lying("A", &text, text.len(), None);
    let shown = user.with_script(&["skills", "show", "a"], &right);
    assert_eq!((shown.code, shown.out.as_str()), (0, text.as_str()), "{shown:?}");
    for (server, problem) in [
        (lying("A", "other", text.len(), None), "digest"),
        (lying("A", &text, text.len() + 1, None), "size"),
        (lying("Harmless", &text, text.len(), None), "frontmatter"),
    ] {
        for command in [&["skills", "show", "a"][..], &["skills", "pull", "a", "--yes", "--into", "pulled"]] {
            let ended = user.with_script(command, &server);
            assert_eq!((ended.code, ended.out.as_str()), (6, ""), "{problem}: {ended:?}");
        }
        let ended = user.with_script(&["skills", "verify", "--json"], &server);
        let document: Value = serde_json::from_str(&ended.out).unwrap();
        assert_eq!((ended.code, &document["skills"][0]["problem"]), (6, &json!(problem)), "{ended:?}");
    }
    let outside = json!({ "uri": "skill://a/../../x", "digest": Digest::of(b"").to_string(), "size": 0 });
    let ended = user.with_script(&["skills", "verify"], &lying("A", &text, text.len(), Some(outside)));
    assert!(ended.code == 6 && ended.out.contains("is not in its directory"), "{ended:?}");
    let twice = json!({ "uri": "skill://a/skill.md", "digest": Digest::of(b"").to_string(), "size": 0 });
    let server = lying("A", &text, text.len(), Some(twice));
    let ended = user.with_script(&["skills", "pull", "a", "--yes", "--into", "pulled"], &server);
    assert!(ended.code == 1 && ended.err.contains("every file system"), "{ended:?}");
    assert!(!user.path("pulled").exists());
}

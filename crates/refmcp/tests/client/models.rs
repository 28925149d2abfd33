//! Models and metadata, in every revision, without `raw`.

use serde_json::{Value, json};

use crate::{REFMCP, User, support::Server};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
/// The revision without sessions.
const STATELESS: &str = "2026-07-28";

/// What a server prints that speaks the protocol and nothing beyond it.
fn without_models<'a>(words: &[&'a str]) -> Vec<&'a str> {
    words.iter().copied().chain(["--", REFMCP, "stdio", "--profile", "conformance"]).collect()
}

#[test]
fn models_are_listed_in_every_revision() {
    let user = User::new();
    for version in REVISIONS {
        let came = user.with_stdio(&["list", "models", "--protocol-version", version]);
        let lines: Vec<&str> = came.out.lines().collect();
        assert_eq!(lines.len(), 4, "{came:?}");
        assert!(
            lines[1].starts_with("gpt-4 ") && lines[1].contains("yes") && lines[1].contains("8192"),
            "{came:?}"
        );
        assert!(lines[3].starts_with("claude-v2 ") && !lines[3].contains("yes"), "{came:?}");
        let came = user.with_stdio(&["models", "list", "-o", "json", "--protocol-version", version]);
        let document: Value = serde_json::from_str(&came.out).unwrap();
        assert_eq!(document["active"], "gpt-4", "{came:?}");
        assert_eq!(document["models"][2]["contextLength"], 100_000, "{came:?}");
    }
    // Without a subcommand they are listed.
    let server = Server::start(&[]);
    let listed = user.with_stdio(&["list", "models"]).out;
    assert_eq!(user.with_stdio(&["models"]).out, listed);
    assert_eq!(user.run(&["models", &format!("http://{}/mcp", server.address)]).out, listed);
    let all = user.with_stdio(&["list", "-o", "json"]);
    let all: Value = serde_json::from_str(&all.out).unwrap();
    assert_eq!(all["models"][1]["name"], "gpt-3.5-turbo");
    assert!(user.with_stdio(&["list"]).out.contains("MODELS\n"));
}

#[test]
fn a_call_is_made_with_a_model() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    for version in REVISIONS {
        let asked = [
            "call",
            &url,
            "ask_model",
            "prompt=hm",
            "--sampler",
            "grep -o '\"name\":\"[^\"]*\"'",
            "--protocol-version",
            version,
        ];
        let came = user.run(&asked);
        assert!(came.out.contains("\"name\":\"gpt-4\""), "{version}: {came:?}");
        let words: Vec<&str> = asked.iter().copied().chain(["--model", "claude-v2"]).collect();
        let came = user.run(&words);
        assert!(came.code == 0 && came.out.contains("\"name\":\"claude-v2\""), "{version}: {came:?}");
        let words: Vec<&str> = asked.iter().copied().chain(["--model", "gpt-9"]).collect();
        let came = user.run(&words);
        assert_eq!((came.code, came.out.as_str()), (1, ""), "{version}: {came:?}");
        assert!(
            came.err.contains("unknown model") && came.err.contains("gpt-3.5-turbo"),
            "{version}: {came:?}"
        );
        let about = user.run(&[
            "call",
            &url,
            "about_me",
            "-o",
            "json",
            "--protocol-version",
            version,
            "--model",
            "gpt-3.5-turbo",
        ]);
        let about: Value = serde_json::from_str(&about.out).unwrap();
        assert!(about.to_string().contains("gpt-3.5-turbo"), "{version}: {about}");
    }
}

#[test]
fn a_model_is_selected_or_refused() {
    let user = User::new();
    for version in REVISIONS {
        let came = user.with_stdio(&["models", "select", "claude-v2", "--protocol-version", version]);
        assert_eq!(came.code, 0, "{came:?}");
        let how =
            if version == STATELESS { "every request names its model" } else { "selected for this session" };
        assert!(came.out.contains(how) && came.out.contains("--model claude-v2"), "{version}: {came:?}");
        let came =
            user.with_stdio(&["model", "select", "claude-v2", "-o", "json", "--protocol-version", version]);
        assert_eq!(serde_json::from_str::<Value>(&came.out).unwrap(), json!({ "active": "claude-v2" }));
        let came = user.with_stdio(&["models", "select", "gpt-9", "--protocol-version", version]);
        assert!(came.code == 1 && came.err.contains("unknown model"), "{version}: {came:?}");
        assert!(came.err.contains("did you mean \"gpt-4\"?"), "{version}: {came:?}");
    }
}

#[test]
fn metadata_are_shown_in_every_revision() {
    let user = User::new();
    for version in REVISIONS {
        let came = user.with_stdio(&["metadata", "--protocol-version", version]);
        assert!(came.code == 0 && came.out.contains("name          RefMCP-TestServer\n"), "{came:?}");
        assert!(came.out.contains("authRequired  false\n"), "{came:?}");
        assert!(came.out.contains("endpoints     none\n"), "{came:?}");
        assert!(!came.out.contains("resultType") && !came.out.contains("_meta"), "{came:?}");
        let came = user.with_stdio(&["metadata", "-o", "json", "--protocol-version", version]);
        let document: Value = serde_json::from_str(&came.out).unwrap();
        assert_eq!(document["revisions"].as_array().map(Vec::len), Some(5), "{came:?}");
    }
}

#[test]
fn a_server_without_them_is_said_to_have_none() {
    let user = User::new();
    for version in ["auto", "legacy"] {
        for (words, said) in [
            (&["list", "models"][..], "the server declares no models"),
            (&["models", "select", "gpt-4"], "the server declares no models"),
            (&["call", "test_simple_text", "--model", "gpt-4"], "the server declares no models"),
            (&["metadata"], "the server declares no metadata"),
        ] {
            let words: Vec<&str> = words.iter().copied().chain(["--protocol-version", version]).collect();
            let came = user.run(&without_models(&words));
            assert_eq!((came.code, came.out.as_str()), (1, ""), "{words:?}: {came:?}");
            assert!(came.err.contains(said) && came.err.contains("raw"), "{words:?}: {came:?}");
        }
        let all = user.run(&without_models(&["list", "-o", "json", "--protocol-version", version]));
        let all: Value = serde_json::from_str(&all.out).unwrap();
        assert!(all["tools"].is_array() && all.get("models").is_none(), "{all}");
    }
}

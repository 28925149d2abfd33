//! Results where no terminal is: standard output has their text alone. Images and sounds are described on stderr, and not
//! put into files that were not asked for.

use std::fs;

use serde_json::Value;

use crate::{REFMCP, User, scripted};

#[test]
fn without_a_terminal_media_is_described_and_no_file_is_written() {
    let user = User::new();
    let temporary = user.path("temporary");
    fs::create_dir(&temporary).unwrap();
    for (tool, kind) in [("image", "[image image/png, "), ("audio", "[audio audio/wav, ")] {
        let words = ["call", tool, "--", REFMCP, "stdio"];
        let output = user.command(&words).env("TMPDIR", &temporary).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(kind) && said.contains("-o json | jq -r '.content["), "{said}");
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(!out.contains(kind), "{out}");
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "{tool}");
    }
    let ended = user.with_stdio(&["call", "image", "-o", "json"]);
    let result: Value = serde_json::from_str(&ended.out).unwrap();
    let content = result["content"].as_array().unwrap();
    assert!(content.iter().any(|block| block["data"].is_string()), "{result}");
}

#[test]
fn a_script_gets_the_text_of_a_result_and_nothing_else() {
    let user = User::new();
    let content = r#"[{"type":"text","text":"a"},{"type":"resource","resource":{"uri":"x:y","text":"b"}},{"type":"resource_link","uri":"x:z","name":"z"},{"type":"image","data":"aGk=","mimeType":"image/png"}]"#;
    let list = r#""result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}"#;
    let server = scripted(
        r#"{"tools":{},"prompts":{},"resources":{}}"#,
        &[
            ("tools/list", list),
            ("tools/call", &format!(r#""result":{{"content":{content}}}"#)),
            ("prompts/list", r#""result":{"prompts":[{"name":"p"}]}"#),
            (
                "prompts/get",
                r#""result":{"description":"d","messages":[{"role":"user","content":{"type":"text","text":"  hi"}}]}"#,
            ),
            (
                "resources/read",
                r#""result":{"contents":[{"uri":"x:1","text":"one"},{"uri":"x:2","blob":"aGk="}]}"#,
            ),
        ],
    );
    for (words, out, notes) in [
        (
            ["call", "t"],
            "a\nb\nx:z\n",
            &["[resource] x:y\n", "[link] x:z  z\n", "jq -r '.content[3].data'"][..],
        ),
        (["prompt", "p"], "  hi\n", &["d\n"]),
        (["read", "x:"], "one\n", &["[resource] x:1\n[resource] x:2\n", "jq -r '.contents[1].blob'"]),
    ] {
        let ended = user.with_script(&words, &server);
        assert_eq!((ended.code, ended.out.as_str()), (0, out), "{ended:?}");
        assert!(notes.iter().all(|note| ended.err.contains(note)), "{ended:?}");
        let words = [&words[..], &["-o", "json"]].concat();
        assert_eq!(user.with_script(&words, &server).err, "", "JSON needs no notes");
    }
}

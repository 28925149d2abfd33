//! Images and sounds where no terminal is: described, and not put into files that were not asked for.

use std::fs;

use serde_json::Value;

use crate::{REFMCP, User};

#[test]
fn without_a_terminal_media_is_described_and_no_file_is_written() {
    let user = User::new();
    let temporary = user.path("temporary");
    fs::create_dir(&temporary).unwrap();
    for (tool, kind) in [("image", "[image image/png, "), ("audio", "[audio audio/wav, ")] {
        let words = ["call", tool, "--", REFMCP, "stdio"];
        let output = user.command(&words).env("TMPDIR", &temporary).output().unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains(kind) && said.contains("--output json"), "{said}");
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "{tool}");
    }
    let ended = user.with_stdio(&["call", "image", "-o", "json"]);
    let result: Value = serde_json::from_str(&ended.out).unwrap();
    let content = result["content"].as_array().unwrap();
    assert!(content.iter().any(|block| block["data"].is_string()), "{result}");
}

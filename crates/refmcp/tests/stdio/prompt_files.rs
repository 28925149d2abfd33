//! What the log says of prompt files: which file, which line, and what to do.

use std::fs;

use serde_json::json;

use crate::support::{Client, Version, wait_until};

const SESSION: Version = Version::Session("2025-11-25");

#[test]
fn bad_prompt_files_are_named_with_their_line() {
    let dir = tempfile::tempdir().expect("a directory");
    for (file, text) in [
        ("good.md", "---\ntitle: Good\n---\nText"),
        ("old.md", "---\nargument version: Which\n---\nText"),
        ("open.md", "---\ntitle: Never ends\n"),
        ("refactor.md", "Hello\n{{code"),
        ("good.txt", "Text"),
        ("no name.md", "Text"),
        ("unused.md", "---\narguments:\n- name: one\n  default: x\n---\nText"),
        (".hidden.md", "Text"),
    ] {
        fs::write(dir.path().join(file), text).expect("written");
    }
    fs::write(dir.path().join("bytes.md"), b"Text\n\xFF").expect("written");
    fs::write(dir.path().join("large.md"), "x".repeat(256 * 1024 + 1)).expect("written");
    fs::create_dir(dir.path().join("folder.md")).expect("created");
    let mut client =
        Client::start(SESSION, &["--log", "info", "--prompts", dir.path().to_str().expect("UTF-8")]);
    let listed = client.ask("prompts/list", &json!({})).to_string();
    assert!(listed.contains("\"good\"") && listed.contains("\"unused\""), "{listed}");
    assert!(listed.contains("\"refactor\""), "the built-in one: {listed}");

    // A file that is mended is told of once more, the others are not.
    fs::write(dir.path().join("open.md"), "Text").expect("written");
    wait_until("the change", || client.ask("prompts/list", &json!({})).to_string().contains("\"open\""));
    client.process.close_input();
    let log = client.process.exit().errors;
    for said in [
        "prompt file old.md: line 2: the key `argument version` is unknown; describe arguments in a list",
        "prompt file open.md: line 1: the front matter has no end; add a line of three dashes below it (this file is \
         left out)",
        "prompt file open.md: is right now",
        "prompt file refactor.md: line 2: {{ has no }} in its line",
        "(the built-in prompt of this name stays)",
        "prompt file good.txt: good.md has the same name; rename one of them",
        "prompt file no name.md: the name of the file is the prompt's: rename it",
        "prompt file unused.md: line 3: the argument `one` is described and used nowhere",
        "prompt file bytes.md: line 2: this is not UTF-8",
        "prompt file large.md: the file is larger than 256 KiB",
        "prompt file folder.md: this is no plain file",
    ] {
        assert_eq!(log.matches(said).count(), 1, "{said}\n{log}");
    }
    for quiet in ["good.md:", "hidden"] {
        assert!(!log.contains(quiet), "{quiet}: {log}");
    }
}

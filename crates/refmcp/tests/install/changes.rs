//! A file that is there already: what of it stays, and how a change is shown and taken back.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::{REFMCP, User, mode};

const COMMENTED: &str = "// servers of the team\n{\n\t\"inputs\": [],\n\t\"servers\": {\n\t\t/* the shop */\n\t\t\"shop\": { \"url\": \"https://shop.example/\" }, // fast\n\t},\n}\n";

#[test]
fn everything_else_in_the_file_stays_as_it_is() {
    let user = User::at_work();
    for (text, line, indent) in [
        (COMMENTED.to_owned(), "\n", "\t"),
        (COMMENTED.replace('\n', "\r\n"), "\r\n", "\t"),
        (COMMENTED.replace('\t', "    "), "\n", "    "),
    ] {
        user.write("work/.vscode/mcp.json", &text);
        user.done(&["install", "vscode", "--yes"]);
        let entry = [
            "\"refmcp\": {",
            "\t\"type\": \"stdio\",",
            &format!("\t\"command\": \"{REFMCP}\","),
            "\t\"args\": [\"stdio\"],",
            "},",
        ]
        .map(|part| format!("{indent}{indent}{}{line}", part.replace('\t', indent)))
        .concat();
        let before = format!("{indent}}},{line}}}{line}");
        let expected = text.replace(&before, &format!("{entry}{before}"));
        assert_ne!(expected, text);
        assert_eq!(user.read("work/.vscode/mcp.json"), expected);
        assert_eq!(user.done(&["install", "vscode", "--yes"]), ".vscode/mcp.json has this server already\n");
        user.done(&["install", "vscode", "--undo", "--yes"]);
        assert_eq!(user.read("work/.vscode/mcp.json"), text);
    }
}

#[test]
fn a_change_is_shown_and_only_shown_when_that_is_all_that_is_wanted() {
    let user = User::at_work();
    let shown = user.done(&["install", "cursor", "--dry-run", "--name", "a", "http://h/"]);
    let expected = "--- /dev/null\n+++ .cursor/mcp.json\n@@ -0,0 +1,7 @@\n+{\n+  \"mcpServers\": {\n+    \"a\": {\n\
                    +      \"url\": \"http://h/\"\n+    }\n+  }\n+}\n";
    assert_eq!(shown, expected);
    assert!(!user.path("work/.cursor").exists() && !user.path("state/installs.json").exists());
    user.write(
        "work/.cursor/mcp.json",
        "{\n  \"mcpServers\": {\n    \"b\": {\"url\": \"http://b/\"}\n  }\n}\n",
    );
    let shown = user.done(&["install", "cursor", "--yes", "--name", "a", "http://h/"]);
    let expected = "--- .cursor/mcp.json\n+++ .cursor/mcp.json\n@@ -1,5 +1,8 @@\n {\n   \"mcpServers\": {\n\
                    -    \"b\": {\"url\": \"http://b/\"}\n+    \"b\": {\"url\": \"http://b/\"},\n+    \"a\": {\n\
                    +      \"url\": \"http://h/\"\n+    }\n   }\n }\n\
                    written: .cursor/mcp.json\nto take it back: refmcp install cursor --undo\n";
    assert_eq!(shown, expected);
    let shown = user.done(&["install", "cursor", "--undo", "--dry-run"]);
    assert!(shown.contains("-    \"a\": {\n"), "{shown}");
    assert!(user.read("work/.cursor/mcp.json").contains("\"a\""));
}

#[test]
fn secrets_are_written_and_not_shown() {
    let user = User::at_work();
    let neighbour =
        "{\"mcpServers\": {\n\"b\": {\"url\": \"http://b/\", \"headers\": {\n\"X-Other\": \"HUSH\"\n}}}}\n";
    for words in [
        &["-e", "LOG=HUSH", "--", "run"][..],
        &["--", "run", "--token", "HUSH"],
        &["-H", "Authorization: Bearer HUSH", "http://h/"],
        &["-H", "X-Session: HUSH", "http://h/"],
        &["https://h/mcp?api_key=HUSH"],
        &["https://me:HUSH@h/mcp"],
    ] {
        for host in ["cursor", "claude-desktop"] {
            let file = user.write("work/mcp.json", neighbour);
            for more in [&["--dry-run"][..], &["--dry-run", "-o", "json"], &["--yes"]] {
                let words = [&["install", host, "--config", &file, "--name", "a"], more, words].concat();
                let came = user.run(&words);
                assert!(came.code == 0 && came.out.contains("***"), "{words:?}: {came:?}");
                assert!(!came.out.contains("HUSH") && !came.err.contains("HUSH"), "{words:?}: {came:?}");
                assert!(came.err.contains("--show-secrets"), "{words:?}: {came:?}");
            }
            let written = user.read("work/mcp.json");
            assert!(written.matches("HUSH").count() == 2 && !written.contains("***"), "{written}");
            let undo = ["install", host, "--config", &file, "--undo", "--yes"];
            let shown = user.done(&[&undo[..], &["--dry-run", "--show-secrets"]].concat());
            assert!(shown.contains("HUSH") && !shown.contains("***"), "{shown}");
            let came = user.run(&undo);
            assert!(came.code == 0 && !came.out.contains("HUSH"), "{came:?}");
            assert_eq!(user.read("work/mcp.json"), neighbour);
        }
    }
    let words = ["install", "cursor", "--dry-run", "--name", "a", "--", "run", "--token", "${input:t}"];
    assert!(user.done(&words).contains("${input:t}"), "a reference is no secret");
}

#[test]
fn a_secret_that_is_replaced_is_a_change() {
    let user = User::at_work();
    user.run(&["install", "cursor", "--yes", "--name", "a", "-e", "KEY=HUSH1", "--", "run"]);
    let words = ["install", "cursor", "--yes", "--replace", "--name", "a", "-e", "KEY=HUSH2", "--", "run"];
    let came = user.run(&words);
    assert!(came.out.contains("-        \"KEY\": \"***\"\n+        \"KEY\": \"***\"\n"), "{came:?}");
    assert!(user.read("work/.cursor/mcp.json").contains("HUSH2"));
}

#[test]
fn changes_are_taken_back_one_after_the_other() {
    let user = User::at_work();
    let file = "work/.vscode/mcp.json";
    user.done(&["install", "vscode", "--yes"]);
    let first = user.read(file);
    user.done(&["install", "vscode", "--yes", "--name", "two", "http://two/"]);
    user.done(&["install", "vscode", "--yes", "--name", "two", "--replace", "http://three/"]);
    assert!(user.read(file).contains("http://three/"));
    assert_eq!(
        user.done(&["install", "vscode", "--undo", "--yes"]).lines().last(),
        Some("as before: .vscode/mcp.json")
    );
    assert!(user.read(file).contains("http://two/"));
    user.done(&["install", "vscode", "--undo", "--yes"]);
    assert_eq!(user.read(file), first);
    let out = user.done(&["install", "vscode", "--undo", "--yes"]);
    assert!(out.contains("+++ /dev/null\n") && out.ends_with("removed: .vscode/mcp.json\n"), "{out}");
    assert!(!user.path("work/.vscode").exists(), "the folder was made for the file");
    let came = user.run(&["install", "vscode", "--undo", "--yes"]);
    assert!(came.code == 1 && came.err.contains("has written nothing to .vscode/mcp.json"), "{came:?}");
}

#[test]
fn folders_that_others_use_stay() {
    let user = User::at_work();
    user.done(&["install", "cursor", "--yes"]);
    user.write("work/.cursor/rules", "mine");
    user.done(&["install", "cursor", "--undo", "--yes"]);
    assert!(user.path("work/.cursor/rules").exists() && !user.path("work/.cursor/mcp.json").exists());
}

#[test]
fn links_and_permissions_stay() {
    let user = User::at_work();
    user.write("home/dotfiles/mcp.json", "{}\n");
    fs::set_permissions(user.path("home/dotfiles/mcp.json"), fs::Permissions::from_mode(0o604)).unwrap();
    fs::create_dir(user.path("home/.cursor")).unwrap();
    symlink("../dotfiles/mcp.json", user.path("home/.cursor/mcp.json")).unwrap();
    user.done(&["install", "cursor", "--user", "--yes"]);
    assert!(user.path("home/.cursor/mcp.json").is_symlink());
    assert!(user.read("home/dotfiles/mcp.json").contains("refmcp"));
    assert_eq!(mode(&user.path("home/dotfiles/mcp.json")), 0o604);
    user.done(&["install", "cursor", "--user", "--yes", "--undo"]);
    assert_eq!(user.read("home/dotfiles/mcp.json"), "{}\n");
    assert!(user.path("home/.cursor/mcp.json").is_symlink());
}

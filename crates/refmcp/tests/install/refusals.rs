//! When nothing is written: the file is broken or has changed, or the words are wrong.

use super::User;

fn refused(user: &User, words: &[&str], why: &str) {
    let came = user.run(words);
    assert!(came.code == 1 && came.err.contains(why), "{words:?}: {came:?}");
}

#[test]
fn a_broken_file_is_reported_with_line_and_column() {
    let user = User::at_work();
    for (text, why) in [
        ("{\n  \"servers\": {\n    \"a\": oops\n  }\n}\n", ".vscode/mcp.json: line 3, column 10: "),
        ("{\"servers\": {}", "line 1, column "),
        ("[]", "it is no JSON object"),
        ("{\"servers\": []}", "\"servers\" is no object"),
        ("{\"servers\": {\"refmcp\": {}, \"refmcp\": {}}}", "\"refmcp\" is there twice"),
    ] {
        user.write("work/.vscode/mcp.json", text);
        refused(&user, &["install", "vscode", "--yes", "--replace"], why);
        assert_eq!(user.read("work/.vscode/mcp.json"), text);
    }
    assert!(!user.path("state/installs.json").exists());
}

#[test]
fn another_server_of_the_same_name_is_replaced_only_on_request() {
    let user = User::at_work();
    let text = "{\"mcpServers\": {\"refmcp\": {\"command\": \"mine\"}}}";
    user.write("work/.mcp.json", text);
    refused(&user, &["install", "claude-code", "--yes"], "has another server \"refmcp\": give --replace");
    refused(&user, &["install", "claude-code", "--dry-run"], "give --replace");
    assert_eq!(user.read("work/.mcp.json"), text);
    let out = user.done(&["install", "claude-code", "--yes", "--replace"]);
    assert!(out.contains("-{\"mcpServers\": {\"refmcp\": {\"command\": \"mine\"}}}"), "{out}");
    user.done(&["install", "claude-code", "--undo", "--yes"]);
    assert_eq!(user.read("work/.mcp.json"), text);
}

#[test]
fn nothing_is_taken_back_from_a_file_that_has_changed() {
    let user = User::at_work();
    user.write("work/.mcp.json", "{\"mcpServers\": {}}");
    user.done(&["install", "claude-code", "--yes"]);
    let changed = user.read("work/.mcp.json").replace("refmcp", "other");
    user.write("work/.mcp.json", &changed);
    let why = "has changed since refmcp wrote it, and is left as it is: take the server \"refmcp\" out of it by hand";
    refused(&user, &["install", "claude-code", "--undo", "--yes"], why);
    assert_eq!(user.read("work/.mcp.json"), changed);
    std::fs::remove_file(user.path("work/.mcp.json")).unwrap();
    refused(&user, &["install", "claude-code", "--undo", "--yes"], "is not there any more");
    refused(&user, &["install", "cursor", "--undo", "--yes"], "has written nothing to .cursor/mcp.json");
}

#[test]
fn without_a_terminal_nothing_is_written_unasked() {
    let user = User::at_work();
    refused(&user, &["install", "vscode"], "there is no terminal to ask at: give --yes");
    assert!(!user.path("work/.vscode").exists());
}

#[test]
fn wrong_arguments_are_explained() {
    let user = User::at_work();
    for (words, why) in [
        (&["install"][..], "<HOST>"),
        (&["install", "emacs"], "claude-desktop"),
        (&["install", "vscode", "http://h/"], "--name NAME"),
        (&["install", "vscode", "--", "run"], "--name NAME"),
        (&["install", "vscode", "--name", " "], "--name is empty"),
        (&["install", "vscode", "--name", "a", "server"], "\"server\" is no URL"),
        (&["install", "vscode", "--name", "a", "ftp://h/"], "http, https, ws"),
        (&["install", "vscode", "--name", "a", "http://h/", "--", "run"], "cannot be used with"),
        (
            &["install", "vscode", "--name", "a", "http://h/", "-e", "A=1"],
            "--env is for servers that are started",
        ),
        (
            &["install", "vscode", "--name", "a", "-H", "A: b", "--", "run"],
            "--header is for servers at an address",
        ),
        (&["install", "vscode", "--undo", "--name", "a"], "cannot be used with"),
        (&["install", "vscode", "--user", "--config", "f"], "cannot be used with"),
    ] {
        refused(&user, words, why);
    }
    let came = crate::support::Ended::from(
        user.command(&["install", "cursor", "--user", "--yes"]).env_remove("HOME").output().unwrap(),
    );
    assert!(came.code == 1 && came.err.contains("set HOME"), "{came:?}");
}

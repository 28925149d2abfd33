//! What a user at a terminal completes, alike in every shell.

use super::User;
use super::candidates::hostile;
use super::support::Server;
use super::support::Terminal;
use super::terminal::{PROMPT, complete};

/// Stands for the address of a server.
const URL: &str = "URL";

/// Lines, and what tab makes of them.
const LINES: [(&str, &str); 19] = [
    ("refmcp inst", "refmcp install "),
    ("refmcp install claude-", "refmcp install claude-"),
    ("refmcp call --tot", "refmcp call --total-timeout "),
    ("refmcp call --output=jsonl", "refmcp call --output=jsonl "),
    // A configured server that is trusted, which is a program: its name, and what it offers.
    ("refmcp call my", "refmcp call my\\ server "),
    ("refmcp call my\\ se", "refmcp call my\\ server "),
    ("refmcp call my\\ server su", "refmcp call my\\ server sum "),
    ("refmcp call 'my server' su", "refmcp call 'my server' sum "),
    ("LANG=C refmcp prompt my\\ server code", "LANG=C refmcp prompt my\\ server code_review "),
    // A server at an address.
    ("refmcp call URL su", "refmcp call URL sum "),
    ("refmcp call URL echo ", "refmcp call URL echo message="),
    ("refmcp call URL ask_user form=ch", "refmcp call URL ask_user form=choice "),
    ("refmcp prompt URL code", "refmcp prompt URL code_review "),
    ("refmcp prompt URL code_review lang", "refmcp prompt URL code_review language="),
    ("refmcp prompt URL code_review language=rus", "refmcp prompt URL code_review language=rust "),
    ("refmcp read URL file:///not", "refmcp read URL file:///notes/todo.txt "),
    // Files.
    ("refmcp call --config some", "refmcp call --config some\\ file.json "),
    ("refmcp call --config=some", "refmcp call --config=some\\ file.json "),
    ("refmcp call --config ~/some", "refmcp call --config ~/some\\ file.json "),
];

/// Completes lines in a shell, those of all shells and those of this one, and runs one of them.
pub(super) fn completes_lines(start: fn(&User) -> Terminal, of_this_shell: &[(&str, &str)]) {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    let configured = serde_json::json!({"mcpServers": {"my server": {"command": user.server()}}});
    user.write(".mcp.json", &configured.to_string());
    user.run(&["trust", "allow", "my server"]);
    user.write("some file.json", "{}");
    let mut terminal = start(&user);
    for (line, expected) in LINES.iter().chain(of_this_shell) {
        let completed = complete(&mut terminal, &line.replace(URL, &url));
        assert_eq!(completed, expected.replace(URL, &url), "{line}");
    }
    assert!(user.was_started());
    user.wait_until_ended();
    // Several are listed, and what is completed runs.
    terminal.press(&format!("refmcp call {url} sum \t"));
    let listed = terminal.expect("b=");
    assert!(listed.contains("a="), "{listed:?}");
    terminal.press("a\t1 b\t2\n");
    terminal.expect("{\"total\":3}");
}

/// Completes names of a server that a shell would act upon, and runs the lines: the very names come out. The tools are
/// those of `hostile`, in their order.
pub(super) fn quotes_names(start: fn(&User) -> Terminal, typed_and_completed: [(&str, &str); 3]) {
    let (user, url) = (User::new(), hostile());
    let mut terminal = start(&user);
    let names = ["$(touch hit)", "`touch hit`;x", "a b"];
    for (name, (typed, expected)) in names.into_iter().zip(typed_and_completed) {
        let line = format!("refmcp call --protocol-version legacy {url} ");
        let completed = complete(&mut terminal, &format!("{line}{typed}"));
        assert_eq!(completed, format!("{line}{expected}"), "{typed}");
        terminal.press(&format!("{completed}\n"));
        terminal.expect(&format!("Call {name} of {url}"));
        terminal.expect("Run it?");
        terminal.press("no\n");
        terminal.expect(PROMPT);
    }
    assert!(!user.path("hit").exists());
}

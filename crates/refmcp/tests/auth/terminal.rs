//! Logins at a terminal: what a person is asked, and what they paste.

use std::process::Command;

use crate::secrets::Watch;
use crate::server::Server;
use crate::support::Terminal;
use crate::user::User;

/// A command of a user at a terminal.
pub(crate) fn at_terminal(user: &User, words: &[&str]) -> Terminal {
    let mut command = user.command(words);
    Terminal::start(command.env("NO_COLOR", "1"), 160)
}

/// Waits until the command has ended with this code, and has the test's watch see what was shown.
pub(crate) fn ends_with(mut terminal: Terminal, code: i32) {
    assert_eq!(terminal.ended().code(), Some(code), "{}", terminal.all);
    Watch::of_this_test().sees_terminal(&terminal.all);
}

#[test]
fn the_address_of_another_machines_browser_can_be_pasted() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = server.url();
    let mut login = at_terminal(&user, &["auth", "login", &url, "--no-browser"]);
    login.expect("Log in at this page:");
    login.expect("  http://");
    let page = format!("http://{}", login.expect("\n").trim());
    login.expect("Address:");
    for (typed, said) in
        [("nonsense", "That is no address"), ("http://h/callback?state=x", "not where this login")]
    {
        login.enter(typed);
        login.expect(said);
        login.expect("Address:");
    }
    let curl = ["-sS", "--noproxy", "*", "-o", "/dev/null", "-w", "%{redirect_url}", &page];
    let back = Command::new("curl").args(curl).output().unwrap();
    login.enter(&String::from_utf8(back.stdout).unwrap());
    login.expect("renewal  by itself");
    ends_with(login, 0);
    assert_eq!(user.visited(), "", "no browser was opened");
    assert_eq!(user.does(&["call", &url, "echo", "message=in"]), "in\n");
}

#[test]
fn a_login_can_be_declined() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = server.url();
    for (answer, code) in [("n", 3), ("", 3), ("y", 0)] {
        let mut call = at_terminal(&user, &["call", &url, "echo", "message=in"]);
        call.expect(&format!("{url} wants to know who you are."));
        call.expect("Log in at 127.0.0.1 for mcp:read, with a browser? [y/N]: ");
        assert_eq!(user.visited(), "", "not agreed yet");
        call.enter(answer);
        call.expect(if code == 0 { "in\n" } else { "the login was declined" });
        ends_with(call, code);
    }
}

//! Servers that are restarted at the same address and have lost all state: neither the keys that they signed with, nor the
//! clients that registered.

use serde_json::Value;

use crate::server::Server;
#[cfg(target_os = "linux")]
use crate::terminal::{at_terminal, ends_with};
use crate::user::User;

/// Another one in the place of a server, which knows nothing of it.
fn replaced(server: Server, options: &[&str]) -> Server {
    let (_, port) = server.address.rsplit_once(':').unwrap();
    let port = port.to_owned();
    drop(server);
    let auto = ["serve", "--port", &port, "--auth", "builtin", "--auth-login", "auto"];
    Server::run(&[&auto[..], options].concat())
}

/// How often the browser was sent somewhere.
fn visits(user: &User) -> usize {
    user.visited().lines().filter(|line| *line == "1").count()
}

/// The client that is registered, and the one that the token was given to.
fn clients(user: &User) -> (Value, Value) {
    let kept = user.kept();
    let client = |kind: &str| kept[kind][0]["value"]["client_id"].clone();
    assert!(kept["registrations"].as_array().unwrap().len() <= 1, "{}", kept["registrations"]);
    (client("registrations"), client("grants"))
}

/// Ways to log in: what the server wants, and what is said at the login.
const WAYS: [(&[&str], &[&str]); 3] =
    [(&[], &[]), (&["--auth-dpop", "nonce"], &["--dpop"]), (&["--auth-dpop", "required"], &[])];

fn login<'a>(url: &'a str, words: &[&'a str]) -> Vec<&'a str> {
    [&["auth", "login", url, "--login-timeout", "20"][..], words].concat()
}

#[test]
fn a_login_works_after_a_restart_of_the_server() {
    for (options, words) in WAYS {
        let (user, first) = (User::new(), Server::start(options));
        let url = &first.url();
        let login = login(url, words);
        user.does(&login);
        assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
        let before = clients(&user);
        // While it is the same, so is the client.
        user.does(&login);
        assert_eq!(clients(&user), before);
        let _second = replaced(first, options);
        user.does(&login);
        assert_eq!(visits(&user), 3, "one at each login");
        let after = clients(&user);
        assert!(after.0 == after.1 && after.0 != before.0, "{before:?} {after:?}");
        assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
    }
}

#[test]
fn without_a_terminal_the_error_asks_for_one_login() {
    for (options, words) in WAYS {
        let (user, first) = (User::new(), Server::start(options));
        let url = &first.url();
        let login = login(url, words);
        user.does(&login);
        let second = replaced(first, options);
        // The old token is refused, and so is what would renew it: that is tried once, and then no more.
        for _ in 0..2 {
            let said = user.fails(3, &["call", url, "echo", "message=in"]);
            assert!(said.contains(&format!("to log in: refmcp auth login {url}")), "{said}");
        }
        user.does(&login);
        assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
        assert_eq!(visits(&user), 2);
        let log = second.log();
        let refused = log.lines().filter(|line| line.contains("no token") && line.contains("invalid_client"));
        assert_eq!(refused.count(), 2, "by the first call, and before the login: {log}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_person_at_a_terminal_is_asked_once_and_logged_in() {
    for (options, words) in WAYS {
        let (user, first) = (User::new(), Server::start(options));
        let url = &first.url();
        user.does(&login(url, words));
        let _second = replaced(first, options);
        let mut call = at_terminal(&user, &["call", url, "echo", "message=in"]);
        call.expect("with a browser? [y/N]: ");
        call.enter("y");
        call.expect("in\n");
        ends_with(call, 0);
        assert_eq!(visits(&user), 2);
        // What was got is kept.
        assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
    }
}

#[test]
fn client_credentials_need_no_login() {
    let options = ["--auth-client", "robot:hush"];
    let (user, mut server) = (User::new(), Server::start(&options));
    let url = &server.url();
    let secret = user.write("secret", "hush");
    let robot = ["--grant", "client-credentials", "--client-id", "robot", "--client-secret-file", &secret];
    for dpop in [&[][..], &["--dpop"]] {
        let login = [&["auth", "login", url][..], &robot, dpop].concat();
        user.does(&login);
        server = replaced(server, &options);
        assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
        server = replaced(server, &options);
        user.does(&login);
        assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
    }
    assert_eq!(user.visited(), "");
}

#[test]
fn a_client_whose_login_timed_out_is_not_used_again() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = &server.url();
    user.does(&["auth", "login", url]);
    let (before, _) = clients(&user);
    // As if the page had said that the client is not known, and the token endpoint had not.
    user.browser("true");
    let said = user.fails(3, &["auth", "login", url, "--login-timeout", "1"]);
    assert!(said.contains("the user did not log in in time"), "{said}");
    assert_eq!(clients(&user).0, Value::Null);
    assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n", "the old login is as good as before");
    user.browser("exec curl -sS -L --max-redirs 5 --noproxy '*' -o page.html \"$1\"");
    user.does(&["auth", "login", url, "--login-timeout", "20"]);
    let (after, granted) = clients(&user);
    assert!(after != before && after == granted, "{before} {after} {granted}");
}

#[cfg(target_os = "linux")]
#[test]
fn declining_a_login_keeps_the_client() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = &server.url();
    user.does(&["auth", "login", url]);
    let (before, _) = clients(&user);
    user.does(&["auth", "logout", url]);
    for _ in 0..2 {
        let mut call = at_terminal(&user, &["call", url, "echo", "message=in"]);
        call.expect("with a browser? [y/N]: ");
        call.enter("n");
        call.expect("the login was declined");
        ends_with(call, 3);
        assert_eq!(clients(&user).0, before);
    }
}

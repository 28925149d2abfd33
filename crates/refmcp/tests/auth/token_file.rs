//! The file of tokens: others cannot read it, damage is told of, and processes do not take it from each other.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::server::Server;
use crate::user::{User, came, renewal_of};

#[test]
fn other_users_cannot_read_it() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = &server.url();
    user.does(&["auth", "login", url]);
    let mode = |path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(user.tokens()), mode(user.path("state"))), (0o600, 0o700));
    fs::set_permissions(user.tokens(), fs::Permissions::from_mode(0o644)).unwrap();
    for words in [&["call", url, "echo", "message=x"][..], &["auth", "status"], &["auth", "logout", url]] {
        let came = user.run(words);
        assert_ne!(came.code, 0, "{came:?}");
        assert!(came.err.contains("others can get at") && came.err.contains("tokens.json"), "{came:?}");
    }
}

#[test]
fn a_damaged_file_is_reported_and_left_alone() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = &server.url();
    user.does(&["auth", "login", url]);
    let whole = fs::read(user.tokens()).unwrap();
    let half = whole[..whole.len() / 2].to_vec();
    fs::write(user.tokens(), &half).unwrap();
    for words in [&["call", url, "echo", "message=x"][..], &["auth", "login", url], &["auth", "logout", url]]
    {
        let came = user.run(words);
        assert_ne!(came.code, 0, "{came:?}");
        assert!(came.err.contains("tokens.json is damaged"), "{came:?}");
        assert_eq!(fs::read(user.tokens()).unwrap(), half, "{words:?}");
    }
    fs::write(user.tokens(), &whole).unwrap();
    assert_eq!(user.does(&["call", url, "echo", "message=x"]), "x\n");
}

#[test]
fn a_broken_entry_of_one_server_does_not_affect_the_others() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = &server.url();
    user.does(&["auth", "login", url]);
    let whole = user.kept();
    let grant = &whole["grants"][0];
    let mut kept = whole.clone();
    let broken =
        |server: &str, issuer: &str| serde_json::json!({ "server": server, "issuer": issuer, "value": 3 });
    kept["registrations"].as_array_mut().unwrap().insert(0, broken("", "https://broken.example"));
    // For the same server, from another issuer: the newest is last.
    kept["grants"] =
        serde_json::json!([broken("https://a.example", "https://b"), broken(url, "https://b"), grant]);
    fs::write(user.tokens(), kept.to_string()).unwrap();
    let status = user.run(&["auth", "status"]);
    assert_eq!(status.code, 0, "{status:?}");
    assert!(status.out.contains(url.as_str()) && status.err.contains("makes no sense"), "{status:?}");
    let left = user.run(&["auth", "logout", url]);
    assert_eq!(left.code, 0, "{left:?}");
    assert!(left.out.starts_with("logged out") && left.out.contains("makes no sense"), "{left:?}");
    // What could be given back is given back.
    assert!(renewal_of(&grant["value"]).contains("invalid_grant"));
    let login = user.run(&["auth", "login", url]);
    assert_eq!(login.code, 0, "{login:?}");
    assert!(login.err.contains("https://broken.example"), "{login:?}");
    assert_eq!(user.kept()["registrations"][0]["value"], 3, "it was left as it is");
}

#[test]
fn processes_that_refresh_at_once_share_one_token() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = &server.url();
    user.does(&["auth", "login", url]);
    let before = user.kept();
    // A refresh token is good once: a second use would revoke all tokens.
    let over = before.to_string().replace("\"expires_at\":", "\"expires_at\":1,\"was\":");
    fs::write(user.tokens(), over).unwrap();
    let calls: Vec<_> = (0..6)
        .map(|_| {
            let mut call = user.command(&["call", url, "echo", "message=x"]);
            call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for call in calls {
        let came = came(call.wait_with_output().unwrap());
        assert_eq!((came.code, came.out.as_str()), (0, "x\n"), "{came:?}");
    }
    let after = user.kept();
    assert_eq!(after["grants"].as_array().unwrap().len(), 1);
    assert_ne!(before["grants"][0]["value"]["token"], after["grants"][0]["value"]["token"]);
    assert_eq!(user.visited().lines().filter(|line| *line == "1").count(), 1, "no second login");
}

#[test]
fn logins_to_several_servers_at_once_are_all_kept() {
    let user = User::new();
    let servers: Vec<Server> = (0..3).map(|_| Server::start(&[])).collect();
    let logins: Vec<_> = servers
        .iter()
        .map(|server| {
            let mut login = user.command(&["auth", "login", &server.url()]);
            login.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for login in logins {
        let came = came(login.wait_with_output().unwrap());
        assert_eq!(came.code, 0, "{came:?}");
    }
    for server in &servers {
        assert_eq!(user.does(&["call", &server.url(), "echo", "message=x"]), "x\n");
    }
    assert_eq!(user.kept()["grants"].as_array().unwrap().len(), 3);
}

//! An authorization server that goes wrong: every word that it knows ends in a login all the same, or in an error that
//! says who is to blame.

use std::process::Command;

use crate::server::Server;
use crate::user::User;

/// How a login ends, and what is said.
enum Ends {
    /// It works, and so does a call.
    Well,
    /// There is no login; this is said.
    Badly(&'static str),
    /// There is a token, which the server does not take.
    Refused,
}

const FAULTS: [(&str, Ends); 25] = [
    ("short-expiry", Ends::Well),
    ("wrong-issuer-metadata", Ends::Badly("issuer")),
    ("wrong-issuer-token", Ends::Refused),
    ("wrong-audience", Ends::Refused),
    ("missing-iss", Ends::Badly("mix-up attack between two authorization servers")),
    ("foreign-iss", Ends::Badly("mix-up attack between two authorization servers")),
    ("wrong-state", Ends::Badly("the state of another login")),
    ("expired-code", Ends::Badly("invalid_grant")),
    ("rotated-keys", Ends::Well),
    ("unknown-kid", Ends::Refused),
    ("no-pkce-in-metadata", Ends::Badly("PKCE")),
    ("no-registration", Ends::Badly("does not know this client")),
    ("no-client-documents", Ends::Well),
    ("oidc-only", Ends::Well),
    ("issuer-path", Ends::Well),
    ("issuer-path-oidc", Ends::Well),
    ("issuer-path-appended", Ends::Well),
    ("refused-scopes", Ends::Well),
    ("refuse-refresh", Ends::Well),
    ("no-refresh-token", Ends::Well),
    ("opaque-tokens", Ends::Well),
    ("html-token-response", Ends::Badly("token")),
    ("server-error-token", Ends::Badly("500")),
    ("hanging-token", Ends::Badly("no response in time")),
    ("slow=1", Ends::Well),
];

#[test]
fn the_help_explains_every_fault() {
    let help = Command::new(env!("CARGO_BIN_EXE_refmcp")).args(["serve", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    for (word, _) in &FAULTS {
        let word = word.split('=').next().unwrap();
        assert!(help.contains(&format!("  {word} ")), "{word}");
    }
}

#[test]
fn every_fault_ends_in_a_login_or_names_its_cause() {
    let next = std::sync::Mutex::new(FAULTS.iter());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some((word, ends)) = next.lock().unwrap().next() else { break };
                    check(word, ends);
                }
            });
        }
    });
}

fn check(word: &str, ends: &Ends) {
    let (user, server) = (User::new(), Server::start(&["--auth-fault", word]));
    assert!(
        server.banner.contains(&format!("faults            {}", word.split('=').next().unwrap())),
        "{word}"
    );
    let url = &server.url();
    let login = user.run(&["auth", "login", url, "--login-timeout", "5"]);
    match ends {
        Ends::Well => {
            assert_eq!(login.code, 0, "{word}: {login:?}");
            assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n", "{word}");
        }
        Ends::Badly(what) => {
            assert_eq!(login.code, 3, "{word}: {login:?}");
            assert!(login.err.contains(what), "{word}: {}", login.err);
        }
        Ends::Refused => assert_eq!(login.code, 3, "{word}: {login:?}"),
    }
    if !matches!(ends, Ends::Well) {
        user.fails(3, &["call", url, "echo", "message=in"]);
    }
}

#[test]
fn unknown_faults_and_external_issuers_are_refused() {
    for (words, hint) in [
        (&["--auth", "builtin", "--auth-fault", "nonsense"][..], "is no fault"),
        (&["--auth", "https://issuer.example", "--auth-fault", "slow"], "--auth builtin"),
        (&["--auth", "http://issuer.example"], "must be https"),
        (&["--auth-login", "auto"], "--auth"),
        (&["--auth", "builtin", "--host", "0.0.0.0"], "--public-url"),
    ] {
        let words = [&["serve", "--port", "0"][..], words].concat();
        let output = Command::new(env!("CARGO_BIN_EXE_refmcp")).args(&words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(hint), "{words:?}: {said}");
    }
}

#[test]
fn a_token_of_ones_own_that_is_refused_says_why() {
    let (user, server) = (User::new(), Server::start(&[]));
    let socket = format!("ws://{}/mcp/ws", server.address);
    for target in [&server.url(), &socket] {
        let said = user.fails(3, &["info", target, "-H", "Authorization: Bearer nonsense"]);
        let (_, reason) = said.split_once("(status 401): ").unwrap_or_else(|| panic!("{target}: {said}"));
        assert!(reason.contains("token") && !said.contains("nonsense"), "{target}: {said}");
    }
}

//! Nothing that opens a door is in any log, however much is logged.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::server::Server;
use crate::user::User;

#[test]
fn no_log_has_a_secret_in_it() {
    let options = ["--log", "trace", "--auth-client", "robot:a-secret-of-the-robot", "--auth-introspect"];
    let (user, server) = (User::new(), Server::start(&options));
    // Where the browser ends shows the code; the page does not.
    user.browser("curl -sS -L --noproxy '*' -w '%{url_effective}\\n' -o page.html \"$1\" >>ended");
    let (url, mut said) = (server.url(), String::new());
    let mut secrets = BTreeSet::from(["a-secret-of-the-robot".to_owned()]);
    let secret = user.write("secret", "a-secret-of-the-robot");
    let robot = ["--grant", "client-credentials", "--client-id", "robot", "--client-secret-file", &secret];
    let explain = ["--explain", "--log", "trace"];
    for words in [
        [&["auth", "login", &url, "--dpop"][..], &explain].concat(),
        [&["auth", "login", &url][..], &explain].concat(),
        [&["call", &url, "echo", "message=hello"][..], &explain].concat(),
        [&["call", &url, "echo", "message=hello", "--era", "legacy"][..], &explain].concat(),
        [&["auth", "login", &url][..], &robot, &explain].concat(),
        [&["auth", "status", "-o", "json"][..], &explain].concat(),
        [&["auth", "logout", &url][..], &explain].concat(),
    ] {
        if user.tokens().exists() {
            collect(&user.kept(), &mut secrets);
        }
        let came = user.run(&words);
        assert_eq!(came.code, 0, "{words:?}: {came:?}");
        // The page that a person is to visit is told to them; nobody else sees it.
        let told = came.err.lines().filter(|line| !line.starts_with("  http://"));
        said.extend(told.chain(came.out.lines()).flat_map(|line| [line, "\n"]));
        if user.tokens().exists() {
            collect(&user.kept(), &mut secrets);
        }
    }
    let ended = std::fs::read_to_string(user.path("ended")).unwrap();
    for (address, names) in [(user.visited(), &["state"][..]), (ended, &["code", "state"])] {
        for part in address.split(['?', '&', '\n']) {
            if let Some((name, value)) = part.split_once('=')
                && names.contains(&name)
            {
                secrets.insert(value.to_owned());
            }
        }
    }
    said += &server.log();
    // Of what stands behind a challenge only the digest is known.
    let visited = user.visited();
    let challenges: Vec<&str> =
        visited.split('&').filter_map(|part| part.strip_prefix("code_challenge=")).collect();
    assert!(challenges.len() > 1, "{visited}");
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-._~".contains(c);
    for word in said.split(|c: char| !is_word(c)).filter(|word| word.len() >= 43) {
        assert!(
            !challenges.contains(&refmcp_auth::pkce::challenge(word).as_str()),
            "a verifier is in the log"
        );
    }
    assert!(secrets.len() > 8, "{}", secrets.len());
    assert!(said.len() > 10_000, "nothing was logged");
    for secret in &secrets {
        let place = said.find(secret.as_str());
        let around = place.map(|place| {
            let (from, to) = (place.saturating_sub(200), (place + 60).min(said.len()));
            String::from_utf8_lossy(&said.as_bytes()[from..to]).into_owned()
        });
        assert_eq!(around, None, "{secret} is in the log");
    }
}

/// Texts that are kept and must not be seen.
fn collect(kept: &Value, secrets: &mut BTreeSet<String>) {
    match kept {
        Value::Object(members) => {
            for (name, value) in members {
                match (name.as_str(), value) {
                    ("token" | "refresh_token" | "pkcs8" | "client_secret", Value::String(text)) => {
                        secrets.insert(text.clone());
                    }
                    _ => collect(value, secrets),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, secrets)),
        _ => {}
    }
}

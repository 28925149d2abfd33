//! Asking an issuer elsewhere about tokens: another process, which knows this server by an id and a secret.

use refmcp_testkit::ports::free_port;

use crate::requests::{form, session, token};
use crate::server::Server;
use crate::support::wait_until;
use crate::user::User;

/// A server that asks an issuer about every token, and that issuer.
struct Pair {
    issuer: Server,
    server: Server,
}

impl Pair {
    /// The server says that this is its secret.
    fn new(user: &User, secret: &str, options: &[&str]) -> Self {
        // The issuer has to know the server's address, and the server the issuer's name: one of them goes by a port of its
        // own choice.
        let issuer = free_port().to_string();
        let name = format!("http://127.0.0.1:{issuer}");
        let secret = user.write("asker", secret);
        let asks = ["--auth-introspect", "--auth-introspect-every", "1", "--auth-introspect-id", "asker"];
        let words = ["serve", "--port", "0", "--log", "trace", "--auth", &name];
        let server = Server::run(&[&words[..], &asks, &["--auth-introspect-secret-file", &secret]].concat());
        let clients = ["--auth-client", "robot:hush", "--auth-client", "asker:between-us"];
        let words = ["serve", "--port", &issuer, "--auth", "builtin", "--auth-resource", &server.url()];
        let issuer = Server::run(&[&words[..], &clients, options].concat());
        Self { issuer, server }
    }

    fn token(&self) -> String {
        token(&self.issuer.address, &self.server.url())
    }
}

#[test]
fn a_token_is_valid_until_its_issuer_revokes_it() {
    for fault in [&[][..], &["--auth-fault", "opaque-tokens"]] {
        let user = User::new();
        let pair = Pair::new(&user, "between-us\n", fault);
        let (address, issuer) = (&pair.server.address, &pair.issuer.address);
        let (first, second) = (pair.token(), pair.token());
        assert_eq!(first.contains('.'), fault.is_empty());
        assert_eq!((session(address, &first).status, session(address, &second).status), (200, 200));
        let revoked = format!("client_id=robot&client_secret=hush&token={first}");
        assert_eq!(form(issuer, "/revoke", &revoked).status, 200);
        // What was answered is believed for a second.
        wait_until("the refusal of a revoked token", || session(address, &first).status == 401);
        assert_eq!(session(address, &second).status, 200, "the other is as good as before");
        // A token for the issuer's own server is refused, even where the issuer calls it active.
        let other = token(issuer, &pair.issuer.url());
        assert_eq!(session(address, &other).status, 401);
        let log = pair.server.log();
        for secret in [&first, &second, &other, "between-us"] {
            assert!(!log.contains(secret), "{secret}: {log}");
        }
    }
}

#[test]
fn a_server_unknown_to_its_issuer_refuses_all_tokens_and_logs_why() {
    let user = User::new();
    let pair = Pair::new(&user, "something-else", &[]);
    let token = pair.token();
    let refused = session(&pair.server.address, &token);
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.header("Retry-After").is_some(), "{refused:?}");
    let said = refused.text();
    assert!(said.contains("cannot be checked"), "{said}");
    let log = pair.server.log();
    let told = log.lines().find(|line| line.contains("cannot be asked about a token")).unwrap_or_default();
    assert!(told.contains("WARN") && told.contains("401") && told.contains("secret"), "{log}");
    for secret in [&token, "something-else", "between-us"] {
        assert!(!log.contains(secret) && !said.contains(secret), "{secret}: {said} {log}");
    }
}

#[test]
fn without_its_issuer_a_server_refuses_all_tokens() {
    let user = User::new();
    let pair = Pair::new(&user, "between-us", &[]);
    let token = pair.token();
    assert_eq!(session(&pair.server.address, &token).status, 200);
    drop(pair.issuer);
    wait_until("the end of belief", || session(&pair.server.address, &token).status == 503);
    let log = pair.server.log();
    assert!(log.contains("cannot be asked about a token") && !log.contains(&token), "{log}");
}

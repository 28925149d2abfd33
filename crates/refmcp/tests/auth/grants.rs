//! Other ways in, and what others say about who may come.

use std::io::Write;
use std::process::Stdio;
use std::time::{SystemTime, UNIX_EPOCH};

use refmcp_auth::jose::{Header, Jwk, Jwks, PrivateKey};
use serde_json::{Value, json};
use url::form_urlencoded;

use crate::extensions::declared_capabilities;
use crate::server::Server;
use crate::support::http::{Answer, answering};
use crate::user::{User, came};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A key, and what others need to check its signatures.
fn key() -> (PrivateKey, Jwks) {
    let key = PrivateKey::generate().unwrap();
    let public = Jwk { kid: Some("k".to_owned()), ..key.public() };
    (key, Jwks { keys: vec![public] })
}

fn signed(key: &PrivateKey, kind: &str, claims: &Value) -> String {
    key.sign(Header { kid: Some("k".to_owned()), ..Header::of_type(kind) }, claims).unwrap()
}

#[test]
fn enterprise_managed_authorization_issues_tokens() {
    let (user, (key, keys)) = (User::new(), key());
    let keys = user.write("keys.json", &serde_json::to_string(&keys).unwrap());
    let provider = answering(move |asked, _| {
        let form: Vec<(String, String)> =
            form_urlencoded::parse(asked.body.as_bytes()).into_owned().collect();
        let field = |name: &str| form.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone());
        if asked.path != "/token" || field("subject_token").as_deref() != Some("ann has signed on") {
            return Answer::json("400 Bad Request", &json!({ "error": "invalid_grant" }));
        }
        let claims = json!({
            "iss": "https://idp.example", "sub": "ann", "aud": field("audience"), "client_id": "robot",
            "resource": field("resource"), "scope": field("scope"), "jti": format!("{:?}", SystemTime::now()),
            "iat": now(), "exp": now() + 300,
        });
        let token = signed(&key, "oauth-id-jag+jwt", &claims);
        let kind = "urn:ietf:params:oauth:token-type:id-jag";
        let answer = json!({
            "issued_token_type": kind, "access_token": token, "token_type": "N_A", "expires_in": 300,
        });
        Answer::json("200 OK", &answer)
    });
    let trusted = format!("https://idp.example={keys}");
    let server = Server::start(&["--auth-client", "robot:hush", "--auth-identity-provider", &trusted]);
    let (url, endpoint) = (&server.url(), format!("{provider}/token"));
    let secret = user.write("secret", "hush");
    let signed_on = user.write("id-token", "ann has signed on\n");
    let words = ["auth", "login", url, "--grant", "enterprise", "--client-id", "robot"];
    let words =
        [&words[..], &["--client-secret-file", &secret, "--idp-issuer", "https://idp.example"]].concat();
    let words = [&words[..], &["--idp-token-endpoint", &endpoint, "--idp-client-id", "we"]].concat();
    user.does(&[&words[..], &["--id-token-file", &signed_on]].concat());
    assert_eq!(user.visited(), "", "no person was asked");
    assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
    let extensions = &declared_capabilities(&user, url, "modern")["extensions"];
    assert_eq!(extensions["io.modelcontextprotocol/enterprise-managed-authorization"], json!({}));
    let kept = user.kept().to_string();
    assert!(!kept.contains("hush") && !kept.contains("signed on"), "{kept}");
    // When the token is over, the next is got in the same way.
    std::fs::write(user.tokens(), kept.replace("\"expires_at\":", "\"expires_at\":1,\"was\":")).unwrap();
    assert_eq!(user.does(&["call", url, "echo", "message=again"]), "again\n");
    let unknown = user.write("unknown", "not issued");
    let refused = user.fails(3, &[&words[..], &["--id-token-file", &unknown]].concat());
    assert!(refused.contains("invalid_grant"), "{refused}");
    user.fails(1, &words);
}

/// An issuer that says who it is and whose keys these are, and nothing else.
fn issuer_with(keys: &Jwks) -> String {
    let keys = serde_json::to_value(keys).unwrap();
    answering(move |asked, origin| match asked.path.as_str() {
        "/.well-known/oauth-authorization-server" => Answer::json(
            "200 OK",
            &json!({ "issuer": origin, "jwks_uri": format!("{origin}/jwks"),
                    "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"), "response_types_supported": ["code"] }),
        ),
        "/jwks" => Answer::json("200 OK", &keys),
        _ => Answer::json("404 Not Found", &json!({})),
    })
}

/// The header with a token of this issuer for these audiences.
fn token_for(audience: &Value, issuer: &str, key: &PrivateKey) -> String {
    let claims = json!({
        "iss": issuer, "aud": audience, "sub": "ann", "client_id": "c", "scope": "mcp:read", "jti": "1",
        "iat": now(), "exp": now() + 300,
    });
    format!("Authorization: Bearer {}", signed(key, "at+jwt", &claims))
}

#[test]
fn tokens_with_other_audiences_are_taken_on_request() {
    let (user, (key, keys)) = (User::new(), key());
    let issuer = issuer_with(&keys);
    for (options, code) in [(&[][..], 3), (&["--auth-other-audiences"], 0)] {
        let server = Server::run(&[&["serve", "--port", "0", "--auth", &issuer][..], options].concat());
        let url = server.url();
        let info =
            |audience: Value| user.run(&["info", &url, "-H", &token_for(&audience, &issuer, &key)]).code;
        assert_eq!(info(json!(["account", url])), code, "{options:?}");
        assert_eq!(info(json!([url])), 0);
        assert_eq!(info(json!(["account"])), 3);
    }
}

#[test]
fn an_issuer_may_be_nearer_than_the_server_says_that_it_is() {
    let (user, (key, keys)) = (User::new(), key());
    let issuer = issuer_with(&keys);
    let public = ["serve", "--port", "0", "--public-url", "https://mcp.example", "--auth", &issuer];
    let server = Server::run(&public);
    let port = server.address.rsplit(':').next().unwrap();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let token = token_for(&json!("https://mcp.example/mcp"), &issuer, &key);
    user.does(&["info", &url, "-H", &token]);
}

#[test]
fn a_query_makes_no_other_server() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = &format!("{}?x=1", server.url());
    user.does(&["auth", "login", url]);
    user.does(&["auth", "status", url]);
    assert_eq!(user.does(&["call", url, "echo", "message=in"]), "in\n");
    // What is in a query may be a secret.
    assert_eq!(user.does(&["auth", "logout", url]), format!("logged out of {}?x=***\n", server.url()));
    assert_eq!(user.kept()["grants"], json!([]));
    assert_eq!(user.kept()["manners"], json!([]));
}

#[test]
fn the_shell_says_how_to_log_in() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = &server.url();
    let hint = format!("to log in: refmcp auth login {url}");
    let refused = user.fails(3, &["shell", url]);
    assert!(refused.contains(&hint), "{refused}");
    user.does(&["auth", "login", url]);
    let mut shell = user.command(&["shell", url, "--yes"]);
    let mut shell =
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(b"add_tool name=hello\n").unwrap();
    let came = came(shell.wait_with_output().unwrap());
    assert_eq!(came.code, 3, "{came:?}");
    assert!(came.err.contains(&hint) && came.err.contains("mcp:write"), "{came:?}");
}

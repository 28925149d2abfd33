//! Ways in that are extensions of the protocol: both sides say so, where the revision has a place for it.

use serde_json::{Value, json};

use crate::server::Server;
use crate::user::User;

const CREDENTIALS: &str = "io.modelcontextprotocol/oauth-client-credentials";
const ENTERPRISE: &str = "io.modelcontextprotocol/enterprise-managed-authorization";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The capabilities that a client declares when it calls a tool, from the trace.
pub(crate) fn declared_capabilities(user: &User, url: &str, version: &str) -> Value {
    let trace = user.path("trace");
    // It is there only after an earlier call.
    let _ = std::fs::remove_file(&trace);
    let words = [
        "call",
        url,
        "echo",
        "message=in",
        "--protocol-version",
        version,
        "--record",
        trace.to_str().unwrap(),
    ];
    assert_eq!(user.does(&words), "in\n");
    let trace = std::fs::read_to_string(trace).unwrap();
    let passed = trace.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut sent = passed.filter(|line| line["direction"] == "sent").map(|line| line["message"].clone());
    let (method, place) = match version {
        "legacy" => ("initialize", "/params/capabilities"),
        _ => ("tools/call", "/params/_meta/io.modelcontextprotocol~1clientCapabilities"),
    };
    let found = sent.find(|message| message["method"] == method);
    found.unwrap_or_else(|| panic!("no {method} in {trace}")).pointer(place).unwrap().clone()
}

#[test]
fn client_credentials_are_declared() {
    let (user, server) = (User::new(), Server::start(&["--auth-client", "robot:hush"]));
    let url = &server.url();
    user.does(&["auth", "login", url]);
    assert_eq!(
        declared_capabilities(&user, url, "modern")["extensions"],
        json!({ TASKS: {} }),
        "a person with a browser is no extension"
    );
    let secret = user.write("secret", "hush");
    let robot = ["--grant", "client-credentials", "--client-id", "robot", "--client-secret-file", &secret];
    user.does(&[&["auth", "login", url][..], &robot].concat());
    assert_eq!(
        declared_capabilities(&user, url, "modern")["extensions"],
        json!({ TASKS: {}, CREDENTIALS: {} })
    );
    assert_eq!(declared_capabilities(&user, url, "legacy").get("extensions"), None);
}

/// The authorization extensions that a server declares to a client with a token.
fn named(user: &User, server: &Server, more: &[&str]) -> Vec<String> {
    let about = user.does(&[&["info", &server.url(), "-o", "json"][..], more].concat());
    let about: Value = serde_json::from_str(&about).unwrap();
    let all = about["capabilities"]["extensions"].as_object().cloned().unwrap_or_default();
    let all: Vec<_> = all.into_iter().filter(|(id, _)| [ENTERPRISE, CREDENTIALS].contains(&&**id)).collect();
    assert!(all.iter().all(|(_, settings)| *settings == json!({})), "{all:?}");
    all.into_iter().map(|(id, _)| id).collect()
}

#[test]
fn a_server_declares_the_extensions_of_its_authorization_server() {
    let user = User::new();
    let keys = user.write("keys.json", r#"{"keys":[]}"#);
    let provider = format!("https://idp.example={keys}");
    for (options, extensions) in [
        (&[][..], &[CREDENTIALS][..]),
        (&["--auth-identity-provider", &provider], &[ENTERPRISE, CREDENTIALS]),
        // What is taken about workloads is the same grant, and no extension.
        (&["--auth-workload-issuer", &provider], &[CREDENTIALS]),
    ] {
        let server = Server::start(options);
        user.does(&["auth", "login", &server.url()]);
        let mut named_now = named(&user, &server, &[]);
        named_now.sort();
        assert_eq!(named_now, extensions, "{options:?}");
        assert_eq!(named(&user, &server, &["--protocol-version", "legacy"]), [""; 0]);
    }
    assert_eq!(named(&user, &Server::run(&["serve", "--port", "0"]), &[]), [""; 0]);
}

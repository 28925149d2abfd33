//! How a conversation opens, and how it does not.

use serde_json::{Value, json};

use crate::support::{Client, Process, STATELESS, Version};
use crate::table::{long, request, row, try_under};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Sends lines to a new server; gives the answer to the last.
fn last_answer(lines: &[&str]) -> Value {
    let process = Process::stdio(&[]);
    lines.iter().for_each(|line| process.send_line(line));
    let mut answer = Value::Null;
    for _ in lines.iter().filter(|line| line.contains("\"id\"")) {
        answer = serde_json::from_str(&process.next_line().expect("it is there")).expect("JSON");
    }
    answer
}

fn error(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    (error["code"].as_i64().unwrap_or_default(), error["message"].as_str().unwrap_or_default())
}

#[test]
fn calls_before_initialize() {
    for method in ["tools/list", "tools/call", "resources/list", "logging/setLevel", "unknown"] {
        let answer = last_answer(&[&Version::Session("").request(7, method, &json!({}))]);
        let (code, message) = error(&answer);
        assert!(code == -32600 && message.contains("initialize"), "{answer}");
        assert_eq!(answer["id"], 7);
    }
    let ping = Version::Session("").request(0, "ping", &json!({}));
    assert_eq!(last_answer(&[&ping])["result"], json!({}));
}

#[test]
fn calls_before_initialized() {
    let opening = Client::initialize("2025-06-18");
    let list = Version::Session("").request(7, "tools/list", &json!({}));
    let answer = last_answer(&[&opening, &list]);
    let (code, message) = error(&answer);
    assert!(code == -32600 && message.contains("notifications/initialized"), "{answer}");
    let ping = Version::Session("").request(7, "ping", &json!({}));
    assert_eq!(last_answer(&[&opening, &ping])["result"], json!({}));
    let early = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let answer = last_answer(&[early, &opening, &list]);
    assert_eq!(error(&answer).0, -32600, "one that came too early does not count: {answer}");
}

#[test]
fn initialize_twice() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut client = Client::start(Version::Session(revision), &[]);
        client.process.send_line(Client::initialize("2024-11-05"));
        let answer = client.answer_to(&json!("init"));
        let (code, message) = error(&answer);
        assert!(code == -32600 && message.contains("already"), "{answer}");
        let about = client.call("about_me", &json!({})).to_string();
        assert!(about.contains(revision), "the first one holds: {about}");
    }
}

#[test]
fn versions_of_every_kind() {
    let newest = "2025-11-25";
    let long = long(10_000);
    for asked in ["1999-01-01", "2099-01-01", STATELESS, "", "x", " 2025-06-18", "2025-06-18\n", &long] {
        let answer = last_answer(&[&Client::initialize(asked)]);
        assert_eq!(answer["result"]["protocolVersion"], newest, "{asked:.20?}");
    }
    for odd in [json!(null), json!(20_250_618), json!(["2025-06-18"]), json!({})] {
        let sent = Client::initialize("V").replace("\"V\"", &odd.to_string());
        let answer = last_answer(&[&sent]);
        let (code, message) = error(&answer);
        assert!(code == -32602 && message.contains("protocolVersion"), "{answer}");
        assert_eq!(answer["error"]["data"]["supported"][0], newest);
    }
    let missing = last_answer(&[r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#]);
    assert!(error(&missing).1.contains("missing"), "{missing}");
    let nothing = last_answer(&[r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#]);
    assert_eq!(error(&nothing).0, -32602, "{nothing}");
}

#[test]
fn incomplete_initialize_requests() {
    let whole: Value = serde_json::from_str(&Client::initialize("2025-06-18")).expect("JSON");
    for (member, value) in [
        ("capabilities", json!(5)),
        ("capabilities", json!(null)),
        ("clientInfo", json!("me")),
        ("clientInfo", json!({ "version": "1" })),
        ("clientInfo", json!({ "name": 5, "version": "1" })),
    ] {
        let mut opening = whole.clone();
        opening["params"][member] = value;
        let answer = last_answer(&[&opening.to_string()]);
        assert_eq!(error(&answer).0, -32602, "{opening}: {answer}");
        let again = last_answer(&[&opening.to_string(), &whole.to_string()]);
        assert_eq!(again["result"]["protocolVersion"], "2025-06-18", "a failed one can be repeated");
    }
}

/// Without a session every request has to say who asks.
#[test]
fn requests_that_lack_their_meta() {
    let with = |meta: Value| Version::Session("").request(7, "tools/list", &json!({ "_meta": meta }));
    let missing = |name: &str, meta: Value| row(name, with(meta)).error(-32602, "must have");
    let long = long(10_000);
    let unsupported = |asked: &str| {
        row(format!("version {asked:.20}"), with(json!({ VERSION: asked, CAPABILITIES: {} })))
            .error(-32022, "unsupported")
    };
    let rows = [
        missing("no version", json!({ CAPABILITIES: {} })),
        missing("no capabilities", json!({ VERSION: STATELESS })),
        missing("only a client", json!({ "io.modelcontextprotocol/clientInfo": { "name": "x", "version": "1" } })),
        row("nothing", with(json!({}))).error(-32600, "initialize"),
        row("discover with nothing", Version::Session("").request(7, "server/discover", &json!({}))).error(-32602, "must have"),
        row("a version that is none", with(json!({ VERSION: 5, CAPABILITIES: {} }))).error(-32602, "protocolVersion"),
        row("a version of null", with(json!({ VERSION: null, CAPABILITIES: {} }))).error(-32602, ""),
        row("capabilities that are none", with(json!({ VERSION: STATELESS, CAPABILITIES: 5 }))).error(-32602, "clientCapabilities"),
        row("capabilities that are long", with(json!({ VERSION: STATELESS, CAPABILITIES: long }))).error(-32602, "clientCapabilities"),
        row("a client with a long name", with(json!({ VERSION: STATELESS, CAPABILITIES: {}, "io.modelcontextprotocol/clientInfo": { "name": long, "version": "1" } })))
            .served(),
        row("a client that is none", with(json!({ VERSION: STATELESS, CAPABILITIES: {}, "io.modelcontextprotocol/clientInfo": "x" })))
            .error(-32602, "clientInfo"),
        row("a level that is none", with(json!({ VERSION: STATELESS, CAPABILITIES: {}, "io.modelcontextprotocol/logLevel": "WARN" })))
            .error(-32602, "logLevel"),
        unsupported("2099-01-01"),
        unsupported("2025-06-18"),
        unsupported(""),
        unsupported(&long),
        row("all of it", request(Version::Stateless, "tools/list", &json!({}))).served(),
    ];
    try_under(Version::Stateless, &[], &rows);
}

//! How a conversation opens, and how it does not.

use serde_json::{Value, json};

use crate::peer::{Peer, Site, TRANSPORTS, Transport, Way};
use crate::support::{Client, STATELESS, Version};
use crate::table::{Row, long, request, row};

const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A request of a client with a session.
fn in_session(id: u64, method: &str) -> String {
    Version::Session("").request(id, method, &json!({}))
}

/// Sends messages over a new connection; gives the response to the last.
fn last_answer(site: &Site, transport: Transport, messages: &[&str]) -> Value {
    let mut peer = Peer::connect(site, Way { transport, version: Version::Session("2025-06-18") });
    let mut answer = Value::Null;
    for message in messages {
        peer.send(message.as_bytes());
        if message.contains("\"id\"") {
            answer = peer.message();
        } else if transport == Transport::StreamableHttp {
            // A notification without a session is refused.
            while peer.next().is_some() {}
        }
    }
    answer
}

fn error(answer: &Value) -> (i64, &str) {
    let error = &answer["error"];
    (error["code"].as_i64().unwrap_or_default(), error["message"].as_str().unwrap_or_default())
}

#[test]
fn calls_before_initialize() {
    let site = Site::start(&[]);
    for transport in TRANSPORTS {
        for method in ["tools/list", "tools/call", "resources/list", "logging/setLevel", "unknown"] {
            let answer = last_answer(&site, transport, &[&in_session(7, method)]);
            let (code, message) = error(&answer);
            assert!(code == -32600 && message.contains("initialize"), "{transport:?}: {answer}");
            assert_eq!(answer["id"], 7, "{transport:?}");
        }
    }
    for transport in TRANSPORTS.into_iter().filter(|transport| *transport != Transport::StreamableHttp) {
        assert_eq!(last_answer(&site, transport, &[&in_session(0, "ping")])["result"], json!({}));
    }
}

#[test]
fn calls_before_initialized() {
    let site = Site::start(&[]);
    for transport in TRANSPORTS {
        let (opening, list) = (Client::initialize("2025-06-18"), in_session(7, "tools/list"));
        let answer = last_answer(&site, transport, &[&opening, &list]);
        let (code, message) = error(&answer);
        assert!(code == -32600 && message.contains("notifications/initialized"), "{transport:?}: {answer}");
        assert_eq!(last_answer(&site, transport, &[&opening, &in_session(7, "ping")])["result"], json!({}));
        let early = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let answer = last_answer(&site, transport, &[early, &opening, &list]);
        assert_eq!(
            error(&answer).0,
            -32600,
            "{transport:?}: one that came too early does not count: {answer}"
        );
    }
}

#[test]
fn initialize_twice() {
    let site = Site::start(&[]);
    for transport in TRANSPORTS {
        for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
            let mut peer = Peer::open(&site, Way { transport, version: Version::Session(revision) });
            peer.send(Client::initialize("2024-11-05").as_bytes());
            let answer = peer.answer_to(&json!("init"));
            let (code, message) = error(&answer);
            let said = message.contains("already") || message.contains("does not belong");
            assert!(code == -32600 && said, "{transport:?}: {answer}");
            let about = peer.call("about_me", &json!({})).to_string();
            assert!(about.contains(revision), "{transport:?}: the first one holds: {about}");
        }
    }
}

#[test]
fn versions_of_every_kind() {
    let site = Site::start(&[]);
    let newest = "2025-11-25";
    let long = long(10_000);
    for transport in TRANSPORTS {
        let last_answer = |message: &str| last_answer(&site, transport, &[message]);
        for asked in ["1999-01-01", "2099-01-01", STATELESS, "", "x", " 2025-06-18", "2025-06-18\n", &long] {
            let answer = last_answer(&Client::initialize(asked));
            assert_eq!(answer["result"]["protocolVersion"], newest, "{transport:?} {asked:.20?}");
        }
        for odd in [json!(null), json!(20_250_618), json!(["2025-06-18"]), json!({})] {
            let answer = last_answer(&Client::initialize("V").replace("\"V\"", &odd.to_string()));
            let (code, message) = error(&answer);
            assert!(code == -32602 && message.contains("protocolVersion"), "{transport:?}: {answer}");
            assert_eq!(answer["error"]["data"]["supported"][0], newest);
        }
        let missing = last_answer(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#);
        assert!(error(&missing).1.contains("missing"), "{transport:?}: {missing}");
        let nothing = last_answer(r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#);
        assert_eq!(error(&nothing).0, -32602, "{transport:?}: {nothing}");
    }
}

#[test]
fn incomplete_initialize_requests() {
    let site = Site::start(&[]);
    let whole: Value = serde_json::from_str(&Client::initialize("2025-06-18")).expect("JSON");
    for transport in TRANSPORTS {
        for (member, value) in [
            ("capabilities", json!(5)),
            ("capabilities", json!(null)),
            ("clientInfo", json!("me")),
            ("clientInfo", json!({ "version": "1" })),
            ("clientInfo", json!({ "name": 5, "version": "1" })),
        ] {
            let mut opening = whole.clone();
            opening["params"][member] = value;
            let answer = last_answer(&site, transport, &[&opening.to_string()]);
            assert_eq!(error(&answer).0, -32602, "{transport:?} {opening}: {answer}");
            let again = last_answer(&site, transport, &[&opening.to_string(), &whole.to_string()]);
            let agreed = &again["result"]["protocolVersion"];
            assert_eq!(agreed, "2025-06-18", "{transport:?}: a failed one can be repeated");
        }
    }
}

/// Without a session every request has to say who asks.
pub(crate) fn requests_that_lack_their_meta(way: Way) -> Vec<Row> {
    if !way.is_stateless() {
        return Vec::new();
    }
    let with = |meta: Value| Version::Session("").request(7, "tools/list", &json!({ "_meta": meta }));
    let missing = |name: &str, sent: String| row(name, sent).error(-32602, "must have").bad_request();
    let wrong = |name: &str, meta: Value, word| row(name, with(meta)).error(-32602, word);
    let long = long(10_000);
    let client = "io.modelcontextprotocol/clientInfo";
    let described = |key: &str, value: Value| json!({ VERSION: STATELESS, CAPABILITIES: {}, key: value });
    let unsupported = |asked: &str| {
        row(format!("version {asked:.20}"), with(json!({ VERSION: asked, CAPABILITIES: {} })))
            .error(-32022, "unsupported")
    };
    // Over HTTP a header names the revision all the same.
    let nothing = match way.transport {
        Transport::StreamableHttp => missing("nothing", with(json!({}))),
        _ => row("nothing", with(json!({}))).error(-32600, "initialize"),
    };
    vec![
        missing("no version", with(json!({ CAPABILITIES: {} }))),
        missing("no capabilities", with(json!({ VERSION: STATELESS }))),
        missing("only a client", with(json!({ client: { "name": "x", "version": "1" } }))),
        missing("discover with nothing", in_session(7, "server/discover")),
        nothing,
        wrong("a version that is none", json!({ VERSION: 5, CAPABILITIES: {} }), "protocolVersion")
            .bad_request(),
        wrong("a version of null", json!({ VERSION: null, CAPABILITIES: {} }), "").bad_request(),
        wrong("capabilities that are none", described(CAPABILITIES, json!(5)), "clientCapabilities")
            .bad_request(),
        wrong("capabilities that are long", described(CAPABILITIES, json!(long)), "clientCapabilities")
            .bad_request(),
        wrong("a client that is none", described(client, json!("x")), "clientInfo"),
        wrong(
            "a level that is none",
            described("io.modelcontextprotocol/logLevel", json!("WARN")),
            "logLevel",
        ),
        row("a client with a long name", with(described(client, json!({ "name": long, "version": "1" }))))
            .served(),
        unsupported("2099-01-01"),
        unsupported("2025-06-18"),
        unsupported(""),
        unsupported(&long),
        row("all of it", request(way, "tools/list", &json!({}))).served(),
    ]
}

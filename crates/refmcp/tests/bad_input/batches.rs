//! Several messages in one.

use serde_json::{Value, json};

use crate::peer::{Peer, Site, TRANSPORTS, Way};
use crate::support::{Client, Version};
use crate::table::{Row, row};

fn ping(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}

pub(crate) fn odd_batches(way: Way) -> Vec<Row> {
    let many = Value::Array((0..10_000).map(ping).collect()).to_string();
    let cut_short = row("one cut short", r#"[{"jsonrpc":"2.0""#).unreadable(-32700, "too early");
    if way.has_batches() {
        let told = r#"[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":1,"result":{}}]"#;
        return vec![
            row("none", "[]").unreadable(-32600, "empty batch"),
            row("10,000", many).unreadable(-32600, "1000"),
            row("only notifications", told),
            cut_short,
        ];
    }
    let refused = |name: &str, sent: &Value| row(name, sent.to_string()).unreadable(-32600, "batch");
    vec![
        refused("none", &json!([])),
        refused("no message", &json!([1])),
        refused("one", &json!([ping(1)])),
        refused("notifications", &json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }])),
        refused("nested", &json!([[ping(1)]])),
        row("10,000", many).unreadable(-32600, "batch"),
        cut_short,
    ]
}

#[test]
fn each_message_of_a_batch_is_judged_by_itself() {
    let site = Site::start(&[]);
    let revision = "2025-03-26";
    for transport in TRANSPORTS {
        let mut peer = Peer::open(&site, Way { transport, version: Version::Session(revision) });
        let no_ping = json!({ "jsonrpc": "2.0", "id": 4, "method": "pong" });
        let initialize: Value = serde_json::from_str(&Client::initialize(revision)).expect("JSON");
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/unknown" });
        let batch = json!([1, [ping(1)], ping(2), ping(2), note, no_ping, initialize]);
        peer.send(batch.to_string().as_bytes());
        let answers = peer.message();
        let answers = answers.as_array().unwrap_or_else(|| panic!("{transport:?}: {answers}"));
        let seen: Vec<(Value, Value)> =
            answers.iter().map(|answer| (answer["id"].clone(), answer["error"]["code"].clone())).collect();
        let expected =
            json!([[null, -32600], [null, -32600], [2, null], [2, null], [4, -32601], ["init", -32600],]);
        assert_eq!(serde_json::to_value(seen).expect("JSON"), expected, "{transport:?}: {answers:?}");
        peer.hears_nothing("one answer for all");
    }
}

//! Several messages in one.

use serde_json::{Value, json};

use crate::support::{Client, Version};
use crate::table::{Row, row, try_all, try_under};

const WITH_BATCHES: Version = Version::Session("2025-03-26");

fn ping(id: u64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })
}

#[test]
fn refused_where_there_are_none() {
    let refused = |name: &str, sent: &Value| row(name, sent.to_string()).unreadable(-32600, "batch");
    try_all(|_| {
        vec![
            refused("none", &json!([])),
            refused("no message", &json!([1])),
            refused("one", &json!([ping(1)])),
            refused("notifications", &json!([{ "jsonrpc": "2.0", "method": "notifications/initialized" }])),
            refused("nested", &json!([[ping(1)]])),
            refused("10,000", &Value::Array((0..10_000).map(ping).collect())),
            row("one cut short", r#"[{"jsonrpc":"2.0""#).unreadable(-32700, "too early"),
        ]
    });
}

#[test]
fn odd_ones_where_they_are_allowed() {
    let rows: Vec<Row> = vec![
        row("none", "[]").unreadable(-32600, "empty batch"),
        row("10,000", Value::Array((0..10_000).map(ping).collect()).to_string()).unreadable(-32600, "1000"),
        row("only notifications", r#"[{"jsonrpc":"2.0","method":"x"},{"jsonrpc":"2.0","id":1,"result":{}}]"#),
        row("one cut short", r#"[{"jsonrpc":"2.0""#).unreadable(-32700, "too early"),
    ];
    try_under(WITH_BATCHES, &[], &rows);
}

#[test]
fn each_message_is_judged_by_itself() {
    let mut client = Client::start(WITH_BATCHES, &[]);
    let no_ping = json!({ "jsonrpc": "2.0", "id": 4, "method": "pong" });
    let initialize: Value = serde_json::from_str(&Client::initialize("2025-03-26")).expect("JSON");
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/unknown" });
    client.process.send_line(json!([1, [ping(1)], ping(2), ping(2), note, no_ping, initialize]).to_string());
    let line = client.process.next_line().expect("it is there");
    let answers: Vec<Value> = serde_json::from_str(&line).expect("an array");
    let seen: Vec<(Value, Value)> =
        answers.iter().map(|answer| (answer["id"].clone(), answer["error"]["code"].clone())).collect();
    let expected =
        json!([[null, -32600], [null, -32600], [2, null], [2, null], [4, -32601], ["init", -32600],]);
    assert_eq!(serde_json::to_value(seen).expect("JSON"), expected, "{line}");
    client.hears_nothing("one answer for all");
}

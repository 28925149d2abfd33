//! Text that is no JSON, or JSON that is no message.

use serde_json::json;

use crate::peer::{Transport, Way};
use crate::table::{Row, altered, call, long, request, row};

/// A blank line is nothing, but a body or a WebSocket message with nothing in it is meant as a message.
pub(crate) fn blank_messages(way: Way) -> Vec<Row> {
    let blank = ["", " ", "\t  \t", "\r", "  \r", "\n\n\n"];
    let rows = blank.into_iter().map(|text| row(format!("blank {text:?}"), text));
    match way.transport {
        Transport::Stdio => rows.collect(),
        _ => rows.map(|row| row.unreadable(-32700, "too early")).collect(),
    }
}

pub(crate) fn requests_cut_short_at_every_byte(way: Way) -> Vec<Row> {
    let good = request(way, "tools/call", &json!({ "name": "sum", "arguments": { "a": -1.5e3, "b": true } }));
    let cuts = 1..good.len();
    cuts.map(|cut| row(format!("cut at {cut}"), &good.as_bytes()[..cut]).unreadable(-32700, "too early"))
        .collect()
}

pub(crate) fn bytes_that_are_no_text(way: Way) -> Vec<Row> {
    let good = request(way, "tools/list", &json!({}));
    let within = |bytes: &[u8]| {
        let at = good.find("list").expect("it is there");
        [&good.as_bytes()[..at], bytes, &good.as_bytes()[at..]].concat()
    };
    let utf16: Vec<u8> = good.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let utf16_be: Vec<u8> = good.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let utf32: Vec<u8> = good.chars().flat_map(|c| u32::from(c).to_le_bytes()).collect();
    let marked = |bom: &[u8], bytes: &[u8]| [bom, bytes].concat();
    vec![
        row("a stray byte", within(b"\xFF")).no_text(way),
        row("half a character", within(b"\xC3")).no_text(way),
        row("an overlong slash", within(b"\xC0\xAF")).no_text(way),
        row("a surrogate as bytes", within(b"\xED\xA0\x80")).no_text(way),
        row("beyond Unicode", within(b"\xF4\x90\x80\x80")).no_text(way),
        row("only 0xFF", vec![0xFF; 1000]).no_text(way),
        row("a lone surrogate", within(b"\\ud800")).unreadable(-32700, "surrogate"),
        row("two high surrogates", within(b"\\ud800\\ud800")).unreadable(-32700, "surrogate"),
        row("a low surrogate", within(b"\\udc00")).unreadable(-32700, "surrogate"),
        row("a surrogate in a key", altered(way, "\"params\"", "\"\\ud800\""))
            .unreadable(-32700, "surrogate"),
        row("a byte order mark", marked(b"\xEF\xBB\xBF", good.as_bytes())).unreadable(-32700, "byte order"),
        row("UTF-16", utf16.clone()).unreadable(-32700, "not JSON"),
        row("UTF-16, the other way", utf16_be).unreadable(-32700, "not JSON"),
        row("UTF-16, marked", marked(b"\xFF\xFE", &utf16)).no_text(way),
        row("UTF-32", utf32).unreadable(-32700, "not JSON"),
        row("NUL", b"\0").unreadable(-32700, "not JSON"),
        row("NUL before", marked(b"\0", good.as_bytes())).unreadable(-32700, "not JSON"),
        row("NUL behind", [good.as_bytes(), b"\0"].concat()).unreadable(-32700, "more text"),
        row("NUL in a string", within(b"\0")).unreadable(-32700, "control"),
        row("a tab in a string", within(b"\t")).unreadable(-32700, "control"),
    ]
}

pub(crate) fn values_that_are_no_message(_: Way) -> Vec<Row> {
    let parse = [
        "x",
        "hello",
        "{",
        "}",
        "]",
        "'",
        "{'a':1}",
        "{a:1}",
        "{\"a\":1,}",
        "[1,]",
        "NaN",
        "// x",
        "\"",
        "01",
        "+1",
        ".5",
        "1.",
        "-",
    ];
    let parse =
        parse.into_iter().map(|text| row(format!("no JSON {text}"), text).unreadable(-32700, "not JSON"));
    let other = ["1", "null", "true", "\"text\"", "-0", "1e400"];
    let other =
        other.into_iter().map(|text| row(format!("no object {text}"), text).unreadable(-32600, "object"));
    parse.chain(other).collect()
}

pub(crate) fn more_than_one_message_on_a_line(way: Way) -> Vec<Row> {
    let good = request(way, "tools/list", &json!({}));
    vec![
        row("two", format!("{good}{good}")).unreadable(-32700, "more text"),
        row("two, apart", format!("{good} {good}")).unreadable(-32700, "more text"),
        row("a letter", format!("{good}x")).unreadable(-32700, "more text"),
        row("a brace", format!("{good}}}")).unreadable(-32700, "more text"),
        row("spaces around", format!(" \t{good} \r")).served(),
    ]
}

fn nested(way: Way, depth: usize) -> String {
    altered(way, "\"params\":{", &format!("\"params\":{{\"x\":{}{},", "[".repeat(depth), "]".repeat(depth)))
        .replace(",}", "}")
}

pub(crate) fn deep_nesting(way: Way) -> Vec<Row> {
    vec![
        row("126 in parameters", nested(way, 126)).served(),
        row("127 in parameters", nested(way, 127)).unreadable(-32600, "deeper than 128"),
        row("10,000", nested(way, 10_000)).unreadable(-32600, "deeper"),
        row("1,000,000", nested(way, 1_000_000)).unreadable(-32600, "deeper"),
        row("1,000,000 never closed", "[".repeat(1_000_000)).unreadable(-32600, "deeper"),
        row("1,000,000 objects", "{\"a\":".repeat(800_000)).unreadable(-32600, "deeper"),
    ]
}

pub(crate) fn numbers_beyond_all_measure(way: Way) -> Vec<Row> {
    let id = |id: &str| altered(way, "\"id\":7", &format!("\"id\":{id}"));
    let sum = |a: &str| call(way, "sum", &json!({ "a": "A", "b": 1 })).replace("\"A\"", a);
    vec![
        row("id 2^53+1", id("9007199254740993")).served_as("9007199254740993"),
        row("id 2^63", id("9223372036854775808")).served_as("9223372036854775808"),
        row("id 2^64", id("18446744073709551616")).served_as("18446744073709551616"),
        row("id -2^64", id("-18446744073709551616")).served_as("-18446744073709551616"),
        row("id -0", id("-0")).served_as("-0"),
        row("id 1e2", id("1e2")).unreadable(-32600, "id"),
        row("id 1e400", id("1e400")).unreadable(-32600, "id"),
        row("id of 300 digits", id(&"1".repeat(300))).unreadable(-32600, "id"),
        row("id of 30,000 digits", id(&"1".repeat(30_000))).unreadable(-32600, "digits"),
        row("an argument of 30,000 digits", sum(&"1".repeat(30_000))).unreadable(-32600, "digits"),
        row("an exponent of 30,000 digits", sum(&format!("1e{}", "1".repeat(30_000))))
            .unreadable(-32600, "digits"),
        row("an argument of 1e400", sum("1e400")).error(-32602, "number out of range"),
        row("an argument of -0", sum("-0")).served(),
        row("an argument of 2^64", sum("18446744073709551616")).served(),
        row("an argument of 1e-400", sum("1e-400")).served(),
    ]
}

pub(crate) fn keys_that_come_twice(way: Way) -> Vec<Row> {
    let twice = |part: &str| altered(way, part, &format!("{part},{part}"));
    let argument = call(way, "echo", &json!({ "message": "x" }))
        .replace("\"message\":\"x\"", "\"message\":\"x\",\"m\\u0065ssage\":\"y\"");
    vec![
        row("id", twice("\"id\":7")).unreadable(-32600, "duplicate key \\\"id\\\""),
        row("method", twice("\"method\":\"tools/list\"")).unreadable(-32600, "duplicate key"),
        row("jsonrpc", twice("\"jsonrpc\":\"2.0\"")).unreadable(-32600, "duplicate key"),
        row("an argument, once escaped", argument).unreadable(-32600, "duplicate key \\\"message\\\""),
        row("a long key", format!("{{\"{0}\":1,\"{0}\":2}}", long(100_000)))
            .unreadable(-32600, "duplicate key"),
    ]
}

pub(crate) fn keys_that_mean_something_elsewhere_are_data(way: Way) -> Vec<Row> {
    let odd = json!({ "__proto__": { "isAdmin": true }, "constructor": { "prototype": {} }, "toString": 1 });
    let mut params = odd.clone();
    params["_meta"] = odd.clone();
    vec![
        row("in parameters and _meta", request(way, "tools/list", &params)).served(),
        row("in the envelope", altered(way, "\"id\":7", "\"id\":7,\"__proto__\":{\"method\":\"x\"}"))
            .served(),
        row("as text", call(way, "echo", &json!({ "message": "__proto__" }))).served(),
        row("as a tool", call(way, "__proto__", &json!({}))).error(-32602, "unknown tool: __proto__"),
        row("as a prompt", request(way, "prompts/get", &json!({ "name": "constructor" })))
            .error(-32602, "constructor"),
        row("as an argument", call(way, "echo", &json!({ "message": "x", "__proto__": {} })))
            .bad_arguments(way, "__proto__"),
    ]
}

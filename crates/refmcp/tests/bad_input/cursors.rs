//! Cursors that were not given out for this list.

use serde_json::json;

use crate::support::Client;
use crate::table::{Row, VERSIONS, request, row, try_under};

#[test]
fn forged_cursors() {
    for version in VERSIONS {
        let mut client = Client::start(version, &["--page-size", "3"]);
        let cursor_of = |client: &mut Client, method: &str| {
            let page = client.ask(method, &json!({}));
            page["result"]["nextCursor"]
                .as_str()
                .unwrap_or_else(|| panic!("one page only: {page}"))
                .to_owned()
        };
        let good = cursor_of(&mut client, "tools/list");
        let other_list = cursor_of(&mut client, "resources/list");
        let refused = |client: &mut Client, name: &str, cursor: &str| {
            let answer = client.ask("tools/list", &json!({ "cursor": cursor }));
            assert_eq!(answer["error"]["code"], -32602, "{name}: {answer}");
            assert!(answer["error"]["message"].to_string().contains("cursor"), "{name}: {answer}");
        };
        for at in 0..good.len() {
            let mut forged = good.clone().into_bytes();
            // Another letter of the same alphabet; the last one also carries bits that are not used.
            forged[at] = if forged[at] == b'A' { b'Z' } else { b'A' };
            refused(&mut client, "a letter changed", &String::from_utf8(forged).expect("ASCII"));
            refused(&mut client, "cut short", &good[..at]);
        }
        refused(&mut client, "of another list", &other_list);
        refused(&mut client, "one letter more", &format!("{good}A"));
        refused(&mut client, "padded", &format!("{good}="));
        refused(&mut client, "the offset itself", "3");
        let mut other = Client::start(version, &["--page-size", "3"]);
        let foreign = cursor_of(&mut other, "tools/list");
        refused(&mut client, "of another server", &foreign);
        let next = client.ask("tools/list", &json!({ "cursor": good }));
        assert_eq!(next["result"]["tools"].as_array().map(Vec::len), Some(3), "the good one still works");
    }
}

#[test]
fn words_for_cursors() {
    for version in VERSIONS {
        let words = ["x", "0", "-1", "AAAA", "../..", "null", "\u{0}", "ü", "eyJvZmZzZXQiOjB9"];
        let rows: Vec<Row> = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
            .into_iter()
            .flat_map(|method| {
                words.map(|word| {
                    let sent = request(version, method, &json!({ "cursor": word }));
                    row(format!("{method} {word:?}"), sent).error(-32602, "cursor is not valid")
                })
            })
            .collect();
        try_under(version, &[], &rows);
    }
}

//! Cursors that the server has not given out, or not for this list.

use serde_json::json;

use crate::peer::{Peer, Site, WAYS, Way};
use crate::table::{Row, request, row};

#[test]
fn forged_cursors() {
    let options = ["--page-size", "3"];
    let (site, elsewhere) = (Site::start(&options), Site::start(&options));
    for way in WAYS {
        let mut peer = Peer::open(&site, way);
        let cursor_of = |peer: &mut Peer, method: &str| {
            let page = peer.ask(method, &json!({}));
            page["result"]["nextCursor"]
                .as_str()
                .unwrap_or_else(|| panic!("one page only: {page}"))
                .to_owned()
        };
        let good = cursor_of(&mut peer, "tools/list");
        let other_list = cursor_of(&mut peer, "resources/list");
        let refused = |peer: &mut Peer, name: &str, cursor: &str| {
            let answer = peer.ask("tools/list", &json!({ "cursor": cursor }));
            assert_eq!(answer["error"]["code"], -32602, "{way:?}, {name}: {answer}");
            assert!(answer["error"]["message"].to_string().contains("cursor"), "{way:?}, {name}: {answer}");
        };
        for at in 0..good.len() {
            let mut forged = good.clone().into_bytes();
            // Another letter of the same alphabet; the last one also carries bits that are not used.
            forged[at] = if forged[at] == b'A' { b'Z' } else { b'A' };
            refused(&mut peer, "a letter changed", &String::from_utf8(forged).expect("ASCII"));
            refused(&mut peer, "cut short", &good[..at]);
        }
        refused(&mut peer, "of another list", &other_list);
        refused(&mut peer, "one letter more", &format!("{good}A"));
        refused(&mut peer, "padded", &format!("{good}="));
        refused(&mut peer, "the offset itself", "3");
        let foreign = cursor_of(&mut Peer::open(&elsewhere, way), "tools/list");
        refused(&mut peer, "of another server", &foreign);
        let next = peer.ask("tools/list", &json!({ "cursor": good }));
        assert_eq!(next["result"]["tools"].as_array().map(Vec::len), Some(3), "the good one still works");
    }
}

pub(crate) fn words_for_cursors(way: Way) -> Vec<Row> {
    let words = ["x", "0", "-1", "AAAA", "../..", "null", "\u{0}", "ü", "eyJvZmZzZXQiOjB9"];
    let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    let rows = lists.into_iter().flat_map(|method| {
        words.map(|word| {
            let sent = request(way, method, &json!({ "cursor": word }));
            row(format!("{method} {word:?}"), sent).error(-32602, "cursor is not valid")
        })
    });
    rows.collect()
}

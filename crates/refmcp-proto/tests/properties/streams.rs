//! Any bytes, cut anywhere: no panic, the same answers, and a good request is served afterwards.

use proptest::prelude::*;
use refmcp_proto::frame::{Line, LineDecoder};
use refmcp_proto::model::keys;
use refmcp_testkit::engine::{TestEngine, full_config};
use serde_json::{Value, json};

const MAX_EVENTS: usize = 2000;

/// Whatever may come over a pipe: noise, JSON, messages, and messages that something was done to.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    let message = prop::sample::select(MESSAGES);
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[\\[\\]{}\":,0-9a-z\\\\ ]{0,40}".prop_map(String::into_bytes),
        message.clone().prop_map(|text| text.as_bytes().to_vec()),
        (message.clone(), any::<prop::sample::Index>(), any::<u8>()).prop_map(|(text, at, byte)| {
            let mut bytes = text.as_bytes().to_vec();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            bytes
        }),
        (message, any::<prop::sample::Index>())
            .prop_map(|(text, end)| text.as_bytes()[..end.index(text.len())].to_vec()),
        Just(vec![b'['; 1000]),
        Just(vec![b'x'; MAX_EVENTS + 1]),
        "\r?\n| \n|\n\n".prop_map(String::into_bytes),
    ]
}

const MESSAGES: &[&str] = &[
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ask_roots"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#,
    r#"[{"jsonrpc":"2.0","id":3,"method":"ping"},{"jsonrpc":"2.0","id":4,"method":"tools/list"},7]"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#,
    r#"{"jsonrpc":"2.0","id":"é","method":"resources/read","params":{"uri":"file:///a.txt"}}"#,
    r#"{"jsonrpc":"2.0","id":5,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
];

/// Everything that comes out when the bytes come in these portions.
fn responses<'a>(rig: &mut TestEngine, portions: impl Iterator<Item = &'a [u8]>) -> Vec<Vec<u8>> {
    let mut decoder = LineDecoder::with_chunk(MAX_EVENTS, 64);
    let take = |rig: &mut TestEngine, line: Line<'_>| match line {
        Line::Text(bytes) => rig.send(bytes),
        Line::TooLong => {
            rig.engine.receive_too_long(Default::default());
            rig.settle();
        }
    };
    for portion in portions {
        decoder.feed(portion);
        while let Some(line) = decoder.next_line() {
            take(rig, line);
        }
    }
    while let Some(line) = decoder.finish() {
        take(rig, line);
    }
    rig.take_sent().into_iter().map(|sending| sending.json).collect()
}

proptest! {
    #[test]
    fn any_bytes_cut_anywhere(
        pieces in prop::collection::vec(piece(), 0..30),
        cuts in prop::collection::vec(1..100_usize, 1..20),
    ) {
        let bytes = pieces.concat();
        let mut whole = TestEngine::new(full_config());
        let expected = responses(&mut whole, std::iter::once(&bytes[..]));
        let mut rig = TestEngine::new(full_config());
        let mut rest = &bytes[..];
        let portions = cuts.iter().cycle().map_while(|cut| {
            let (portion, left) = rest.split_at((*cut).min(rest.len()));
            rest = left;
            (!portion.is_empty()).then_some(portion)
        });
        prop_assert_eq!(&responses(&mut rig, portions), &expected);
        for json in &expected {
            prop_assert!(!json.contains(&b'\n'));
            let message: Value = serde_json::from_slice(json).unwrap();
            prop_assert!(message.is_object() || message.is_array());
        }
        prop_assert!(serves(&mut rig));
    }

    #[test]
    fn a_message_cut_off_at_any_byte_is_refused_and_the_next_is_served(
        message in prop::sample::select(MESSAGES),
        end in any::<prop::sample::Index>(),
    ) {
        let mut rig = TestEngine::new(full_config());
        let end = end.index(message.len());
        rig.send(&message.as_bytes()[..end]);
        let sent = rig.take_sent();
        prop_assert_eq!(sent.len(), 1);
        let answer: Value = serde_json::from_slice(&sent[0].json).unwrap();
        prop_assert_eq!(&answer["error"]["code"], &json!(-32700));
        prop_assert!(serves(&mut rig));
    }
}

/// Whether a good request is answered as it should be.
pub(crate) fn serves(rig: &mut TestEngine) -> bool {
    let request = json!({
        "jsonrpc": "2.0", "id": "a good request", "method": "server/discover",
        "params": { "_meta": { keys::PROTOCOL_VERSION: "2026-07-28", keys::CLIENT_CAPABILITIES: {} } },
    });
    rig.take_sent();
    rig.send(request.to_string().as_bytes());
    let sent = rig.take_sent();
    let answer = sent.first().and_then(|sending| serde_json::from_slice::<Value>(&sending.json).ok());
    sent.len() == 1
        && answer.is_some_and(|answer| answer["id"] == "a good request" && answer["result"].is_object())
}

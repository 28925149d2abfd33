//! The decoder of Server-Sent Events: any split gives the same items, events stay below the limit, and what was decoded
//! can be encoded again.

use refmcp_proto::frame::{SseDecoder, SseError, SseEvent, SseItem, encode_event};

use crate::input::{Input, splits};

/// Limit and cuts from the first bytes; the rest is the stream.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let limit = 1 + usize::from(input.byte());
    let cuts = [input.byte(), input.byte(), input.byte(), input.byte()];
    let stream = input.rest();
    let [whole, bytewise, uneven] = splits(stream, cuts).map(|pieces| decode(limit, &pieces));
    assert_eq!(whole, bytewise, "whole and byte by byte");
    assert_eq!(whole, uneven, "whole and in pieces");
    for item in &whole.items {
        check(limit, item);
    }
}

#[derive(Debug, PartialEq)]
struct Decoded {
    items: Vec<SseItem>,
    last_event_id: Option<String>,
    error: Option<SseError>,
}

fn decode(limit: usize, pieces: &[&[u8]]) -> Decoded {
    let mut decoder = SseDecoder::new(limit);
    let (mut items, mut error) = (Vec::new(), None);
    for piece in pieces {
        let count = items.len();
        let fed = decoder.feed(piece, &mut items);
        if error.is_some() {
            assert_eq!((fed.err(), items.len()), (error, count), "after an error");
        } else {
            error = fed.err();
        }
    }
    Decoded { items, last_event_id: decoder.last_event_id().map(str::to_owned), error }
}

fn check(limit: usize, item: &SseItem) {
    let SseItem::Event(event) = item else { return };
    // A byte that is not UTF-8 becomes a replacement character of three.
    assert!(
        event.data.len() <= 3 * limit && event.event.len() <= 3 * limit.max(7),
        "an event over the limit"
    );
    assert!(!event.event.is_empty() && !event.event.contains(['\r', '\n']));
    assert!(!event.data.contains('\r'), "a line end that is not LF");
    let mut encoded = Vec::new();
    let again =
        SseEvent { id: event.id.as_deref(), event: Some(&event.event), retry: None, data: &event.data };
    encode_event(&mut encoded, &again).expect("what was decoded can be encoded");
    let decoded = decode(encoded.len(), &[&encoded]);
    match (&decoded.items[..], event.data.is_empty() && event.id.is_some()) {
        ([SseItem::Event(same)], false) => {
            assert_eq!((&same.id, &same.event, &same.data), (&event.id, &event.event, &event.data));
        }
        ([SseItem::Primed { id }], true) => assert_eq!(Some(id), event.id.as_ref()),
        (other, _) => panic!("{event:?} became {other:?}"),
    }
}

//! Tests of Server-Sent Events: tables, any split, there and back.

#![allow(clippy::unwrap_used)]

use super::*;
use proptest::{option, prelude::*};

type Outcome = (Vec<SseItem>, Option<SseError>);

fn decode<'a>(max_message_size: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut decoder = SseDecoder::new(max_message_size);
    let mut items = Vec::new();
    let mut error = None;
    for piece in pieces {
        let result = decoder.feed(piece, &mut items);
        assert!(error.is_none() || error == result.err(), "a dead decoder stays dead");
        error = result.err();
    }
    (items, error)
}

fn received(id: Option<&str>, event: &str, data: &str) -> SseItem {
    let (has_own_id, id) = (id.is_some(), id.map(str::to_owned));
    SseItem::Event(SseReceived { id, has_own_id, event: event.to_owned(), data: data.to_owned() })
}

/// A message after an event with this id, which has none of its own.
fn after(id: &str, data: &str) -> SseItem {
    let (id, event, data) = (Some(id.to_owned()), "message".to_owned(), data.to_owned());
    SseItem::Event(SseReceived { id, has_own_id: false, event, data })
}

fn message(data: &str) -> SseItem {
    received(None, "message", data)
}

fn primed(id: &str) -> SseItem {
    SseItem::Primed { id: id.to_owned() }
}

#[test]
fn table() {
    let cases: &[(&[u8], Vec<SseItem>)] = &[
        (b"", vec![]),
        (b"\n\n\n", vec![]),
        (b"data: a\n\n", vec![message("a")]),
        (b"data:a\n\n", vec![message("a")]),
        (b"data:  a\n\n", vec![message(" a")]),
        (b"data: a\ndata: b\n\n", vec![message("a\nb")]),
        (b"data: a\rdata: b\r\r", vec![message("a\nb")]),
        (b"data: a\r\ndata: b\r\n\r\n", vec![message("a\nb")]),
        (b"data: a\r\r\ndata: b\n\r", vec![message("a"), message("b")]),
        (b"data: a\n", vec![]),
        (b"data: a", vec![]),
        (b"\xEF\xBB\xBFdata: a\n\n", vec![message("a")]),
        (b"\xEF\xBB\xBF\xEF\xBB\xBFdata: a\n\n", vec![]),
        (b"\xEF\xBBdata: a\n\ndata: b\n\n", vec![message("b")]),
        (b"\n\xEF\xBB\xBFdata: a\n\n", vec![]),
        (b"data\n\n", vec![message("")]),
        (b"data\ndata\n\n", vec![message("\n")]),
        (b"event: ping\n\n", vec![]),
        (b"event: ping\n\ndata: a\n\n", vec![message("a")]),
        (b"event: x\nevent: y\ndata: a\n\n", vec![received(None, "y", "a")]),
        (b"event\ndata: a\n\n", vec![message("a")]),
        (b"id: 1\n\n", vec![primed("1")]),
        (b"id: 1\ndata:\n\n", vec![primed("1")]),
        (b"id: 1\ndata: \n\ndata: a\n\n", vec![primed("1"), after("1", "a")]),
        (b"id: 1\ndata: a\n\ndata:\n\n", vec![received(Some("1"), "message", "a"), after("1", "")]),
        (
            b"id: 1\ndata: a\n\nid\ndata: b\n\n",
            vec![received(Some("1"), "message", "a"), received(Some(""), "message", "b")],
        ),
        (b"id: 1\nid: 2\0\ndata: a\n\n", vec![received(Some("1"), "message", "a")]),
        (b"id: \0\n\n", vec![]),
        (b"retry: 1500\n\n", vec![SseItem::Retry(1500)]),
        (b"retry: 007\nretry\nretry: -1\nretry: 1.5\nretry:  1\nretry: 1 \n\n", vec![SseItem::Retry(7)]),
        (b"retry: 99999999999999999999999\n", vec![SseItem::Retry(u64::MAX)]),
        (b": hello\n:\n\n", vec![SseItem::Comment, SseItem::Comment]),
        (b"data: a\n: in between\ndata: b\n\n", vec![SseItem::Comment, message("a\nb")]),
        (b"Data: a\n data: b\nother: c\ndata : d\n\n", vec![]),
        (b"data: a:b: c\n\n", vec![message("a:b: c")]),
        (b"data: \xFFa\xE2\x82\n\n", vec![message("\u{FFFD}a\u{FFFD}")]),
        ("data: é€😀\n\n".as_bytes(), vec![message("é€😀")]),
    ];
    for (input, wanted) in cases {
        let shown = input.escape_ascii().to_string();
        assert_eq!(decode(1000, [*input]), (wanted.clone(), None), "{shown} whole");
        assert_eq!(decode(1000, input.chunks(1)), (wanted.clone(), None), "{shown} bytewise");
    }
}

#[test]
fn a_limit_holds_for_an_event_and_not_for_the_stream() {
    let too_long = Some(SseError::TooLong { max_message_size: 16 });
    let cases: &[(&[u8], usize, Option<SseError>)] = &[
        (b"data: 0123456789\n\ndata: 0123456789\n\n", 2, None),
        (b"data: 0\n\ndata: 0123456789a\n\ndata: 1\n\n", 1, too_long),
        (b"data: 0\ndata: 1\ndata: 2\n\n", 0, too_long),
        (b"other: 01234567890", 0, too_long),
        (b":12345\n:12345\n:12345\n:12345\n", 4, None),
        (b":0123456789abcdefg", 0, too_long),
        (b"id: 1\nevent: 1\nretry: 5\n\n", 0, too_long),
    ];
    for (input, items, error) in cases {
        for got in [decode(16, [*input]), decode(16, input.chunks(1))] {
            assert_eq!((got.0.len(), got.1), (*items, *error), "{:?}", input.escape_ascii().to_string());
        }
    }
}

#[test]
fn the_id_to_resume_from_is_that_of_a_complete_event() {
    let mut decoder = SseDecoder::new(100);
    let steps: &[(&[u8], Option<&str>)] = &[
        (b"data: a\n\n", None),
        (b"id: 1\ndata: a\n", None),
        (b"\n", Some("1")),
        (b"id: 2\n", Some("1")),
        (b"\n", Some("2")),
        (b"id\n\n", None),
    ];
    for (bytes, wanted) in steps {
        decoder.feed(bytes, &mut Vec::new()).unwrap();
        assert_eq!(decoder.last_event_id(), *wanted);
    }
}

#[test]
fn encoded_form() {
    let mut out = Vec::new();
    let event = SseEvent { id: Some("7"), event: Some("message"), retry: Some(3000), data: "a\nb\r\nc\rd" };
    encode_event(&mut out, &event).unwrap();
    encode_comment(&mut out, "ping");
    encode_event(&mut out, &SseEvent { id: Some("8"), ..SseEvent::default() }).unwrap();
    let wanted = concat!(
        "id: 7\nevent: message\nretry: 3000\ndata: a\ndata: b\ndata: c\ndata: d\n\n",
        ": ping\n\nid: 8\ndata: \n\n",
    );
    assert_eq!(String::from_utf8(out).unwrap(), wanted);
}

#[test]
fn what_a_field_cannot_carry_is_refused_and_leaves_no_trace() {
    let mut out = Vec::new();
    let event = |id, event| SseEvent { id, event, retry: None, data: "x" };
    for (event, wanted) in [
        (event(Some("a\nb"), None), SseEncodeError::LineBreakInId),
        (event(Some("a\r"), None), SseEncodeError::LineBreakInId),
        (event(Some("\0"), None), SseEncodeError::NulInId),
        (event(None, Some("a\n")), SseEncodeError::LineBreakInEvent),
        (event(Some("1"), Some("\r")), SseEncodeError::LineBreakInEvent),
    ] {
        assert_eq!(encode_event(&mut out, &event), Err(wanted));
        assert!(out.is_empty());
    }
}

fn wire() -> impl Strategy<Value = Vec<u8>> {
    let token = prop_oneof![
        prop::sample::select(vec![
            &b"data"[..],
            b"data: x",
            b"id",
            b"id: 1",
            b"event: e",
            b"retry: 12",
            b":",
            b" ",
            b"\0",
            b"\n",
            b"\n\n",
            b"\r",
            b"\r\n",
            b"\r\n\r\n",
            b"\xEF\xBB\xBF",
            b"\xEF",
            b"\xE2\x82\xAC",
            b"\xF0\x9F",
        ])
        .prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 0..4),
    ];
    prop::collection::vec(token, 0..40).prop_map(|tokens| tokens.concat())
}

/// Strings rich in what the format treats specially.
fn strings() -> impl Strategy<Value = String> {
    prop_oneof!["[a: \\r\\n\u{FEFF}é]{0,12}", any::<String>()]
}

proptest! {
    #[test]
    fn any_split_gives_the_same_items(
        bytes in wire(),
        sizes in prop::collection::vec(0_usize..12, 0..80),
        max_message_size in 0_usize..60,
    ) {
        let mut pieces = Vec::new();
        let mut rest = bytes.as_slice();
        for size in sizes {
            let (piece, after) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        prop_assert_eq!(decode(max_message_size, pieces), decode(max_message_size, [bytes.as_slice()]));
    }

    #[test]
    fn encoded_events_come_back(
        events in prop::collection::vec(
            (option::of(strings()), option::of(strings()), option::of(any::<u64>()), strings()),
            0..6,
        ),
        comment in strings(),
        size in 1_usize..20,
    ) {
        let mut wire = Vec::new();
        let mut wanted = Vec::new();
        let mut last_id: Option<String> = None;
        encode_comment(&mut wire, &comment);
        let comment_lines = comment.replace("\r\n", "\n").replace('\r', "\n").matches('\n').count() + 1;
        wanted.resize(comment_lines, SseItem::Comment);
        for (id, event, retry, data) in events {
            let id = id.map(|id| id.replace(['\r', '\n', '\0'], "_"));
            let event = event.map(|event| event.replace(['\r', '\n'], "_"));
            let written = SseEvent { id: id.as_deref(), event: event.as_deref(), retry, data: &data };
            encode_event(&mut wire, &written).unwrap();
            wanted.extend(retry.map(SseItem::Retry));
            let own_id = id.is_some();
            last_id = id.or(last_id);
            let name = event.filter(|event| !event.is_empty()).unwrap_or("message".to_owned());
            let data = data.replace("\r\n", "\n").replace('\r', "\n");
            wanted.push(match &last_id {
                Some(id) if own_id && data.is_empty() => primed(id),
                id => SseItem::Event(SseReceived { id: id.clone(), has_own_id: own_id, event: name, data }),
            });
        }
        prop_assert_eq!(decode(usize::MAX, wire.chunks(size)), (wanted, None));
    }
}

//! Tests of the line decoder: a table, any split, the memory bound.

#![allow(clippy::indexing_slicing, clippy::panic)]

use super::*;
use proptest::prelude::*;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Got {
    Text(Vec<u8>),
    TooLong,
}

fn own(line: Line<'_>) -> Got {
    match line {
        Line::Text(bytes) => Got::Text(bytes.to_vec()),
        Line::TooLong => Got::TooLong,
    }
}

fn text(bytes: &[u8]) -> Got {
    Got::Text(bytes.to_vec())
}

fn drain(decoder: &mut LineDecoder, got: &mut Vec<Got>) {
    while let Some(line) = decoder.next_line() {
        got.push(own(line));
    }
}

fn finish(decoder: &mut LineDecoder, got: &mut Vec<Got>) {
    while let Some(line) = decoder.finish() {
        got.push(own(line));
    }
}

fn decode<'a>(max_message_size: usize, chunk: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Got> {
    let mut decoder = LineDecoder::with_chunk(max_message_size, chunk);
    let mut got = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        drain(&mut decoder, &mut got);
    }
    finish(&mut decoder, &mut got);
    got
}

/// The plain meaning of the format, without buffers.
fn model(max_message_size: usize, bytes: &[u8]) -> Vec<Got> {
    let lines = bytes.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines
        .filter_map(|line| match line {
            long if long.len() > max_message_size => Some(Got::TooLong),
            blank if blank.trim_ascii().is_empty() => None,
            line => Some(text(line)),
        })
        .collect()
}

#[test]
fn table() {
    let cases: &[(&[u8], Vec<Got>)] = &[
        (b"", vec![]),
        (b"\n\r\n \t\n", vec![]),
        (b"{}\n", vec![text(b"{}")]),
        (b"{}\r\n[]\n", vec![text(b"{}"), text(b"[]")]),
        (b"a\r\r\n", vec![text(b"a\r")]),
        (b"a\n\nb", vec![text(b"a"), text(b"b")]),
        (b"a\r", vec![text(b"a")]),
        (b" a \n", vec![text(b" a ")]),
        (b"12345678\n", vec![text(b"12345678")]),
        (b"12345678\r\n", vec![text(b"12345678")]),
        (b"12345678\r", vec![text(b"12345678")]),
        (b"123456789\nok\n", vec![Got::TooLong, text(b"ok")]),
        (b"123456789\r\nok\n", vec![Got::TooLong, text(b"ok")]),
        (b"123456789012\r\nok", vec![Got::TooLong, text(b"ok")]),
        (b"123456789012", vec![Got::TooLong]),
        (b"             \n", vec![Got::TooLong]),
    ];
    for (input, wanted) in cases {
        assert_eq!(&decode(8, 4, [*input]), wanted, "{:?} whole", input.escape_ascii().to_string());
        assert_eq!(&decode(8, 4, input.chunks(1)), wanted, "{:?} bytewise", input.escape_ascii().to_string());
    }
}

#[test]
fn lines_are_lent_from_the_read_buffer() {
    let mut decoder = LineDecoder::new(1024);
    let spare = decoder.spare();
    let range = spare.as_ptr_range();
    spare[..6].copy_from_slice(b"ab\ncd\n");
    decoder.filled(6);
    for wanted in [b"ab", b"cd"] {
        let Some(Line::Text(got)) = decoder.next_line() else { panic!("a line") };
        assert_eq!(got, wanted);
        assert!(range.contains(&got.as_ptr()));
    }
    assert_eq!(decoder.next_line(), None);
}

#[test]
fn an_endless_line_takes_no_more_than_the_bound() {
    let (max_message_size, chunk) = (10_000, 1024);
    let mut decoder = LineDecoder::with_chunk(max_message_size, chunk);
    let (mut total, mut told) = (0, 0);
    while total < 5_000_000 {
        let spare = decoder.spare();
        spare.fill(b'x');
        let count = spare.len();
        decoder.filled(count);
        total += count;
        told += decoder.next_line().map_or(0, |line| usize::from(line == Line::TooLong));
        assert_eq!((told, decoder.next_line()), (usize::from(total > max_message_size + 1), None));
        assert!(decoder.capacity() <= max_message_size + chunk, "{}", decoder.capacity());
    }
    decoder.feed(b"\nok\n");
    assert_eq!(decoder.next_line(), Some(Line::Text(b"ok")));
    assert_eq!(decoder.next_line(), None);
    decoder.spare();
    assert!(decoder.capacity() <= chunk, "{}", decoder.capacity());
}

#[test]
fn a_giant_line_within_the_limit_is_given_back() {
    let mut decoder = LineDecoder::with_chunk(usize::MAX, 1024);
    let giant = vec![b'x'; 1_000_000];
    for piece in giant.chunks(700) {
        decoder.feed(piece);
        assert_eq!(decoder.next_line(), None);
    }
    decoder.feed(b"\n");
    assert_eq!(decoder.next_line(), Some(Line::Text(giant.as_slice())));
    assert_eq!(decoder.next_line(), None);
    decoder.spare();
    assert!(decoder.capacity() <= 1024, "{}", decoder.capacity());
}

#[test]
fn encoded_lines_come_back() {
    let mut wire = Vec::new();
    encode_line(&mut wire, b"{\"a\":1}");
    encode_line(&mut wire, b"[]");
    assert_eq!(wire, b"{\"a\":1}\n[]\n");
    assert_eq!(decode(100, 64, [wire.as_slice()]), [text(b"{\"a\":1}"), text(b"[]")]);
}

fn wire() -> impl Strategy<Value = Vec<u8>> {
    let byte =
        prop_oneof![6 => Just(b'a'), 2 => Just(b'\n'), 2 => Just(b'\r'), 1 => Just(b' '), 1 => any::<u8>()];
    prop::collection::vec(byte, 0..300)
}

proptest! {
    #[test]
    fn any_split_gives_what_the_model_gives(
        bytes in wire(),
        sizes in prop::collection::vec(0_usize..40, 0..60),
        max_message_size in 0_usize..20,
        chunk in 0_usize..50,
    ) {
        let mut pieces = Vec::new();
        let mut rest = bytes.as_slice();
        for size in sizes {
            let (piece, after) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        prop_assert_eq!(decode(max_message_size, chunk, pieces), model(max_message_size, &bytes));
    }

    #[test]
    fn reading_into_the_spare_room_and_draining_late_loses_nothing(
        bytes in wire(),
        steps in prop::collection::vec((1_usize..40, 0_usize..4), 1..80),
        chunk in 1_usize..50,
    ) {
        let mut decoder = LineDecoder::with_chunk(12, chunk);
        let mut got = Vec::new();
        let mut rest = bytes.as_slice();
        for (size, takes) in steps {
            let spare = decoder.spare();
            prop_assert!(!spare.is_empty());
            let count = size.min(spare.len()).min(rest.len());
            let (piece, after) = rest.split_at(count);
            spare[..count].copy_from_slice(piece);
            decoder.filled(count);
            rest = after;
            for _ in 0..takes {
                got.extend(decoder.next_line().map(own));
            }
        }
        decoder.feed(rest);
        finish(&mut decoder, &mut got);
        prop_assert_eq!(got, model(12, &bytes));
    }

    #[test]
    fn a_drained_decoder_keeps_its_bound(
        bytes in wire(),
        reads in 1_usize..40,
        max_message_size in 0_usize..60,
        chunk in 1_usize..50,
    ) {
        let mut decoder = LineDecoder::with_chunk(max_message_size, chunk);
        for piece in bytes.chunks(reads) {
            decoder.feed(piece);
            while decoder.next_line().is_some() {}
            prop_assert!(decoder.capacity() <= max_message_size + 1 + chunk.max(reads));
        }
    }
}

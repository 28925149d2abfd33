//! The line decoder: any split of the input gives the lines of its plain meaning, and memory stays bounded.

use refmcp_proto::frame::{Line, LineDecoder};

use crate::input::{Input, splits};

/// A line that was decoded: its text, or that it was too long.
type Decoded = Option<Vec<u8>>;

/// Limit, chunk and cuts from the first bytes; the rest is the stream.
pub fn run(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let (limit, chunk) = (1 + input.below(64), 1 + input.below(32));
    let cuts = [input.byte(), input.byte(), input.byte(), input.byte()];
    let stream = input.rest();
    let expected = model(limit, stream);
    for pieces in splits(stream, cuts) {
        let mut decoder = LineDecoder::with_chunk(limit, chunk);
        let mut decoded = Vec::new();
        for piece in &pieces {
            decoder.feed(piece);
            take(&mut decoded, std::iter::from_fn(|| decoder.next_line().map(own)));
        }
        take(&mut decoded, std::iter::from_fn(|| decoder.finish().map(own)));
        assert_eq!(decoded, expected, "in {} pieces", pieces.len());
    }
    assert_eq!(read_bounded(limit, chunk, stream), expected, "read into the spare room");
}

/// Reads as a pipe does, and checks the memory that this takes.
fn read_bounded(limit: usize, chunk: usize, mut stream: &[u8]) -> Vec<Decoded> {
    let mut decoder = LineDecoder::with_chunk(limit, chunk);
    let mut decoded = Vec::new();
    while !stream.is_empty() {
        let spare = decoder.spare();
        assert!(!spare.is_empty(), "no room to read into");
        let count = spare.len().min(stream.len());
        let (piece, rest) = stream.split_at(count);
        spare[..count].copy_from_slice(piece);
        stream = rest;
        decoder.filled(count);
        take(&mut decoded, std::iter::from_fn(|| decoder.next_line().map(own)));
        // One byte of grace for the `\r` that does not count.
        assert!(decoder.partial().len() <= limit + 1, "{} bytes of a line are kept", decoder.partial().len());
        assert!(decoder.capacity() <= limit + chunk + 1, "{} bytes of memory", decoder.capacity());
    }
    take(&mut decoded, std::iter::from_fn(|| decoder.finish().map(own)));
    decoded
}

fn take(decoded: &mut Vec<Decoded>, lines: impl Iterator<Item = Decoded>) {
    decoded.extend(lines);
}

fn own(line: Line<'_>) -> Decoded {
    match line {
        Line::Text(text) => Some(text.to_vec()),
        Line::TooLong => None,
    }
}

/// The plain meaning of the format, without buffers.
fn model(limit: usize, stream: &[u8]) -> Vec<Decoded> {
    let lines = stream.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let read = lines.filter_map(|line| match line {
        long if long.len() > limit => Some(None),
        blank if blank.trim_ascii().is_empty() => None,
        text => Some(Some(text.to_vec())),
    });
    read.collect()
}

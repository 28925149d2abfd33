//! HTTP/2 frames of a client, without a library: no library lets a client behave badly enough.

const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const DATA: u8 = 0;

const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

/// The beginning of a connection whose streams may carry so many bytes before the client takes some.
pub(super) fn preface(window: u32) -> Vec<u8> {
    const INITIAL_WINDOW_SIZE: [u8; 2] = [0, 4];
    let settings = [&INITIAL_WINDOW_SIZE[..], &window.to_be_bytes()].concat();
    [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), frame(SETTINGS, 0, 0, &settings)].concat()
}

/// A POST on a stream, which has an odd number.
pub(super) fn post(stream: u32, headers: &[(&str, &str)], body: &str) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in headers {
        // A literal that is not indexed, neither name nor value compressed.
        block.push(0);
        for text in [name, value] {
            block.push(u8::try_from(text.len()).unwrap_or(u8::MAX) & 0x7f);
            block.extend(text.as_bytes());
        }
    }
    [frame(HEADERS, END_HEADERS, stream, &block), frame(DATA, END_STREAM, stream, body.as_bytes())].concat()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut frame = length[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_head_and_a_body() {
        let bytes = post(3, &[("a", "bc")], "{}");
        let head = [0, 0, 6, HEADERS, END_HEADERS, 0, 0, 0, 3, 0, 1, b'a', 2, b'b', b'c'];
        let body = [0, 0, 2, DATA, END_STREAM, 0, 0, 0, 3, b'{', b'}'];
        assert_eq!(bytes, [&head[..], &body].concat());
        assert!(preface(1).ends_with(&[0, 0, 6, SETTINGS, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1]));
    }
}

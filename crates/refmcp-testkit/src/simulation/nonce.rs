//! Nonces in messages: `~7~` is the nonce 7, wherever it stands.

/// The text of a nonce.
pub(super) fn mark(nonce: u64) -> String {
    format!("~{nonce}~")
}

/// The first nonce in a message.
pub(super) fn find(message: &[u8]) -> Option<u64> {
    let begin = message.iter().position(|byte| *byte == b'~')? + 1;
    digits(&message[begin..])
}

/// The number that a text begins with.
pub(super) fn digits(text: &[u8]) -> Option<u64> {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&text[..count]).ok()?.parse().ok()
}

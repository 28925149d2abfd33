//! What keys in Redis are made of: digests of secret ids, and request ids as text.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use refmcp_proto::jsonrpc::RequestId;
use ring::digest;

/// Bytes of a digest that names something: as many random bits as a session id has at least.
const NAME: usize = 24;

/// The name of something in Redis. Ids of sessions and tasks are secrets, and owners are people's names, so only digests
/// of them are stored as keys.
pub(crate) fn name(of: &str) -> String {
    let digest = digest::digest(&digest::SHA256, of.as_bytes());
    URL_SAFE_NO_PAD.encode(&digest.as_ref()[..NAME])
}

/// A request id as text: a letter for its kind, then the id.
pub(crate) fn request_text(id: &RequestId) -> String {
    match id {
        RequestId::Integer(number) => format!("i{number}"),
        RequestId::Digits(digits) => format!("d{digits}"),
        RequestId::Text(text) => format!("t{text}"),
    }
}

/// The request id of a text; `None` for one that is empty, or that nothing here has written.
pub(crate) fn request_of(text: &str) -> Option<RequestId> {
    let (kind, id) = text.split_at_checked(1)?;
    match kind {
        "i" => id.parse().ok().map(RequestId::Integer),
        "d" => Some(RequestId::Digits(id.into())),
        "t" => Some(RequestId::Text(id.into())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_survive() {
        for id in [
            RequestId::Integer(i64::MIN),
            RequestId::Integer(7),
            RequestId::Digits("123456789012345678901234567890".into()),
            RequestId::Text("7".into()),
            RequestId::Text("".into()),
        ] {
            assert_eq!(request_of(&request_text(&id)), Some(id));
        }
        assert_eq!(request_of(""), None);
        assert_eq!(request_of("ü"), None);
    }

    #[test]
    fn names_do_not_tell_ids() {
        assert_eq!(name("secret").len(), 32);
        assert_ne!(name("secret"), name("secrets"));
        assert!(!name("secret").contains("secret"));
    }
}

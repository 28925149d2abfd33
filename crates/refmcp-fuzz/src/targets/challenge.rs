//! `WWW-Authenticate` challenges: parsing ends, is bounded, and what is written parses to the same.

use refmcp_auth::Challenge;

/// The limit of challenges in a header.
const MAX_CHALLENGES: usize = 32;

/// The bytes are a header value.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let challenges = Challenge::parse_all(&text);
    assert!(challenges.len() <= MAX_CHALLENGES);
    for challenge in &challenges {
        let written = challenge.to_string();
        assert!(written.bytes().all(|byte| matches!(byte, b' '..=b'~')), "not a header value: {written:?}");
        let again = Challenge::parse_all(&written);
        assert_eq!(again.len(), 1, "{written} is not one challenge");
        assert!(again[0].is(challenge.scheme()));
        for name in ["realm", "scope", "error", "resource_metadata", "a"] {
            // What no header can hold is left out when a challenge is written.
            let kept = challenge.get(name).map(|value| {
                value.chars().filter(|character| matches!(character, ' '..='~')).collect::<String>()
            });
            assert_eq!(again[0].get(name), kept.as_deref(), "{name} of {written}");
        }
    }
}

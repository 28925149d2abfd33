//! Random tokens.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The operating system provides no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system provides no random bytes: {0}")]
pub struct RandomError(getrandom::Error);

/// 256 random bits as base64url, safe in URLs, headers and file names.
pub fn random_token() -> Result<String, RandomError> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(RandomError)?;
    Ok(URL_SAFE_NO_PAD.encode(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_tokens_differ() {
        let (one, other) = (random_token().unwrap(), random_token().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 43);
    }
}

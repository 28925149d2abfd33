//! Values that nobody can guess.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// The system gives nothing to make secrets from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the system gives no random bytes: {0}")]
pub struct NoRandom(getrandom::Error);

/// 256 random bits in characters that are safe in URLs, headers and file names.
pub fn unguessable() -> Result<String, NoRandom> {
    let mut bits = [0; 32];
    getrandom::fill(&mut bits).map_err(NoRandom)?;
    Ok(URL_SAFE_NO_PAD.encode(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_differ() {
        let (one, other) = (unguessable().unwrap(), unguessable().unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 43);
    }
}

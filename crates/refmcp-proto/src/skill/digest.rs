//! SHA-256 of bytes, as manifests write it.

use std::fmt;
use std::str::FromStr;

use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

const PREFIX: &str = "sha256:";

/// The SHA-256 of some bytes; written `sha256:` and 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; SHA256_OUTPUT_LEN]);

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest is \"sha256:\" and 64 lower-case hexadecimal digits")]
pub struct InvalidDigest;

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut sum = [0; SHA256_OUTPUT_LEN];
        sum.copy_from_slice(digest(&SHA256, bytes).as_ref());
        Self(sum)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for Digest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let digits = text.strip_prefix(PREFIX).ok_or(InvalidDigest)?.as_bytes();
        if digits.len() != 2 * SHA256_OUTPUT_LEN {
            return Err(InvalidDigest);
        }
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Ok(byte - b'0'),
            b'a'..=b'f' => Ok(byte - b'a' + 10),
            _ => Err(InvalidDigest),
        };
        let mut sum = [0; SHA256_OUTPUT_LEN];
        for (byte, pair) in sum.iter_mut().zip(digits.chunks_exact(2)) {
            let [high, low] = pair else { return Err(InvalidDigest) };
            *byte = digit(*high)? << 4 | digit(*low)?;
        }
        Ok(Self(sum))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_written_and_read_exactly() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Digest::of(b"").to_string(), empty);
        assert_eq!(empty.parse(), Ok(Digest::of(b"")));
        assert_ne!(Digest::of(b""), Digest::of(b"\n"));
        let upper = empty.to_uppercase();
        for wrong in ["", "sha256:", &empty[7..], &upper, &empty[..70], &format!("{empty}0"), "sha256:zz"] {
            assert_eq!(wrong.parse::<Digest>(), Err(InvalidDigest), "{wrong}");
        }
    }
}

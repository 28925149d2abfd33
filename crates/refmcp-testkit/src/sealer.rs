//! A sealer for tests: it notices changes, and it hides and withstands nothing.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

use refmcp_proto::engine::Sealer;

/// Seals by a keyed checksum that is easily forged, and leaves the content readable. For tests only.
///
/// The same calls in the same order give the same texts, and no two texts of one sealer are alike.
#[derive(Debug)]
pub struct InsecureTestSealer {
    key: u64,
    next: AtomicU64,
}

impl InsecureTestSealer {
    /// A sealer; those with different keys do not open each other's texts.
    #[must_use]
    pub const fn new(key: u64) -> Self {
        Self { key, next: AtomicU64::new(0) }
    }

    fn checksum(&self, purpose: &[u8], content: &[u8]) -> u64 {
        let length = (purpose.len() as u64).to_le_bytes();
        let parts = [&self.key.to_le_bytes(), &length[..], purpose, content];
        // FNV-1a, which unlike the standard library's hasher is the same in every version.
        parts.into_iter().flatten().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    }
}

impl Sealer for InsecureTestSealer {
    fn seal(&self, purpose: &[u8], content: &[u8]) -> String {
        let mut numbered = self.next.fetch_add(1, Ordering::SeqCst).to_le_bytes().to_vec();
        numbered.extend_from_slice(content);
        let mut sealed = format!("{:016x}", self.checksum(purpose, &numbered));
        for byte in numbered {
            // Writing to a string cannot fail.
            let _ = write!(sealed, "{byte:02x}");
        }
        sealed
    }

    fn open(&self, purpose: &[u8], sealed: &str) -> Option<Vec<u8>> {
        let (checksum, content) = sealed.split_at_checked(16)?;
        let numbered = unhex(content)?;
        let expected = format!("{:016x}", self.checksum(purpose, &numbered));
        (checksum == expected).then(|| numbered.get(8..).map(<[u8]>::to_vec)).flatten()
    }
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let pairs = text.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_what_it_sealed_for_that_purpose_only() {
        let sealer = InsecureTestSealer::new(1);
        let sealed = sealer.seal(b"a", b"content");
        assert_ne!(sealed, sealer.seal(b"a", b"content"));
        assert_eq!(sealer.open(b"a", &sealed).as_deref(), Some(&b"content"[..]));
        assert_eq!(sealer.open(b"b", &sealed), None);
        assert_eq!(InsecureTestSealer::new(2).open(b"a", &sealed), None);
    }

    #[test]
    fn it_notices_every_changed_character() {
        let sealer = InsecureTestSealer::new(1);
        let sealed = sealer.seal(b"a", b"content");
        for at in 0..sealed.len() {
            let other = if sealed.as_bytes()[at] == b'0' { "1" } else { "0" };
            let mut changed = sealed.clone();
            changed.replace_range(at..=at, other);
            assert_eq!(sealer.open(b"a", &changed), None, "{at}");
            assert_eq!(sealer.open(b"a", &sealed[..at]), None, "{at}");
        }
    }
}

//! A byte search shaped so that the compiler turns it into vector instructions.

const BLOCK: usize = 64;
const WORD: usize = size_of::<u64>();
const LOW_BITS: u64 = u64::from_ne_bytes([0x01; WORD]);
const HIGH_BITS: u64 = u64::from_ne_bytes([0x80; WORD]);

/// The place of the first byte that is one of `needles`.
#[inline]
pub(super) fn find<const N: usize>(hay: &[u8], needles: [u8; N]) -> Option<usize> {
    let (blocks, tail) = hay.as_chunks::<BLOCK>();
    let mut before = 0;
    for block in blocks {
        // No early exit inside a block, and one pass for each needle: that is what lets the comparison run
        // on whole vectors.
        if needles.iter().any(|needle| block.iter().fold(false, |hit, byte| hit | (byte == needle))) {
            return find_by_words(block, needles).map(|at| before + at);
        }
        before += BLOCK;
    }
    find_by_words(tail, needles).map(|at| before + at)
}

#[inline]
fn find_by_words<const N: usize>(hay: &[u8], needles: [u8; N]) -> Option<usize> {
    let (words, tail) = hay.as_chunks::<WORD>();
    let mut before = 0;
    for word in words {
        let word = u64::from_le_bytes(*word);
        // Marks the high bit of each byte equal to a needle. A borrow can mark a byte wrongly, but only
        // one above a right mark, and the lowest mark is all that counts.
        let marks = needles.iter().fold(0, |marks, &needle| {
            let zero_where_equal = word ^ (LOW_BITS * u64::from(needle));
            marks | (zero_where_equal.wrapping_sub(LOW_BITS) & !zero_where_equal & HIGH_BITS)
        });
        if marks != 0 {
            return Some(before + marks.trailing_zeros() as usize / 8);
        }
        before += WORD;
    }
    tail.iter().position(|byte| needles.contains(byte)).map(|at| before + at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn hay() -> impl Strategy<Value = Vec<u8>> {
        let near_misses = prop::sample::select(b"\x0B\x09\x8A\x0C\x8D\x00\xFF".to_vec());
        let byte = prop_oneof![60 => Just(b'a'), 20 => near_misses, 1 => Just(b'\n'), 1 => Just(b'\r')];
        prop::collection::vec(byte, 0..400)
    }

    proptest! {
        #[test]
        fn agrees_with_position(hay in hay(), skipped in 0_usize..70) {
            let hay = hay.get(skipped..).unwrap_or_default();
            prop_assert_eq!(find(hay, *b"\n"), hay.iter().position(|&byte| byte == b'\n'));
            prop_assert_eq!(find(hay, *b"\r\n"), hay.iter().position(|byte| b"\r\n".contains(byte)));
        }
    }
}

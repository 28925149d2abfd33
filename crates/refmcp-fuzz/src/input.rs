//! Choices read from the bytes of a fuzzer: the same bytes give the same choices, and any bytes give some.

/// The bytes that are left. Once they are used up, every choice is the first one.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    /// Reads choices from these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all bytes are used up.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// One byte.
    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// A number below `end`, which is at most 256.
    pub fn below(&mut self, end: usize) -> usize {
        usize::from(self.byte()) % end.max(1)
    }

    /// Yes or no.
    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, options: &[T]) -> T {
        options[self.below(options.len())]
    }

    /// The bytes up to the next line feed, which is left out.
    pub fn line(&mut self) -> &'a [u8] {
        let end = self.0.iter().position(|byte| *byte == b'\n').unwrap_or(self.0.len());
        let (line, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        line
    }

    /// The same as text; what is not UTF-8 becomes replacement characters.
    pub fn text(&mut self) -> String {
        String::from_utf8_lossy(self.line()).into_owned()
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }
}

/// The ways in which a target cuts its input: not at all, after each byte, and as the lengths in `cuts` say, repeated.
pub fn splits(bytes: &[u8], cuts: [u8; 4]) -> [Vec<&[u8]>; 3] {
    let mut rest = bytes;
    let uneven = cuts.iter().cycle().map_while(|cut| {
        let (piece, left) = rest.split_at(usize::from(*cut).clamp(1, rest.len().max(1)).min(rest.len()));
        rest = left;
        (!piece.is_empty()).then_some(piece)
    });
    [vec![bytes], bytes.chunks(1).collect(), uneven.collect()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_give_choices() {
        let mut input = Input::new(b"\x07\x03line\nrest");
        assert_eq!((input.below(5), input.flag()), (2, true));
        assert_eq!((input.line(), input.rest()), (&b"line"[..], &b"rest"[..]));
        assert!(input.is_empty());
        assert_eq!((input.byte(), input.pick(&["first", "second"]), input.line()), (0, "first", &b""[..]));
    }

    #[test]
    fn splits_lose_nothing() {
        for split in splits(b"some bytes", [3, 0, 200, 1]) {
            assert_eq!(split.concat(), b"some bytes");
        }
        assert!(splits(b"", [0; 4])[2].is_empty());
    }
}

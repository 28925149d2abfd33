//! Sets of revisions.

use std::fmt;

use super::Revision;

/// Some of the revisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct RevisionSet(u8);

impl RevisionSet {
    /// All of them.
    pub const ALL: Self = Self::from_letters("ABCDE");

    /// None of them.
    pub const EMPTY: Self = Self(0);

    /// These and one more.
    #[must_use]
    pub const fn with(self, revision: Revision) -> Self {
        Self(self.0 | 1 << revision as u8)
    }

    /// Whether a revision is in both sets.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The revisions that letters stand for: `A` is the oldest, the next letter the next one. Other characters do not compile
    /// in constants.
    pub(crate) const fn from_letters(letters: &str) -> Self {
        let (mut rest, mut bits) = (letters.as_bytes(), 0);
        while let [letter, behind @ ..] = rest {
            assert!(*letter >= b'A' && ((*letter - b'A') as usize) < Revision::ALL.len());
            bits |= 1 << (*letter - b'A');
            rest = behind;
        }
        Self(bits)
    }

    /// Whether this one is among them.
    pub fn contains(self, revision: Revision) -> bool {
        self.iter().any(|member| member == revision)
    }

    /// The revisions, oldest first.
    pub fn iter(self) -> impl DoubleEndedIterator<Item = Revision> {
        let numbered = Revision::ALL.into_iter().enumerate();
        numbered.filter(move |(number, _)| self.0 & (1 << number) != 0).map(|(_, revision)| revision)
    }

    /// The newest one.
    pub fn newest(self) -> Option<Revision> {
        self.iter().next_back()
    }
}

impl fmt::Display for RevisionSet {
    /// Revisions in a row are written as their first and last.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.iter().eq(Revision::ALL) {
            return f.write_str("all");
        }
        let mut runs: Vec<(Revision, Revision)> = Vec::new();
        let mut previous = None;
        for (number, revision) in Revision::ALL.into_iter().enumerate().filter(|(_, it)| self.contains(*it)) {
            match runs.last_mut() {
                Some((_, last)) if previous == number.checked_sub(1) => *last = revision,
                _ => runs.push((revision, revision)),
            }
            previous = Some(number);
        }
        for (number, (first, last)) in runs.iter().enumerate() {
            let separator = if number == 0 { "" } else { ", " };
            if first == last {
                write!(f, "{separator}{first}")?;
            } else {
                write!(f, "{separator}{first} to {last}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_read_from_letters_and_written_as_dates() {
        for (letters, text) in [
            ("ABCDE", "all"),
            ("ABCD", "2024-11-05 to 2025-11-25"),
            ("ACDE", "2024-11-05, 2025-06-18 to 2026-07-28"),
            ("B", "2025-03-26"),
            ("BCE", "2025-03-26 to 2025-06-18, 2026-07-28"),
        ] {
            let set = RevisionSet::from_letters(letters);
            assert_eq!(set.to_string(), text);
            assert_eq!(set.iter().count(), letters.len());
        }
        let set = RevisionSet::from_letters("BC");
        assert!(set.contains(Revision::V2025_03_26) && !set.contains(Revision::LATEST));
        assert_eq!(set.newest(), Some(Revision::V2025_06_18));
        assert_eq!(RevisionSet::EMPTY.with(Revision::V2025_03_26).with(Revision::V2025_06_18), set);
        assert!(
            set.intersects(RevisionSet::ALL) && !set.intersects(RevisionSet::EMPTY.with(Revision::LATEST))
        );
    }
}

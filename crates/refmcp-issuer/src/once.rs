//! Assertions that are good once.

use std::collections::HashMap;

use refmcp_auth::Seconds;

/// The names of assertions that were used, by whoever signed them. None is forgotten while the assertion is good: when
/// there are too many, the next is refused.
pub(crate) struct Once {
    most: usize,
    each: usize,
    count: usize,
    /// The names of each signer, and when they may be forgotten.
    used: HashMap<String, HashMap<String, Seconds>>,
}

/// Why an assertion cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It was used before.
    Before,
    /// Nobody could tell the next time: too many are remembered.
    Full,
}

impl Once {
    /// Room for so many in all, and for so many of one signer.
    pub(crate) fn new(most: usize, each: usize) -> Self {
        Self { most, each, count: 0, used: HashMap::new() }
    }

    /// Uses the name of an assertion that is good until a time.
    pub(crate) fn take(
        &mut self,
        signer: &str,
        name: &str,
        until: Seconds,
        now: Seconds,
    ) -> Result<(), Unusable> {
        let names = self.used.get(signer);
        if names.and_then(|names| names.get(name)).is_some_and(|until| now < *until) {
            return Err(Unusable::Before);
        }
        if self.is_full_for(signer) {
            self.drop_old(now);
        }
        if self.is_full_for(signer) {
            return Err(Unusable::Full);
        }
        let before = self.used.entry(signer.to_owned()).or_default().insert(name.to_owned(), until);
        self.count += usize::from(before.is_none());
        Ok(())
    }

    fn is_full_for(&self, signer: &str) -> bool {
        self.count >= self.most || self.used.get(signer).is_some_and(|names| names.len() >= self.each)
    }

    fn drop_old(&mut self, now: Seconds) {
        self.used.retain(|_, names| {
            names.retain(|_, until| now < *until);
            !names.is_empty()
        });
        self.count = self.used.values().map(HashMap::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_good_once_for_each_signer() {
        let mut once = Once::new(10, 10);
        assert_eq!(once.take("a", "1", 100, 0), Ok(()));
        assert_eq!(once.take("a", "1", 100, 99), Err(Unusable::Before));
        assert_eq!(once.take("b", "1", 100, 0), Ok(()));
        assert_eq!(once.take("a", "1", 200, 100), Ok(()), "another one of the same name, after its time");
        assert_eq!(once.count, 2);
    }

    #[test]
    fn when_there_are_too_many_the_next_is_refused() {
        let mut once = Once::new(6, 4);
        for name in ["1", "2", "3", "4"] {
            assert_eq!(once.take("a", name, 100, 0), Ok(()));
        }
        assert_eq!(once.take("a", "5", 100, 0), Err(Unusable::Full));
        assert_eq!(once.take("a", "1", 100, 0), Err(Unusable::Before), "and none is good twice");
        assert_eq!(once.take("b", "1", 100, 0), Ok(()), "others are not kept out");
        assert_eq!(once.take("b", "2", 200, 0), Ok(()));
        assert_eq!(once.take("c", "1", 200, 0), Err(Unusable::Full));
        assert_eq!(once.take("c", "1", 200, 100), Ok(()));
        assert_eq!((once.count, once.used.len()), (2, 2));
    }
}

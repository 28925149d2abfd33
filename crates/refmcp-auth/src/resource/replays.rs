//! Proofs are good once.

use std::collections::BTreeSet;

use ring::digest;

use crate::Seconds;
use crate::dpop::{ProofFault, Proven, WITHIN};

/// The proofs that were used lately, within bounds. When there are too many, the oldest are forgotten, and from then on
/// nothing as old as they are is taken: under a flood, proofs have to be younger, but none is ever good twice.
#[derive(Debug, Clone)]
pub struct Replays {
    most: usize,
    used: BTreeSet<(Seconds, [u8; 16])>,
    /// Proofs of this time or older are not remembered any more.
    forgotten: Option<Seconds>,
}

impl Replays {
    /// Remembers so many.
    pub fn new(most: usize) -> Self {
        Self { most, used: BTreeSet::new(), forgotten: None }
    }

    /// Uses a proof.
    ///
    /// # Errors
    /// It was used before, or is so old that nobody can tell.
    pub fn use_once(&mut self, proof: &Proven, now: Seconds) -> Result<(), ProofFault> {
        while self.used.first().is_some_and(|(made, _)| made.saturating_add(WITHIN) < now) {
            self.used.pop_first();
        }
        if self.forgotten.is_some_and(|forgotten| proof.iat <= forgotten) {
            return Err(ProofFault::Time);
        }
        if !self.used.insert((proof.iat, name(proof))) {
            return Err(ProofFault::Replayed);
        }
        if self.used.len() > self.most
            && let Some((made, _)) = self.used.pop_first()
        {
            self.forgotten = self.forgotten.max(Some(made));
        }
        Ok(())
    }
}

/// A short name for a proof: of two keys, the same name means two proofs.
fn name(proof: &Proven) -> [u8; 16] {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(proof.jkt.as_bytes());
    context.update(b"\0");
    context.update(proof.jti.as_bytes());
    let whole = context.finish();
    let mut name = [0; 16];
    name.iter_mut().zip(whole.as_ref()).for_each(|(to, from)| *to = *from);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(jkt: &str, jti: &str, iat: Seconds) -> Proven {
        Proven { jkt: jkt.into(), jti: jti.into(), iat, nonce: None }
    }

    #[test]
    fn a_proof_is_good_once() {
        let mut replays = Replays::new(10);
        assert_eq!(replays.use_once(&proof("k", "a", 1000), 1000), Ok(()));
        assert_eq!(replays.use_once(&proof("k", "a", 1000), 1300), Err(ProofFault::Replayed));
        assert_eq!(replays.use_once(&proof("l", "a", 1000), 1000), Ok(()));
        assert_eq!(replays.use_once(&proof("k", "b", 1000), 1000), Ok(()));
    }

    #[test]
    fn a_flood_makes_nothing_good_twice() {
        let mut replays = Replays::new(10);
        for number in 0..20 {
            assert_eq!(replays.use_once(&proof("k", &number.to_string(), 1000 + number), 1010), Ok(()));
        }
        assert!(replays.used.len() <= 10);
        for number in 0..20 {
            let again = replays.use_once(&proof("k", &number.to_string(), 1000 + number), 1010);
            assert!(again.is_err(), "{number}");
        }
        assert_eq!(replays.use_once(&proof("k", "new", 1010), 1010), Ok(()));
        assert_eq!(replays.use_once(&proof("k", "late", 1001), 1010), Err(ProofFault::Time));
    }

    #[test]
    fn the_old_is_forgotten_once_it_would_be_refused_anyway() {
        let mut replays = Replays::new(10);
        replays.use_once(&proof("k", "a", 1000), 1000).unwrap();
        replays.use_once(&proof("k", "b", 1301), 1301).unwrap();
        assert_eq!((replays.used.len(), replays.forgotten), (1, None));
    }
}

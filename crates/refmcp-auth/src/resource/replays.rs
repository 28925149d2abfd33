//! Proofs are good once.

use std::collections::{BTreeSet, HashMap};

use ring::digest;

use crate::Seconds;
use crate::dpop::{ProofFault, Proven, WITHIN};

/// A short name for a key or for a proof.
type Name = [u8; 16];

/// The proofs that were used lately, within bounds. Whatever is forgotten before its time, nothing as old as that is
/// taken from then on, so that no proof is ever good twice:
///
/// - A key with too many proofs has its own oldest forgotten. Under a flood its proofs have to be younger; those of others
///   do not.
/// - When there are too many in all, the key that was used least lately is forgotten. Keys that nothing is remembered of
///   have to bring younger proofs then; those that are at work do not notice.
#[derive(Debug, Clone)]
pub struct Replays {
    most: usize,
    each: usize,
    count: usize,
    keys: HashMap<Name, Used>,
    /// The keys by their youngest proofs.
    order: BTreeSet<(Seconds, Name)>,
    /// Proofs of keys that are not known, of this time or older, may have been used.
    forgotten: Option<Seconds>,
}

/// The proofs of one key.
#[derive(Debug, Clone, Default)]
struct Used {
    proofs: BTreeSet<(Seconds, Name)>,
    /// Proofs of this time or older are not remembered any more.
    forgotten: Option<Seconds>,
}

impl Used {
    /// When its youngest proof was made, of those that are remembered.
    fn latest(&self) -> Option<Seconds> {
        self.proofs.last().map(|(made, _)| *made)
    }
}

impl Replays {
    /// Remembers so many in all, and so many of each key.
    pub fn new(most: usize, each: usize) -> Self {
        Self {
            most: most.max(1),
            each: each.clamp(1, most.max(1)),
            count: 0,
            keys: HashMap::new(),
            order: BTreeSet::new(),
            forgotten: None,
        }
    }

    /// Uses a proof that was checked.
    ///
    /// # Errors
    /// It was used before, or is so old that nobody can tell.
    pub fn use_once(&mut self, proof: &Proven, now: Seconds) -> Result<(), ProofFault> {
        self.drop_old(now);
        let key = name(&proof.jkt);
        let known = self.keys.get(&key);
        let forgotten = known.map_or(self.forgotten, |used| used.forgotten);
        if forgotten.is_some_and(|forgotten| proof.iat <= forgotten) {
            return Err(ProofFault::Time);
        }
        let entry = (proof.iat, name(&proof.jti));
        if known.is_some_and(|used| used.proofs.contains(&entry)) {
            return Err(ProofFault::Replayed);
        }
        self.remember(key, entry, now);
        while self.count > self.most && self.forget_a_key() {}
        Ok(())
    }

    fn remember(&mut self, key: Name, entry: (Seconds, Name), now: Seconds) {
        // A key that comes back may have been forgotten: what holds for unknown ones holds for it.
        let new = || Used { forgotten: self.forgotten, ..Used::default() };
        let used = self.keys.entry(key).or_insert_with(new);
        if let Some(latest) = used.latest() {
            self.order.remove(&(latest, key));
        }
        while used.proofs.first().is_some_and(|(made, _)| made.saturating_add(WITHIN) < now) {
            used.proofs.pop_first();
            self.count -= 1;
        }
        used.proofs.insert(entry);
        self.count += 1;
        if used.proofs.len() > self.each
            && let Some((made, _)) = used.proofs.pop_first()
        {
            used.forgotten = used.forgotten.max(Some(made));
            self.count -= 1;
        }
        if let Some(latest) = used.latest() {
            self.order.insert((latest, key));
        }
    }

    /// Forgets the keys all of whose proofs are too old to be taken.
    fn drop_old(&mut self, now: Seconds) {
        while self.order.first().is_some_and(|(latest, _)| latest.saturating_add(WITHIN) < now) {
            if let Some((_, key)) = self.order.pop_first()
                && let Some(used) = self.keys.remove(&key)
            {
                self.count -= used.proofs.len();
            }
        }
    }

    /// Forgets the key that was used least lately; there is always one left.
    fn forget_a_key(&mut self) -> bool {
        if self.order.len() < 2 {
            return false;
        }
        let Some((latest, key)) = self.order.pop_first() else { return false };
        let used = self.keys.remove(&key).unwrap_or_default();
        self.count -= used.proofs.len();
        self.forgotten = self.forgotten.max(Some(latest)).max(used.forgotten);
        true
    }
}

fn name(text: &str) -> Name {
    let whole = digest::digest(&digest::SHA256, text.as_bytes());
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
        let mut replays = Replays::new(10, 10);
        assert_eq!(replays.use_once(&proof("k", "a", 1000), 1000), Ok(()));
        assert_eq!(replays.use_once(&proof("k", "a", 1000), 1300), Err(ProofFault::Replayed));
        assert_eq!(replays.use_once(&proof("l", "a", 1000), 1000), Ok(()));
        assert_eq!(replays.use_once(&proof("k", "b", 1000), 1000), Ok(()));
    }

    #[test]
    fn a_flood_makes_nothing_good_twice() {
        let mut replays = Replays::new(100, 10);
        for number in 0..20 {
            assert_eq!(replays.use_once(&proof("k", &number.to_string(), 1000 + number), 1010), Ok(()));
        }
        assert_eq!(replays.count, 10);
        for number in 0..20 {
            let again = replays.use_once(&proof("k", &number.to_string(), 1000 + number), 1010);
            assert!(again.is_err(), "{number}");
        }
        assert_eq!(replays.use_once(&proof("k", "late", 1001), 1010), Err(ProofFault::Time));
    }

    #[test]
    fn a_flood_of_one_key_is_its_own_trouble() {
        let mut replays = Replays::new(100, 10);
        assert_eq!(replays.use_once(&proof("mine", "a", 1000), 1010), Ok(()));
        for number in 0..1000 {
            let flood = proof("flood", &number.to_string(), 1000 + number % 30);
            if let Err(fault) = replays.use_once(&flood, 1010) {
                assert_eq!(fault, ProofFault::Time);
            }
        }
        assert!(replays.count <= 11);
        assert_eq!(replays.use_once(&proof("mine", "b", 1000), 1010), Ok(()), "another of the same second");
        assert_eq!(replays.use_once(&proof("mine", "a", 1000), 1010), Err(ProofFault::Replayed));
        assert_eq!(replays.use_once(&proof("new", "a", 900), 1010), Ok(()), "a key that nobody has seen");
    }

    #[test]
    fn many_keys_make_room_for_each_other_and_nothing_is_good_twice() {
        let mut replays = Replays::new(100, 10);
        for number in 0..1000 {
            let (name, made) = (number.to_string(), 1000 + number);
            assert_eq!(replays.use_once(&proof(&name, "a", made), made), Ok(()), "{number}");
            assert!(replays.count <= 100 && replays.keys.len() == replays.order.len());
        }
        for number in 0..1000 {
            let (name, made) = (number.to_string(), 1000 + number);
            assert!(replays.use_once(&proof(&name, "a", made), 1999).is_err(), "{number}");
        }
        assert_eq!(replays.use_once(&proof("0", "b", 1999), 1999), Ok(()), "one that was forgotten");
    }

    #[test]
    fn the_old_is_forgotten_once_it_would_be_refused_anyway() {
        let mut replays = Replays::new(10, 10);
        replays.use_once(&proof("k", "a", 1000), 1000).unwrap();
        replays.use_once(&proof("l", "b", 1301), 1301).unwrap();
        assert_eq!((replays.count, replays.keys.len(), replays.forgotten), (1, 1, None));
        replays.use_once(&proof("l", "c", 1602), 1602).unwrap();
        assert_eq!((replays.count, replays.keys.len(), replays.forgotten), (1, 1, None));
        replays.use_once(&proof("l", "d", 1700), 1700).unwrap();
        replays.use_once(&proof("l", "e", 1950), 1950).unwrap();
        assert_eq!((replays.count, replays.forgotten), (2, None), "of a key that is at work, too");
    }
}

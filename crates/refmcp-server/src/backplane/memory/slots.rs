//! Slots: each has a key and one value, which is there at once or comes later. Responses to server requests come later, and
//! are read; parked calls are there, and one claimant takes each.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::log::id_bytes;
use crate::backplane::WriterEpoch;

/// Bytes that a slot costs besides its key and value.
const SLOT: usize = 128;

/// The slots of a session. Keys of detached calls are texts.
#[derive(Default)]
pub(super) struct Slots(Option<Box<Kept>>);

/// Made with the first slot: most sessions never have one.
#[derive(Default)]
struct Kept {
    slots: HashMap<RequestId, Slot>,
    /// Wakes what waits for a value.
    filled: Arc<Notify>,
}

/// A slot.
pub(super) struct Slot {
    /// Until then a value is awaited.
    deadline: Instant,
    /// Until then the key is known, and the value can be taken.
    remembered: Instant,
    value: SlotValue,
}

enum SlotValue {
    Awaited,
    Filled(Bytes),
    /// It was read, or taken by a claimant.
    Taken(Bytes, Option<WriterEpoch>),
    /// It was taken, and has made room since.
    Dropped,
}

/// What became of a new slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Added {
    /// It is there.
    New,
    /// The key is in use or was used, and nothing has changed.
    Known,
    /// There are as many as there may be.
    Full,
}

impl Slot {
    /// A slot whose value comes later.
    pub(super) fn awaited(deadline: Instant, remembered: Instant) -> Self {
        Self { deadline, remembered, value: SlotValue::Awaited }
    }

    /// A slot with a value.
    pub(super) fn filled(value: Bytes, expires: Instant) -> Self {
        Self { deadline: expires, remembered: expires, value: SlotValue::Filled(value) }
    }

    fn is_over(&self, now: Instant) -> bool {
        match self.value {
            SlotValue::Awaited => now >= self.deadline,
            SlotValue::Filled(_) => false,
            SlotValue::Taken(..) | SlotValue::Dropped => true,
        }
    }

    /// Bytes that it costs under this key.
    pub(super) fn cost(&self, key: &RequestId) -> usize {
        let value = match &self.value {
            SlotValue::Filled(value) | SlotValue::Taken(value, _) => value.len(),
            SlotValue::Awaited | SlotValue::Dropped => 0,
        };
        SLOT + id_bytes(key) + value
    }
}

impl Slots {
    fn known(&self, key: &RequestId, now: Instant) -> Option<&Slot> {
        self.0.as_ref()?.slots.get(key).filter(|slot| now < slot.remembered)
    }

    fn known_mut(&mut self, key: &RequestId, now: Instant) -> Option<&mut Slot> {
        self.0.as_mut()?.slots.get_mut(key).filter(|slot| now < slot.remembered)
    }

    fn len(&self) -> usize {
        self.0.as_ref().map_or(0, |kept| kept.slots.len())
    }

    fn iter(&self) -> impl Iterator<Item = (&RequestId, &Slot)> {
        self.0.iter().flat_map(|kept| &kept.slots)
    }

    /// Whether a slot can be added, after making a place for it; the second value is what that freed.
    pub(super) fn make_place(&mut self, key: &RequestId, most: usize, now: Instant) -> (Added, usize) {
        if self.known(key, now).is_some() {
            return (Added::Known, 0);
        }
        let mut freed = self.remove(key);
        if self.len() >= most {
            freed += self.sweep(now);
        }
        if self.len() >= most {
            // One that is over may go: it is kept for retries, which come soon or not at all.
            let over = self.iter().filter(|(_, slot)| slot.is_over(now));
            let oldest = over.min_by_key(|(_, slot)| slot.remembered).map(|(key, _)| key.clone());
            freed += oldest.map_or(0, |key| self.remove(&key));
        }
        (if self.len() < most { Added::New } else { Added::Full }, freed)
    }

    fn remove(&mut self, key: &RequestId) -> usize {
        let removed = self.0.as_mut().and_then(|kept| kept.slots.remove_entry(key));
        removed.map_or(0, |(key, slot)| slot.cost(&key))
    }

    /// Adds a slot for which there is a place and room.
    pub(super) fn add(&mut self, key: &RequestId, slot: Slot) {
        self.0.get_or_insert_default().slots.insert(key.clone(), slot);
    }

    /// Whether a value is awaited now; `None` for a key that is not known.
    pub(super) fn is_awaited(&self, key: &RequestId, now: Instant) -> Option<bool> {
        self.known(key, now).map(|slot| matches!(slot.value, SlotValue::Awaited) && now < slot.deadline)
    }

    /// Gives a slot its value, for which room was made.
    pub(super) fn fill(&mut self, key: &RequestId, value: Bytes) {
        if let Some(kept) = &mut self.0
            && let Some(slot) = kept.slots.get_mut(key)
        {
            slot.value = SlotValue::Filled(value);
            kept.filled.notify_waiters();
        }
    }

    /// The value, however often it is read.
    pub(super) fn read(&mut self, key: &RequestId, now: Instant) -> Option<Bytes> {
        let slot = self.known_mut(key, now)?;
        let (SlotValue::Filled(value) | SlotValue::Taken(value, _)) = &slot.value else { return None };
        let value = value.clone();
        slot.value = SlotValue::Taken(value.clone(), None);
        Some(value)
    }

    /// The value, for the first claimant; its key stays known.
    pub(super) fn claim(&mut self, key: &RequestId, claimant: WriterEpoch, now: Instant) -> Option<Bytes> {
        let slot = self.known_mut(key, now)?;
        let value = match &slot.value {
            SlotValue::Filled(value) => value.clone(),
            SlotValue::Taken(value, by) if *by == Some(claimant) => value.clone(),
            SlotValue::Awaited | SlotValue::Taken(..) | SlotValue::Dropped => return None,
        };
        slot.value = SlotValue::Taken(value.clone(), Some(claimant));
        Some(value)
    }

    /// Drops the value that was given and would be forgotten first; its key stays known. Returns the bytes that this freed.
    pub(super) fn drop_given(&mut self) -> usize {
        let slots = self.0.iter_mut().flat_map(|kept| kept.slots.values_mut());
        let given = slots.filter_map(|slot| match &slot.value {
            SlotValue::Taken(value, _) if !value.is_empty() => Some((value.len(), slot)),
            _ => None,
        });
        let Some((freed, oldest)) = given.min_by_key(|(_, slot)| slot.remembered) else { return 0 };
        oldest.value = SlotValue::Dropped;
        freed
    }

    /// By when a value should come, and what wakes when one does; `None` when none will.
    pub(super) fn next_fill(&self, key: &RequestId, now: Instant) -> Option<(Instant, Arc<Notify>)> {
        let slot = self.known(key, now).filter(|slot| matches!(slot.value, SlotValue::Awaited))?;
        Some((slot.deadline, self.0.as_ref()?.filled.clone()))
    }

    /// The keys of slots with a value.
    pub(super) fn filled_keys(&self, now: Instant) -> Vec<Box<str>> {
        let filled = |slot: &Slot| matches!(slot.value, SlotValue::Filled(_)) && now < slot.remembered;
        let keys = self.iter().filter(|(_, slot)| filled(slot)).map(|(key, _)| key);
        keys.filter_map(|key| if let RequestId::Text(text) = key { Some(text.clone()) } else { None })
            .collect()
    }

    /// Forgets expired slots; returns the bytes that this freed.
    pub(super) fn sweep(&mut self, now: Instant) -> usize {
        let Some(kept) = &mut self.0 else { return 0 };
        let over = kept.slots.extract_if(|_, slot| now >= slot.remembered);
        over.map(|(key, slot)| slot.cost(&key)).sum()
    }

    pub(super) fn wake(&self) {
        if let Some(kept) = &self.0 {
            kept.filled.notify_waiters();
        }
    }
}

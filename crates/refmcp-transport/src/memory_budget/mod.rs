//! The memory budget: how many bytes a process holds for its peers, with one limit for all of them.
//!
//! Holders reserve bytes in an account: that of a connection, of a session, or of a client with several of them. An account
//! may hold as much as is free in the whole budget (dynamic thresholds, as switches share their buffers). So one greedy
//! peer gets about a half, two get a third each, and a part of the same size always stays free: the greediest peer is
//! refused first. The last sixteenth is for accounts that hold little: a crowd of peers that each hold their share does not
//! keep a modest one from being served.

mod machine;

use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use bytes::Bytes;

/// The bytes that a process holds for its peers, and their limit. Clones are the same budget.
///
/// ```
/// use refmcp_transport::memory_budget::{MemoryBudget, NoMemory};
///
/// let budget = MemoryBudget::new(1600);
/// let (greedy, modest) = (budget.account(), budget.account());
/// let share = greedy.reserve(750).unwrap();
/// assert_eq!(greedy.reserve(1).err(), Some(NoMemory::Share));
/// let little = modest.reserve(100).unwrap();
/// assert_eq!(budget.held(), 850);
/// drop((share, little));
/// assert_eq!(budget.held(), 0);
/// ```
#[derive(Debug, Clone)]
pub struct MemoryBudget(Arc<Total>);

#[derive(Debug)]
struct Total {
    limit: usize,
    held: AtomicUsize,
    refused: AtomicU64,
}

/// What one connection, session or client holds. Clones are the same account.
#[derive(Debug, Clone)]
pub struct MemoryAccount(Arc<Account>);

#[derive(Debug)]
struct Account {
    held: AtomicUsize,
    /// A limit of its own; without one, it may hold as much as is free.
    limit: Option<usize>,
    /// The account of the client, whose connections and sessions count together.
    parent: Option<MemoryAccount>,
    total: Arc<Total>,
}

/// An account that is not kept open.
#[derive(Debug, Clone)]
pub struct WeakMemoryAccount(Weak<Account>);

impl WeakMemoryAccount {
    /// The account, while something holds it open.
    pub fn upgrade(&self) -> Option<MemoryAccount> {
        self.0.upgrade().map(MemoryAccount)
    }
}

/// Bytes that are held, until this is dropped.
#[derive(Debug)]
pub struct MemoryReservation {
    account: MemoryAccount,
    bytes: usize,
}

/// Why bytes cannot be held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoMemory {
    /// The peer holds as much as it may while others hold what they do.
    Share,
    /// All peers together hold as much as they may.
    Total,
}

impl fmt::Display for NoMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Share => "too many bytes are held for this client; it has to read what it was sent",
            Self::Total => "too many bytes are held for all clients",
        })
    }
}

impl std::error::Error for NoMemory {}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn new(limit: usize) -> Self {
        Self(Arc::new(Total { limit, held: AtomicUsize::new(0), refused: AtomicU64::new(0) }))
    }

    /// The limit of all accounts together.
    pub fn limit(&self) -> usize {
        self.0.limit
    }

    /// The bytes that are held now.
    pub fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    /// How often bytes could not be held.
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// A new account, which may hold as much as is free.
    pub fn account(&self) -> MemoryAccount {
        MemoryAccount::new(&self.0, None, None)
    }

    /// A new account with a limit of its own instead: for holders that give up what was held longest by themselves.
    pub fn account_with_limit(&self, limit: usize) -> MemoryAccount {
        MemoryAccount::new(&self.0, Some(limit), None)
    }
}

impl Default for MemoryBudget {
    /// Half of the memory that this process may use, by its machine or its control group.
    fn default() -> Self {
        Self::new(machine::memory() / 2)
    }
}

/// The most that an account holds little with.
const LITTLE: usize = 64 << 10;

impl Total {
    /// What is left to accounts that hold little.
    fn spare(&self) -> usize {
        self.limit / 16
    }

    /// What an account may hold at the most of which the share does not matter.
    fn little(&self) -> usize {
        LITTLE.min(self.limit / 256)
    }

    /// Takes bytes; gives what was free before.
    fn take(&self, bytes: usize) -> Option<usize> {
        let before = self.held.fetch_add(bytes, Ordering::Relaxed);
        let free = self.limit.saturating_sub(before);
        if bytes > free {
            self.held.fetch_sub(bytes, Ordering::Relaxed);
            return None;
        }
        Some(free)
    }
}

impl MemoryAccount {
    fn new(total: &Arc<Total>, limit: Option<usize>, parent: Option<Self>) -> Self {
        let held = AtomicUsize::new(0);
        Self(Arc::new(Account { held, limit, parent, total: total.clone() }))
    }

    /// A new account of the same client: what it holds counts here too.
    #[must_use]
    pub fn child(&self) -> Self {
        Self::new(&self.0.total, None, Some(self.clone()))
    }

    /// The bytes that are held in it now.
    pub fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    /// Its limit: that of its own, or else that of the budget.
    pub fn limit(&self) -> usize {
        self.0.limit.unwrap_or(self.0.total.limit)
    }

    /// Whether so many more bytes could be held now.
    pub fn has_room(&self, bytes: usize) -> bool {
        let free = self.0.total.limit.saturating_sub(self.0.total.held.load(Ordering::Relaxed));
        bytes <= free && self.lineage().all(|account| account.0.fits(account.held(), bytes, free))
    }

    /// Holds bytes for something new, such as a connection, which leaves alone what is for accounts that hold little.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn open(&self, bytes: usize) -> Result<MemoryReservation, NoMemory> {
        let total = &self.0.total;
        let held = total.held.load(Ordering::Relaxed);
        if held.saturating_add(bytes) > total.limit - total.spare() {
            total.refused.fetch_add(1, Ordering::Relaxed);
            return Err(NoMemory::Total);
        }
        self.reserve(bytes)
    }

    /// Holds bytes.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn reserve(&self, bytes: usize) -> Result<MemoryReservation, NoMemory> {
        let mut reservation = self.reservation();
        reservation.try_grow(bytes).map(|()| reservation)
    }

    /// A reservation of nothing yet.
    pub fn reservation(&self) -> MemoryReservation {
        MemoryReservation { account: self.clone(), bytes: 0 }
    }

    /// Holds a message until its last clone is dropped.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn hold(&self, message: Bytes) -> Result<Bytes, NoMemory> {
        let reservation = self.reserve(message.len())?;
        Ok(Bytes::from_owner(HeldMessage { message, _reservation: reservation }))
    }

    /// The account, without keeping it open.
    pub fn downgrade(&self) -> WeakMemoryAccount {
        WeakMemoryAccount(Arc::downgrade(&self.0))
    }

    /// The account and those that it counts in.
    fn lineage(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |account| account.0.parent.as_ref())
    }

    fn take(&self, bytes: usize) -> Result<(), NoMemory> {
        let total = &self.0.total;
        let Some(free) = total.take(bytes) else {
            total.refused.fetch_add(1, Ordering::Relaxed);
            return Err(NoMemory::Total);
        };
        for (taken, account) in self.lineage().enumerate() {
            let before = account.0.held.fetch_add(bytes, Ordering::Relaxed);
            if !account.0.fits(before, bytes, free) {
                self.lineage().take(taken + 1).for_each(|account| account.0.give(bytes));
                total.held.fetch_sub(bytes, Ordering::Relaxed);
                total.refused.fetch_add(1, Ordering::Relaxed);
                return Err(NoMemory::Share);
            }
        }
        Ok(())
    }

    /// Takes bytes whether there is room or not.
    fn take_unchecked(&self, bytes: usize) {
        self.0.total.held.fetch_add(bytes, Ordering::Relaxed);
        for account in self.lineage() {
            account.0.held.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn give(&self, bytes: usize) {
        self.lineage().for_each(|account| account.0.give(bytes));
        self.0.total.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl Account {
    /// Whether so many more bytes fit beside those that are held, where so many are free in all.
    fn fits(&self, held: usize, bytes: usize, free: usize) -> bool {
        let wanted = held.saturating_add(bytes);
        let free = free.saturating_sub(self.total.spare());
        match self.limit {
            Some(limit) => wanted <= limit && bytes <= free,
            None => wanted <= free.max(self.total.little()),
        }
    }

    fn give(&self, bytes: usize) {
        self.held.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl MemoryReservation {
    /// The bytes that it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The account that it holds them in.
    pub fn account(&self) -> &MemoryAccount {
        &self.account
    }

    /// Holds more bytes.
    ///
    /// # Errors
    /// There is no room for them; it holds what it did.
    pub fn try_grow(&mut self, bytes: usize) -> Result<(), NoMemory> {
        self.account.take(bytes)?;
        self.bytes += bytes;
        Ok(())
    }

    /// Holds more bytes even where there is no room: for what can be neither refused nor dropped, such as an error.
    pub fn grow(&mut self, bytes: usize) {
        self.account.take_unchecked(bytes);
        self.bytes += bytes;
    }

    /// Gives bytes back; at most what it holds.
    pub fn shrink(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.account.give(bytes);
    }

    /// Holds so many bytes from now on.
    ///
    /// # Errors
    /// There is no room for more; it holds what it did.
    pub fn try_resize(&mut self, bytes: usize) -> Result<(), NoMemory> {
        if bytes > self.bytes {
            return self.try_grow(bytes - self.bytes);
        }
        self.shrink(self.bytes - bytes);
        Ok(())
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.account.give(self.bytes);
        }
    }
}

/// A message, and the room that was reserved for it.
struct HeldMessage {
    message: Bytes,
    _reservation: MemoryReservation,
}

impl AsRef<[u8]> for HeldMessage {
    fn as_ref(&self) -> &[u8] {
        &self.message
    }
}

#[cfg(test)]
mod tests;

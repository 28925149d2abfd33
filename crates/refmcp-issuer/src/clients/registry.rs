//! The clients that have registered themselves.

use std::sync::Arc;

use refmcp_auth::Seconds;

use super::{Client, Origin};
use crate::bounded::Bounded;

/// Clients that are remembered, of each kind.
const MOST: usize = 1_000;

/// Clients that have registered themselves. Those that nobody has allowed in make room for each other and never for those
/// that somebody has, so that whoever registers many takes nothing from anybody who is at work.
///
/// Clients with a document are here once somebody has allowed them in.
pub(crate) struct Registry {
    fresh: Bounded<Arc<Client>>,
    allowed: Bounded<Arc<Client>>,
    documented: Bounded<Arc<Client>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self { fresh: Bounded::new(MOST), allowed: Bounded::new(MOST), documented: Bounded::new(MOST) }
    }

    /// Remembers a new client.
    pub(crate) fn insert(&mut self, client: Client, now: Seconds) {
        let id = client.id.clone();
        self.fresh.insert(&id, Arc::new(client), Seconds::MAX, now);
    }

    /// The client that has registered itself and has this id.
    pub(crate) fn get(&self, id: &str, now: Seconds) -> Option<Arc<Client>> {
        self.allowed.get(id, now).or_else(|| self.fresh.get(id, now)).cloned()
    }

    /// The client that has a document, of this id, as it was when somebody last allowed it in.
    pub(crate) fn documented(&self, id: &str, now: Seconds) -> Option<Arc<Client>> {
        self.documented.get(id, now).cloned()
    }

    /// Notes that somebody has allowed a client in. It may have been forgotten since they were asked.
    pub(crate) fn allow(&mut self, client: &Arc<Client>, now: Seconds) {
        let memory = match client.origin {
            Origin::Settings => return,
            Origin::Registration => {
                self.fresh.remove(&client.id);
                &mut self.allowed
            }
            Origin::Document => &mut self.documented,
        };
        memory.insert(&client.id, Arc::clone(client), Seconds::MAX, now);
    }

    /// Notes that a client is at work: of those that somebody has allowed in, it is the last to be forgotten.
    pub(crate) fn touch(&mut self, id: &str, now: Seconds) {
        for memory in [&mut self.allowed, &mut self.documented] {
            if let Some(client) = memory.remove(id) {
                memory.insert(id, client, Seconds::MAX, now);
            }
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.fresh.len() + self.allowed.len()
    }
}

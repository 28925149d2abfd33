//! Dynamically registered clients.

use std::sync::Arc;

use refmcp_auth::{ExpiringMap, Seconds};

use super::{Client, Origin};

/// Limit of clients of each kind.
const MOST: usize = 1_000;

/// Registered clients. Clients that no user has allowed evict each other, and never those that a user has allowed. So a flood
/// of registrations takes nothing from active clients.
///
/// A client with a document is stored once a user has allowed it.
pub(crate) struct Registry {
    fresh: ExpiringMap<String, Arc<Client>>,
    allowed: ExpiringMap<String, Arc<Client>>,
    documented: ExpiringMap<String, Arc<Client>>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self {
            fresh: ExpiringMap::new(MOST),
            allowed: ExpiringMap::new(MOST),
            documented: ExpiringMap::new(MOST),
        }
    }

    /// Stores a new client.
    pub(crate) fn insert(&mut self, client: Client, now: Seconds) {
        let id = client.id.clone();
        self.fresh.insert(&id, Arc::new(client), Seconds::MAX, now);
    }

    /// The registered client of an id.
    pub(crate) fn get(&self, id: &str, now: Seconds) -> Option<Arc<Client>> {
        self.allowed.get(id, now).or_else(|| self.fresh.get(id, now)).cloned()
    }

    /// The client of a document, as it was when a user last allowed it.
    pub(crate) fn documented(&self, id: &str, now: Seconds) -> Option<Arc<Client>> {
        self.documented.get(id, now).cloned()
    }

    /// Records that a user has allowed a client. It may have been evicted in the meantime.
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

    /// Records that a client is active, so that it is evicted last.
    pub(crate) fn touch(&mut self, id: &str, now: Seconds) {
        for memory in [&mut self.allowed, &mut self.documented] {
            if let Some(client) = memory.remove(id) {
                memory.insert(id, client, Seconds::MAX, now);
            }
        }
    }

    /// The number of clients.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.fresh.len() + self.allowed.len()
    }
}

//! Where tokens are kept.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use refmcp_auth::client::{StoreUpdate, StoredState, TokenSet};
use refmcp_auth::metadata::ClientRegistration;
use refmcp_auth::uri::canonical;
use url::Url;

use crate::http::as_http;
use crate::wire::BoxFuture;

/// Keeps tokens, and who we are to those who gave them. Servers go by the names that [`name_of`] gives them.
///
/// These are asked on the threads that also carry conversations, and must not make them wait: neither the calls nor what
/// they give back may block. Files, keyrings and the locks of other processes belong on a thread that may
/// (`tokio::task::spawn_blocking`).
pub trait Store: Send + Sync + fmt::Debug + 'static {
    /// Waits until nobody else gets a token for this server, in this process or another that uses the same store. Others
    /// wait until what is given back is dropped: through a renewal, or while a person logs in.
    fn lock<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Held, StoreFault>>;

    /// What is kept: the server's grant, and our registrations with every issuer.
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<StoredState, StoreFault>>;

    /// Keeps something. When this is answered it must not be lost.
    fn save<'a>(&'a self, server: &'a str, save: &'a StoreUpdate) -> BoxFuture<'a, Result<(), StoreFault>>;
}

/// The name of a server in a [`Store`]: its URL, of scheme `http` or `https` also where it is a WebSocket, without query
/// and fragment.
pub fn name_of(server: &Url) -> String {
    canonical(&as_http(server))
}

/// A lock that is held until this is dropped.
pub struct Held(#[allow(dead_code, reason = "it is there to be dropped")] Box<dyn Any + Send>);

impl Held {
    /// Held for as long as this lives.
    pub fn by(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Held")
    }
}

/// Why something cannot be kept or found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StoreFault(String);

impl StoreFault {
    /// A fault, in words; no secret may be in them.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// A store that is gone with the process. Clones share what they keep.
#[derive(Clone, Default)]
pub struct MemoryStore {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Default)]
struct Kept {
    grants: HashMap<String, TokenSet>,
    registrations: BTreeMap<String, ClientRegistration>,
    locks: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
}

impl MemoryStore {
    /// A store with nothing in it.
    pub fn new() -> Self {
        Self::default()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the server's grant.
    pub fn forget(&self, server: &str) {
        self.kept().grants.remove(server);
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("grants", &self.kept().grants.len()).finish_non_exhaustive()
    }
}

impl Store for MemoryStore {
    fn lock<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Held, StoreFault>> {
        let lock = self.kept().locks.entry(server.to_owned()).or_default().clone();
        Box::pin(async move { Ok(Held::by(lock.lock_owned().await)) })
    }

    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<StoredState, StoreFault>> {
        let kept = self.kept();
        let (grant, registrations) = (kept.grants.get(server).cloned(), kept.registrations.clone());
        let known = StoredState { tokens: grant, registrations, ..StoredState::default() };
        Box::pin(std::future::ready(Ok(known)))
    }

    fn save<'a>(&'a self, server: &'a str, save: &'a StoreUpdate) -> BoxFuture<'a, Result<(), StoreFault>> {
        let mut kept = self.kept();
        match save {
            StoreUpdate::Registration { issuer, registered } => {
                kept.registrations.insert(issuer.clone(), (**registered).clone());
            }
            StoreUpdate::ForgetRegistration { issuer, client_id } => {
                kept.registrations.retain(|of, one| of != issuer || one.client_id != *client_id);
            }
            StoreUpdate::Tokens(grant) => {
                kept.grants.insert(server.to_owned(), (**grant).clone());
            }
            other => {
                let fault = StoreFault::new(format!("there is no place for {other:?}"));
                return Box::pin(std::future::ready(Err(fault)));
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_has_one_name_whatever_is_spoken_there() {
        for (url, name) in [
            ("wss://H/mcp?key=hush#x", "https://h/mcp"),
            ("ws://h:1/mcp/", "http://h:1/mcp"),
            ("https://h:443/", "https://h"),
        ] {
            assert_eq!(name_of(&Url::parse(url).unwrap()), name);
        }
    }

    #[tokio::test]
    async fn only_the_registration_that_is_meant_is_forgotten() {
        let (store, issuer) = (MemoryStore::new(), "https://h".to_owned());
        let registered: ClientRegistration =
            serde_json::from_value(serde_json::json!({ "client_id": "new" })).unwrap();
        let keep = StoreUpdate::Registration { issuer: issuer.clone(), registered: Box::new(registered) };
        store.save("s", &keep).await.unwrap();
        let mut left = Vec::new();
        for (issuer, client_id) in [("https://other", "new"), ("https://h", "old"), ("https://h", "new")] {
            let (issuer, client_id) = (issuer.to_owned(), client_id.to_owned());
            store.save("s", &StoreUpdate::ForgetRegistration { issuer, client_id }).await.unwrap();
            left.push(store.load("s").await.unwrap().registrations.len());
        }
        assert_eq!(left, [1, 1, 0]);
    }
}

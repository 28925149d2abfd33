//! The token store.

use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use refmcp_auth::client::{StoreUpdate, StoredState, TokenSet};
use refmcp_auth::metadata::ClientRegistration;
use refmcp_auth::uri::canonical;
use url::Url;

use crate::http::connection::as_http;
use crate::transport::BoxFuture;

/// Stores tokens and client registrations. Servers are identified by [`store_key`].
///
/// The methods run on threads that also serve connections, so neither they nor their futures may block. Files, keyrings and
/// the locks of other processes belong on a blocking thread (`tokio::task::spawn_blocking`).
pub trait TokenStore: Send + Sync + fmt::Debug + 'static {
    /// Waits until no other task or process acquires a token for this server. Others wait until the guard is dropped, through a
    /// refresh or a login.
    fn lock<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<TokenStoreGuard, TokenStoreError>>;

    /// Loads the server's tokens, and the registrations with every issuer.
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<StoredState, TokenStoreError>>;

    /// Stores an update durably.
    fn save<'a>(
        &'a self,
        server: &'a str,
        save: &'a StoreUpdate,
    ) -> BoxFuture<'a, Result<(), TokenStoreError>>;
}

/// The key of a server in a [`TokenStore`]: its URL with the scheme `http` or `https`, also for a WebSocket, without query and
/// fragment.
pub fn store_key(server: &Url) -> String {
    canonical(&as_http(server))
}

/// A lock that is released when it is dropped.
#[derive(Debug)]
pub struct TokenStoreGuard(#[allow(dead_code, reason = "it is there to be dropped")] Box<dyn Any + Send>);

impl TokenStoreGuard {
    /// Wraps a guard.
    pub fn new(guard: impl Any + Send) -> Self {
        Self(Box::new(guard))
    }
}

/// Why the store failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TokenStoreError(String);

impl TokenStoreError {
    /// An error in words; they must contain no secret.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// A store in memory. Clones share their content.
#[derive(Debug, Clone, Default)]
pub struct MemoryTokenStore {
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    token_sets: HashMap<String, TokenSet>,
    registrations: BTreeMap<String, ClientRegistration>,
    locks: HashMap<String, Arc<tokio::sync::Mutex<()>>>,
}

impl MemoryTokenStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Forgets the server's tokens.
    pub fn forget(&self, server: &str) {
        self.kept.lock().token_sets.remove(server);
    }
}

impl TokenStore for MemoryTokenStore {
    fn lock<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<TokenStoreGuard, TokenStoreError>> {
        let lock = self.kept.lock().locks.entry(server.to_owned()).or_default().clone();
        Box::pin(async move { Ok(TokenStoreGuard::new(lock.lock_owned().await)) })
    }

    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<StoredState, TokenStoreError>> {
        let kept = self.kept.lock();
        let (token_set, registrations) = (kept.token_sets.get(server).cloned(), kept.registrations.clone());
        let known = StoredState { tokens: token_set, registrations, ..StoredState::default() };
        Box::pin(std::future::ready(Ok(known)))
    }

    fn save<'a>(
        &'a self,
        server: &'a str,
        save: &'a StoreUpdate,
    ) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        let mut kept = self.kept.lock();
        match save {
            StoreUpdate::Registration { issuer, registered } => {
                kept.registrations.insert(issuer.clone(), (**registered).clone());
            }
            StoreUpdate::ForgetRegistration { issuer, client_id } => {
                kept.registrations.retain(|of, one| of != issuer || one.client_id != *client_id);
            }
            StoreUpdate::Tokens(token_set) => {
                kept.token_sets.insert(server.to_owned(), (**token_set).clone());
            }
            other => {
                let error = TokenStoreError::new(format!("there is no place for {other:?}"));
                return Box::pin(std::future::ready(Err(error)));
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
            assert_eq!(store_key(&Url::parse(url).unwrap()), name);
        }
    }

    #[tokio::test]
    async fn only_the_registration_that_is_meant_is_forgotten() {
        let (store, issuer) = (MemoryTokenStore::new(), "https://h".to_owned());
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

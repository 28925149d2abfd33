//! The token store of this user: access tokens, client registrations and login options, kept in one file for the client
//! library.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};
use refmcp_auth::client::{LastClient, StoreUpdate, StoredState, TokenSet};
use refmcp_auth::metadata::ClientRegistration;
use refmcp_client::auth::{TokenStore, TokenStoreError, TokenStoreGuard};
use refmcp_client::transport::BoxFuture;
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use crate::args::LoginOptions;
use crate::store::tokens::{TokenEntry, TokenFile, Tokens};

/// What was stored for a server that is forgotten.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    /// Its grants.
    pub(crate) grants: Vec<TokenSet>,
    /// Why the others cannot be read, and so not be revoked.
    pub(crate) unreadable: Vec<anyhow::Error>,
}

/// The store of this user.
#[derive(Debug, Clone)]
pub(crate) struct UserStore {
    tokens: Tokens,
    /// Whether stored tokens are not given, because a new login is wanted. Saving tokens ends it.
    ignore_stored: Arc<AtomicBool>,
}

impl UserStore {
    /// What is kept in these.
    pub(crate) fn new(tokens: Tokens) -> Self {
        Self { tokens, ignore_stored: Arc::default() }
    }

    /// The same, which gives no stored tokens until a new login has saved some.
    pub(crate) fn ignore_stored(self) -> Self {
        Self { ignore_stored: Arc::new(AtomicBool::new(true)), ..self }
    }

    /// Whether stored tokens are given: a new login has saved some, or none was wanted.
    pub(crate) fn has_new(&self) -> bool {
        !self.ignore_stored.load(Ordering::Relaxed)
    }

    /// The grants that are kept, for one server or for all. Among all, one that cannot be read is a warning only.
    ///
    /// # Errors
    ///
    /// They cannot be read.
    pub(crate) fn grants(&self, server: Option<&str>) -> Result<Vec<(String, TokenSet)>> {
        self.grants_in(&self.tokens.load()?, server)
    }

    fn grants_in(&self, kept: &TokenFile, server: Option<&str>) -> Result<Vec<(String, TokenSet)>> {
        let entries = kept.grants.iter();
        let named = |entry: &TokenEntry| Ok((entry.server.clone(), self.read(entry)?));
        match server {
            Some(server) => entries.filter(|entry| entry.server == server).map(named).collect(),
            None => Ok(entries.filter_map(|entry| or_warn(named(entry))).collect()),
        }
    }

    /// The grant of a server, unless the keyring would have to be asked for it.
    pub(crate) fn cached_grant(&self, server: &str) -> Option<TokenSet> {
        let kept = self.tokens.load_cached().ok()??;
        self.grants_in(&kept, Some(server)).ok()?.pop().map(|(_, grant)| grant)
    }

    /// The port that browsers came back to the last time, which an authorization server has registered.
    pub(crate) fn usual_port(&self) -> Option<u16> {
        let kept = self.tokens.load().ok()?;
        let uri = kept.registrations.last()?.value.get("redirect_uris")?.get(0)?.as_str()?;
        Url::parse(uri).ok()?.port()
    }

    /// Whether a token for a server is got again without a person, once it is over.
    pub(crate) fn renews(&self, server: &str, grant: &TokenSet) -> bool {
        let by_itself =
            || self.login_options(server).ok().flatten().is_some_and(|options| !options.needs_person());
        grant.refresh_token.is_some() || by_itself()
    }

    /// The options of the last login to a server.
    ///
    /// # Errors
    ///
    /// It cannot be read.
    pub(crate) fn login_options(&self, server: &str) -> Result<Option<LoginOptions>> {
        self.login_options_in(&self.tokens.load()?, server)
    }

    fn login_options_in(&self, kept: &TokenFile, server: &str) -> Result<Option<LoginOptions>> {
        let found = kept.logins.iter().rfind(|entry| entry.server == server);
        found.map(|entry| self.read(entry)).transpose()
    }

    /// Keeps the options of a login to a server.
    ///
    /// # Errors
    ///
    /// It cannot be written.
    pub(crate) fn keep_login_options(&self, server: &str, options: &LoginOptions) -> Result<()> {
        let mut value = serde_json::to_value(options).context("cannot keep how you logged in")?;
        if let Some(members) = value.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        self.tokens.keep(
            |file| &mut file.logins,
            TokenEntry { server: server.to_owned(), issuer: String::new(), value },
        )
    }

    /// Forgets a server; gives its grants.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written.
    pub(crate) fn forget(&self, server: &str) -> Result<Forgotten> {
        let gone = self.tokens.forget(|file| &mut file.grants, |entry| entry.server == server)?;
        self.tokens.forget(|file| &mut file.logins, |entry| entry.server == server)?;
        let mut forgotten = Forgotten::default();
        for entry in gone {
            match self.read_as(&entry, "was forgotten") {
                Ok(grant) => forgotten.grants.push(grant),
                Err(error) => forgotten.unreadable.push(error),
            }
        }
        Ok(forgotten)
    }

    /// Waits until no other process gets tokens for a server.
    ///
    /// # Errors
    ///
    /// There cannot be a lock.
    pub(crate) async fn locked(&self, server: &str) -> Result<impl Sized + use<>> {
        self.tokens.lock(server).await
    }

    /// All that is kept, once the keyring has given its key: the user may have to unlock it.
    async fn ask_keyring(&self) -> Result<TokenFile, TokenStoreError> {
        let tokens = self.tokens.clone();
        blocking(move || tokens.load()).await
    }

    /// The same with all at hand that is kept. What is wrong with it is said when something is looked for in it.
    pub(crate) async fn opened(self) -> Self {
        if let Ok(None) = self.tokens.load_cached() {
            drop(self.ask_keyring().await);
        }
        self
    }

    fn read<T: DeserializeOwned>(&self, entry: &TokenEntry) -> Result<T> {
        self.read_as(entry, "was left as it is; repair it, or remove it and log in again")
    }

    fn read_as<T: DeserializeOwned>(&self, entry: &TokenEntry, what_now: &str) -> Result<T> {
        let whose = if entry.server.is_empty() { &entry.issuer } else { &entry.server };
        // The fault itself may quote what it read.
        T::deserialize(&entry.value).map_err(|_| {
            let file = self.tokens.file.path();
            anyhow::anyhow!("what {} has for {whose} makes no sense and {what_now}", file.display())
        })
    }

    fn known(&self, kept: &TokenFile, server: &str) -> Result<StoredState> {
        let mut grants = if self.has_new() { self.grants_in(kept, Some(server))? } else { Vec::new() };
        let mut registrations: BTreeMap<String, ClientRegistration> = BTreeMap::new();
        for entry in &kept.registrations {
            // One that is broken is no reason to be known nowhere else.
            if let Some(registered) = or_warn(self.read(entry)) {
                registrations.insert(entry.issuer.clone(), registered);
            }
        }
        let grant = grants.pop().map(|(_, grant)| grant);
        Ok(StoredState { tokens: grant, registrations, last_client: self.used(kept, server) })
    }

    /// Whom a client that others registered belongs to, as the last login to a server showed, also while stored
    /// tokens are ignored.
    fn used(&self, kept: &TokenFile, server: &str) -> Option<LastClient> {
        let settled = |options: LoginOptions| {
            Some(LastClient { client_id: options.client_id?, issuer: options.client_issuer? })
        };
        let granted = || {
            or_warn(self.grants_in(kept, Some(server)))?
                .pop()
                .and_then(|(_, grant)| LastClient::of_tokens(&grant))
        };
        or_warn(self.login_options_in(kept, server)).flatten().and_then(settled).or_else(granted)
    }

    fn keep(&self, server: &str, save: &StoreUpdate) -> Result<()> {
        let value = |value: Result<Value, serde_json::Error>| value.context("cannot keep the tokens");
        match save {
            StoreUpdate::Registration { issuer, registered } => {
                let value = value(serde_json::to_value(registered))?;
                let entry = TokenEntry { server: String::new(), issuer: issuer.clone(), value };
                self.tokens.keep(|file| &mut file.registrations, entry)
            }
            StoreUpdate::ForgetRegistration { issuer, client_id } => {
                let meant = |entry: &TokenEntry| {
                    entry.issuer == *issuer && entry.value["client_id"] == client_id.as_str()
                };
                self.tokens.forget(|file| &mut file.registrations, meant).map(drop)
            }
            StoreUpdate::Tokens(grant) => {
                let (server, issuer) = (server.to_owned(), grant.issuer.clone());
                let value = value(serde_json::to_value(grant))?;
                self.tokens.keep(|file| &mut file.grants, TokenEntry { server, issuer, value })?;
                self.ignore_stored.store(false, Ordering::Relaxed);
                Ok(())
            }
            _ => anyhow::bail!("there is no place for this"),
        }
    }
}

fn fault(error: &anyhow::Error) -> TokenStoreError {
    TokenStoreError::new(format!("{error:#}"))
}

/// What was read. An error that is no reason to stop becomes a warning.
fn or_warn<T>(read: Result<T>) -> Option<T> {
    read.inspect_err(|error| tracing::warn!("{error:#}")).ok()
}

/// Runs what may wait for the disk or for another process on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T, TokenStoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|broken| TokenStoreError::new(broken.to_string()))?.map_err(|why| fault(&why))
}

impl TokenStore for UserStore {
    fn lock<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<TokenStoreGuard, TokenStoreError>> {
        Box::pin(async move {
            let file = self.tokens.lock(server).await;
            file.map(TokenStoreGuard::new).map_err(|why| fault(&why))
        })
    }

    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<StoredState, TokenStoreError>> {
        Box::pin(async move {
            // A look into a short file takes less than a thread would to begin, and every command begins with one.
            let kept = match self.tokens.load_cached().map_err(|why| fault(&why))? {
                Some(kept) => kept,
                None => self.ask_keyring().await?,
            };
            self.known(&kept, server).map_err(|why| fault(&why))
        })
    }

    fn save<'a>(
        &'a self,
        server: &'a str,
        save: &'a StoreUpdate,
    ) -> BoxFuture<'a, Result<(), TokenStoreError>> {
        let (store, server, save) = (self.clone(), server.to_owned(), save.clone());
        Box::pin(blocking(move || store.keep(&server, &save)))
    }
}

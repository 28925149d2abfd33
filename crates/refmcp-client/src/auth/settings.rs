//! What was set about getting in.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use refmcp_auth::Scopes;
use refmcp_auth::client::{ClientIdentity, DpopPolicy, FlowStep, GrantKind};
use refmcp_auth::fetch::Fetch;
use refmcp_auth::metadata::ClientMetadata;

use super::browser::Browser;
use super::store::{MemoryStore, Store};

/// How often one request may lead to an authorization.
const ATTEMPTS: u32 = 3;
/// How long a person may take.
const LOGIN: Duration = Duration::from_secs(300);

/// Who we say that we are when we register ourselves: this library, on somebody's own machine.
pub fn ourselves() -> ClientMetadata {
    ClientMetadata {
        client_name: Some("refmcp".to_owned()),
        application_type: Some("native".to_owned()),
        ..ClientMetadata::default()
    }
}

/// Hears of steps.
pub(super) type OnStep = Arc<dyn Fn(&FlowStep) + Send + Sync>;

/// What was set about getting in.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) browser: Option<Arc<dyn Browser>>,
    pub(super) store: Arc<dyn Store>,
    pub(super) identity: ClientIdentity,
    pub(super) way: Option<GrantKind>,
    pub(super) proofs: DpopPolicy,
    pub(super) fetcher: Option<Arc<dyn Fetch>>,
    pub(super) on_step: Option<OnStep>,
    pub(super) scopes: Scopes,
    pub(super) max_attempts: u32,
    pub(super) login_timeout: Duration,
    pub(super) legacy: bool,
}

impl Settings {
    pub(super) fn new(browser: Option<Arc<dyn Browser>>) -> Self {
        Self {
            browser,
            store: Arc::new(MemoryStore::new()),
            identity: ClientIdentity { dynamic: Some(ourselves()), ..ClientIdentity::default() },
            way: None,
            proofs: DpopPolicy::default(),
            fetcher: None,
            on_step: None,
            scopes: Scopes::none(),
            max_attempts: ATTEMPTS,
            login_timeout: LOGIN,
            legacy: true,
        }
    }
}

impl fmt::Debug for Settings {
    /// Identities and ways hold secrets, which do not show themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("browser", &self.browser)
            .field("store", &self.store)
            .field("way", &self.way)
            .field("scopes", &self.scopes)
            .field("max_attempts", &self.max_attempts)
            .field("login_timeout", &self.login_timeout)
            .finish_non_exhaustive()
    }
}

//! Settings of an [`Authorization`](super::Authorization).

use std::sync::Arc;
use std::time::Duration;

use refmcp_auth::Scopes;
use refmcp_auth::client::{ClientIdentity, DpopPolicy, FlowStep, GrantKind};
use refmcp_auth::fetch::Fetch;
use refmcp_auth::metadata::ClientMetadata;

use super::browser::Browser;
use super::store::{MemoryTokenStore, TokenStore};

/// Logins that one request may cause.
const ATTEMPTS: u32 = 3;
/// Time limit of a login.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(300);

/// Client metadata for a dynamic registration: this library as a native application.
pub fn default_client_metadata() -> ClientMetadata {
    ClientMetadata {
        client_name: Some("refmcp".to_owned()),
        application_type: Some("native".to_owned()),
        ..ClientMetadata::default()
    }
}

/// Called for each step of a flow.
pub(super) type OnStep = Arc<dyn Fn(&FlowStep) + Send + Sync>;

/// Settings of an authorization.
#[derive(Clone)]
pub(super) struct Settings {
    pub(super) browser: Option<Arc<dyn Browser>>,
    pub(super) store: Arc<dyn TokenStore>,
    pub(super) identity: ClientIdentity,
    pub(super) grant: Option<GrantKind>,
    pub(super) dpop: DpopPolicy,
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
            store: Arc::new(MemoryTokenStore::new()),
            identity: ClientIdentity {
                dynamic: Some(default_client_metadata()),
                ..ClientIdentity::default()
            },
            grant: None,
            dpop: DpopPolicy::default(),
            fetcher: None,
            on_step: None,
            scopes: Scopes::none(),
            max_attempts: ATTEMPTS,
            login_timeout: LOGIN_TIMEOUT,
            legacy: true,
        }
    }
}

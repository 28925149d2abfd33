//! Authorization: access tokens for servers that demand them (OAuth 2.1).
//!
//! ```no_run
//! # async fn run(browser: impl refmcp_client::auth::Browser) -> Result<(), Box<dyn std::error::Error>> {
//! use refmcp_client::{Client, auth::Authorization, http::StreamableHttp};
//!
//! let server = StreamableHttp::new("https://mcp.example/mcp")?.authorization(Authorization::new(browser));
//! let client = Client::builder("my-app", "1.0").connect(server).await?;
//! # client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! An [`Authorization`] is set on a connector. When the server answers with a challenge, a [`refmcp_auth::client::Flow`] runs
//! once for all waiting requests, and they are sent again. Tokens are stored in a [`TokenStore`] before they are used, refreshed
//! in one place before they expire, and sent to the server's own origin only. The parts:
//!
//! - [`Browser`], [`TokenStore`]: provided by the application.
//! - `token_manager`: the current token of one server, and its refresh.
//! - `login`: token acquisition.
//! - `token`: adding a token to a request.

mod browser;
mod login;
mod settings;
mod store;
mod token;
mod token_manager;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_auth::Scopes;
use refmcp_auth::client::{ClientIdentity, DpopPolicy, FlowStep, GrantKind};
use refmcp_auth::fetch::Fetch;
use refmcp_proto::model::JsonObject;

pub use browser::{Browser, BrowserError, is_redirect_for};
use settings::Settings;
pub use settings::default_client_metadata;
pub use store::{MemoryTokenStore, TokenStore, TokenStoreError, TokenStoreGuard, store_key};
pub(crate) use token_manager::{Attempts, LoginPolicy, TokenManager};

use crate::http::{Address, HttpSettings};

/// How to get access tokens. Clones share their tokens; one authorization may serve any number of servers, each with its
/// own token.
#[derive(Clone)]
#[must_use]
pub struct Authorization {
    settings: Arc<Settings>,
    managers: Arc<Mutex<HashMap<String, Arc<TokenManager>>>>,
}

impl Authorization {
    /// A user logs in with this browser.
    pub fn new(browser: impl Browser) -> Self {
        Self::with(Some(Arc::new(browser)))
    }

    /// No user is present: stored tokens are used and refreshed, and a [`grant`](Self::grant) without a user works.
    pub fn without_browser() -> Self {
        Self::with(None)
    }

    fn with(browser: Option<Arc<dyn Browser>>) -> Self {
        Self { settings: Arc::new(Settings::new(browser)), managers: Arc::default() }
    }

    /// Changes the settings. The result has its own tokens.
    fn set(self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Arc::unwrap_or_clone(self.settings);
        change(&mut settings);
        Self { settings: Arc::new(settings), managers: Arc::default() }
    }

    /// The token store; by default in memory.
    pub fn store(self, store: impl TokenStore) -> Self {
        self.set(|settings| settings.store = Arc::new(store))
    }

    /// The client identities; by default a dynamic registration with [`default_client_metadata`].
    pub fn identity(self, identity: ClientIdentity) -> Self {
        self.set(|settings| settings.identity = identity)
    }

    /// The grant to use instead of the authorization code.
    pub fn grant(self, grant: GrantKind) -> Self {
        self.set(|settings| settings.grant = Some(grant))
    }

    /// Binds tokens to a DPoP key always or never; by default when the server accepts no others.
    pub fn dpop(self, always: bool) -> Self {
        self.set(|settings| settings.dpop = if always { DpopPolicy::Always } else { DpopPolicy::Never })
    }

    /// The fetcher of metadata and tokens; by default a guarded [`Fetcher`](crate::http::Fetcher) with the connector's settings.
    pub fn fetcher(self, fetcher: Arc<dyn Fetch>) -> Self {
        self.set(|settings| settings.fetcher = Some(fetcher))
    }

    /// Calls a function for each step of a flow.
    pub fn on_step(self, heard: impl Fn(&FlowStep) + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.on_step = Some(Arc::new(heard)))
    }

    /// Scopes to request besides those of a challenge; by default all that the server lists.
    pub fn scopes(self, scopes: Scopes) -> Self {
        self.set(|settings| settings.scopes = scopes)
    }

    /// How many logins one request may cause before it fails; by default three.
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.set(|settings| settings.max_attempts = attempts)
    }

    /// How long a user may take to log in; by default five minutes. While a session is opened, only this limit applies to the
    /// login; the time for opening is the server's.
    pub fn login_timeout(self, time: Duration) -> Self {
        self.set(|settings| settings.login_timeout = time)
    }

    /// Allows a server without protected resource metadata to be its own authorization server; by default allowed.
    pub fn legacy(self, legacy: bool) -> Self {
        self.set(|settings| settings.legacy = legacy)
    }

    /// The MCP extension of the grant, if it is one.
    pub(crate) fn extensions(&self) -> JsonObject {
        let id = self.settings.grant.as_ref().and_then(GrantKind::extension);
        id.map(|id| (id.to_owned(), JsonObject::new().into())).into_iter().collect()
    }

    /// Whether getting a token may take a user's time.
    pub(crate) fn asks_a_person(&self) -> bool {
        self.settings.browser.is_some() && self.settings.grant.is_none()
    }

    /// The token manager of a server.
    pub(crate) fn token_manager(&self, address: &Address, http: &HttpSettings) -> Arc<TokenManager> {
        let server = address.as_http();
        let name = store_key(&server);
        let mut managers = self.managers.lock();
        let made = || Arc::new(TokenManager::new(self.settings.clone(), server, name.clone(), http.clone()));
        managers.entry(name.clone()).or_insert_with(made).clone()
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { browser, store, grant, scopes, .. } = &*self.settings;
        f.debug_struct("Authorization")
            .field("browser", browser)
            .field("store", store)
            .field("grant", grant)
            .field("scopes", scopes)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use refmcp_auth::Secret;
    use refmcp_auth::client::EnterpriseIdp;
    use serde_json::json;

    use super::*;
    use crate::http::{HttpSse, StreamableHttp};
    use crate::transport::Connector;
    use crate::websocket::WebSocket;

    #[test]
    fn ways_in_that_are_extensions_are_told_of() {
        let enterprise = EnterpriseIdp {
            issuer: "https://idp".to_owned(),
            token_endpoint: None,
            client_id: "c".to_owned(),
            client_secret: None,
            id_token: Secret::new("t"),
        };
        let credentials = json!({ "io.modelcontextprotocol/oauth-client-credentials": {} });
        let managed = json!({ "io.modelcontextprotocol/enterprise-managed-authorization": {} });
        for (grant, told) in [
            (None, json!({})),
            (Some(GrantKind::JwtBearer { assertion: Secret::new("a") }), json!({})),
            (Some(GrantKind::ClientCredentials), credentials),
            (Some(GrantKind::EnterpriseManaged(Box::new(enterprise))), managed),
        ] {
            let authorization = Authorization::without_browser();
            let authorization = match grant {
                Some(grant) => authorization.grant(grant),
                None => authorization,
            };
            let http = || StreamableHttp::new("https://h/mcp").unwrap().authorization(authorization.clone());
            let events = HttpSse::new("https://h/sse").unwrap().authorization(authorization.clone());
            let socket = || WebSocket::new("wss://h/ws").unwrap().authorization(authorization.clone());
            for extensions in [http().extensions(), events.extensions(), socket().extensions()] {
                assert_eq!(json!(extensions), told);
            }
            // An explicit `Authorization` header takes the place of a grant.
            let by_hand = http().header("Authorization", "Bearer x").unwrap();
            assert_eq!(json!(by_hand.extensions()), json!({}));
            assert_eq!(json!(socket().header("Authorization", "Bearer x").unwrap().extensions()), json!({}));
        }
    }
}

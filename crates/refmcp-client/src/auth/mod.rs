//! Getting in where a server wants to know who asks.
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
//! An [`Authorization`] is put on a connector. When the server refuses a request for want of a token, the steps of
//! [`refmcp_auth::client`] are taken once for everybody who waits, and the request is sent again. Tokens are kept in a
//! [`Store`] before they are used, renewed in one place before they end, and sent to the server's own origin only. The
//! parts:
//!
//! - [`Browser`], [`Store`]: what the application brings.
//! - `seat`: the token of one server, and who gets the next.
//! - `login`: getting one.
//! - `token`: putting one on a request.

mod browser;
mod login;
mod seat;
mod settings;
mod store;
mod token;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use refmcp_auth::Scopes;
use refmcp_auth::client::{ClientIdentity, DpopPolicy, FlowStep, GrantKind};
use refmcp_auth::fetch::Fetch;
use refmcp_proto::model::JsonObject;

pub use browser::{Browser, BrowserFault, is_answer};
pub(crate) use seat::{Attempts, Manner, Seat, Verdict};
use settings::Settings;
pub use settings::ourselves;
pub use store::{Held, MemoryStore, Store, StoreFault, name_of};

use crate::http::{Address, HttpSettings};

/// How to get in where a server wants to know who asks. Clones share their tokens; one may serve any number of servers,
/// and each has its own.
#[derive(Clone)]
pub struct Authorization {
    settings: Arc<Settings>,
    seats: Arc<Mutex<HashMap<String, Arc<Seat>>>>,
}

impl Authorization {
    /// A person logs in with this browser.
    pub fn new(browser: impl Browser) -> Self {
        Self::with(Some(Arc::new(browser)))
    }

    /// Nobody is there to log in: what the store has is used and renewed, and whatever [`way`](Self::way) needs no person.
    pub fn without_browser() -> Self {
        Self::with(None)
    }

    fn with(browser: Option<Arc<dyn Browser>>) -> Self {
        Self { settings: Arc::new(Settings::new(browser)), seats: Arc::default() }
    }

    /// The same with other settings, and so with tokens of its own.
    fn set(self, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = Arc::unwrap_or_clone(self.settings);
        change(&mut settings);
        Self { settings: Arc::new(settings), seats: Arc::default() }
    }

    /// Where tokens are kept; in memory unless it is set.
    #[must_use]
    pub fn store(self, store: impl Store) -> Self {
        self.set(|settings| settings.store = Arc::new(store))
    }

    /// Who we are to authorization servers; a client that registers itself, by the name of this library, unless it is
    /// set.
    #[must_use]
    pub fn identity(self, identity: ClientIdentity) -> Self {
        self.set(|settings| settings.identity = identity)
    }

    /// How tokens are got, instead of by a person with a browser.
    #[must_use]
    pub fn way(self, way: GrantKind) -> Self {
        self.set(|settings| settings.way = Some(way))
    }

    /// Whether tokens are always bound to a key of ours, or never; where the server takes no others unless it is set.
    #[must_use]
    pub fn dpop(self, always: bool) -> Self {
        self.set(|settings| settings.proofs = if always { DpopPolicy::Always } else { DpopPolicy::Never })
    }

    /// Who fetches documents and tokens; a guarded [`Fetcher`](crate::http::Fetcher) with the settings of the connector
    /// unless it is set.
    #[must_use]
    pub fn fetcher(self, fetcher: Arc<dyn Fetch>) -> Self {
        self.set(|settings| settings.fetcher = Some(fetcher))
    }

    /// Hears of every step that is taken.
    #[must_use]
    pub fn on_step(self, heard: impl Fn(&FlowStep) + Send + Sync + 'static) -> Self {
        self.set(|settings| settings.on_step = Some(Arc::new(heard)))
    }

    /// Scopes to ask for, besides those that a refusal of the server names; all that the server knows unless it is set.
    #[must_use]
    pub fn scopes(self, scopes: Scopes) -> Self {
        self.set(|settings| settings.scopes = scopes)
    }

    /// How often one request may lead to an authorization before it counts as refused: three times.
    #[must_use]
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.set(|settings| settings.max_attempts = attempts)
    }

    /// How long a person may take to log in: five minutes. Only this limits a login while a conversation is opened; the
    /// time for the opening is the server's.
    #[must_use]
    pub fn login_timeout(self, time: Duration) -> Self {
        self.set(|settings| settings.login_timeout = time)
    }

    /// Whether a server that tells nothing of its authorization servers may be one itself, as it once was the rule:
    /// yes, unless it is set.
    #[must_use]
    pub fn legacy(self, legacy: bool) -> Self {
        self.set(|settings| settings.legacy = legacy)
    }

    /// The extension of the protocol that the way in is, if it is one.
    pub(crate) fn extensions(&self) -> JsonObject {
        let id = self.settings.way.as_ref().and_then(GrantKind::extension);
        id.map(|id| (id.to_owned(), JsonObject::new().into())).into_iter().collect()
    }

    /// The token of a server.
    pub(crate) fn seat(&self, address: &Address, http: &HttpSettings) -> Arc<Seat> {
        let server = address.as_http();
        let name = name_of(&server);
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        let made = || Arc::new(Seat::new(self.settings.clone(), server, name.clone(), http.clone()));
        seats.entry(name.clone()).or_insert_with(made).clone()
    }
}

impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorization").field("settings", &self.settings).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use refmcp_auth::Secret;
    use refmcp_auth::client::EnterpriseIdp;
    use serde_json::json;

    use super::*;
    use crate::http::{HttpSse, StreamableHttp};
    use crate::websocket::WebSocket;
    use crate::wire::Connector;

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
        for (way, told) in [
            (None, json!({})),
            (Some(GrantKind::JwtBearer { assertion: Secret::new("a") }), json!({})),
            (Some(GrantKind::ClientCredentials), credentials),
            (Some(GrantKind::EnterpriseManaged(Box::new(enterprise))), managed),
        ] {
            let authorization = Authorization::without_browser();
            let authorization = match way {
                Some(way) => authorization.way(way),
                None => authorization,
            };
            let http = || StreamableHttp::new("https://h/mcp").unwrap().authorization(authorization.clone());
            let events = HttpSse::new("https://h/sse").unwrap().authorization(authorization.clone());
            let socket = || WebSocket::new("wss://h/ws").unwrap().authorization(authorization.clone());
            for extensions in [http().extensions(), events.extensions(), socket().extensions()] {
                assert_eq!(json!(extensions), told);
            }
            // A header that was set by hand is the way in, wherever it comes from.
            let by_hand = http().header("Authorization", "Bearer x").unwrap();
            assert_eq!(json!(by_hand.extensions()), json!({}));
            assert_eq!(json!(socket().header("Authorization", "Bearer x").unwrap().extensions()), json!({}));
        }
    }
}

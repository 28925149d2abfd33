//! Authorization: an endpoint that requires access tokens, with fake issuers.

mod challenges;
mod dpop;
mod extra_routes;
pub(crate) mod fake_issuers;
mod issuer_keys;
mod logs;
mod metadata;
mod principals;
mod scopes;
mod token_expiry;
mod tokens;

use std::sync::Arc;

use refmcp_http::{Options, ResourceServer, ResourceServerOptions};
use refmcp_server::transport::clock::Clock;
use refmcp_testkit::log::LeakWatch;
use serde_json::{Value, json};
use url::Url;

use crate::support::http1::Reply;
use crate::support::{LATEST_SESSION, Site, initialize_params, request};
use fake_issuers::{ISSUER, Issuers, OTHER_ISSUER};

/// A site that requires tokens, and its issuers. No credentials may be logged while it exists.
struct Guarded {
    site: Site,
    issuers: Arc<Issuers>,
    watch: LeakWatch,
}

impl Guarded {
    async fn open() -> Self {
        Self::with(ResourceServerOptions::default()).await
    }

    async fn with(demands: ResourceServerOptions) -> Self {
        Self::with_options(|resource_server| resource_server.options(demands), Options::default()).await
    }

    async fn with_options(change: impl FnOnce(ResourceServer) -> ResourceServer, options: Options) -> Self {
        let watch = LeakWatch::begin();
        let issuers = Arc::new(Issuers::default());
        let fetch = issuers.clone();
        let site = Site::open_at(|address| {
            let resource = Url::parse(&format!("http://{address}/mcp")).unwrap();
            // It follows tokio's time, which tests stop and move.
            let clock = Clock::new();
            let resource_server = ResourceServer::new(resource, ISSUER, fetch)
                .trust_issuer(OTHER_ISSUER)
                .clock(move || clock.now().as_millis() / 1000);
            Options { resource_server: Some(change(resource_server)), ..options }
        })
        .await;
        Self { site, issuers, watch }
    }

    /// The value of a metric, with a token.
    async fn metric(&self, name: &str) -> f64 {
        self.site.metric_with(name, &[("Authorization", &self.bearer(json!({})))]).await
    }

    /// Waits until only the connection of the metrics request is open.
    async fn until_quiet(&self) {
        self.site.until_quiet_with(&[("Authorization", &self.bearer(json!({})))]).await;
    }

    /// The canonical name of the resource.
    fn resource(&self) -> String {
        format!("http://{}/mcp", self.site.address)
    }

    /// The URL of the metadata of a path.
    fn document(&self, path: &str) -> String {
        format!("http://{}/.well-known/oauth-protected-resource{path}", self.site.address)
    }

    /// A valid token, except for these claims.
    fn token(&self, changes: Value) -> String {
        let token = self.issuers.token(&self.resource(), changes);
        self.watch.sees(&token);
        token
    }

    /// The `Authorization` header of a valid token.
    fn bearer(&self, changes: Value) -> String {
        format!("Bearer {}", self.token(changes))
    }

    /// Lists the tools with these headers.
    async fn ask(&self, headers: &[(&str, &str)]) -> Reply {
        self.site.stateless("tools/list", json!({}), headers).await
    }

    /// Opens a session with this token; gives its id.
    async fn session(&self, bearer: &str) -> String {
        let authorized = [("Authorization", bearer)];
        let reply =
            self.site.post(&authorized, &request("initialize", initialize_params(LATEST_SESSION))).await;
        assert_eq!(reply.status, 200);
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        self.watch.sees(&session);
        let headers = in_session(bearer, &session);
        let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.site.post(&headers, &told).await.status, 202);
        session
    }
}

/// The headers of a request in a session.
fn in_session<'a>(bearer: &'a str, session: &'a str) -> [(&'a str, &'a str); 3] {
    [("Authorization", bearer), ("Mcp-Session-Id", session), ("MCP-Protocol-Version", LATEST_SESSION)]
}

/// The headers that ask for a WebSocket.
const UPGRADE: [(&str, &str); 4] = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// The challenge of a refusal.
fn challenge(reply: &Reply) -> refmcp_auth::Challenge {
    let text = reply.header("www-authenticate").expect("a challenge");
    refmcp_auth::Challenge::parse_all(text).remove(0)
}

//! A server that wants tokens, and an authorization server that gives them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response};
use hyper_util::rt::TokioIo;
use refmcp_client::auth::Authorization;
use refmcp_client::http::StreamableHttp;
use refmcp_testkit::leaks::Secrets;
use refmcp_testkit::log::LeakWatch;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::messages::result;

/// A body: a text, and perhaps no end.
pub(crate) struct Text {
    text: Option<Bytes>,
    endless: bool,
}

impl Body for Text {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.text.take() {
            Some(text) => Poll::Ready(Some(Ok(Frame::data(text)))),
            None if self.endless => Poll::Pending,
            None => Poll::Ready(None),
        }
    }
}

type Answer = Response<Text>;

pub(crate) fn answer(status: u16, kind: &str, text: impl Into<Bytes>) -> Answer {
    let body = Text { text: Some(text.into()), endless: false };
    Response::builder().status(status).header("content-type", kind).body(body).unwrap()
}

pub(crate) fn json_answer(status: u16, value: &Value) -> Answer {
    answer(status, "application/json", value.to_string())
}

fn events(text: impl Into<Bytes>, endless: bool) -> Answer {
    answer(200, "text/event-stream", text).map(|body| Text { endless, ..body })
}

/// A request that came.
#[derive(Debug, Clone)]
pub(crate) struct Came {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Came {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn form(&self) -> HashMap<String, String> {
        url::form_urlencoded::parse(self.body.as_bytes()).into_owned().collect()
    }
}

/// How the token endpoint behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Desk {
    Open,
    /// It takes no refresh token.
    NoRenewal,
    Hangs,
    /// It answers when it is let: [`ServerState::let_desk_answer`].
    Waits,
    Fails,
    Html,
}

/// What is set, and what has happened.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) came: Vec<Came>,
    /// Tokens that are good, and what for.
    pub(crate) good: HashMap<String, String>,
    issued: usize,
    pub(crate) desk: Desk,
    pub(crate) lifetime: Option<u64>,
    pub(crate) refresh_tokens: bool,
    /// The scope that calls of tools need.
    pub(crate) needs: Option<&'static str>,
    /// What is granted, whatever is asked for.
    pub(crate) grants: Option<&'static str>,
    pub(crate) dpop: bool,
    pub(crate) nonce: Option<&'static str>,
    /// How many more proofs are not fresh enough, whatever they repeat.
    pub(crate) stale_proofs: usize,
    /// Whether the answer to a call of a tool breaks off once, and every token with it.
    pub(crate) breaks_off: bool,
    pub(crate) resource: String,
    pub(super) codes: HashMap<String, String>,
    refresh: HashMap<String, String>,
    /// What must not be logged.
    pub(crate) secrets: Secrets,
}

/// Both servers on their origin.
pub(crate) struct ServerState {
    pub(crate) origin: String,
    state: Mutex<State>,
    desk: Semaphore,
}

impl fmt::Debug for ServerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerState({})", self.origin)
    }
}

/// A place as the test has it. No credential may be logged while it is in use.
pub(crate) struct TestServers {
    place: Arc<ServerState>,
    watch: LeakWatch,
}

impl Deref for TestServers {
    type Target = Arc<ServerState>;

    fn deref(&self) -> &Arc<ServerState> {
        &self.place
    }
}

/// What is secret in the requests that come here.
const SECRETS: [&str; 5] = ["code", "code_verifier", "refresh_token", "client_secret", "client_assertion"];
const SECRET_HEADERS: [&str; 3] = ["authorization", "dpop", "mcp-session-id"];

impl Drop for TestServers {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.watch.with(|secrets| secrets.clone_from(&self.place.state().secrets));
        }
    }
}

impl TestServers {
    pub(crate) async fn start() -> Self {
        let watch = LeakWatch::begin();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let state = State {
            came: Vec::new(),
            good: HashMap::new(),
            issued: 0,
            desk: Desk::Open,
            lifetime: Some(3600),
            refresh_tokens: true,
            needs: None,
            grants: None,
            dpop: false,
            nonce: None,
            stale_proofs: 0,
            breaks_off: false,
            resource: format!("{origin}/mcp"),
            codes: HashMap::new(),
            refresh: HashMap::new(),
            secrets: Secrets::default(),
        };
        let place = Arc::new(ServerState { origin, state: Mutex::new(state), desk: Semaphore::new(0) });
        tokio::spawn(place.clone().serve(listener));
        Self { place, watch }
    }

    /// What was logged since it started.
    pub(crate) fn log(&self) -> String {
        self.watch.log()
    }
}

impl ServerState {
    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin)
    }

    pub(crate) fn server(&self, authorization: &Authorization) -> StreamableHttp {
        StreamableHttp::new(&self.url()).unwrap().authorization(authorization.clone())
    }

    /// The requests that came to a path, in order.
    pub(crate) fn came_to(&self, path: &str) -> Vec<Came> {
        self.state().came.iter().filter(|came| came.path == path).cloned().collect()
    }

    /// What tokens were asked for with.
    pub(crate) fn grants(&self) -> Vec<String> {
        self.came_to("/token").iter().map(|came| came.form()["grant_type"].clone()).collect()
    }

    /// No token is good any more.
    pub(crate) fn revoke_all(&self) {
        self.state().good.clear();
    }

    /// One token that waits at the desk is given out.
    pub(crate) fn let_desk_answer(&self) {
        self.desk.add_permits(1);
    }

    async fn serve(self: Arc<Self>, listener: TcpListener) {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let place = self.clone();
            let service = service_fn(move |request| {
                let place = place.clone();
                async move { Ok::<_, Infallible>(place.answer(request).await) }
            });
            let serving =
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            // Clients come and go as they like.
            tokio::spawn(async move { drop(serving.await) });
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let (head, body) = request.into_parts();
        let body = String::from_utf8(body.collect().await.unwrap().to_bytes().to_vec()).unwrap();
        let path = head.uri.path().to_owned();
        let came = Came { method: head.method, path: path.clone(), headers: head.headers, body };
        self.state().comes(&came);
        let origin = &self.origin;
        match path.as_str() {
            "/.well-known/oauth-protected-resource/mcp" | "/.well-known/oauth-protected-resource/sse" => {
                let resource = self.state().resource.clone();
                json_answer(200, &json!({ "resource": resource, "authorization_servers": [origin] }))
            }
            "/.well-known/oauth-authorization-server" => json_answer(
                200,
                &json!({
                    "issuer": origin,
                    "authorization_endpoint": format!("{origin}/authorize"),
                    "token_endpoint": format!("{origin}/token"),
                    "registration_endpoint": format!("{origin}/register"),
                    "response_types_supported": ["code"],
                    "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
                    "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
                    "code_challenge_methods_supported": ["S256"],
                    "dpop_signing_alg_values_supported": ["ES256"],
                }),
            ),
            "/register" => {
                let mut registered: Value = serde_json::from_str(&came.body).unwrap();
                registered["client_id"] = json!("client-1");
                json_answer(201, &registered)
            }
            "/token" => {
                let desk = self.state().desk;
                if desk == Desk::Hangs {
                    std::future::pending::<()>().await;
                }
                if desk == Desk::Waits {
                    self.desk.acquire().await.unwrap().forget();
                }
                self.state().token(&came, desk)
            }
            "/mcp" | "/sse" | "/messages" => self.state().guarded(&came, origin),
            _ => answer(404, "text/plain", "nothing here"),
        }
    }
}

impl State {
    fn comes(&mut self, came: &Came) {
        let form = came.form();
        SECRETS.iter().filter_map(|name| form.get(*name)).for_each(|value| self.secrets.add(value));
        for value in SECRET_HEADERS.iter().filter_map(|name| came.header(name)) {
            self.secrets.add(value.rsplit(' ').next().unwrap_or_default());
        }
        self.came.push(came.clone());
    }

    fn token(&mut self, came: &Came, desk: Desk) -> Answer {
        let form = came.form();
        let refused =
            || json_answer(400, &json!({ "error": "invalid_grant", "error_description": "hush-not" }));
        let scope = match (desk, form["grant_type"].as_str()) {
            (Desk::Fails, _) => return answer(500, "text/plain", "broken"),
            (Desk::Html, _) => return answer(200, "text/html", "<html>log in</html>"),
            (_, "authorization_code") => self.codes.remove(&form["code"]),
            (Desk::Open | Desk::Waits, "refresh_token") => self.refresh.remove(&form["refresh_token"]),
            (_, "client_credentials") => Some(form.get("scope").cloned().unwrap_or_default()),
            _ => None,
        };
        let Some(asked) = scope else { return refused() };
        self.issued += 1;
        let number = self.issued;
        let scope = self.grants.map_or(asked, str::to_owned);
        self.good.insert(format!("token-{number}"), scope.clone());
        [format!("token-{number}"), format!("refresh-{number}")].iter().for_each(|it| self.secrets.add(it));
        let kind = if self.dpop { "DPoP" } else { "Bearer" };
        let mut token =
            json!({ "access_token": format!("token-{number}"), "token_type": kind, "scope": scope });
        if let Some(lifetime) = self.lifetime {
            token["expires_in"] = json!(lifetime);
        }
        if self.refresh_tokens {
            token["refresh_token"] = json!(format!("refresh-{number}"));
            self.refresh.insert(format!("refresh-{number}"), scope);
        }
        json_answer(200, &token)
    }

    fn guarded(&mut self, came: &Came, origin: &str) -> Answer {
        let scheme = if self.dpop { "DPoP" } else { "Bearer" };
        let token = came.header("authorization").and_then(|it| it.strip_prefix(scheme)?.strip_prefix(' '));
        let challenge = |status, more: &str| {
            let about = format!("{origin}/.well-known/oauth-protected-resource/mcp");
            let mut response = answer(status, "text/plain", "no");
            let text = format!("{scheme} resource_metadata=\"{about}\"{more}");
            response.headers_mut().insert("www-authenticate", text.parse().unwrap());
            response
        };
        let Some(scopes) = token.and_then(|token| self.good.get(token)) else { return challenge(401, "") };
        let stale = self.stale_proofs.checked_sub(1).is_some_and(|left| {
            self.stale_proofs = left;
            true
        });
        if let Some(nonce) = self.nonce
            && (stale || proof(came)["nonce"] != nonce)
        {
            let mut response = challenge(401, ", error=\"use_dpop_nonce\"");
            response.headers_mut().insert("dpop-nonce", nonce.parse().unwrap());
            return response;
        }
        let message: Value = serde_json::from_str(&came.body).unwrap_or_default();
        let is_call = message["method"] == "tools/call";
        if let Some(needed) = self.needs.filter(|_| is_call)
            && !scopes.split(' ').any(|scope| scope == needed)
        {
            return challenge(403, &format!(", error=\"insufficient_scope\", scope=\"{needed}\""));
        }
        if came.method == Method::DELETE {
            return answer(200, "text/plain", "bye");
        }
        if came.method == Method::GET {
            return match came.header("last-event-id") {
                Some(_) => events(format!("id: 2\ndata: {}\n\n", result(1)), false),
                None if came.path == "/sse" => events("event: endpoint\ndata: /messages\n\n", true),
                None => events("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/hello\"}\n\n", true),
            };
        }
        if is_call && std::mem::take(&mut self.breaks_off) {
            self.good.clear();
            return events("id: 1\nretry: 1\ndata:\n\n", false);
        }
        if message.get("id").is_none() || message.get("method").is_none() || came.path == "/messages" {
            return answer(202, "text/plain", "");
        }
        if let Some(version) = message["params"].get("protocolVersion") {
            let ourselves = json!({ "name": "servers", "version": "1" });
            let opened = json!({ "protocolVersion": version, "capabilities": { "tools": {} }, "serverInfo": ourselves });
            return json_answer(200, &json!({ "jsonrpc": "2.0", "id": message["id"], "result": opened }));
        }
        let mut response = answer(200, "application/json", result(message["id"].as_u64().unwrap()));
        response.headers_mut().insert("mcp-session-id", "session-1".parse().unwrap());
        response
    }
}

/// What a proof says.
pub(crate) fn proof(came: &Came) -> Value {
    use base64::Engine as _;
    let Some(payload) = came.header("dpop").and_then(|proof| proof.split('.').nth(1)) else {
        return Value::Null;
    };
    serde_json::from_slice(&base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(payload).unwrap())
        .unwrap()
}

//! Fixtures: an endpoint on a port, and clients of both lifecycles.

pub(crate) mod faulty_backplane;
pub(crate) mod http1;
pub(crate) mod tools;
pub(crate) mod websocket_frames;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use refmcp_http::{Endpoint, EndpointBuilder, Options};
use refmcp_server::Server;
use refmcp_server::backplane::Backplane;
use refmcp_server::transport::MemoryBudget;
use refmcp_testkit::paused::real_pause;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::http1::{Reply, send, send_raw};
use crate::support::tools::Watch;

pub(crate) const STATELESS: &str = "2026-07-28";
pub(crate) const LATEST_SESSION: &str = "2025-11-25";
/// How long requests in flight may go on at shutdown.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);
pub(crate) const BOTH_KINDS: &str = "application/json, text/event-stream";

/// An endpoint that is served until the test ends.
pub(crate) struct Site {
    pub(crate) address: SocketAddr,
    pub(crate) server: Server,
    pub(crate) stop: CancellationToken,
    pub(crate) served: JoinHandle<()>,
    pub(crate) watch: Watch,
}

impl Site {
    pub(crate) async fn open(options: Options) -> Self {
        Self::open_at(|_| options).await
    }

    /// With options that depend on its address.
    pub(crate) async fn open_at(options: impl FnOnce(SocketAddr) -> Options) -> Self {
        Self::open_built(|builder, address| builder.options(options(address))).await
    }

    /// One of several replicas.
    pub(crate) async fn replica(backplane: Arc<dyn Backplane>, options: Options) -> Self {
        Self::replica_of(tools::unaudited(|builder| builder), backplane, |_| options).await
    }

    /// The same of this server, with options that depend on its address.
    pub(crate) async fn replica_of(
        server: (Server, Watch),
        backplane: Arc<dyn Backplane>,
        options: impl FnOnce(SocketAddr) -> Options,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let built =
            |builder: EndpointBuilder, address| builder.options(options(address)).backplane(backplane);
        Self::serve(listener, server, built).await
    }

    /// One that may hold so many bytes for its clients.
    pub(crate) async fn with_memory(bytes: usize, options: Options) -> Self {
        let server = tools::unaudited(|builder| builder.memory(MemoryBudget::new(bytes)));
        // What clients do not read must not disappear in the buffers of the system.
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_send_buffer_size(16 << 10).unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
        Self::serve(socket.listen(1024).unwrap(), server, |builder, _| builder.options(options)).await
    }

    async fn open_built(build: impl FnOnce(EndpointBuilder, SocketAddr) -> EndpointBuilder) -> Self {
        Self::serve(TcpListener::bind("127.0.0.1:0").await.unwrap(), tools::server(), build).await
    }

    async fn serve(
        listener: TcpListener,
        (server, watch): (Server, Watch),
        build: impl FnOnce(EndpointBuilder, SocketAddr) -> EndpointBuilder,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let endpoint = build(Endpoint::builder(server.clone()), address).build();
        let stop = CancellationToken::new();
        let told = stop.clone();
        let served = tokio::spawn(async move { endpoint.serve(listener, told, SHUTDOWN_TIMEOUT).await });
        Self { address, server, stop, served, watch }
    }

    /// An endpoint that is served by another task.
    pub(crate) fn served_by(address: SocketAddr, served: JoinHandle<()>) -> Self {
        let (server, watch) = tools::server();
        Self { address, server, stop: CancellationToken::new(), served, watch }
    }

    pub(crate) async fn usual() -> Self {
        Self::open(Options::default()).await
    }

    /// How many calls of `slow` and `steps` have ended.
    pub(crate) fn ended(&self) -> usize {
        self.watch.ended.load(Ordering::SeqCst)
    }

    /// Waits until so many calls have ended.
    pub(crate) async fn until_ended(&self, count: usize) {
        for _ in 0..5000 {
            if self.ended() >= count {
                return;
            }
            real_pause().await;
        }
        panic!("{} of {count} calls have ended", self.ended());
    }

    /// Sends these very bytes on a connection of its own; nothing when it is closed without a response.
    pub(crate) async fn send_raw(&self, bytes: impl AsRef<[u8]>) -> Option<Reply> {
        send_raw(self.address, bytes.as_ref()).await
    }

    /// The head of a request without its last line, with the headers that every POST has.
    pub(crate) fn head(&self, method: &str, path: &str) -> String {
        format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: {BOTH_KINDS}\r\n",
            self.address
        )
    }

    /// Checks that a new client is served.
    pub(crate) async fn serves(&self) {
        let client = Client::open(self, LATEST_SESSION).await;
        client.is_served().await;
        assert_eq!(client.delete().await, 204);
    }

    /// The value of a metric, by its name and labels.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        self.metric_with(name, &[]).await
    }

    /// The same with these headers.
    pub(crate) async fn metric_with(&self, name: &str, headers: &[(&str, &str)]) -> f64 {
        let page = self.send("GET", "/metrics", headers, b"").await.text().await;
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
    }

    /// Waits until a metric has this value.
    pub(crate) async fn until_metric(&self, name: &str, wanted: f64) {
        self.until_metric_with(name, wanted, &[]).await;
    }

    async fn until_metric_with(&self, name: &str, wanted: f64, headers: &[(&str, &str)]) {
        let mut found = f64::NAN;
        for _ in 0..5000 {
            found = self.metric_with(name, headers).await;
            if found == wanted {
                return;
            }
            real_pause().await;
        }
        panic!("{name} is {found}, not {wanted}");
    }

    /// Waits until only the connection of the metrics request is open.
    pub(crate) async fn until_quiet(&self) {
        self.until_quiet_with(&[]).await;
    }

    /// The same with these headers.
    pub(crate) async fn until_quiet_with(&self, headers: &[(&str, &str)]) {
        for (name, rest) in [
            ("refmcp_websockets", 0.0),
            ("refmcp_streams", 0.0),
            // With a token, the metrics request counts itself.
            ("refmcp_requests_in_flight", if headers.is_empty() { 0.0 } else { 1.0 }),
            ("refmcp_connections", 1.0),
        ] {
            self.until_metric_with(name, rest, headers).await;
        }
    }

    /// Posts a body with the headers that every POST has, and these.
    pub(crate) async fn post(&self, more: &[(&str, &str)], body: &Value) -> Reply {
        self.send("POST", "/mcp", more, body.to_string().as_bytes()).await
    }

    /// Sends anything anywhere; a POST has the usual headers, unless they are given.
    pub(crate) async fn send(&self, method: &str, path: &str, more: &[(&str, &str)], body: &[u8]) -> Reply {
        let mut headers = owned(more);
        let accept = if method == "POST" { BOTH_KINDS } else { "text/event-stream" };
        for (name, value) in [("Content-Type", "application/json"), ("Accept", accept)] {
            if !more.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
                headers.push((name.to_owned(), value.to_owned()));
            }
        }
        send(self.address, method, path, &headers, body).await
    }

    /// Sends a stateless request with every header that it needs, and these.
    pub(crate) async fn stateless(&self, method: &str, params: Value, more: &[(&str, &str)]) -> Reply {
        let body = request(method, with_meta(params));
        let mut headers = vec![("MCP-Protocol-Version", STATELESS), ("Mcp-Method", method)];
        let named = ["name", "uri", "taskId"].map(|member| body["params"][member].as_str());
        let name = named.into_iter().flatten().next();
        headers.extend(name.map(|name| ("Mcp-Name", name)));
        headers.retain(|(name, _)| !more.iter().any(|(known, _)| known == name));
        headers.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        self.post(&headers, &body).await
    }
}

/// A request with the id 1.
pub(crate) fn request(method: &str, params: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params.into() })
}

/// Parameters with the `_meta` of a stateless request.
pub(crate) fn with_meta(mut params: Value) -> Value {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (name, value) in meta.as_object().unwrap() {
        if params["_meta"][name].is_null() {
            params["_meta"][name] = value.clone();
        }
    }
    params
}

/// The parameters of `initialize`.
pub(crate) fn initialize_params(revision: &str) -> Value {
    refmcp_testkit::messages::initialize_params("test", revision, json!({ "elicitation": {} }))
}

fn owned(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// A client with a session.
pub(crate) struct Client<'a> {
    pub(crate) site: &'a Site,
    pub(crate) session: String,
    revision: &'static str,
}

impl<'a> Client<'a> {
    pub(crate) async fn open(site: &'a Site, revision: &'static str) -> Self {
        let reply = site.post(&[], &request("initialize", initialize_params(revision))).await;
        assert_eq!(reply.status, 200);
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        assert_eq!(reply.json().await["result"]["protocolVersion"], revision);
        let client = Self { site, session, revision };
        let told = client.post(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        assert_eq!((told.status, told.text().await.as_str()), (202, ""));
        client
    }

    /// A client whose session is open.
    pub(crate) fn of_session(site: &'a Site, session: String, revision: &'static str) -> Self {
        Self { site, session, revision }
    }

    /// The headers of every request.
    pub(crate) fn headers(&self) -> [(&str, &str); 2] {
        [("Mcp-Session-Id", &self.session), ("MCP-Protocol-Version", self.revision)]
    }

    pub(crate) async fn post(&self, body: &Value) -> Reply {
        self.site.post(&self.headers(), body).await
    }

    /// Checks that this client is served.
    pub(crate) async fn is_served(&self) {
        let answer = self.call(1, "echo", json!({ "message": "m" })).await.json().await;
        assert_eq!(text_of(&answer), "m");
    }

    /// Ends the session; gives the status of the response.
    pub(crate) async fn delete(&self) -> u16 {
        self.site.send("DELETE", "/mcp", &self.headers(), b"").await.status
    }

    /// Calls a tool.
    pub(crate) async fn call(&self, id: impl Into<Value>, tool: &str, arguments: Value) -> Reply {
        let params = json!({ "name": tool, "arguments": arguments });
        self.post(&json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params }))
            .await
    }

    /// Calls a tool with a progress token.
    pub(crate) async fn call_with_progress(
        &self,
        id: impl Into<Value>,
        tool: &str,
        arguments: Value,
    ) -> Reply {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": "t" } });
        self.post(&json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": params }))
            .await
    }

    /// The GET stream, or the rest of a stream after this event.
    pub(crate) async fn get(&self, after: Option<&str>) -> Reply {
        let mut headers = self.headers().to_vec();
        headers.extend(after.map(|id| ("Last-Event-ID", id)));
        self.site.send("GET", "/mcp", &headers, b"").await
    }
}

/// The text that a tool answered.
pub(crate) fn text_of(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

//! HTTP/2 on the same port, by its preface.

use std::time::Duration;

use axum::http::{Request, Response};
use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{Reason, RecvStream};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::support::{
    BOTH_KINDS, LATEST_SESSION, STATELESS, Site, initialize_params, request, text_of, with_meta,
};

/// A test that waits longer would wait for ever. It must be enough for all requests of one test at once on a busy machine.
const DEADLINE: Duration = Duration::from_secs(60);

/// A client of HTTP/2.
#[derive(Clone)]
pub(crate) struct Peer {
    send: SendRequest<Bytes>,
    site: String,
}

impl Peer {
    pub(crate) async fn on<S>(socket: S, builder: &Builder, site: &str) -> Self
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (send, connection) = builder.handshake(socket).await.unwrap();
        tokio::spawn(connection);
        Self { send, site: site.to_owned() }
    }

    pub(crate) async fn connect(site: &Site) -> Self {
        Self::with(site, &Builder::new()).await
    }

    pub(crate) async fn with(site: &Site, builder: &Builder) -> Self {
        let socket = TcpStream::connect(site.address).await.unwrap();
        Self::on(socket, builder, &format!("http://{}", site.address)).await
    }

    /// Sends a request; gives the response with its body still to be read.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Response<RecvStream>, h2::Error> {
        let address = if path.starts_with('/') { format!("{}{path}", self.site) } else { path.to_owned() };
        let mut request = Request::builder().method(method).uri(address).header("accept", BOTH_KINDS);
        for (name, value) in headers.iter().chain(&[("content-type", "application/json")]) {
            request = request.header(*name, *value);
        }
        let mut send = self.send.clone().ready().await?;
        let (response, mut stream) = send.send_request(request.body(()).unwrap(), body.is_empty())?;
        if !body.is_empty() {
            stream.send_data(Bytes::copy_from_slice(body.as_bytes()), true)?;
        }
        timeout(DEADLINE, response).await.expect("a response in time")
    }

    pub(crate) async fn status(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> u16 {
        self.send(method, path, headers, "").await.unwrap().status().as_u16()
    }

    /// Calls a tool by a stateless request.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Result<Response<RecvStream>, h2::Error> {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": 1 } });
        let body = request("tools/call", with_meta(params)).to_string();
        let headers = [("mcp-protocol-version", STATELESS), ("mcp-method", "tools/call"), ("mcp-name", tool)];
        self.send("POST", "/mcp", &headers, &body).await
    }

    pub(crate) async fn is_served(&self) {
        let reply = self.call("echo", json!({ "message": "m" })).await.unwrap();
        assert_eq!(text_of(&serde_json::from_str(&text(reply).await).unwrap()), "m");
    }
}

/// The whole body.
pub(crate) async fn text(response: Response<RecvStream>) -> String {
    let mut body = response.into_body();
    let mut whole = Vec::new();
    while let Some(piece) = timeout(DEADLINE, body.data()).await.expect("a body in time") {
        let piece = piece.unwrap();
        body.flow_control().release_capacity(piece.len()).unwrap();
        whole.extend(piece);
    }
    String::from_utf8(whole).unwrap()
}

#[tokio::test]
async fn every_route_is_served_over_http2() {
    let site = Site::usual().await;
    let peer = Peer::connect(&site).await;
    peer.is_served().await;
    let body = request("initialize", initialize_params(LATEST_SESSION)).to_string();
    let opened = peer.send("POST", "/mcp", &[], &body).await.unwrap();
    let session = opened.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let named = [("mcp-session-id", &*session), ("mcp-protocol-version", LATEST_SESSION)];
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    assert_eq!(peer.send("POST", "/mcp", &named, &ready).await.unwrap().status(), 202);
    let standing = peer.send("GET", "/mcp", &named, "").await.unwrap();
    assert_eq!(standing.headers()["content-type"], "text/event-stream");
    // An SSE stream, besides the GET stream.
    let reply = peer.call("steps", json!({ "n": 3, "ms": 5 })).await.unwrap();
    assert_eq!(reply.headers()["content-type"], "text/event-stream");
    let heard = text(reply).await;
    assert_eq!(heard.matches("notifications/progress").count(), 3, "{heard}");
    assert!(heard.contains("3 steps"), "{heard}");
    assert_eq!(peer.status("DELETE", "/mcp", &named).await, 204);
    text(standing).await;
    for (method, path, status) in [
        ("GET", "/healthz", 200),
        ("GET", "/metrics", 200),
        ("PUT", "/mcp", 405),
        ("GET", "/nothing", 404),
        ("GET", "/mcp/ws", 400),
        ("OPTIONS", "/mcp", 204),
    ] {
        assert_eq!(peer.status(method, path, &[]).await, status, "{method} {path}");
    }
    site.serves().await;
}

#[tokio::test]
async fn host_and_authority_are_both_checked() {
    let site = Site::usual().await;
    let peer = Peer::connect(&site).await;
    for (address, headers, status) in [
        ("http://localhost/healthz", &[][..], 200),
        ("http://LOCALHOST:80/healthz", &[], 200),
        ("http://localhost/healthz", &[("host", "localhost")], 200),
        ("http://evil.com/healthz", &[], 403),
        ("http://localhost.evil.com/healthz", &[], 403),
        ("http://localhost:1@evil.com/healthz", &[], 403),
        ("http://evil.com/healthz", &[("host", "localhost")], 403),
        ("http://localhost/healthz", &[("host", "evil.com")], 403),
        ("http://localhost/healthz", &[("origin", "https://evil.com")], 403),
        ("http://localhost/healthz", &[("origin", "null")], 403),
    ] {
        // What is no request of HTTP/2 at all may be refused as such.
        let answered = peer.send("GET", address, headers, "").await;
        let found = answered.map_or(403, |reply| reply.status().as_u16());
        assert_eq!(found, status, "{address} {headers:?}");
    }
    peer.is_served().await;
    site.serves().await;
}

#[tokio::test]
async fn many_requests_share_a_connection() {
    let site = Site::usual().await;
    // So many events at once, and so small, are more than this client takes for granted on a busy machine.
    let peer = Peer::with(&site, Builder::new().data_frame_budget(1 << 24)).await;
    // By then it knows how many may be open at once; the rest waits.
    peer.is_served().await;
    let mut calls = JoinSet::new();
    for number in 0..600 {
        let peer = peer.clone();
        calls.spawn(async move {
            let reply =
                peer.call("steps", json!({ "n": 2, "ms": 1, "note": format!("({number})") })).await.unwrap();
            let heard = text(reply).await;
            assert_eq!(heard.matches(&format!("({number})")).count(), 3, "{heard}");
        });
    }
    while let Some(call) = calls.join_next().await {
        call.unwrap();
    }
    peer.is_served().await;
    site.serves().await;
}

#[tokio::test]
async fn rapid_resets_harm_no_other() {
    let site = Site::usual().await;
    let bystander = Peer::connect(&site).await;
    let mut opened = 0;
    while opened < 10_000 {
        // A connection that does this for long is closed; then another is opened.
        let Peer { mut send, .. } = Peer::connect(&site).await;
        while opened < 10_000 {
            let Ok(ready) = send.ready().await else { break };
            send = ready;
            let request = Request::post(format!("http://{}/mcp", site.address)).body(()).unwrap();
            let Ok((_, mut stream)) = send.send_request(request, false) else { break };
            stream.send_reset(Reason::CANCEL);
            opened += 1;
            if opened % 1000 == 0 {
                bystander.is_served().await;
            }
        }
    }
    site.serves().await;
    drop(bystander);
    site.until_quiet().await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_delays_no_other() {
    let site = Site::usual().await;
    let bystander = Peer::connect(&site).await;
    let stuck = Peer::with(&site, Builder::new().initial_window_size(0)).await;
    let note = "x".repeat(10_000);
    let reply = stuck.call("steps", json!({ "n": 200, "ms": 0, "note": note })).await.unwrap();
    site.until_ended(1).await;
    bystander.is_served().await;
    // Heads are free of charge.
    assert_eq!(stuck.status("GET", "/healthz", &[]).await, 200);
    drop((reply, stuck));
    site.serves().await;
    drop(bystander);
    site.until_quiet().await;
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags];
    bytes.extend(stream.to_be_bytes());
    bytes.extend(payload);
    bytes
}

#[tokio::test]
async fn floods_of_frames_harm_no_other() {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let site = Site::usual().await;
    let bystander = Peer::connect(&site).await;
    let settings = frame(4, 0, 0, b"");
    for (what, first, again) in [
        ("pings", vec![], frame(6, 0, 0, &[0; 8])),
        ("settings", vec![], settings.clone()),
        ("heads without end", frame(1, 0, 1, b""), frame(9, 0, 1, &[0x88; 1000])),
        ("empty pieces of a head", frame(1, 0, 1, b""), frame(9, 0, 1, b"")),
        ("priorities", vec![], frame(2, 0, 1, &[0; 5])),
        ("windows", vec![], frame(8, 0, 0, &[0, 0, 0, 1])),
        ("nonsense", vec![], vec![0xff; 1000]),
    ] {
        let socket = TcpStream::connect(site.address).await.unwrap();
        let (mut from, mut to) = socket.into_split();
        // Whatever is answered is read, so that nothing waits for us.
        let reading =
            tokio::spawn(
                async move { while from.read(&mut [0; 4096]).await.is_ok_and(|count| count > 0) {} },
            );
        to.write_all(&[PREFACE, &settings, &first].concat()).await.unwrap();
        let many = again.repeat(1000);
        for _ in 0..10 {
            if to.write_all(&many).await.is_err() {
                break;
            }
            timeout(DEADLINE, bystander.is_served()).await.expect(what);
        }
        drop(to);
        timeout(DEADLINE, reading).await.expect(what).unwrap();
    }
    site.serves().await;
    drop(bystander);
    site.until_quiet().await;
}

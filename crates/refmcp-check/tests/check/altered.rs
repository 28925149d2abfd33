//! Our own server with one thing changed, so that it breaks one rule. It is the same change over a pipe and over HTTP.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Response, StatusCode};
use axum::middleware::{Next, from_fn};
use parking_lot::Mutex;
use refmcp_check::Target;
use refmcp_client::memory::Memory;
use refmcp_client::transport::{Connecting, Connector, MessageSink};
use refmcp_http::Endpoint;
use refmcp_server::{Connection, Server};
use refmcp_transport::pipe::{LineReader, LineWriter};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::servers::{http, reference};

/// What a client sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Asked {
    /// The method of the HTTP request; empty over a pipe.
    pub(crate) http: String,
    pub(crate) headers: HashMap<String, String>,
    /// The message, null where what was sent is none.
    pub(crate) message: Value,
}

impl Asked {
    pub(crate) fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn id(&self) -> Value {
        self.message["id"].clone()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| &**value)
    }
}

/// What a server sends for it: lines over a pipe, a body over HTTP.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) texts: Vec<String>,
    /// Ends the connection.
    pub(crate) ends: bool,
}

impl Reply {
    pub(crate) fn new(status: u16, texts: &[Value]) -> Self {
        let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        let texts = texts.iter().map(Value::to_string).collect();
        Self { status, headers, texts, ends: false }
    }

    /// The first message, changed.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let Some(text) = self.texts.first_mut() else { return };
        let mut message = serde_json::from_str(text).unwrap_or_default();
        change(&mut message);
        *text = message.to_string();
    }
}

/// How a server differs from ours.
#[derive(Clone, Copy)]
pub(crate) struct Change {
    /// Answers in place of our server.
    pub(crate) instead: fn(&Asked) -> Option<Reply>,
    /// Changes what our server answers.
    pub(crate) after: fn(&Asked, &mut Reply),
}

impl Change {
    pub(crate) fn instead(instead: fn(&Asked) -> Option<Reply>) -> Self {
        Self { instead, after: |_, _| {} }
    }

    pub(crate) fn after(after: fn(&Asked, &mut Reply)) -> Self {
        Self { instead: |_| None, after }
    }

    pub(crate) fn pipe(self) -> Target {
        Target::pipe(Arc::new(AlteredPipe { server: reference(), change: self }))
    }

    /// The same over streamable HTTP.
    pub(crate) async fn http(self) -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let layer = from_fn(move |request, next| self.answer(request, next));
        let router = Endpoint::builder(reference()).build().router().layer(layer);
        tokio::spawn(async move { axum::serve(listener, router).await });
        http(address)
    }

    async fn answer(self, request: Request, next: Next) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, 1 << 24).await.unwrap();
        let header = |(name, value): (&HeaderName, &HeaderValue)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let asked = Asked {
            http: head.method.to_string(),
            headers: head.headers.iter().map(header).collect(),
            message: serde_json::from_slice(&body).unwrap_or_default(),
        };
        if let Some(reply) = (self.instead)(&asked) {
            return response(reply);
        }
        let answered = next.run(Request::from_parts(head, body.into())).await;
        let (head, body) = answered.into_parts();
        let is_stream = head.headers.get("content-type").is_some_and(|kind| kind == "text/event-stream");
        if is_stream {
            // Streams of our server go on as they are: they may have no end.
            return Response::from_parts(head, body);
        }
        let body = to_bytes(body, 1 << 24).await.unwrap();
        let mut reply = Reply {
            status: head.status.as_u16(),
            headers: head.headers.iter().map(header).filter(|(name, _)| name != "content-length").collect(),
            texts: vec![String::from_utf8_lossy(&body).into_owned()],
            ends: false,
        };
        (self.after)(&asked, &mut reply);
        response(reply)
    }
}

fn response(reply: Reply) -> Response<Body> {
    let mut response = Response::new(Body::from(reply.texts.join("")));
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap();
    for (name, value) in reply.headers {
        let name = HeaderName::try_from(name).unwrap();
        response.headers_mut().append(name, HeaderValue::try_from(value).unwrap());
    }
    response
}

struct AlteredPipe {
    server: Server,
    change: Change,
}

impl std::fmt::Debug for AlteredPipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AlteredPipe")
    }
}

impl Connector for AlteredPipe {
    fn connect(&self, sink: Arc<dyn MessageSink>) -> Connecting<'_> {
        let (client, near) = duplex(1 << 16);
        let (far, server) = duplex(1 << 16);
        tokio::spawn(serve(self.server.clone(), server));
        tokio::spawn(relay(near, far, self.change));
        let (read, write) = split(client);
        let end = (LineReader::new(read, 1 << 24), LineWriter::new(write));
        Box::pin(async move { Memory::new(end).connect(sink).await })
    }

    fn name(&self) -> String {
        "altered".to_owned()
    }

    fn transport(&self) -> &'static str {
        "stdio"
    }
}

async fn serve(server: Server, stream: DuplexStream) {
    let (read, write) = split(stream);
    let pipe = (LineReader::new(read, 1 << 24), LineWriter::new(write));
    let connection = Connection { transport: "memory", local: true, ..Connection::default() };
    let _ = server.serve(pipe, connection, CancellationToken::new()).await;
}

/// Passes lines between a client and a server, changed, until either is gone.
async fn relay(client: DuplexStream, server: DuplexStream, change: Change) {
    let (client_read, client_write) = split(client);
    let (server_read, mut server_write) = split(server);
    let client_write = Arc::new(tokio::sync::Mutex::new(client_write));
    let asked = Arc::new(Mutex::new(HashMap::<String, Asked>::new()));
    let back = {
        let (asked, client_write) = (asked.clone(), client_write.clone());
        async move {
            let mut lines = BufReader::new(server_read).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap_or_default();
                let request = asked.lock().remove(&message["id"].to_string());
                let mut reply = Reply { texts: vec![line], ..Reply::new(200, &[]) };
                if let Some(request) = request.filter(|_| message.get("method").is_none()) {
                    (change.after)(&request, &mut reply);
                }
                for text in reply.texts {
                    let _ = client_write.lock().await.write_all(format!("{text}\n").as_bytes()).await;
                }
            }
        }
    };
    let forth = async move {
        let mut lines = BufReader::new(client_read).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message: Value = serde_json::from_str(&line).unwrap_or_default();
            let request = Asked { message, ..Asked::default() };
            if let Some(reply) = (change.instead)(&request) {
                for text in reply.texts {
                    let _ = client_write.lock().await.write_all(format!("{text}\n").as_bytes()).await;
                }
                if reply.ends {
                    return;
                }
                continue;
            }
            asked.lock().insert(request.id().to_string(), request);
            let _ = server_write.write_all(format!("{line}\n").as_bytes()).await;
        }
    };
    tokio::select! { () = back => {}, () = forth => {} }
}

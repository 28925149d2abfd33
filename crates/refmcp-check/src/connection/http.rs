//! Single HTTP requests with exact method, header fields and body, each over a connection of its own.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use refmcp_audit::recording::{Direction, EventKind, Side};
use refmcp_proto::frame::{SseDecoder, SseItem};
use refmcp_proto::jsonrpc::{Limits, decode};
use refmcp_proto::revision::{Lifecycle, Method, Revision};
use serde_json::Value;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use super::answer::{is_request, reply_to};
use super::{Answer, Audit, MAX_RECEIVED, OpenSessions, Wants};
use crate::session::header_text;
use crate::target::HttpTarget;

/// What passed is shown to the auditor whatever its size.
const NO_LIMITS: Limits =
    Limits { max_message_size: usize::MAX, depth: 128, name_bytes: usize::MAX, batch: usize::MAX };

/// Requests of a server that are answered within one response.
const MAX_REPLIES: usize = 100;

/// A server over HTTP.
#[derive(Debug)]
pub(crate) struct Http {
    target: HttpTarget,
    next: AtomicU64,
    audit: Audit,
    /// Whether requests of the server are answered.
    replies: bool,
}

/// A request.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    pub(crate) method: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl HttpRequest {
    /// A request with exactly these header fields, besides `Host` and those of the target.
    pub fn new(method: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self { method: method.to_owned(), headers: headers.collect(), body: body.to_owned() }
    }

    /// The POST request for a message, with the header fields that its revision wants. `version` is what the header names, where
    /// it is wanted yet.
    pub fn of_message(text: &str, session: Option<&str>, version: Option<Revision>) -> Self {
        let accept = "application/json, text/event-stream";
        let mut request =
            Self::new("POST", &[("content-type", "application/json"), ("accept", accept)], text);
        if let Some(id) = session {
            request = request.with("mcp-session-id", id);
        }
        let Some(version) = version.filter(|version| version.rules().version_header) else { return request };
        request = request.with("mcp-protocol-version", version.as_str());
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        let method = message.get("method").and_then(Value::as_str);
        let Some(method) = method.filter(|_| version.lifecycle() == Lifecycle::PerRequest) else {
            return request;
        };
        request = request.with("mcp-method", method);
        let member = Method::known(method).and_then(|method| method.name_member());
        let named = member.and_then(|member| message.get("params")?.get(member)?.as_str());
        match named {
            Some(name) => request.with("mcp-name", &header_text(name)),
            None => request,
        }
    }

    /// The same with a header field, in place of one of that name.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self = self.without(name);
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same without a header field.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }
}

impl Http {
    pub(super) fn new(target: HttpTarget, replies: bool, audit: Audit) -> Self {
        let (transport, peer) = ("http".to_owned(), target.url.authority().to_owned());
        audit.happened(None, EventKind::Opened { side: Side::Client, transport, peer });
        Self { target, next: AtomicU64::new(1), audit, replies }
    }

    /// A server that single requests are sent to, beside another connection.
    pub(crate) fn beside(target: &HttpTarget) -> Self {
        Self::new(target.clone(), false, Audit::new(target.events.clone()))
    }

    pub(super) fn open_sessions(&self) -> &OpenSessions {
        &self.target.open_sessions
    }

    pub(super) fn audit(&self) -> &Audit {
        &self.audit
    }

    /// The same server where an answer says that the request belongs to another path of it.
    pub(super) fn redirected(&self, answer: &Answer) -> Option<Self> {
        let location = answer.header("location").filter(|_| matches!(answer.status, Some(307 | 308)))?;
        let url =
            self.target.url.join(location).ok().filter(|url| url.origin() == self.target.url.origin())?;
        let target = HttpTarget { url, ..self.target.clone() };
        Some(Self { target, next: AtomicU64::new(1), audit: self.audit.clone(), replies: self.replies })
    }

    /// Sends a request, and reads what comes until what is wanted has come.
    pub(crate) async fn send(&self, request: &HttpRequest, wants: &Wants, within: Duration) -> Answer {
        self.send_on(self.next.fetch_add(1, Ordering::Relaxed), request, wants, within).await
    }

    /// The same with this number of the request.
    pub(super) async fn send_on(
        &self,
        stream: u64,
        request: &HttpRequest,
        wants: &Wants,
        within: Duration,
    ) -> Answer {
        let mut answer = Answer::default();
        answer.exchange.set_request(&self.text(request));
        answer.exchange.repeat = self.curl(request);
        self.sent(stream, request);
        match timeout(within, self.attempt(stream, request, wants, &mut answer)).await {
            Ok(Ok(())) => {}
            Ok(Err(why)) => {
                self.audit.happened(Some(stream), EventKind::Failed { why: why.clone() });
                answer.exchange.add_answer(&format!("({why})"));
                answer.ended = Some(why);
            }
            Err(_) => answer.late = true,
        }
        self.target.open_sessions.note(request, &answer);
        answer
    }

    async fn attempt(
        &self,
        stream: u64,
        request: &HttpRequest,
        wants: &Wants,
        answer: &mut Answer,
    ) -> Result<(), String> {
        let (response, _task) = self.request(request).await?;
        self.received_head(stream, &response, answer);
        // The time of a probe may be over before the body is there.
        self.target.open_sessions.note(request, answer);
        let kind = answer.header("content-type").unwrap_or_default();
        let is_stream = kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream");
        let is_success = response.status().is_success();
        if *wants == Wants::Head && is_success {
            return Ok(());
        }
        if is_stream {
            self.events(stream, response, request, wants, answer).await
        } else {
            self.body(stream, response, answer).await
        }
    }

    async fn request(
        &self,
        request: &HttpRequest,
    ) -> Result<(Response<Incoming>, AbortOnDropHandle<()>), String> {
        let io = self.target.dialer.open().await.map_err(|error| error.to_string())?;
        let broken = |error: hyper::Error| error.to_string();
        let (mut sender, connection) = http1::handshake(TokioIo::new(io)).await.map_err(broken)?;
        let task = tokio::spawn(async move {
            // The error shows up in the response as well.
            let _ = connection.await;
        });
        let task = AbortOnDropHandle::new(task);
        let response = sender.send_request(self.built(request)?).await.map_err(broken)?;
        Ok((response, task))
    }

    fn built(&self, request: &HttpRequest) -> Result<Request<Full<Bytes>>, String> {
        let unfit = |what: &dyn std::fmt::Display| format!("the request cannot be written: {what}");
        let mut built = Request::new(Full::new(Bytes::from(request.body.clone())));
        *built.method_mut() =
            hyper::Method::from_bytes(request.method.as_bytes()).map_err(|it| unfit(&it))?;
        *built.uri_mut() = self.target.path().parse().map_err(|it| unfit(&it))?;
        let own = std::iter::once(("host".to_owned(), self.host()))
            .filter(|_| request.header("host").is_none())
            .chain(self.target.headers.iter().cloned());
        for (name, value) in own.chain(request.headers.iter().cloned()) {
            let name = HeaderName::try_from(&*name).map_err(|it| unfit(&it))?;
            let value = HeaderValue::try_from(&*value).map_err(|it| unfit(&it))?;
            built.headers_mut().append(name, value);
        }
        Ok(built)
    }

    fn host(&self) -> String {
        let host = self.target.url.host_str().unwrap_or_default();
        self.target.url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }

    /// Reads a body that is one message, or something else.
    async fn body(
        &self,
        stream: u64,
        mut response: Response<Incoming>,
        answer: &mut Answer,
    ) -> Result<(), String> {
        let mut body = Vec::new();
        while let Some(frame) = response.frame().await {
            let frame = frame.map_err(|error| error.to_string())?;
            if let Some(data) = frame.data_ref() {
                if body.len() + data.len() > MAX_RECEIVED {
                    return Err(format!("a body of more than {MAX_RECEIVED} bytes"));
                }
                body.extend_from_slice(data);
            }
        }
        if !body.trim_ascii().is_empty() {
            self.passed(stream, Direction::Received, &body, None);
            answer.exchange.add_answer(&String::from_utf8_lossy(&body));
            match serde_json::from_slice(&body) {
                Ok(value) => answer.take(value),
                Err(_) => answer.junk.push(String::from_utf8_lossy(&body).into_owned()),
            }
        }
        self.audit.happened(Some(stream), EventKind::Ended { direction: Direction::Received });
        Ok(())
    }

    /// Reads events until what is wanted has come.
    async fn events(
        &self,
        stream: u64,
        mut response: Response<Incoming>,
        request: &HttpRequest,
        wants: &Wants,
        answer: &mut Answer,
    ) -> Result<(), String> {
        let mut decoder = SseDecoder::new(MAX_RECEIVED);
        let (mut items, mut total, mut replies) = (VecDeque::new(), 0, 0);
        while let Some(frame) = response.frame().await {
            let frame = frame.map_err(|error| error.to_string())?;
            let Some(data) = frame.data_ref() else { continue };
            total += data.len();
            if total > MAX_RECEIVED {
                return Err(format!("a stream of more than {MAX_RECEIVED} bytes"));
            }
            decoder.feed(data, &mut items).map_err(|error| error.to_string())?;
            for item in items.drain(..) {
                let Some(message) = self.received_event(stream, item, answer) else { continue };
                if self.replies && is_request(&message) && replies < MAX_REPLIES {
                    replies += 1;
                    self.reply(request, &message).await;
                }
                answer.take(message);
            }
            if answer.has(wants) {
                return Ok(());
            }
        }
        self.audit.happened(Some(stream), EventKind::Ended { direction: Direction::Received });
        Ok(())
    }

    /// Answers a request of the server with the headers of the request that it came for.
    async fn reply(&self, request: &HttpRequest, message: &Value) {
        let reply = HttpRequest { body: reply_to(message).to_string(), ..request.clone() };
        let stream = self.next.fetch_add(1, Ordering::Relaxed);
        self.sent(stream, &reply);
        // What the server says to it is of no interest.
        let _ = self.request(&reply).await;
    }

    /// Takes note of an event; its message, if it has one.
    fn received_event(&self, stream: u64, item: SseItem, answer: &mut Answer) -> Option<Value> {
        let direction = Direction::Received;
        let sse = |name, event_id, retry, data| EventKind::Sse { direction, name, event_id, retry, data };
        match item {
            SseItem::Event(event) if event.event == "message" => {
                let own_id = event.id.filter(|_| event.has_own_id);
                answer.event_ids.extend(own_id.clone());
                answer.exchange.add_answer(&format!("data: {}", event.data));
                self.passed(stream, direction, event.data.as_bytes(), own_id);
                match serde_json::from_str(&event.data) {
                    Ok(value) => return Some(value),
                    Err(_) => answer.junk.push(event.data),
                }
            }
            SseItem::Event(event) => {
                answer.exchange.add_answer(&format!("event: {}\ndata: {}", event.event, event.data));
                answer.junk.push(format!("{}: {}", event.event, event.data));
                let own_id = event.id.filter(|_| event.has_own_id);
                self.audit.happened(Some(stream), sse(Some(event.event), own_id, None, event.data));
            }
            SseItem::Primed { id } => {
                answer.exchange.add_answer(&format!("id: {id}"));
                answer.event_ids.push(id.clone());
                self.audit.happened(Some(stream), sse(None, Some(id), None, String::new()));
            }
            SseItem::Retry(after) => {
                self.audit.happened(Some(stream), sse(None, None, Some(after), String::new()));
            }
            SseItem::Comment => {}
        }
        None
    }

    fn sent(&self, stream: u64, request: &HttpRequest) {
        let (method, target) = (request.method.clone(), self.target.path());
        let headers =
            request.headers.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())).collect();
        let direction = Direction::Sent;
        self.audit.happened(Some(stream), EventKind::Request { direction, method, target, headers });
        if !request.body.is_empty() {
            self.passed(stream, direction, request.body.as_bytes(), None);
        }
    }

    fn received_head(&self, stream: u64, response: &Response<Incoming>, answer: &mut Answer) {
        let status = response.status().as_u16();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let fields = response.headers().iter();
        answer.status = Some(status);
        answer.headers = fields.map(|(name, value)| (name.as_str().to_owned(), text(value))).collect();
        let lines: Vec<String> =
            answer.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        answer.exchange.add_answer(&format!("HTTP {status}\n{}\n", lines.join("\n")));
        let (direction, headers) = (Direction::Received, answer.headers.clone());
        self.audit.happened(Some(stream), EventKind::Response { direction, status, headers });
    }

    /// A message passes, or what should be one.
    fn passed(&self, stream: u64, direction: Direction, bytes: &[u8], event_id: Option<String>) {
        let kind = match decode(bytes, &NO_LIMITS) {
            Ok(_) => {
                let text = String::from_utf8_lossy(bytes).replace(['\n', '\r'], " ");
                EventKind::Message { direction, text, event_id }
            }
            Err(error) => EventKind::Invalid {
                direction,
                bytes: bytes.to_owned(),
                why: error.error.message.to_string(),
            },
        };
        self.audit.happened(Some(stream), kind);
    }

    /// The request for people, without the target's own header fields, which are secrets.
    fn text(&self, request: &HttpRequest) -> String {
        let mut text = format!("{} {}\n", request.method, self.target.path());
        for (name, _) in &self.target.headers {
            text += &format!("{name}: ***\n");
        }
        for (name, value) in &request.headers {
            text += &format!("{name}: {value}\n");
        }
        text + "\n" + &request.body
    }

    /// A command that sends the request.
    pub(crate) fn curl(&self, request: &HttpRequest) -> String {
        let mut words = vec!["curl".to_owned(), "-i".to_owned(), "-X".to_owned(), request.method.clone()];
        let own = self.target.headers.iter().map(|(name, _)| (name.clone(), "***".to_owned()));
        for (name, value) in own.chain(request.headers.iter().cloned()) {
            words.extend(["-H".to_owned(), format!("{name}: {value}")]);
        }
        if !request.body.is_empty() {
            words.extend(["--data-binary".to_owned(), request.body.clone()]);
        }
        words.push(refmcp_client::redact::url(self.target.url.as_str()));
        refmcp_client::redact::joined(&words)
    }
}

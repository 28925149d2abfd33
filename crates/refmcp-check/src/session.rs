//! A connection in one revision: its handshake, ids, `_meta` and HTTP headers.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use refmcp_client::redact::joined;
use refmcp_proto::model::keys;
use refmcp_proto::revision::{Lifecycle, Revision};
use serde_json::{Map, Value, json};

use crate::connection::{Answer, Audited, Connection, HttpRequest, Wants};
use crate::target::Target;

/// The first id that a session gives to a request by itself. Probes use smaller ones and texts.
const FIRST_ID: u64 = 1000;

/// Bytes of what came in place of messages that are shown.
const MAX_UNREADABLE: usize = 200;

#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) connection: Connection,
    pub(crate) revision: Revision,
    /// The result of `initialize` or `server/discover`.
    pub(crate) server: Value,
    /// Whether requests still get their answers: only then others may use the session.
    pub(crate) is_healthy: bool,
    target: Target,
    id: Option<String>,
    next: u64,
    within: Duration,
    /// What opened it: messages, or command lines over HTTP.
    opening: Vec<String>,
}

/// Why there is no session, and what an auditor says of the attempt.
#[derive(Debug)]
pub(crate) struct NotOpen {
    pub(crate) error: OpenError,
    pub(crate) audited: Option<Audited>,
}

impl From<OpenError> for NotOpen {
    fn from(error: OpenError) -> Self {
        Self { error, audited: None }
    }
}

/// Why there is no session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OpenError {
    /// There is no connection.
    Unreachable(String),
    /// The server does not speak the revision.
    Unsupported(String),
    /// The server wants authorization.
    Unauthorized(String),
    /// The server is busy.
    Busy(String),
}

impl Session {
    /// A connection that has sent nothing yet. Its messages are those of the revision all the same.
    pub(crate) async fn unopened(
        target: &Target,
        revision: Revision,
        within: Duration,
    ) -> Result<Self, OpenError> {
        let connection = Connection::open(target, revision, within).await.map_err(OpenError::Unreachable)?;
        Ok(Self {
            connection,
            revision,
            server: Value::Null,
            is_healthy: true,
            target: target.clone(),
            id: None,
            next: FIRST_ID,
            within,
            opening: Vec::new(),
        })
    }

    /// An open session. `within` is the time for a response from then on too.
    pub(crate) async fn open(
        target: &Target,
        revision: Revision,
        start_within: Duration,
        within: Duration,
    ) -> Result<Self, NotOpen> {
        let mut session = Self::unopened(target, revision, start_within).await?;
        let opened = match revision.lifecycle() {
            Lifecycle::Handshake => session.handshake().await,
            Lifecycle::PerRequest => session.discover().await,
        };
        session.within = within;
        match opened {
            Ok(()) => {
                session.connection.set_revision(revision);
                Ok(session)
            }
            Err(error) => Err(NotOpen { error, audited: Some(session.close().await) }),
        }
    }

    async fn handshake(&mut self) -> Result<(), OpenError> {
        let (id, message) = self.initialize(self.revision.as_str());
        self.keep_opening(&message.to_string());
        let answer = self.exchange(&message.to_string(), &Wants::Response(id.clone())).await;
        check_access(&answer)?;
        let Some(result) = answer.result(&id) else {
            return Err(no_result(&answer, &id, "initialize"));
        };
        self.enter(&answer);
        let spoken = result.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
        if spoken != self.revision.as_str() {
            let what = format!("the server answers initialize with {}", crate::report::shortened(spoken, 40));
            return Err(OpenError::Unsupported(what));
        }
        self.server = result.clone();
        let confirmation = notification("notifications/initialized", None).to_string();
        self.notify(&confirmation).await;
        self.keep_opening(&confirmation);
        Ok(())
    }

    async fn discover(&mut self) -> Result<(), OpenError> {
        let (id, answer) = self.request("server/discover", json!({})).await;
        check_access(&answer)?;
        let Some(result) = answer.result(&id) else {
            return Err(no_result(&answer, &id, "server/discover"));
        };
        let versions = result.get("supportedVersions").and_then(Value::as_array);
        let spoken = json!(self.revision.as_str());
        if versions.is_some_and(|versions| !versions.contains(&spoken)) {
            return Err(OpenError::Unsupported("server/discover does not name it".to_owned()));
        }
        self.server = result.clone();
        Ok(())
    }

    /// The session that a response to `initialize` opens, which is to be deleted.
    pub(crate) fn enter(&mut self, answer: &Answer) {
        self.id = answer.header("mcp-session-id").map(str::to_owned).or_else(|| self.id.take());
    }

    fn keep_opening(&mut self, text: &str) {
        let request = self.post(text);
        let line = match &self.connection {
            Connection::Http(http) => self.with_variable(&http.curl(&request)),
            Connection::Pipe(_) => text.to_owned(),
        };
        self.opening.push(line);
    }

    /// The id of the session over HTTP.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// What the server says that it can do.
    pub(crate) fn capability(&self, name: &str) -> Option<&Value> {
        self.server.get("capabilities")?.get(name)
    }

    /// An id that was not used yet.
    pub(crate) fn next_id(&mut self) -> Value {
        self.next += 1;
        json!(self.next)
    }

    /// An `initialize` with this version.
    pub(crate) fn initialize(&mut self, version: &str) -> (Value, Value) {
        let id = self.next_id();
        let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client_info() });
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": "initialize", "params": params });
        (id, message)
    }

    /// A request with its id, as the revision wants it.
    pub(crate) fn message(&mut self, method: &str, params: Value) -> (Value, Value) {
        let id = self.next_id();
        (id.clone(), self.message_with_id(&id, method, params))
    }

    pub(crate) fn message_with_id(&self, id: &Value, method: &str, params: Value) -> Value {
        let mut params = params;
        if self.revision.lifecycle() == Lifecycle::PerRequest
            && let Some(members) = params.as_object_mut()
        {
            let meta = members.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                for (key, value) in request_meta(self.revision.as_str()) {
                    meta.entry(key).or_insert(value);
                }
            }
        }
        match &params {
            Value::Object(members) if members.is_empty() => {
                json!({ "jsonrpc": "2.0", "id": id, "method": method })
            }
            _ => json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }),
        }
    }

    /// Sends a request, and waits for its response.
    pub(crate) async fn request(&mut self, method: &str, params: Value) -> (Value, Answer) {
        let (id, message) = self.message(method, params);
        let answer = self.exchange(&message.to_string(), &Wants::Response(id.clone())).await;
        (id, answer)
    }

    /// Sends a request that every server answers: whatever was sent before has been taken note of once the response comes.
    pub(crate) async fn sentinel(&mut self) -> (Value, Answer) {
        match self.revision.lifecycle() {
            Lifecycle::Handshake => self.request("ping", json!({})).await,
            Lifecycle::PerRequest => self.request("server/discover", json!({})).await,
        }
    }

    /// Sends a text, and waits for what is wanted. Over HTTP it has the headers that belong to it.
    pub(crate) async fn exchange(&mut self, text: &str, wants: &Wants) -> Answer {
        self.exchange_within(text, wants, self.within).await
    }

    pub(crate) async fn exchange_within(&mut self, text: &str, wants: &Wants, within: Duration) -> Answer {
        let request = self.post(text);
        let mut answer = match &mut self.connection {
            Connection::Pipe(pipe) => pipe.exchange(&[text], wants, within).await,
            Connection::Http(http) => http.send(&request, wants, within).await,
        };
        answer.exchange.repeat = self.repeat(text, &answer);
        // Later responses would be taken for those of others.
        self.is_healthy &= !answer.late && answer.ended.is_none();
        answer
    }

    /// Sends requests at the same time, and waits for their responses. Over a pipe all have the same answer.
    pub(crate) async fn exchange_all(&mut self, requests: &[(Value, Value); 3]) -> [Answer; 3] {
        let texts = requests.each_ref().map(|(_, message)| message.to_string());
        let posts = texts.each_ref().map(|text| self.post(text));
        let wants = requests.each_ref().map(|(id, _)| Wants::Response(id.clone()));
        let answers = match &mut self.connection {
            Connection::Pipe(pipe) => {
                let ids = requests.iter().map(|(id, _)| id.clone()).collect();
                let lines = texts.each_ref().map(String::as_str);
                let answer = pipe.exchange(&lines, &Wants::Responses(ids), self.within).await;
                [answer.clone(), answer.clone(), answer]
            }
            Connection::Http(http) => {
                let [one, two, three] = &posts;
                let [first, second, third] = &wants;
                let answers = tokio::join!(
                    http.send(one, first, self.within),
                    http.send(two, second, self.within),
                    http.send(three, third, self.within),
                );
                answers.into()
            }
        };
        self.is_healthy &= answers.iter().all(|answer| !answer.late && answer.ended.is_none());
        answers.map(|mut answer| {
            answer.exchange.repeat = self.repeat(&texts.join("\n"), &answer);
            answer
        })
    }

    /// Whether the server is a child process.
    pub(crate) fn is_stdio(&self) -> bool {
        self.target.transport() == "stdio"
    }

    /// Sends a notification. Over a pipe nothing is waited for.
    pub(crate) async fn notify(&mut self, text: &str) -> Answer {
        let request = self.post(text);
        match &mut self.connection {
            Connection::Pipe(pipe) => {
                pipe.write(text);
                let mut answer = Answer::default();
                answer.exchange.set_request(text);
                answer
            }
            Connection::Http(http) => http.send(&request, &Wants::Body, self.within).await,
        }
    }

    /// Sends an HTTP request. Over a pipe there is none.
    pub(crate) async fn send(&self, request: &HttpRequest, wants: &Wants) -> Answer {
        self.send_within(request, wants, self.within).await
    }

    pub(crate) async fn send_within(&self, request: &HttpRequest, wants: &Wants, within: Duration) -> Answer {
        let Connection::Http(http) = &self.connection else { return Answer::default() };
        let mut answer = http.send(request, wants, within).await;
        answer.exchange.repeat = self.with_opening(&self.with_variable(&http.curl(request)));
        answer
    }

    /// The POST request for a message, with the headers that its revision wants.
    pub(crate) fn post(&self, text: &str) -> HttpRequest {
        let is_open = self.revision.lifecycle() == Lifecycle::PerRequest || !self.server.is_null();
        HttpRequest::of_message(text, self.id.as_deref(), Some(self.revision).filter(|_| is_open))
    }

    /// A command line that sends the same again.
    fn repeat(&self, text: &str, answer: &Answer) -> String {
        match &self.connection {
            Connection::Http(_) => self.with_opening(&self.with_variable(&answer.exchange.repeat)),
            Connection::Pipe(_) if self.is_stdio() => {
                let opening = self.opening.iter().filter(|_| !self.server.is_null());
                let lines = opening.map(String::as_str).chain(text.lines());
                let lines: Vec<&str> = ["printf", "%s\\n"].into_iter().chain(lines).collect();
                // Many servers answer nothing more once their input has ended.
                let seconds = self.within.as_secs().max(1);
                format!("({}; sleep {seconds}) | {}", joined(&lines), self.target.name())
            }
            Connection::Pipe(_) => {
                let message: Value = serde_json::from_str(text).unwrap_or_default();
                let method = message.get("method").and_then(Value::as_str).unwrap_or_default();
                let params = message.get("params").map(Value::to_string).unwrap_or_default();
                joined(&["refmcp", "raw", &self.target.name(), method, &params])
            }
        }
    }

    /// A command line with a variable in place of the id of the session, which will be another one.
    fn with_variable(&self, line: &str) -> String {
        match &self.id {
            Some(id) => line.replace(&format!("'mcp-session-id: {id}'"), "\"mcp-session-id: $SESSION\""),
            None => line.to_owned(),
        }
    }

    fn with_opening(&self, line: &str) -> String {
        let Some((first, rest)) = self.opening.split_first().filter(|_| !self.server.is_null()) else {
            return line.to_owned();
        };
        let first = match self.id {
            Some(_) => {
                format!("SESSION=$({first} -s | tr -d '\\r' | sed -n 's/^mcp-session-id: //Ip')")
            }
            None => first.clone(),
        };
        let rest = rest.iter().map(String::as_str);
        std::iter::once(&*first).chain(rest).chain([line]).collect::<Vec<_>>().join("\n")
    }

    /// Ends the session; nothing of it stays at the server. What an auditor says of all that passed is returned.
    pub(crate) async fn close(self) -> Audited {
        if let (Connection::Http(http), Some(id)) = (&self.connection, &self.id) {
            http.delete(id, self.revision).await;
        }
        self.connection.close().await
    }
}

fn client_info() -> Value {
    json!({ "name": "refmcp-check", "version": env!("CARGO_PKG_VERSION") })
}

/// The members of `_meta` that describe the client.
pub(crate) fn request_meta(version: &str) -> Map<String, Value> {
    let mut meta = Map::new();
    meta.insert(keys::PROTOCOL_VERSION.to_owned(), json!(version));
    meta.insert(keys::CLIENT_INFO.to_owned(), client_info());
    meta.insert(keys::CLIENT_CAPABILITIES.to_owned(), json!({}));
    meta
}

pub(crate) fn notification(method: &str, params: Option<Value>) -> Value {
    match params {
        Some(params) => json!({ "jsonrpc": "2.0", "method": method, "params": params }),
        None => json!({ "jsonrpc": "2.0", "method": method }),
    }
}

/// A text for a header; one that no header can hold is in base64 between marks.
pub(crate) fn header_text(text: &str) -> String {
    let plain = text.bytes().all(|byte| matches!(byte, 0x20..=0x7E)) && text.trim() == text;
    let marked = text.starts_with("=?base64?") && text.ends_with("?=");
    if plain && !marked { text.to_owned() } else { format!("=?base64?{}?=", STANDARD.encode(text)) }
}

/// Whether the server lets the client in at all.
pub(crate) fn check_access(answer: &Answer) -> Result<(), OpenError> {
    match answer.status {
        Some(status @ (401 | 403)) => {
            Err(OpenError::Unauthorized(format!("the server wants authorization: status {status}")))
        }
        Some(status @ (429 | 503)) => Err(OpenError::Busy(format!("the server is busy: status {status}"))),
        _ => Ok(()),
    }
}

fn no_result(answer: &Answer, id: &Value, method: &str) -> OpenError {
    let answered = || format!("{method} is answered with {}", answer.summary(id));
    match (&answer.ended, answer.status, answer.header("location")) {
        (Some(why), None, _) => OpenError::Unreachable(why.clone()),
        (_, Some(300..400), Some(location)) => {
            let location = crate::report::shortened(&refmcp_client::redact::url(location), 200);
            OpenError::Unsupported(format!("{}, which leads to {location}: check that address", answered()))
        }
        _ => OpenError::Unsupported(answered() + &unreadable(answer)),
    }
}

/// What came in place of messages, for people.
fn unreadable(answer: &Answer) -> String {
    let kind = answer.header("content-type").filter(|_| answer.messages.is_empty());
    let kind = kind.map(|kind| format!(" of the type {}", crate::report::shortened(kind, 80)));
    let junk = answer.junk.first().map(|junk| {
        format!("; what came is no message: {}", crate::report::shortened(junk.trim(), MAX_UNREADABLE))
    });
    kind.unwrap_or_default() + &junk.unwrap_or_default()
}

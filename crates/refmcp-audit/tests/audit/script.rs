//! Conversations as scripts: what a client and a server send each other, as events of a recording.

use refmcp_audit::Auditor;
use refmcp_audit::auditor::Judgement;
use refmcp_audit::recording::{Direction, Event, EventKind, Header, Side};
use refmcp_audit::verdict::{Role, RuleOutcome, Verdict, Violation};
use refmcp_proto::revision::Revision;
use refmcp_proto::rule::Rule;
use serde_json::{Value, json};

/// A rule with conversations in which a party keeps it, or breaks it and no other rule.
pub(crate) struct Example {
    pub(crate) rule: &'static Rule,
    pub(crate) role: Role,
    pub(crate) kept: Script,
    pub(crate) broken: Vec<Script>,
}

/// How a client keeps and breaks a rule.
pub(crate) fn client(rule: &'static Rule, kept: Script, broken: Vec<Script>) -> Example {
    Example { rule, role: Role::Client, kept, broken }
}

/// How a server does.
pub(crate) fn server(rule: &'static Rule, kept: Script, broken: Vec<Script>) -> Example {
    Example { rule, role: Role::Server, kept, broken }
}

/// The revisions with sessions.
pub(crate) const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// A conversation, recorded by the server unless it says otherwise.
#[derive(Clone)]
pub(crate) struct Script {
    events: Vec<Event>,
    at: u64,
    stream: Option<u64>,
    side: Side,
    /// What the other party does wrong before.
    provoked: Option<(&'static str, Role)>,
}

impl Script {
    /// A connection that is just opened.
    pub(crate) fn new(transport: &str) -> Self {
        Self::recorded_by(Side::Server, transport)
    }

    /// The same, recorded by this side.
    pub(crate) fn recorded_by(side: Side, transport: &str) -> Self {
        let mut script = Self { events: Vec::new(), at: 1_000, stream: None, side, provoked: None };
        let (transport, peer) = (transport.to_owned(), "127.0.0.1".to_owned());
        script.event(EventKind::Opened { side, transport, peer });
        script
    }

    /// A session of this revision, after its handshake, with these capabilities of client and server.
    pub(crate) fn session(transport: &str, revision: &str, client: Value, server: Value) -> Self {
        Self::new(transport).opens(revision, client, server)
    }

    /// The handshake of a session.
    pub(crate) fn opens(self, revision: &str, client: Value, server: Value) -> Self {
        self.client(request(0, "initialize", initialize(revision, client)))
            .server(result(0, initialized(revision, server)))
            .client(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    }

    /// A client without a session, after `server/discover`, and a server with these capabilities.
    pub(crate) fn without_session(transport: &str, server: Value) -> Self {
        Self::new(transport).discovers(server)
    }

    /// `server/discover` and its result.
    pub(crate) fn discovers(self, server: Value) -> Self {
        let found = json!({
            "supportedVersions": [Revision::LATEST.as_str()], "capabilities": server, "ttlMs": 0, "cacheScope": "private",
        });
        self.client(stateless_request("d", "server/discover", json!({}))).server(stateless_result("d", found))
    }

    /// What a recording of it has.
    pub(crate) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(crate) fn is_recorded_by_server(&self) -> bool {
        self.side == Side::Server
    }

    /// The other party breaks this rule first: only then is there something to keep or to break.
    pub(crate) fn provoked_by(mut self, rule: &'static Rule, role: Role) -> Self {
        self.provoked = Some((rule.id, role));
        self
    }

    /// What follows belongs to this HTTP request.
    pub(crate) fn on_stream(mut self, stream: u64) -> Self {
        self.stream = Some(stream);
        self
    }

    /// Time passes.
    pub(crate) fn after(mut self, millis: u64) -> Self {
        self.at += millis;
        self
    }

    /// The client sends a message.
    pub(crate) fn client(self, message: Value) -> Self {
        let direction = self.direction(Role::Client);
        self.message(direction, &message, None)
    }

    /// The server sends a message.
    pub(crate) fn server(self, message: Value) -> Self {
        let direction = self.direction(Role::Server);
        self.message(direction, &message, None)
    }

    /// The server sends a message in an SSE event with this id.
    pub(crate) fn server_event(self, id: &str, message: Value) -> Self {
        let direction = self.direction(Role::Server);
        self.message(direction, &message, Some(id))
    }

    /// The client sends something that is no message.
    pub(crate) fn client_invalid(self, text: &str) -> Self {
        self.invalid(Role::Client, text)
    }

    /// The server sends something that is no message.
    pub(crate) fn server_invalid(self, text: &str) -> Self {
        self.invalid(Role::Server, text)
    }

    /// The head of an HTTP request of the client, to which belongs what follows.
    pub(crate) fn http(self, stream: u64, method: &str, target: &str, headers: &[(&str, &str)]) -> Self {
        let (method, target, headers) = (method.to_owned(), target.to_owned(), owned(headers));
        let direction = self.direction(Role::Client);
        self.on_stream(stream).then(EventKind::Request { direction, method, target, headers })
    }

    /// The server sends the head of the response.
    pub(crate) fn status(self, status: u16, headers: &[(&str, &str)]) -> Self {
        let direction = self.direction(Role::Server);
        self.then(EventKind::Response { direction, status, headers: owned(headers) })
    }

    /// The server sends an SSE event without a message.
    pub(crate) fn sse(self, name: Option<&str>, id: Option<&str>, retry: Option<u64>, data: &str) -> Self {
        let (name, event_id, data) = (name.map(str::to_owned), id.map(str::to_owned), data.to_owned());
        let direction = self.direction(Role::Server);
        self.then(EventKind::Sse { direction, name, event_id, retry, data })
    }

    /// The server ends the response.
    pub(crate) fn ended(self) -> Self {
        let direction = self.direction(Role::Server);
        self.then(EventKind::Ended { direction })
    }

    /// The client stops reading the response.
    pub(crate) fn left(self) -> Self {
        let direction = self.direction(Role::Client);
        self.then(EventKind::Ended { direction })
    }

    fn direction(&self, from: Role) -> Direction {
        match (self.side, from) {
            (Side::Client, Role::Client) | (Side::Server, Role::Server) => Direction::Sent,
            _ => Direction::Received,
        }
    }

    fn invalid(self, from: Role, text: &str) -> Self {
        let (direction, why) = (self.direction(from), "no message".to_owned());
        self.then(EventKind::Invalid { direction, bytes: text.as_bytes().to_owned(), why })
    }

    /// Anything else happens.
    pub(crate) fn then(mut self, kind: EventKind) -> Self {
        self.event(kind);
        self
    }

    /// The same conversation with another one at the same time, on a connection and streams of its own.
    pub(crate) fn interleaved(mut self, other: &Self) -> Self {
        let moved = |event: &Event| Event {
            connection: event.connection + 1,
            stream: event.stream.map(|stream| stream + 100),
            ..event.clone()
        };
        let moved = other.events.iter().map(moved);
        self.events = self.events.iter().cloned().zip(moved).flat_map(|(one, two)| [one, two]).collect();
        self
    }

    /// The same conversation with each value of a message replaced that lies so deep.
    pub(crate) fn with_values(&self, depth: usize, by: &Value) -> Self {
        let mut events = self.events.clone();
        for event in &mut events {
            if let EventKind::Message { text, .. } = &mut event.kind {
                let mut message: Value = serde_json::from_str(text).unwrap();
                replace(&mut message, depth, by);
                *text = message.to_string();
            }
        }
        Self { events, ..*self }
    }

    /// The verdicts, once the connection is closed.
    pub(crate) fn judge(self) -> Judgement {
        self.judgements().remove(0)
    }

    /// The verdicts on each client and server.
    pub(crate) fn judgements(mut self) -> Vec<Judgement> {
        self.event(EventKind::Closed { why: "finished".to_owned() });
        let mut auditor = Auditor::default();
        for event in &self.events {
            // What is written to a file is judged as what passes.
            let line = event.to_line();
            let read = refmcp_audit::recording::read(line.as_bytes()).next().unwrap().unwrap();
            assert_eq!(&read, event);
            auditor.observe(event);
        }
        auditor.finish()
    }

    /// Asserts that the party kept this rule, and that nothing was broken.
    pub(crate) fn keeps(self, rule: &'static Rule, role: Role) {
        self.kept(rule, role).unwrap_or_else(|why| panic!("{why}"));
    }

    /// Why the party did not keep this rule, or what else was broken.
    pub(crate) fn kept(self, rule: &'static Rule, role: Role) -> Result<(), String> {
        let provoked = self.provoked;
        let judgement = self.judge();
        let own: Vec<_> = own_faults(&judgement, provoked).collect();
        let verdict = judgement.verdicts.get(rule, role);
        match verdict.map(Verdict::outcome) {
            Some(RuleOutcome::Kept) if own.is_empty() => Ok(()),
            outcome => Err(format!("{rule} is not kept by the {role}, but {outcome:?}: {own:#?}")),
        }
    }

    /// Why the party did not break exactly this rule.
    pub(crate) fn broken(self, rule: &'static Rule, role: Role) -> Result<(), String> {
        let provoked = self.provoked;
        let judgement = self.judge();
        let own: Vec<_> = own_faults(&judgement, provoked).collect();
        match &*own {
            [verdict] if verdict.rule.id == rule.id && verdict.role == role => {
                let says =
                    |violation: &Violation| !violation.what.is_empty() && !violation.expected.is_empty();
                if verdict.violations.iter().all(says) { Ok(()) } else { Err(format!("{verdict:?}")) }
            }
            _ => Err(format!("the {role} does not break {rule} alone: {own:#?}")),
        }
    }

    fn message(mut self, direction: Direction, message: &Value, event_id: Option<&str>) -> Self {
        let (text, event_id) = (message.to_string(), event_id.map(str::to_owned));
        self.event(EventKind::Message { direction, text, event_id });
        self
    }

    fn event(&mut self, kind: EventKind) {
        self.at += 1;
        self.events.push(Event { at: self.at, connection: 1, revision: None, stream: self.stream, kind });
    }
}

fn owned(headers: &[(&str, &str)]) -> Vec<Header> {
    headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// What was broken, but for what provoked it.
fn own_faults<'a>(
    judgement: &'a Judgement,
    provoked: Option<(&'static str, Role)>,
) -> impl Iterator<Item = &'a Verdict> {
    judgement.broken().filter(move |it| Some((it.rule.id, it.role)) != provoked)
}

/// The parameters of `initialize`.
pub(crate) fn initialize(revision: &str, capabilities: Value) -> Value {
    let info = json!({"name": "c", "version": "1"});
    json!({"protocolVersion": revision, "capabilities": capabilities, "clientInfo": info})
}

/// The result of `initialize`.
pub(crate) fn initialized(revision: &str, capabilities: Value) -> Value {
    let info = json!({"name": "s", "version": "1"});
    json!({"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info})
}

/// A request.
pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// A notification.
pub(crate) fn notification(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// A result.
pub(crate) fn result(id: impl Into<Value>, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "result": result})
}

/// An error.
pub(crate) fn error(id: impl Into<Value>, code: i64, data: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "error": {"code": code, "message": "no", "data": data}})
}

/// A request without a session: these parameters and `_meta`, with what they have of it themselves.
pub(crate) fn stateless_request(id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    let mut meta = stateless_meta();
    if let Some(own) = params.get("_meta").and_then(Value::as_object) {
        meta.as_object_mut().unwrap().extend(own.clone());
    }
    params["_meta"] = meta;
    request(id, method, params)
}

/// The complete result of a request without a session, with these members.
pub(crate) fn stateless_result(id: impl Into<Value>, members: Value) -> Value {
    let mut whole = json!({
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
    });
    if let Some(own) = members.get("_meta").and_then(Value::as_object) {
        whole["_meta"].as_object_mut().unwrap().extend(own.clone());
    }
    for (name, value) in members.as_object().unwrap().iter().filter(|(name, _)| *name != "_meta") {
        whole[name] = value.clone();
    }
    result(id, whole)
}

fn replace(value: &mut Value, depth: usize, by: &Value) {
    match value {
        _ if depth == 0 => value.clone_from(by),
        Value::Object(members) => members.values_mut().for_each(|member| replace(member, depth - 1, by)),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, depth - 1, by)),
        _ => {}
    }
}

/// The `_meta` of a request without a session.
pub(crate) fn stateless_meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": Revision::LATEST.as_str(),
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    })
}

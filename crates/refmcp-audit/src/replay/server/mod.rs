//! The server of recordings as a mock: messages of a client in, what the recorded server answered out.

mod exchange;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::conversation::RecordedConversation;
use super::json_text::replaced;
use super::part::{self, SUBSCRIPTION};
use exchange::{Act, ActKind, Channel, Exchange, add, listed, own_version, shortened, subject, without_meta};

/// Requests of a mock to its client that wait for their responses.
const MAX_WAITING: usize = 256;
/// Calls whose later messages have a place to go to.
const MAX_CALLS: usize = 1024;
/// Codes of JSON-RPC errors.
const UNKNOWN_METHOD: i64 = -32601;
const INTERNAL_ERROR: i64 = -32603;

/// What a recorded server answered, ready to be answered again. Clones share it.
#[derive(Debug, Clone)]
pub struct Mock(Arc<Vec<Exchange>>);

/// What a mock sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MockOutput {
    /// A message.
    Message(MockMessage),
    /// The recording has no answer, and the client gets an error; or it has one to other parameters, and the client gets that.
    /// This is for people.
    Remark(
        /// What the client asked for, and what the recording has.
        String,
    ),
}

/// A message of a mock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MockMessage {
    /// The call that it belongs to, by the number that it was received with.
    pub call: Option<u64>,
    /// The text.
    pub text: String,
    /// Whether it answers the call, which ends with it.
    pub is_response: bool,
    /// The id of its SSE event, where the recording has one.
    pub event_id: Option<String>,
}

/// How a request was answered over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HttpAnswer {
    /// The status, where the recording has one.
    pub status: Option<u16>,
    /// Whether it was a stream of events.
    pub is_stream: bool,
    /// Whether a session was opened.
    pub has_session: bool,
}

impl Mock {
    /// The server of these conversations.
    pub fn new(conversations: &[RecordedConversation]) -> Self {
        let mut exchanges = Vec::new();
        for conversation in conversations {
            add(conversation, &mut exchanges);
        }
        Self(Arc::new(exchanges))
    }

    /// A new session: all answers are there again.
    pub fn session(&self) -> MockSession {
        let used = vec![false; self.0.len()];
        let (calls, waiting) = (HashMap::new(), HashMap::new());
        MockSession { mock: self.clone(), used, calls, waiting, next: 0, version: None, reached: 0 }
    }

    /// How many requests it can answer.
    pub fn len(&self) -> usize {
        self.0.iter().filter(|exchange| exchange.is_request).count()
    }

    /// Whether it can answer none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the recorded client made a request of this method.
    pub fn has_request(&self, method: &str) -> bool {
        self.0.iter().any(|exchange| exchange.is_request && exchange.method == method)
    }
}

/// What happens to a client of a mock.
#[derive(Debug)]
pub struct MockSession {
    mock: Mock,
    used: Vec<bool>,
    /// Open calls by the exchange that answers them: their numbers, and the ids that their client gave.
    calls: HashMap<usize, Call>,
    /// What follows requests of the server, by their ids.
    waiting: HashMap<String, (Call, usize, usize)>,
    /// Requests of the server that were sent.
    next: u64,
    /// The revision that was agreed on.
    version: Option<String>,
    /// The place in the recording behind what was answered last.
    reached: usize,
}

#[derive(Debug, Clone)]
struct Call {
    number: u64,
    /// The id as it was written.
    id: String,
    /// The progress token as it was written.
    token: Option<String>,
}

impl MockSession {
    /// Takes in a message or a batch of the client, whose requests belong to the call of this number.
    pub fn receive(&mut self, number: u64, text: &str) -> Vec<MockOutput> {
        let mut out = Vec::new();
        for (text, value) in part::split(text) {
            self.receive_one(number, &text, &value, &mut out);
        }
        out
    }

    /// How a request that is received next was answered over HTTP in the recording.
    pub fn http_answer(&self, text: &str) -> HttpAnswer {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let Some(method) = value.get("method").and_then(Value::as_str) else { return HttpAnswer::default() };
        let params = value.get("params").cloned().unwrap_or_default();
        match self.find(method, &params) {
            Ok(at) => self.mock.0.get(at).map(Exchange::http_answer).unwrap_or_default(),
            Err((UNKNOWN_METHOD, _)) if own_version(&params).is_some() => {
                HttpAnswer { status: Some(404), ..HttpAnswer::default() }
            }
            Err(_) => HttpAnswer::default(),
        }
    }

    /// A call has no reader any more.
    pub fn left(&mut self, number: u64) {
        self.calls.retain(|_, call| call.number != number);
        self.waiting.retain(|_, (call, ..)| call.number != number);
    }

    fn receive_one(&mut self, number: u64, text: &str, value: &Value, out: &mut Vec<MockOutput>) {
        let method = value.get("method").and_then(Value::as_str);
        let id = raw_member(text, &["id"]);
        let params = value.get("params").cloned().unwrap_or_default();
        match (method, id) {
            (Some(method), Some(id)) => {
                let token = raw_member(text, &["params", "_meta", "progressToken"]);
                let call = Call { number, id, token };
                match self.find(method, &params) {
                    Ok(at) => {
                        out.extend(self.remark(at, &params));
                        self.answer(at, &call, out);
                    }
                    // Clients ask whether a server is still there.
                    Err(_) if method == "ping" => out.push(response(&call, "result", &json!({}))),
                    Err((code, why)) => {
                        out.push(response(&call, "error", &json!({ "code": code, "message": why })));
                        out.push(MockOutput::Remark(why));
                    }
                }
            }
            (Some(method), None) => {
                let cancelled = raw_member(text, &["params", "requestId"]);
                if let Some(id) = cancelled.filter(|_| method == "notifications/cancelled") {
                    self.calls.retain(|_, call| call.id != id);
                    self.waiting.retain(|_, (call, ..)| call.id != id);
                }
                if let Some(at) = self.notified(method, &params) {
                    let call = Call { number, id: "null".to_owned(), token: None };
                    self.act(at, &call, 0, out);
                }
            }
            // A response to a request of the mock.
            (None, Some(id)) => {
                if let Some((call, exchange, act)) = self.waiting.remove(&id) {
                    self.act(exchange, &call, act, out);
                }
            }
            (None, None) => {}
        }
    }

    /// What is to be said of an answer to other parameters; nothing where they decide nothing.
    fn remark(&self, at: usize, params: &Value) -> Option<MockOutput> {
        let exchange = self.mock.0.get(at)?;
        if exchange.subject.is_empty() || exchange.params == without_meta(params) {
            return None;
        }
        let (label, line) = (exchange.label(), exchange.line);
        let asked = shortened(&without_meta(params).to_string());
        Some(MockOutput::Remark(format!(
            "{label} with the parameters {asked} is answered as on line {line} of the recording, which has others"
        )))
    }

    fn answer(&mut self, at: usize, call: &Call, out: &mut Vec<MockOutput>) {
        self.use_up(at);
        if let Some(exchange) = self.mock.0.get(at).filter(|it| it.method == "initialize") {
            self.version.clone_from(&exchange.version);
        }
        if self.calls.len() < MAX_CALLS {
            self.calls.insert(at, call.clone());
        }
        self.act(at, call, 0, out);
    }

    fn use_up(&mut self, at: usize) {
        self.reached = at + 1;
        if let Some(used) = self.used.get_mut(at) {
            *used = true;
        }
    }

    /// Sends what the recorded server sent for a request, from an act on, up to a request that the client is to answer.
    fn act(&mut self, exchange: usize, call: &Call, from: usize, out: &mut Vec<MockOutput>) {
        let mock = self.mock.clone();
        let acts = mock.0.get(exchange).map(|it| &*it.acts).unwrap_or_default();
        for (at, act) in acts.iter().enumerate().skip(from) {
            let to = match act.channel {
                Channel::Own => Some(call.clone()),
                Channel::Of(other) => self.calls.get(&other).cloned(),
                Channel::General => None,
            };
            let mut text = act.text.clone();
            let mut waits = false;
            if let ActKind::Request { is_answered } = act.kind {
                self.next += 1;
                let id = self.next.to_string();
                text = with_id(&text, &id);
                waits = is_answered && self.waiting.len() < MAX_WAITING;
                if waits {
                    self.waiting.insert(id, (call.clone(), exchange, at + 1));
                }
            }
            if let Some(text) = addressed(&text, act, to.as_ref()) {
                let is_response = act.kind == ActKind::Response;
                let call = to.as_ref().map(|to| to.number);
                out.push(MockOutput::Message(MockMessage {
                    call,
                    text,
                    is_response,
                    event_id: act.event_id.clone(),
                }));
                if is_response {
                    self.calls.remove(&exchange);
                }
            }
            if waits {
                return;
            }
        }
    }

    /// The notification of the recording that this one is.
    fn notified(&mut self, method: &str, params: &Value) -> Option<usize> {
        let params = without_meta(params);
        let all = self.mock.0.iter().enumerate();
        let mut same: Vec<(usize, bool)> = all
            .filter(|(at, it)| {
                !it.is_request && it.method == method && !self.used.get(*at).is_some_and(|used| *used)
            })
            .map(|(at, it)| (at, it.params == params))
            .collect();
        same.sort_by_key(|(_, is_exact)| !is_exact);
        let (at, _) = *same.first()?;
        self.use_up(at);
        Some(at)
    }

    /// The request of the recording that answers this one: with the same parameters, the next one that was not answered yet, or
    /// the last of them; else the next one that asks for the same. A client that leaves something out goes on behind it.
    fn find(&self, method: &str, params: &Value) -> Result<usize, (i64, String)> {
        let all = || self.mock.0.iter().enumerate().filter(|(_, it)| it.is_request);
        let version = own_version(params).or(self.version.as_deref());
        let is_of_version = |it: &Exchange| version.is_some() && it.version.as_deref() == version;
        let has_version = all().any(|(_, it)| it.method == method && is_of_version(it));
        let of_method = || all().filter(|(_, it)| it.method == method && (!has_version || is_of_version(it)));
        if of_method().next().is_none() {
            let known = listed(all().map(|(_, it)| it.method.clone()));
            return Err((
                UNKNOWN_METHOD,
                format!("the recording has no request {}; it has {known}", shortened(method)),
            ));
        }
        let subject = subject(params);
        let same = || of_method().filter(|(_, it)| it.subject == subject);
        let is_unused = |(at, _): &(usize, &Exchange)| self.used.get(*at).is_some_and(|used| !used);
        let params = without_meta(params);
        let exact = || same().filter(|(_, it)| it.params == params);
        let is_ahead = |it: &(usize, &Exchange)| it.0 >= self.reached && is_unused(it);
        let found = exact()
            .find(is_ahead)
            .or_else(|| exact().find(is_unused))
            .or_else(|| exact().next_back())
            .or_else(|| same().find(is_ahead))
            .or_else(|| same().find(is_unused))
            .or_else(|| same().next_back().filter(|_| subject.is_empty()));
        if let Some((at, _)) = found {
            return Ok(at);
        }
        let asked = shortened(&[&[method.to_owned()], &*subject].concat().join(" "));
        let why = if same().next().is_none() {
            format!("the recording has no {asked}; it has {}", listed(of_method().map(|(_, it)| it.label())))
        } else {
            let known = listed(same().map(|(_, it)| it.params.to_string()));
            format!("the recording has no more of {asked} and none with these parameters; it has {known}")
        };
        Err((INTERNAL_ERROR, why))
    }
}

/// The text of a member, by the names that lead to it.
fn raw_member(text: &str, names: &[&str]) -> Option<String> {
    let mut found = None;
    replaced(text, |path, raw| {
        if path.iter().map(AsRef::as_ref).eq(names.iter().copied()) {
            found = Some(raw.to_owned());
        }
        None
    });
    found
}

fn with_id(text: &str, id: &str) -> String {
    replaced(text, |path, _| matches!(path, [name] if name == "id").then(|| id.to_owned()))
}

/// A message with the ids of the client that it goes to; none where that client did not ask for it.
fn addressed(text: &str, act: &Act, to: Option<&Call>) -> Option<String> {
    let Some(to) = to else { return (act.channel == Channel::General).then(|| text.to_owned()) };
    let text = if act.kind == ActKind::Response { with_id(text, &to.id) } else { text.to_owned() };
    let mut is_wanted = true;
    let text = replaced(&text, |path, _| match path {
        [.., meta, name] if meta == "_meta" && name == SUBSCRIPTION => Some(to.id.clone()),
        [params, name] if params == "params" && name == "progressToken" && act.kind == ActKind::Other => {
            is_wanted = to.token.is_some();
            to.token.clone()
        }
        _ => None,
    });
    is_wanted.then_some(text)
}

/// An answer of the mock itself.
fn response(call: &Call, member: &str, value: &Value) -> MockOutput {
    let text = format!(r#"{{"jsonrpc":"2.0","id":{},"{member}":{value}}}"#, call.id);
    MockOutput::Message(MockMessage { call: Some(call.number), text, is_response: true, event_id: None })
}

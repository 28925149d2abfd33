//! Simulated clients: engines, what their applications do, and what a transport does over a pipe.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher};

use refmcp_proto::engine::client::{
    CallError, CallOptions, ClientEngine, ClientMessage, ClientOutput, ServerRequest, ServerRequestId,
    TransportError,
};
use refmcp_proto::engine::{CallId, ExchangeId};
use refmcp_proto::frame::{Line, LineDecoder, encode_line};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{ElicitParams, InputRequest, LogLevel};
use refmcp_proto::revision::Lifecycle;
use serde_json::Value;

use super::handlers;
use super::http_client::HttpClient;
use super::network::{ConnectionId, Payload, Side};
use super::plan::{Action, Transport};
use super::queue::Scheduled;
use super::server::response_id;
use super::{BEGINNING, Simulation, configs, nonce};
use crate::history::{Event, Fault, Outcome};

/// A client.
pub(super) struct Client {
    /// The number in the history.
    pub(super) number: u32,
    pub(super) engine: ClientEngine,
    pub(super) link: Link,
    /// What it does yet.
    actions: VecDeque<(u64, Action)>,
    /// It has had a connection.
    has_opened: bool,
    /// It has left.
    pub(super) has_left: bool,
    /// When a deadline is scheduled for.
    deadline: Option<u64>,
}

/// The connections of a client.
pub(super) enum Link {
    Pipe(ConnectionId, LineDecoder),
    Http(HttpClient),
}

impl Simulation {
    /// A client that connects now.
    pub(super) fn add_client(&mut self, actions: VecDeque<(u64, Action)>) {
        let index = self.clients.len();
        let link = match self.plan.transport {
            Transport::Pipe => {
                let connection = self.network.connect(&mut self.random, index, ExchangeId::default());
                Link::Pipe(connection, LineDecoder::with_chunk(1 << 20, 256))
            }
            Transport::Http => Link::Http(HttpClient::default()),
        };
        let number = u32::try_from(index).unwrap_or(u32::MAX);
        let engine = ClientEngine::new(configs::client(&self.plan));
        let client =
            Client { number, engine, link, actions, has_opened: false, has_left: false, deadline: None };
        self.clients.push(client);
        let now = self.time();
        self.clients[index].engine.open(now);
        self.settle_client(index);
        self.schedule_action(index);
    }

    fn schedule_action(&mut self, client: usize) {
        let next = self.clients[client].actions.front();
        if let Some((after, _)) = next {
            self.queue.push(self.now + after, Scheduled::Action(client));
        }
    }

    /// The next action of a client.
    pub(super) fn act(&mut self, index: usize) {
        if self.clients[index].has_left {
            return;
        }
        let Some((_, action)) = self.clients[index].actions.pop_front() else { return };
        self.tell(|_| format!("client {index}: {action:?}"));
        match action {
            Action::Call { tool, progress, cancel_after } => {
                self.call_tool(index, tool, progress, cancel_after);
            }
            Action::List => {
                self.call(index, "tools/list", None, "{}".into(), CallOptions::default(), None);
            }
            Action::Listen { for_millis } => {
                let params = r#"{"notifications":{"toolsListChanged":true}}"#;
                let call = self.call(
                    index,
                    "subscriptions/listen",
                    None,
                    params.into(),
                    CallOptions::default(),
                    None,
                );
                self.queue.push(self.now + for_millis, Scheduled::Cancel(index, call));
            }
            Action::Reconnect => self.reconnect(index),
        }
        if !self.clients[index].has_left {
            self.settle_client(index);
            self.schedule_action(index);
        }
    }

    fn call_tool(&mut self, index: usize, tool: &'static str, progress: bool, cancel_after: Option<u64>) {
        let nonce = self.next_nonce;
        self.next_nonce += 1;
        let params = format!(r#"{{"name":"{tool}","arguments":{{"nonce":{nonce}}}}}"#).into();
        let options = CallOptions { progress, log_level: Some(LogLevel::Info), ..CallOptions::default() };
        let call = self.call(index, "tools/call", Some(tool), params, options, Some(nonce));
        if let Some(after) = cancel_after {
            self.queue.push(self.now + after, Scheduled::Cancel(index, call));
        }
    }

    fn call(
        &mut self,
        index: usize,
        method: &str,
        name: Option<&str>,
        params: Box<str>,
        options: CallOptions,
        nonce: Option<u64>,
    ) -> CallId {
        let now = self.time();
        let client = &mut self.clients[index];
        let call = client.engine.call(now, method.into(), name.map(Into::into), params, options);
        let client = client.number;
        self.record(Event::Sent { client, request: call.0, nonce });
        call
    }

    pub(super) fn cancel(&mut self, index: usize, call: CallId) {
        let now = self.time();
        self.clients[index].engine.cancel(now, call, "as planned");
        self.settle_client(index);
    }

    pub(super) fn respond(
        &mut self,
        index: usize,
        request: ServerRequestId,
        response: Result<Value, RpcError>,
    ) {
        let now = self.time();
        self.clients[index].engine.respond(now, request, response);
        self.settle_client(index);
    }

    pub(super) fn client_deadline(&mut self, index: usize) {
        let now = self.time();
        let client = &mut self.clients[index];
        client.deadline = None;
        if client.engine.deadline().is_some_and(|at| at <= now) {
            client.engine.tick(now);
        }
        self.settle_client(index);
    }

    /// Does what the engine of a client wants done.
    pub(super) fn settle_client(&mut self, index: usize) {
        while let Some(output) = self.clients[index].engine.poll() {
            self.client_output(index, output);
        }
        let now = self.now;
        let client = &mut self.clients[index];
        if client.has_left {
            return;
        }
        let deadline = client.engine.deadline().map(|at| now.max(at.as_millis() - BEGINNING));
        if let Some(at) = deadline
            && client.deadline.is_none_or(|scheduled| at < scheduled)
        {
            client.deadline = Some(at);
            self.queue.push(at, Scheduled::ClientDeadline(index));
        }
        let client = &self.clients[index];
        if client.has_opened && client.actions.is_empty() && client.engine.in_flight() == 0 {
            // What the server sends last is still read.
            self.queue.push(self.now + 100, Scheduled::Finish(index));
        }
    }

    fn client_output(&mut self, index: usize, output: ClientOutput) {
        let client = self.clients[index].number;
        match output {
            ClientOutput::Send(message) => self.send_from_client(index, message),
            ClientOutput::Abandon(exchange) => self.abandon(index, exchange),
            ClientOutput::Opened(server) => {
                self.clients[index].has_opened = true;
                if server.rules().lifecycle == Lifecycle::Handshake {
                    self.open_get_stream(index);
                }
            }
            ClientOutput::Closed(why) => {
                self.tell(|_| format!("client {index} is closed: {why}"));
                self.lose_connection(index);
            }
            ClientOutput::Done(call, done) => {
                self.tell(|_| format!("client {index}: call {} ends with {done:?}", call.0));
                let outcome = match done {
                    Ok(_) => Outcome::Result,
                    Err(CallError::Cancelled) => Outcome::Cancelled,
                    Err(CallError::TimedOut { .. }) => Outcome::TimedOut,
                    Err(CallError::Refused(_)) => Outcome::Refused,
                    Err(CallError::Transport(_) | CallError::NotOpen(_)) => Outcome::Lost,
                    Err(_) => Outcome::ServerError,
                };
                self.record(Event::Outcome { client, request: call.0, outcome });
            }
            ClientOutput::Request(request) => self.host_responds(index, &request),
            ClientOutput::Finding(finding) => {
                let what = format!("{}: {}", finding.rule.id, finding.what).into();
                self.record(Event::Reported { client, what });
            }
            ClientOutput::Ignored(what) => self.record(Event::Reported { client, what: what.into() }),
            ClientOutput::RequestCancelled(_) | ClientOutput::Notification(..) | ClientOutput::Task(..) => {}
        }
    }

    /// The host answers an input request after a while, or does not want to.
    fn host_responds(&mut self, index: usize, request: &ServerRequest) {
        let pause = self.random.pick(&[0, 0, 200, 4_000]);
        let at = self.now + self.random.below(pause + 1);
        let nonce = match &request.request {
            InputRequest::Elicit(ElicitParams::Form(form)) => nonce::find(form.message.as_bytes()),
            InputRequest::Sample(params) => {
                serde_json::to_vec(&params.messages).ok().and_then(|text| nonce::find(&text))
            }
            _ => None,
        };
        let mut response = Ok(handlers::response(&request.request, nonce));
        if self.plan.moody_clients && self.random.one_in(3) {
            let refuses = self.random.one_in(2);
            let fault = if refuses { Fault::InputRefused } else { Fault::InputWithheld };
            self.fault(Some(index), None, fault);
            if !refuses {
                return;
            }
            response = Err(RpcError::invalid_request("the user does not want to"));
        }
        self.queue.push(at, Scheduled::Respond(index, request.id, Box::new(response)));
    }

    fn send_from_client(&mut self, index: usize, message: ClientMessage) {
        match &self.clients[index].link {
            Link::Pipe(connection, _) => {
                let (connection, mut line) = (*connection, Vec::with_capacity(message.json.len() + 1));
                encode_line(&mut line, &message.json);
                self.network.send(&mut self.random, self.now, connection, Side::Server, Payload::Bytes(line));
            }
            Link::Http(_) => self.send_http_message(index, message),
        }
    }

    pub(super) fn client_arrival(&mut self, connection: ConnectionId, payload: Payload) {
        let index = self.network.get(connection).client;
        let Link::Pipe(_, decoder) = &mut self.clients[index].link else {
            return self.http_arrival(index, connection, payload);
        };
        if let Payload::Bytes(bytes) = payload {
            decoder.feed(&bytes);
        }
        let now = self.time();
        while let Link::Pipe(_, decoder) = &mut self.clients[index].link
            && let Some(Line::Text(line)) = decoder.next_line()
        {
            let line = line.to_vec();
            self.record_received(index, None, None, &line);
            self.clients[index].engine.receive(now, None, &line);
            self.settle_client(index);
        }
    }

    /// Records a message of the server. On a pipe, the stream is that of the request that it is about.
    pub(super) fn record_received(
        &mut self,
        index: usize,
        stream: Option<u64>,
        seq: Option<u64>,
        message: &[u8],
    ) {
        let response = response_id(message);
        let stream = stream.or(response).or_else(|| progress_token(message));
        let mut hasher = DefaultHasher::new();
        hasher.write(message);
        self.record(Event::Received {
            client: self.clients[index].number,
            stream,
            seq,
            hash: hasher.finish(),
            nonce: nonce::find(message),
            is_response: response.is_some() && response == stream,
        });
    }

    /// A client finds that a connection is over.
    pub(super) fn client_disconnected(&mut self, connection: ConnectionId) {
        let index = self.network.get(connection).client;
        self.record(Event::Disconnected { client: self.clients[index].number });
        match self.clients[index].link {
            Link::Pipe(..) => {
                let why = TransportError::Broken("the connection was lost".to_owned());
                self.clients[index].engine.closed(why);
                self.settle_client(index);
            }
            Link::Http(_) => self.exchange_broken(index, connection),
        }
    }

    /// The connection of a client is over for good: it goes on as another one, if it has more to do.
    fn lose_connection(&mut self, index: usize) {
        if self.clients[index].has_left {
            return;
        }
        self.leave(index);
        let mut actions = std::mem::take(&mut self.clients[index].actions);
        if !self.clients[index].has_opened {
            // A server that cannot be reached is not tried for ever.
            actions.pop_front();
        }
        if !actions.is_empty() {
            self.add_client(actions);
        }
    }

    /// Connects again, while the server believes that the old connection lives.
    fn reconnect(&mut self, index: usize) {
        match self.clients[index].link {
            Link::Pipe(..) => {
                self.fault(Some(index), None, Fault::Reconnected);
                self.clients[index].engine.closed(TransportError::Closed);
                self.settle_client(index);
            }
            Link::Http(_) => self.reconnect_http(index),
        }
    }

    /// A client that has nothing more to do leaves.
    pub(super) fn finish_client(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if client.has_left || !client.actions.is_empty() || client.engine.in_flight() > 0 {
            return;
        }
        self.leave(index);
        self.clients[index].engine.closed(TransportError::Closed);
        self.settle_client(index);
    }

    /// Closes all connections of a client.
    fn leave(&mut self, index: usize) {
        self.clients[index].has_left = true;
        match self.clients[index].link {
            Link::Pipe(connection, _) => {
                self.network.close(&mut self.random, self.now, connection, Side::Client);
            }
            Link::Http(_) => self.leave_http(index),
        }
    }
}

fn progress_token(message: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(message).ok()?;
    let (_, token) = text.split_once(r#""progressToken":"#)?;
    nonce::digits(token.as_bytes())
}

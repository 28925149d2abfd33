//! Requests of the server to the host: by messages of its own, or by results that require input.

use serde::Deserialize;
use serde_json::Value;

use super::client_tasks::{TaskQuery, read_task};
use super::config::TransportKind;
use super::io::{ClientMessage, ClientMessageKind, ClientOutput, OpenError, ServerRequest, ServerRequestId};
use super::{ClientEngine, exchange_of, handshake::Phase};
use crate::engine::report::ReportFindings;
use crate::engine::{CallId, ExchangeId};
use crate::finding::Finding;
use crate::jsonrpc::encode::{self, ResponseId};
use crate::jsonrpc::{Request, RequestId, RpcError, excerpt};
use crate::model::{ElicitParams, InputRequest, JsonObject, RelatedTask, TaskMetadata, keys};
use crate::revision::{ServerMethod, Tasks};
use crate::rule;
use crate::time::Timestamp;

/// Why a request of the server is refused in revisions without sessions.
const NO_REQUESTS: &str = "a server makes no requests in this revision";

/// What the response of the host is for.
#[derive(Debug)]
pub(super) enum PendingRequest {
    /// A call whose result requires input.
    Input(CallId),
    /// A request of the server, made while this call was running, and for this task.
    Server(RequestId, Option<CallId>, Option<RelatedTask>),
    /// The task of a call requires input.
    Task(CallId),
    /// A request of the server that is a task of the client, by its number.
    ClientTask(u64),
}

/// A request of the server that can be answered.
enum Answerable {
    /// `ping`, which the engine answers.
    Ping,
    /// A request for the host, and the task that it is to be.
    Input(Box<InputRequest>, Option<TaskMetadata>),
    /// A request about tasks of the client, which the engine answers.
    Task(TaskQuery),
}

impl ClientEngine {
    /// The host has responded.
    pub fn respond(&mut self, now: Timestamp, number: ServerRequestId, response: Result<Value, RpcError>) {
        match self.server_requests.remove(&number) {
            Some(PendingRequest::Input(call)) => self.input_response(now, call, number, response),
            Some(PendingRequest::Task(call)) => self.task_input(now, call, number, response),
            Some(PendingRequest::Server(id, call, related)) => {
                let response = response.map(|response| with_related_task(response, related));
                self.send_response(&id, response.as_ref());
                if let Some(call) = call {
                    self.restart_idle_timeout(now, call);
                }
            }
            Some(PendingRequest::ClientTask(task)) => self.finish_client_task(now, task, response),
            // It was cancelled meanwhile.
            None => {}
        }
    }

    /// The server makes a request.
    pub(super) fn server_request(&mut self, now: Timestamp, from: Option<ExchangeId>, request: &Request<'_>) {
        if let Phase::Opening(opening) = self.phase
            && exchange_of(&request.id) == Some(opening.exchange)
            && request.method == opening.attempt.method()
        {
            // A response would come back as well, and be taken for the server's.
            let what = format!("it sends our own messages back, such as {}", request.method);
            return self.give_up(OpenError::Protocol(what));
        }
        let related = self.related_task(request);
        let by_task = related.as_ref().and_then(|related| self.call_of_task(&related.task_id));
        let call = by_task.or_else(|| from.and_then(|from| self.call_of(from)));
        if let Some(call) = call {
            self.restart_idle_timeout(now, call);
        }
        let error = match self.check_server_request(request) {
            Ok(Answerable::Ping) => {
                return self.send_response(&request.id, Ok(&Value::Object(JsonObject::new())));
            }
            Ok(Answerable::Task(query)) => {
                return match self.answer_task_query(now, query, request) {
                    Ok(Some(result)) => self.send_response(&request.id, Ok(&result)),
                    // It waits for the end of the task.
                    Ok(None) => {}
                    Err(error) => self.send_response(&request.id, Err(&error)),
                };
            }
            Ok(Answerable::Input(input, Some(task))) => {
                let created = self.create_client_task(now, call, related, (*input, &task));
                return self.send_response(&request.id, created.as_ref());
            }
            Ok(Answerable::Input(input, None)) => {
                let number = self.next_server_request();
                self.server_requests
                    .insert(number, PendingRequest::Server(request.id.clone(), call, related));
                return self.outputs.push_back(ClientOutput::Request(ServerRequest {
                    id: number,
                    call,
                    request: *input,
                }));
            }
            Err(error) => error,
        };
        self.send_response(&request.id, Err(&error));
    }

    /// What a request is, if it can be answered now.
    fn check_server_request(&mut self, request: &Request<'_>) -> Result<Answerable, RpcError> {
        if self.is_stateless() {
            let what = format!("a request of the server: {}", excerpt(&request.method));
            self.report(&rule::RPC_15, what, "send it as an input request of a result");
            return Err(RpcError::invalid_request(NO_REQUESTS));
        }
        if request.method == ServerMethod::Ping.name() {
            return Ok(Answerable::Ping);
        }
        if let Some(query) = self.task_query(&request.method) {
            self.check_server_request_id(&request.id)?;
            return Ok(Answerable::Task(query));
        }
        let read = InputRequest::read(&request.method, request.params.text);
        let mut input = read.ok_or_else(|| RpcError::method_not_found(&request.method))?.map_err(|why| {
            self.report(&rule::RPC_01, why.clone(), "send the params of this request");
            RpcError::invalid_params(why)
        })?;
        self.check_server_request_id(&request.id)?;
        let task = input.take_task();
        if !self.supports(&input) {
            let what = format!("its request {}, which this client did not offer to answer", request.method);
            self.outputs.push_back(ClientOutput::Ignored(what.clone()));
            // The oldest revisions only recommend this.
            let expected = "send only what the client's capabilities declare";
            self.report_if_ruled(Finding::new(&rule::LIFE_08, what, expected));
            return Err(RpcError::method_not_found(&request.method));
        }
        if self.server_requests.len() >= self.config.max_server_requests {
            return Err(RpcError::internal("too many questions are open"));
        }
        let task = match task {
            Some(task) if self.runs_as_task(&input) => Some(read_task(&task).inspect_err(|error| {
                self.report(&rule::RPC_01, error.message.clone(), "send params.task as an object");
            })?),
            Some(_) => {
                let what = format!("task in {}, which this client does not run as a task", request.method);
                let expected = "leave task out of requests that capabilities.tasks.requests does not list";
                self.report_if_ruled(Finding::new(&rule::TSK_02, what, expected));
                None
            }
            None => None,
        };
        Ok(Answerable::Input(Box::new(input), task))
    }

    /// What a method asks of the tasks of the client, if it has any.
    fn task_query(&self, method: &str) -> Option<TaskQuery> {
        let query = match ServerMethod::known(method)? {
            ServerMethod::GetTask => TaskQuery::Get,
            ServerMethod::GetTaskResult => TaskQuery::Result,
            ServerMethod::CancelTask => TaskQuery::Cancel,
            ServerMethod::ListTasks => TaskQuery::List,
            _ => return None,
        };
        let able = &self.config.capabilities;
        let is_declared = match query {
            TaskQuery::Get | TaskQuery::Result => true,
            TaskQuery::Cancel => able.cancels_tasks(),
            TaskQuery::List => able.lists_tasks(),
        };
        Some(query).filter(|_| self.serves_tasks() && is_declared)
    }

    /// Refuses a request whose id is that of another, which has no response yet.
    fn check_server_request_id(&mut self, id: &RequestId) -> Result<(), RpcError> {
        let open = |pending: &PendingRequest| matches!(pending, PendingRequest::Server(of, ..) if of == id);
        if !self.server_requests.values().any(open) && !self.client_tasks.waits(id) {
            return Ok(());
        }
        let what = format!("a request with the id {} of another", excerpt(&id.to_string()));
        self.report(&rule::RPC_03, what, "use each id once");
        Err(RpcError::invalid_request("a request with this id is being answered"))
    }

    /// The task that a request belongs to (2025-11-25).
    fn related_task(&self, request: &Request<'_>) -> Option<RelatedTask> {
        #[derive(Deserialize)]
        struct Related {
            #[serde(rename = "io.modelcontextprotocol/related-task")]
            task: Option<RelatedTask>,
        }
        let text = request.params.meta.text.filter(|_| self.kind_of_tasks() == Tasks::Experimental)?;
        serde_json::from_str::<Related>(text).ok()?.task
    }

    /// Whether the client has declared the capability for this request.
    pub(super) fn supports(&self, request: &InputRequest) -> bool {
        let able = &self.config.capabilities;
        match request {
            InputRequest::Roots => able.has_roots(),
            InputRequest::Sample(params) if params.tools.is_some() || params.tool_choice.is_some() => {
                able.samples_with_tools()
            }
            InputRequest::Sample(_) => able.samples(),
            InputRequest::Elicit(ElicitParams::Form(_)) => able.elicits_forms(),
            InputRequest::Elicit(ElicitParams::Url(_)) => able.elicits_urls(),
        }
    }

    /// The server has cancelled a request of its own.
    pub(super) fn cancel_server_request(&mut self, id: &RequestId) -> bool {
        let found = self.server_requests.iter().find_map(|(number, pending)| match pending {
            PendingRequest::Server(input, ..) if input == id => Some(*number),
            _ => None,
        });
        if let Some(number) = found {
            self.server_requests.remove(&number);
            self.outputs.push_back(ClientOutput::RequestCancelled(number));
        }
        // The result of a task may no longer be wanted; the task goes on.
        found.is_some() || self.client_tasks.stop_waiting(id)
    }

    pub(super) fn cancel_requests_of(&mut self, call: CallId) {
        let of_call = |pending: &PendingRequest| match pending {
            PendingRequest::Input(of) | PendingRequest::Task(of) => *of == call,
            PendingRequest::Server(_, of, _) => *of == Some(call),
            // A task is independent of what it was created in.
            PendingRequest::ClientTask(_) => false,
        };
        let gone: Vec<ServerRequestId> =
            self.server_requests.iter().filter(|(_, pending)| of_call(pending)).map(|(id, _)| *id).collect();
        for number in gone {
            self.server_requests.remove(&number);
            self.outputs.push_back(ClientOutput::RequestCancelled(number));
        }
    }

    /// Ends what the server has asked for, tasks among it: the session is over.
    pub(super) fn cancel_all_requests(&mut self) {
        self.client_tasks.clear();
        for (number, _) in self.server_requests.drain() {
            self.outputs.push_back(ClientOutput::RequestCancelled(number));
        }
    }

    /// Refuses what the server requested while a connection was opening that turns out to have no session.
    pub(super) fn refuse_early_requests(&mut self) {
        for (number, pending) in std::mem::take(&mut self.server_requests) {
            self.outputs.push_back(ClientOutput::RequestCancelled(number));
            if let PendingRequest::Server(id, ..) = pending {
                self.send_response(&id, Err(&RpcError::invalid_request(NO_REQUESTS)));
            }
        }
    }

    pub(super) fn next_server_request(&mut self) -> ServerRequestId {
        self.last_server_request += 1;
        ServerRequestId(self.last_server_request)
    }

    pub(super) fn send_response(&mut self, id: &RequestId, response: Result<&Value, &RpcError>) {
        let rules = match &self.phase {
            Phase::Open(server) => Some(server.rules()),
            _ => None,
        };
        // Without a session there is nowhere to post a response to; a pipe takes one.
        if self.is_stateless() && self.config.transport == TransportKind::Http {
            return;
        }
        let mut json = Vec::new();
        let written = match response {
            Ok(result) => encode::result(&mut json, id, result),
            Err(error) => encode::error(&mut json, ResponseId::Id(id), error),
        };
        // Writing JSON into memory does not fail.
        if written.is_ok() {
            let exchange = self.next_exchange();
            let kind = ClientMessageKind::Response;
            self.outputs.push_back(ClientOutput::Send(ClientMessage { exchange, kind, json, rules }));
        }
    }
}

/// A response that says which task it belongs to, if it belongs to one.
pub(super) fn with_related_task(mut response: Value, related: Option<RelatedTask>) -> Value {
    if let (Some(related), Value::Object(members)) = (related, &mut response) {
        let meta = members.entry("_meta").or_insert_with(|| Value::Object(JsonObject::new()));
        if let Value::Object(meta) = meta {
            meta.insert(keys::RELATED_TASK.to_owned(), serde_json::json!({ "taskId": related.task_id }));
        }
    }
    response
}

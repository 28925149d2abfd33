//! What the server wants of the host: by requests of its own, or by results that ask for input.

use serde_json::Value;
use serde_json::value::RawValue;

use super::config::TransportKind;
use super::io::{ClientMessage, ClientMessageKind, ClientOutput, ServerRequest, ServerRequestId};
use super::{ClientEngine, handshake::Phase};
use crate::engine::{CallId, ExchangeId};
use crate::jsonrpc::encode::{self, ResponseId};
use crate::jsonrpc::{Request, RequestId, RpcError, excerpt, without_place};
use crate::model::{ElicitParams, InputRequest, JsonObject};
use crate::time::Timestamp;

/// Whom the answer to a question is for.
#[derive(Debug)]
pub(super) enum Pending {
    /// A call that asked by its result.
    OfCall(CallId),
    /// A request of the server, made while this call was running.
    OfServer(RequestId, Option<CallId>),
}

impl ClientEngine {
    /// The host has answered.
    pub fn respond(&mut self, now: Timestamp, question: ServerRequestId, answer: Result<Value, RpcError>) {
        match self.questions.remove(&question) {
            Some(Pending::OfCall(call)) => self.collected(now, call, question, answer),
            Some(Pending::OfServer(id, call)) => {
                self.reply(&id, answer.as_ref());
                if let Some(call) = call {
                    self.moved(now, call);
                }
            }
            // It was withdrawn meanwhile.
            None => {}
        }
    }

    /// The server asks something by a request of its own.
    pub(super) fn question(&mut self, now: Timestamp, from: Option<ExchangeId>, request: &Request<'_>) {
        let call = from.and_then(|from| self.call_of(from));
        if let Some(call) = call {
            self.moved(now, call);
        }
        let refusal = match self.judge(request) {
            Ok(None) => return self.reply(&request.id, Ok(&Value::Object(JsonObject::new()))),
            Ok(Some(asked)) => {
                let question = self.next_question();
                self.questions.insert(question, Pending::OfServer(request.id.clone(), call));
                return self.outputs.push_back(ClientOutput::Request(ServerRequest {
                    id: question,
                    call,
                    request: asked,
                }));
            }
            Err(refusal) => refusal,
        };
        self.reply(&request.id, Err(&refusal));
    }

    /// What is asked; nothing for a question that has but one answer.
    fn judge(&mut self, request: &Request<'_>) -> Result<Option<InputRequest>, RpcError> {
        if self.is_stateless() {
            self.note(
                "RPC-15",
                format!(
                    "a request of the server: {}; send it as an input request of a result",
                    excerpt(&request.method)
                ),
            );
            return Err(RpcError::invalid_request("a server makes no requests in this revision"));
        }
        if request.method == "ping" {
            return Ok(None);
        }
        let asked = read(request)?;
        let open = |pending: &Pending| matches!(pending, Pending::OfServer(id, _) if *id == request.id);
        if self.questions.values().any(open) {
            return Err(RpcError::invalid_request("a request with this id is being answered"));
        }
        if !self.can_answer(&asked) {
            let what = format!("its request {}, which this client did not offer to answer", request.method);
            self.outputs.push_back(ClientOutput::Ignored(what));
            return Err(RpcError::method_not_found(&request.method));
        }
        if self.questions.len() >= self.config.max_server_requests {
            return Err(RpcError::internal("too many questions are open"));
        }
        Ok(Some(asked))
    }

    /// Whether we have said that we answer such a question.
    pub(super) fn can_answer(&self, request: &InputRequest) -> bool {
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

    /// The server no longer wants the answer to a request of its own.
    pub(super) fn withdraw(&mut self, id: &RequestId) -> bool {
        let found = self.questions.iter().find_map(|(question, pending)| match pending {
            Pending::OfServer(asked, _) if asked == id => Some(*question),
            _ => None,
        });
        if let Some(question) = found {
            self.questions.remove(&question);
            self.outputs.push_back(ClientOutput::RequestCancelled(question));
        }
        found.is_some()
    }

    pub(super) fn withdraw_questions_of(&mut self, call: CallId) {
        let of_call = |pending: &Pending| match pending {
            Pending::OfCall(of) => *of == call,
            Pending::OfServer(_, of) => *of == Some(call),
        };
        let gone: Vec<ServerRequestId> =
            self.questions.iter().filter(|(_, pending)| of_call(pending)).map(|(id, _)| *id).collect();
        for question in gone {
            self.questions.remove(&question);
            self.outputs.push_back(ClientOutput::RequestCancelled(question));
        }
    }

    pub(super) fn withdraw_questions(&mut self) {
        for (question, _) in self.questions.drain() {
            self.outputs.push_back(ClientOutput::RequestCancelled(question));
        }
    }

    pub(super) fn next_question(&mut self) -> ServerRequestId {
        self.last_question += 1;
        ServerRequestId(self.last_question)
    }

    fn reply(&mut self, id: &RequestId, answer: Result<&Value, &RpcError>) {
        let rules = match &self.phase {
            Phase::Open(server) => Some(server.rules()),
            _ => None,
        };
        // Without a session there is nowhere to post an answer to; a pipe takes one.
        if self.is_stateless() && self.config.transport == TransportKind::Http {
            return;
        }
        let mut json = Vec::new();
        let written = match answer {
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

fn read(request: &Request<'_>) -> Result<InputRequest, RpcError> {
    if !matches!(request.method.as_ref(), "elicitation/create" | "sampling/createMessage" | "roots/list") {
        return Err(RpcError::method_not_found(&request.method));
    }
    #[derive(serde::Serialize)]
    struct Bare<'a> {
        method: &'a str,
        params: Option<&'a RawValue>,
    }
    let wrong = |fault: &serde_json::Error| RpcError::invalid_params(without_place(fault));
    let params = request.params.text.map(serde_json::from_str).transpose().map_err(|fault| wrong(&fault))?;
    let bare =
        serde_json::to_string(&Bare { method: &request.method, params }).map_err(|fault| wrong(&fault))?;
    serde_json::from_str(&bare).map_err(|fault| wrong(&fault))
}

//! Detached calls: calls that outlive the exchange that started them. Such a call is data, from which any process can go on:
//! one that waits for responses of the client, or a task.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ServerEngine;
use super::calls::Call;
use super::input_rounds::check_requests;
use crate::engine::{
    CallFailure, CallId, CallRequest, Dispatch, EngineConfig, ExchangeId, HandlerOutcome, InputOutcome,
    Output, Replay, RequestContext,
};
use crate::jsonrpc::{Params, ProgressToken, RequestId, RpcError};
use crate::model::{InputRequest, LogLevel, ServerResult};
use crate::peer::Peer;
use crate::revision::{Method, downgrade};

/// A call that outlives its exchange.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DetachedCall {
    id: RequestId,
    method: String,
    params: Arc<str>,
    peer: Arc<Peer>,
    progress_token: Option<ProgressToken>,
    log_level: Option<LogLevel>,
    replay: Replay,
    round: u32,
    /// Log messages and the progress that the client has seen.
    #[serde(default)]
    logs: u32,
    #[serde(default)]
    progress: Option<f64>,
    /// The keys of input requests that have no response yet.
    #[serde(default)]
    awaited: BTreeSet<String>,
}

/// What a run of the handler of a detached call comes to.
#[derive(Debug, Clone, PartialEq)]
pub enum DetachedOutcome {
    /// A result, in the shape of the client's revision.
    Done(Value),
    /// No result.
    Failed(RpcError),
    /// The handler needs input of the client: requests in the shape of its revision, by their keys.
    InputRequired(BTreeMap<String, InputRequest>),
}

impl ServerEngine {
    /// Goes on with a call of another engine of this session, on this exchange: its handler runs again. A call that is not
    /// to run is ignored.
    pub fn resume_call(&mut self, exchange: ExchangeId, call: DetachedCall) {
        if !call.is_ready() {
            return;
        }
        let resumed = Call {
            request: Arc::new(call.request(&self.config, exchange)),
            batch: None,
            replay: call.replay,
            round: call.round,
            open_requests: 0,
            is_parked: false,
            logs_seen: call.logs,
            logs_made: 0,
            progress: call.progress,
            response_bytes: 0,
        };
        let dispatch = self.calls.open(resumed, None);
        self.outputs.push_back(Output::Run(dispatch));
    }
}

/// A call that waits for responses of the client, as data with which any engine of the session can go on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParkedCall {
    call: DetachedCall,
    /// The ids of its requests to the client, with the keys of its handler.
    requests: Vec<(RequestId, String)>,
}

impl ParkedCall {
    pub(super) fn new(
        call: &Call,
        requests: &[(String, InputRequest)],
        ids: impl IntoIterator<Item = RequestId>,
    ) -> Self {
        let keys = requests.iter().map(|(key, _)| key.clone());
        let requests: Vec<(RequestId, String)> = ids.into_iter().zip(keys).collect();
        let call = DetachedCall {
            round: call.round,
            logs: call.logs_seen,
            progress: call.progress,
            awaited: requests.iter().map(|(_, key)| key.clone()).collect(),
            ..DetachedCall::of(&call.request, call.replay.clone())
        };
        Self { call, requests }
    }

    /// Takes the response to one of its requests. Others are ignored.
    pub fn respond(&mut self, id: &RequestId, outcome: InputOutcome) {
        if let Some((_, key)) = self.requests.iter().find(|(known, _)| known == id) {
            self.call.respond(key, outcome);
        }
    }

    /// The call, which is to run once all of its requests have responses.
    pub fn into_call(self) -> DetachedCall {
        self.call
    }
}

impl DetachedCall {
    /// A call that is to run from its beginning, with the responses and values that it has so far.
    pub fn new(dispatch: &Dispatch, once: BTreeMap<String, Value>) -> Self {
        let mut replay = dispatch.replay.clone();
        if !once.is_empty() {
            replay.make_mut().once.extend(once);
        }
        Self { round: dispatch.round, ..Self::of(&dispatch.request, replay) }
    }

    fn of(request: &CallRequest, replay: Replay) -> Self {
        Self {
            id: request.id.clone(),
            method: request.method.name().to_owned(),
            params: request.params.clone(),
            peer: request.peer.clone(),
            progress_token: request.progress_token.clone(),
            log_level: request.log_level,
            replay,
            round: 0,
            logs: 0,
            progress: None,
            awaited: BTreeSet::new(),
        }
    }

    /// The client's id of its request.
    pub fn request_id(&self) -> &RequestId {
        &self.id
    }

    /// The client that made it.
    pub fn peer(&self) -> &Arc<Peer> {
        &self.peer
    }

    /// Whether it waits for no response.
    pub fn is_ready(&self) -> bool {
        self.awaited.is_empty()
    }

    /// The call for its handler, with what a transport knows of a request of this client; `None` while it waits for responses.
    pub fn dispatch(&self, config: &EngineConfig, context: Option<RequestContext>) -> Option<Dispatch> {
        self.is_ready().then(|| {
            let request = Arc::new(CallRequest { context, ..self.request(config, ExchangeId::default()) });
            let (call, replay) = (CallId::DETACHED, self.replay.clone());
            Dispatch { call, request, replay, round: self.round, state: None }
        })
    }

    /// The request of the call, as it came in by this exchange.
    fn request(&self, config: &EngineConfig, exchange: ExchangeId) -> CallRequest {
        CallRequest {
            id: self.id.clone(),
            method: self.method(config),
            params: self.params.clone(),
            spans: Params::of_text(Some(&self.params)).spans(),
            peer: self.peer.clone(),
            exchange,
            progress_token: self.progress_token.clone(),
            log_level: self.log_level,
            context: None,
        }
    }

    /// Takes what a run of the handler ended with.
    pub fn finish(&mut self, config: &EngineConfig, outcome: HandlerOutcome) -> DetachedOutcome {
        match outcome {
            HandlerOutcome::Done(result) => self.done(config, *result),
            HandlerOutcome::Raw(result) => done(&result),
            HandlerOutcome::Failed(failure) => self.failed(config, failure),
            HandlerOutcome::InputRequired { requests, used, once } => {
                let (method, peer) = (self.method(config), self.peer.clone());
                let replay = self.replay.make_mut();
                replay.update(used.as_ref(), once);
                match check_requests(config, &method, &peer, self.round, replay, requests) {
                    Ok(requests) => {
                        self.awaited = requests.iter().map(|(key, _)| key.clone()).collect();
                        DetachedOutcome::InputRequired(requests.into_iter().collect())
                    }
                    Err(failure) => self.failed(config, failure),
                }
            }
        }
    }

    /// Takes the response to an input request; `false` when it has no such request. With the last one, the handler is to
    /// run again.
    pub fn respond(&mut self, key: &str, outcome: InputOutcome) -> bool {
        let Some(key) = self.awaited.take(key) else { return false };
        if self.awaited.is_empty() {
            self.round += 1;
        }
        self.replay.make_mut().responses.insert(key, outcome);
        true
    }

    fn method(&self, config: &EngineConfig) -> Method {
        let custom = || config.custom_methods.get(&*self.method).cloned();
        let unknown = || Method::Custom(self.method.as_str().into());
        Method::known(&self.method).or_else(|| custom().map(Method::Custom)).unwrap_or_else(unknown)
    }

    fn done(&self, config: &EngineConfig, mut result: ServerResult) -> DetachedOutcome {
        downgrade::result(self.peer.rules(), config, &mut result);
        done(&result)
    }

    fn failed(&self, config: &EngineConfig, failure: CallFailure) -> DetachedOutcome {
        match downgrade::failure(self.peer.rules(), &self.method(config), failure) {
            Ok(result) => self.done(config, result),
            Err(error) => DetachedOutcome::Failed(error),
        }
    }
}

fn done(result: &impl Serialize) -> DetachedOutcome {
    match serde_json::to_value(result) {
        Ok(result) => DetachedOutcome::Done(result),
        Err(error) => DetachedOutcome::Failed(RpcError::internal(format!("the result is not JSON: {error}"))),
    }
}

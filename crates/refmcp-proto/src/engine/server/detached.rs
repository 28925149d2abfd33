//! Detached calls: calls that outlive the exchange that started them. Such a call is data, with its input requests and its
//! outcome, that is kept under a key and found again by any process.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ServerEngine;
use super::calls::Call;
use super::input_rounds::check_requests;
use crate::engine::{
    CallFailure, CallId, CallRequest, Dispatch, EngineConfig, ExchangeId, HandlerOutcome, InputOutcome,
    Output, Replay,
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
    /// Counts the changes of its state.
    version: u32,
    state: DetachedState,
}

/// What has become of a detached call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DetachedState {
    /// Its handler runs, or is to run.
    Working,
    /// It needs input from the client: requests in the shape of its revision, by their keys.
    InputRequired(BTreeMap<String, InputRequest>),
    /// It has a result, in the shape of the client's revision.
    Done(Value),
    /// It has none.
    Failed(RpcError),
}

impl ServerEngine {
    /// Takes a call out of its exchange, which ends with this result instead. The call's handler goes on; its outcome
    /// belongs to [`DetachedCall::finish`]. `None` when the call is over, or waits for the client already.
    pub fn detach(&mut self, number: CallId, mut result: ServerResult) -> Option<DetachedCall> {
        self.calls.get(number).filter(|call| call.open_requests == 0)?;
        let call = self.calls.close(number)?;
        self.respond(&call.to(), call.peer.rules(), &mut result);
        Some(DetachedCall::of(&call, DetachedState::Working))
    }

    /// Goes on with a call of another engine of this session, on this exchange: its handler runs again. A call that is not
    /// to run is ignored.
    pub fn resume_call(&mut self, exchange: ExchangeId, call: DetachedCall) {
        if call.state != DetachedState::Working {
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
        let state = DetachedState::InputRequired(requests.iter().cloned().collect());
        Self { call: DetachedCall::of(call, state), requests: ids.into_iter().zip(keys).collect() }
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
    fn of(call: &Call, state: DetachedState) -> Self {
        Self {
            id: call.id.clone(),
            method: call.method.name().to_owned(),
            params: call.params.clone(),
            peer: call.peer.clone(),
            progress_token: call.progress_token.clone(),
            log_level: call.log_level,
            replay: call.replay.clone(),
            round: call.round,
            logs: call.logs_seen,
            progress: call.progress,
            version: 0,
            state,
        }
    }

    /// What has become of it.
    pub fn state(&self) -> &DetachedState {
        &self.state
    }

    /// Counts the changes of its state: responses, and what runs of its handler ended with.
    pub fn version(&self) -> u32 {
        self.version
    }

    /// The call for its handler, as often as it is to run; `None` while it is not.
    pub fn dispatch(&self, config: &EngineConfig) -> Option<Dispatch> {
        (self.state == DetachedState::Working).then(|| {
            let request = Arc::new(self.request(config, ExchangeId::default()));
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
    pub fn finish(&mut self, config: &EngineConfig, outcome: HandlerOutcome) {
        let state = match outcome {
            HandlerOutcome::Done(result) => self.done(config, *result),
            HandlerOutcome::Raw(result) => done(&result),
            HandlerOutcome::Failed(failure) => self.failed(config, failure),
            HandlerOutcome::InputRequired { requests, used, once } => {
                let (method, peer) = (self.method(config), self.peer.clone());
                let replay = self.replay.make_mut();
                replay.update(used.as_ref(), once);
                match check_requests(config, &method, &peer, self.round, replay, requests) {
                    Ok(requests) => DetachedState::InputRequired(requests.into_iter().collect()),
                    Err(failure) => self.failed(config, failure),
                }
            }
        };
        self.state = state;
        self.version += 1;
    }

    /// Takes the response to an input request; `false` when it has no such request. With the last one, the handler is to
    /// run again.
    pub fn respond(&mut self, key: &str, outcome: InputOutcome) -> bool {
        let DetachedState::InputRequired(requests) = &mut self.state else { return false };
        let Some((key, _)) = requests.remove_entry(key) else { return false };
        if requests.is_empty() {
            self.state = DetachedState::Working;
            self.round += 1;
        }
        self.replay.make_mut().responses.insert(key, outcome);
        self.version += 1;
        true
    }

    fn method(&self, config: &EngineConfig) -> Method {
        let custom = || config.custom_methods.get(&*self.method).cloned();
        let unknown = || Method::Custom(self.method.as_str().into());
        Method::known(&self.method).or_else(|| custom().map(Method::Custom)).unwrap_or_else(unknown)
    }

    fn done(&self, config: &EngineConfig, mut result: ServerResult) -> DetachedState {
        downgrade::result(self.peer.rules(), config, &mut result);
        done(&result)
    }

    fn failed(&self, config: &EngineConfig, failure: CallFailure) -> DetachedState {
        match downgrade::failure(self.peer.rules(), &self.method(config), failure) {
            Ok(result) => self.done(config, result),
            Err(error) => DetachedState::Failed(error),
        }
    }
}

fn done(result: &impl Serialize) -> DetachedState {
    match serde_json::to_value(result) {
        Ok(result) => DetachedState::Done(result),
        Err(error) => DetachedState::Failed(RpcError::internal(format!("the result is not JSON: {error}"))),
    }
}

//! `requestState`: what a client carries between two rounds of a call. It is sealed, so that the client cannot read or
//! change it, and good for one call, one principal and a limited time.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::calls::Call;
use super::{ServerEngine, read_params};
use crate::engine::{CallFailure, InputOutcome, ReplayState, RequestStateUse};
use crate::jsonrpc::{Request, RpcError, excerpt};
use crate::peer::Peer;
use crate::revision::{InputMode, Method};
use crate::time::Timestamp;

/// The content of a `requestState`.
#[derive(Debug, Serialize, Deserialize)]
struct State {
    expires: u64,
    round: u32,
    replay: ReplayState,
    logs: u32,
    progress: Option<f64>,
}

/// What a request brings from earlier rounds of its call.
#[derive(Debug, Default)]
pub(super) struct CarriedState {
    /// `None` for a new call.
    pub(super) replay: Option<ReplayState>,
    pub(super) round: u32,
    pub(super) logs: u32,
    pub(super) progress: Option<f64>,
    pub(super) state: Option<RequestStateUse>,
}

impl ServerEngine {
    /// Reads the input responses and the state that a call is repeated with.
    pub(super) fn carried(
        &self,
        now: Timestamp,
        method: &Method,
        peer: &Peer,
        request: &Request<'_>,
    ) -> Result<CarriedState, RpcError> {
        let mut carried = CarriedState::default();
        if !method.may_request_input() || peer.rules().input_mode != InputMode::InputRequired {
            return Ok(carried);
        }
        if let Some(text) = request.params.request_state.filter(|text| *text != "null") {
            let sealed: String = serde_json::from_str(text)
                .map_err(|_| RpcError::invalid_params("requestState is not a string"))?;
            // One text for every cause: details would help only an attacker.
            let invalid = || RpcError::invalid_params("requestState is not valid");
            let state = self.open_state(now, method, request, &sealed).ok_or_else(invalid)?;
            carried.replay = Some(state.replay);
            carried.round = state.round + 1;
            carried.logs = state.logs;
            carried.progress = state.progress;
            let expires = Timestamp::from_millis(state.expires);
            carried.state = Some(RequestStateUse { sealed: sealed.into(), expires });
        }
        if let Some(text) = request.params.input_responses.filter(|text| *text != "null") {
            let responses: Map<String, Value> = serde_json::from_str(text)
                .map_err(|_| RpcError::invalid_params("inputResponses is not an object"))?;
            for (key, response) in responses {
                if !response.is_object() {
                    let text = format!("inputResponses[\"{}\"] is not an object", excerpt(&key));
                    return Err(RpcError::invalid_params(text));
                }
                carried
                    .replay
                    .get_or_insert_default()
                    .responses
                    .entry(key)
                    .or_insert(InputOutcome::Response(response));
            }
        }
        Ok(carried)
    }

    fn open_state(
        &self,
        now: Timestamp,
        method: &Method,
        request: &Request<'_>,
        sealed: &str,
    ) -> Option<State> {
        if sealed.len() > self.config.max_state_bytes.saturating_mul(2) {
            return None;
        }
        let purpose = self.purpose(method, request.params.text)?;
        let content = self.config.sealer.open(&purpose, sealed)?;
        let state: State = serde_json::from_slice(&content).ok()?;
        (now.as_millis() < state.expires).then_some(state)
    }

    /// Seals the state of a call.
    pub(super) fn seal_state(&self, now: Timestamp, call: &Call) -> Result<String, CallFailure> {
        let internal = |why: &str| CallFailure::Rpc(RpcError::internal(format!("the call's state {why}")));
        let state = State {
            expires: (now + self.config.timeouts.state).as_millis(),
            round: call.round,
            replay: (*call.replay).clone(),
            logs: call.logs_seen,
            progress: call.progress,
        };
        let content = serde_json::to_vec(&state).map_err(|_| internal("cannot be written"))?;
        if content.len() > self.config.max_state_bytes {
            return Err(internal("has grown too large"));
        }
        let purpose =
            self.purpose(&call.method, Some(&call.params)).ok_or_else(|| internal("has no purpose"))?;
        Ok(self.config.sealer.seal(&purpose, &content))
    }

    /// What a state is bound to: the method, its parameters and the principal.
    fn purpose(&self, method: &Method, params: Option<&str>) -> Option<Vec<u8>> {
        let mut params: Map<String, Value> = read_params(params).ok()?;
        for changing in ["_meta", "inputResponses", "requestState"] {
            params.remove(changing);
        }
        let mut purpose = b"refmcp requestState 1\n".to_vec();
        for part in [self.principal.as_deref().unwrap_or_default(), method.name()] {
            purpose.extend_from_slice(part.len().to_string().as_bytes());
            purpose.push(b':');
            purpose.extend_from_slice(part.as_bytes());
        }
        write_canonical(&mut purpose, &Value::Object(params)).ok()?;
        Some(purpose)
    }
}

/// Writes JSON with sorted keys, so that equal parameters are equal bytes however a client orders them.
fn write_canonical(out: &mut Vec<u8>, value: &Value) -> serde_json::Result<()> {
    match value {
        Value::Object(members) => {
            let mut keys: Vec<&String> = members.keys().collect();
            keys.sort_unstable();
            out.push(b'{');
            for key in keys {
                serde_json::to_writer(&mut *out, key)?;
                out.push(b':');
                write_canonical(out, members.get(key).unwrap_or(&Value::Null))?;
                out.push(b',');
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write_canonical(out, item)?;
                out.push(b',');
            }
            out.push(b']');
        }
        plain => serde_json::to_writer(&mut *out, plain)?,
    }
    Ok(())
}

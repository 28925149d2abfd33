//! Limits of what a client can make the engine keep: the description of the client, requests in flight, subscriptions.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::ServerEngine;
use super::handshake::EarlyRequest;
use crate::engine::InputOutcome;
use crate::jsonrpc::RpcError;

/// JSON values in the description of a client. A value takes far more memory than its text, such as `0,`.
const MAX_CLIENT_VALUES: usize = 1024;

/// Bytes of memory that a JSON value takes beside its text, or a little more.
const VALUE_BYTES: usize = 64;

/// The members of `initialize` that are kept.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptMembers<'a> {
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow)]
    client_info: Option<&'a RawValue>,
}

impl ServerEngine {
    /// Refuses the parameters of `initialize` if more would have to be kept than may be. Those that cannot be read are
    /// refused later.
    pub(super) fn check_initialize_size(&self, params: &str) -> Result<(), RpcError> {
        let Ok(members) = serde_json::from_str::<KeptMembers<'_>>(params) else { return Ok(()) };
        let [capabilities, client_info] =
            [members.capabilities, members.client_info].map(|member| member.map_or("", RawValue::get));
        self.check_client_size([("params.capabilities", capabilities), ("params.clientInfo", client_info)])
    }

    /// Refuses these members of a message, the description of a client, if they are too large to be kept. The error names the
    /// larger one.
    pub(super) fn check_client_size(&self, members: [(&str, &str); 2]) -> Result<(), RpcError> {
        let most = self.config.max_client_bytes;
        check_sizes(members.map(|(name, json)| (name, json.len())), most, "bytes")?;
        check_sizes(members.map(|(name, json)| (name, count_values(json))), MAX_CLIENT_VALUES, "JSON values")
    }

    /// Refuses a name that a client has chosen, if it is longer than names may be. `json` is its text.
    pub(super) fn check_name_size(&self, name: &str, json: &str) -> Result<(), RpcError> {
        let most = self.config.limits.name_bytes;
        if json.len() > most {
            return Err(RpcError::invalid_params(format!("{name} is longer than {most} bytes")));
        }
        Ok(())
    }

    /// Refuses a request with so many bytes of parameters when too many are in flight.
    pub(super) fn check_in_flight(&self, bytes: usize) -> Result<(), RpcError> {
        let most = self.config.max_in_flight;
        if self.calls.len() + self.early_requests.len() >= most {
            return Err(RpcError::internal(format!(
                "too many requests in flight, at most {most} are served"
            )));
        }
        self.check_in_flight_bytes(bytes)
    }

    fn check_in_flight_bytes(&self, bytes: usize) -> Result<(), RpcError> {
        let early: usize = self.early_requests.iter().map(EarlyRequest::bytes).sum();
        let most = self.config.max_in_flight_bytes;
        if self.calls.bytes() + early + bytes > most {
            return Err(RpcError::internal(format!("requests in flight keep at most {most} bytes")));
        }
        Ok(())
    }

    /// The response of a client as it is kept for the next run of a call: an error in its place if it is too large.
    pub(super) fn kept_outcome(&self, outcome: InputOutcome) -> InputOutcome {
        match self.check_in_flight_bytes(outcome_bytes(&outcome)) {
            Ok(()) => outcome,
            Err(error) => InputOutcome::Error(error),
        }
    }

    /// Refuses a subscription if too many are kept, or too many bytes of their URIs.
    pub(super) fn check_subscription_room(&self, uri: &str) -> Result<(), RpcError> {
        if self.subscriptions.contains(uri) {
            return Ok(());
        }
        let most = self.config.max_subscriptions;
        if self.subscriptions.len() >= most {
            return Err(RpcError::invalid_request(format!("at most {most} subscriptions are kept")));
        }
        let kept = self.subscriptions.iter().map(String::len).sum::<usize>();
        self.check_uri_bytes("params.uri", kept + uri.len())
    }

    /// Refuses URIs when so many bytes of them would be kept.
    pub(super) fn check_uri_bytes(&self, member: &str, bytes: usize) -> Result<(), RpcError> {
        let most = self.config.max_subscription_bytes;
        if bytes > most {
            return Err(RpcError::invalid_params(format!(
                "{member}: at most {most} bytes of URIs are kept for all subscriptions"
            )));
        }
        Ok(())
    }
}

/// Refuses two members that are too large together, with the name of the larger one.
fn check_sizes(members: [(&str, usize); 2], most: usize, unit: &str) -> Result<(), RpcError> {
    let [(_, one), (_, other)] = members;
    if one + other <= most {
        return Ok(());
    }
    let larger = members.into_iter().max_by_key(|(_, size)| *size);
    let (name, size) = larger.unwrap_or_default();
    Err(RpcError::invalid_params(format!(
        "{name} has {size} {unit}; capabilities and clientInfo may have {most} together"
    )))
}

/// The number of values in a JSON text, or a few more.
fn count_values(json: &str) -> usize {
    let (mut count, mut in_string, mut escaped) = (0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'[' | b'{' if !in_string => count += 1,
            _ => {}
        }
    }
    count
}

/// The bytes of memory that the response of a client takes, about.
pub(super) fn outcome_bytes(outcome: &InputOutcome) -> usize {
    match outcome {
        InputOutcome::Response(value) => value_bytes(value),
        InputOutcome::Error(error) => error.message.len() + error.data.as_ref().map_or(0, value_bytes),
        InputOutcome::TimedOut => 0,
    }
}

fn value_bytes(value: &Value) -> usize {
    VALUE_BYTES
        + match value {
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(value_bytes).sum(),
            Value::Object(members) => members.iter().map(|(key, value)| key.len() + value_bytes(value)).sum(),
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_outside_of_strings() {
        for (json, values) in [(r#""a,[{""#, 0), (r#"{"a":"\",","b":"\\"}"#, 2), (r#"[0,[1,{"a":2}]]"#, 5)] {
            assert_eq!(count_values(json), values, "{json}");
        }
    }
}

//! Probes of input rounds: what a client carries for a server between two of them.

use std::time::Duration;

use refmcp_proto::model::{JsonObject, keys};
use refmcp_proto::rule;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::tools::callable;
use super::{Context, Probe, Stop};
use crate::arguments::minimal;
use crate::connection::Wants;
use crate::offer::name;

pub(super) static PROBES: &[Probe] =
    &[Probe::harsh("altered-request-state", &[&rule::MRTR_08], |cx| Box::pin(altered_request_state(cx)))];

/// The time for a call, and for finding a tool that asks for input.
const CALL_TIMEOUT: Duration = Duration::from_secs(2);
const SEARCH_TIMEOUT: Duration = Duration::from_secs(10);

/// A call that waits for input: its parameters, and the state that the client carries.
struct Asked {
    params: JsonObject,
    state: String,
}

/// The parameters of a call by a client that can do all that a server may ask for.
fn call_of(tool: &Value, arguments: Value) -> JsonObject {
    let capabilities = json!({ "elicitation": {}, "roots": {}, "sampling": {} });
    let meta = json!({ keys::CLIENT_CAPABILITIES: capabilities });
    let members = [("name", json!(name(tool))), ("arguments", arguments), ("_meta", meta)];
    members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The first call of a tool that asks for input and gives a state.
async fn find(cx: &mut Context) -> Result<Asked, Stop> {
    let until = Instant::now() + SEARCH_TIMEOUT;
    for tool in callable(cx)? {
        if Instant::now() > until {
            let why = format!("no tool asked for input within {} seconds", SEARCH_TIMEOUT.as_secs());
            return Err(Stop::NotVerified(why));
        }
        let schema = tool.get("inputSchema").and_then(Value::as_object);
        let Some(arguments) = schema.and_then(minimal) else { continue };
        let params = call_of(&tool, arguments);
        let session = cx.session().await?;
        let (id, message) = session.message("tools/call", params.clone().into());
        let wants = Wants::Response(id.clone());
        let answer = session.exchange_within(&message.to_string(), &wants, CALL_TIMEOUT).await;
        let state = answer.result(&id).and_then(|result| result.get("requestState")?.as_str());
        if let Some(state) = state.filter(|state| !state.is_empty()) {
            return Ok(Asked { params, state: state.to_owned() });
        }
    }
    Err(cx.offer.tools.without("no tool that may be called asks for input with a requestState"))
}

/// A state that was altered is refused, or at least survived: a client may send anything.
async fn altered_request_state(cx: &mut Context) -> Result<(), Stop> {
    let Asked { mut params, state } = find(cx).await?;
    params.insert("requestState".to_owned(), json!(altered(&state)));
    params.insert("inputResponses".to_owned(), json!({}));
    let session = cx.session().await?;
    let (id, mut answer) = session.request("tools/call", params.into()).await;
    answer.exchange.repeat = cx.repeat();
    if answer.result(&id).is_some_and(|result| result.get("isError") != Some(&json!(true))) {
        let why = "an altered requestState is taken, and whether it decides anything is not known";
        return Err(Stop::NotVerified(why.to_owned()));
    }
    let is_answered = answer.response(&id).is_some() || answer.is_refused();
    let what = || format!("an altered requestState is answered with {}", answer.summary(&id));
    let expected = "protect requestState, and refuse one that was altered with the error -32602";
    cx.check(&rule::MRTR_08, &answer, is_answered, what, expected);
    Ok(())
}

/// The same with another character in its middle.
fn altered(state: &str) -> String {
    let middle = state.chars().count() / 2;
    let other = |character: char| if character == 'A' { 'B' } else { 'A' };
    state.chars().enumerate().map(|(at, it)| if at == middle { other(it) } else { it }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_character_is_altered() {
        assert_eq!(altered("abc"), "aAc");
        assert_eq!(altered("A"), "B");
    }
}

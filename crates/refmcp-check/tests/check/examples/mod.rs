//! Servers that break one rule each: ours, with one thing changed.

use refmcp_proto::revision::Revision;
use serde_json::{Value, json};

use crate::altered::{Asked, Change, Reply};

/// Requests of a method succeed whatever they ask for, where this is so.
macro_rules! succeeds {
    ($method:literal, $when:expr) => {
        Change::instead(|asked| {
            let when: fn(&Asked) -> bool = $when;
            (asked.method() == $method && when(asked)).then(|| succeed(asked))
        })
    };
}

mod features;
mod lifecycle;
mod messages;
mod tasks;
mod transports;

/// A change, and the probe and the rules that tell of it.
pub(crate) struct Example {
    pub(crate) probe: &'static str,
    pub(crate) rules: &'static [&'static str],
    pub(crate) transport: ExampleTransport,
    pub(crate) revision: Revision,
    pub(crate) change: Change,
    /// What else of the server has to be changed for the rule to have a meaning.
    pub(crate) beside: Option<Change>,
}

#[derive(Clone, Copy, PartialEq)]
pub(crate) enum ExampleTransport {
    Pipe,
    Http,
}

pub(crate) const SESSIONS: Revision = Revision::LATEST_SESSION;
pub(crate) const STATELESS: Revision = Revision::LATEST;

pub(crate) fn pipe(
    probe: &'static str,
    rules: &'static [&'static str],
    revision: Revision,
    change: Change,
) -> Example {
    Example { probe, rules, transport: ExampleTransport::Pipe, revision, change, beside: None }
}

pub(crate) fn over_http(
    probe: &'static str,
    rules: &'static [&'static str],
    revision: Revision,
    change: Change,
) -> Example {
    Example { transport: ExampleTransport::Http, ..pipe(probe, rules, revision, change) }
}

pub(crate) fn result(asked: &Asked, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": asked.id(), "result": result })
}

pub(crate) fn error(asked: &Asked, code: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": asked.id(), "error": { "code": code, "message": "no" } })
}

/// A result in place of an error, of any method.
pub(crate) fn succeed(asked: &Asked) -> Reply {
    Reply::new(200, &[result(asked, &json!({ "resultType": "complete", "content": [] }))])
}

pub(crate) fn examples() -> Vec<Example> {
    let families = [
        messages::examples(),
        lifecycle::examples(),
        transports::examples(),
        features::examples(),
        tasks::examples(),
    ];
    families.into_iter().flatten().collect()
}

//! Rules about what a server without sessions answers: types of results, codes of errors, who it is.

use refmcp_proto::jsonrpc::code;
use refmcp_proto::model::keys;
use refmcp_proto::revision::Method;
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{Request, shows_stateless};
use crate::auditor::message::{Body, Message};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
    &rule::RPC_11,
    &rule::RPC_13,
    &rule::RPC_14,
    &rule::RPC_15,
    &rule::STATE_05,
    &rule::STATE_06,
    &rule::STATE_11,
    &rule::PING_02,
];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct StatelessResults;

impl Check for StatelessResults {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if message.from != Role::Server || !message.is_stateless() {
            return;
        }
        match &message.body {
            Body::Request { method, .. } => {
                let expected = "ask for input by a result of the type input_required";
                context.broken(&rule::RPC_15, format!("the server sends the request {method}"), expected);
            }
            // A server of sessions may answer what it does not understand.
            Body::Response { request: Some(request), result, .. }
                if request.is_stateless() && (context.state.serves_stateless || shows_stateless(result)) =>
            {
                context.kept(&rule::RPC_15);
                match result {
                    Ok(result) => answers(request, result, context),
                    Err(error) => refuses(request, error, context),
                }
                accepts(request, result, context);
            }
            _ => {}
        }
    }
}

fn answers(request: &Request, result: &Value, context: &mut Context<'_>) {
    let kind = result.get("resultType").and_then(Value::as_str);
    let untyped = || ("a result without resultType".to_owned(), "send resultType, such as complete");
    context.judge(&rule::RPC_11, kind.is_none().then(untyped));
    let own_extensions = request.params.get("_meta").and_then(|meta| meta.get(keys::CLIENT_CAPABILITIES));
    let extended = own_extensions.and_then(|it| it.get("extensions")).and_then(Value::as_object);
    match kind {
        Some("complete" | "input_required") => context.kept(&rule::RPC_13),
        // An extension may have types of its own, and whether a task is one has its own rule.
        Some("task") | None => {}
        Some(_) if extended.is_some_and(|extensions| !extensions.is_empty()) => {}
        Some(_) => {
            let what = "a resultType that neither the protocol nor a declared extension has";
            context.broken(&rule::RPC_13, what, "send complete or input_required");
        }
    }
    let info = result.get("_meta").and_then(|meta| meta.get(keys::SERVER_INFO));
    let named = info
        .is_some_and(|info| ["name", "version"].iter().all(|it| info.get(it).is_some_and(Value::is_string)));
    let unnamed = || ("a result without serverInfo in _meta".to_owned(), "name the server in result._meta");
    context.judge(&rule::STATE_06, (!named).then(unnamed));
}

fn refuses(request: &Request, error: &Value, context: &mut Context<'_>) {
    let Some(code) = error.get("code").and_then(Value::as_i64) else { return };
    let is_retired = matches!(code, code::RESOURCE_NOT_FOUND | code::URL_ELICITATION_REQUIRED);
    let is_reserved = (-32099..=-32023).contains(&code);
    let violation = || {
        (
            format!("an error with the code {code}, which the revision does not have"),
            "send a code that is defined, or one of your own outside -32768 to -32000",
        )
    };
    context.judge(&rule::RPC_14, (is_retired || is_reserved).then(violation));
    if code == code::MISSING_CAPABILITY {
        let required = error.get("data").and_then(|data| data.get("requiredCapabilities"));
        let required = required.and_then(Value::as_object).filter(|required| !required.is_empty());
        let declared = request.params.get("_meta").and_then(|meta| meta.get(keys::CLIENT_CAPABILITIES));
        let has = |name: &String| declared.and_then(|declared| declared.get(name)).is_some();
        let what = match required {
            None => Some("-32021 without data.requiredCapabilities"),
            // A member may lack something inside.
            Some(required) => {
                let plain = required
                    .iter()
                    .all(|(name, value)| has(name) && *value == Value::Object(Default::default()));
                plain.then_some("-32021 requires capabilities that the request declares")
            }
        };
        let expected = "name the missing capabilities in data.requiredCapabilities";
        context.judge(&rule::STATE_11, what.map(|what| (what.to_owned(), expected)));
    }
}

/// Requests that must not be served.
fn accepts(request: &Request, result: &Result<&Value, &Value>, context: &mut Context<'_>) {
    let code = result.err().and_then(|error| error.get("code")).and_then(Value::as_i64);
    let meta = request.params.get("_meta");
    let describes = meta.and_then(|meta| meta.get(keys::CLIENT_CAPABILITIES)).is_some_and(Value::is_object);
    let names = meta.and_then(|meta| meta.get(keys::PROTOCOL_VERSION)).is_some();
    if names && !describes {
        match code {
            Some(code::INVALID_PARAMS) => context.kept(&rule::STATE_05),
            None | Some(code::INVALID_REQUEST | code::INTERNAL_ERROR) => {
                let what = "a request without clientCapabilities was not refused with -32602";
                context.broken(&rule::STATE_05, what, "refuse it with -32602");
            }
            Some(_) => {}
        }
        return;
    }
    if Method::known(&request.method) == Some(Method::Ping)
        && matches!(code, None | Some(code::METHOD_NOT_FOUND))
    {
        let violation = || ("ping was served".to_owned(), "refuse ping with -32601");
        context.judge(&rule::PING_02, code.is_none().then(violation));
    }
}

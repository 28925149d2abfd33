//! Rules about finding a common revision without sessions.

use refmcp_proto::jsonrpc::code;
use refmcp_proto::model::keys;
use refmcp_proto::revision::{Method, Revision};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{Request, shows_stateless};
use crate::auditor::message::{Body, Message};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::STATE_07, &rule::STATE_08, &rule::STATE_09, &rule::STATE_15];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Discovery {
    /// The revisions that server/discover lists.
    supported: Option<Vec<String>>,
    /// Revisions that the server refused, and when.
    refused: Vec<(String, u64)>,
}

/// Refused revisions that are remembered, and bytes of their names.
const MAX_REFUSED: usize = 16;
const MAX_VERSION: usize = 64;

impl Check for Discovery {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        match (message.from, &message.body) {
            (Role::Client, Body::Request { params, .. }) => self.retries(message, params, context),
            (Role::Server, Body::Response { request: Some(request), result, .. }) => {
                if Method::known(&request.method) == Some(Method::Initialize) && !request.is_stateless() {
                    refuses_session(request, result, context);
                } else if context.state.serves_stateless || shows_stateless(result) {
                    self.serves(message, request, result, context);
                }
            }
            _ => {}
        }
    }
}

impl Discovery {
    /// Whether a request names a revision that was refused before.
    fn retries(&mut self, message: &Message<'_>, params: &Value, context: &mut Context<'_>) {
        let Some(version) = version_of(params).filter(|_| !self.refused.is_empty()) else { return };
        let refused = self.refused.iter().find(|(refused, _)| refused == version);
        match refused {
            None => context.kept(&rule::STATE_08),
            Some((_, at))
                if context.state.surely_knew(Role::Client, *at, message.at) && context.state.is_whole() =>
            {
                let what = "a request names a revision that the server has refused";
                context.broken(&rule::STATE_08, what, "use one of data.supported of -32022, or give up");
            }
            Some(_) => {}
        }
    }

    /// What a server says of a revision.
    fn serves(
        &mut self,
        message: &Message<'_>,
        request: &Request,
        result: &Result<&Value, &Value>,
        context: &mut Context<'_>,
    ) {
        let Some(version) = version_of(&request.params) else { return };
        let listed = self.supported.as_ref().map(|listed| listed.iter().any(|known| known == version));
        match result {
            Err(error) if error.get("code").and_then(Value::as_i64) == Some(code::UNSUPPORTED_VERSION) => {
                if self.refused.len() < MAX_REFUSED && version.len() <= MAX_VERSION {
                    self.refused.push((version.to_owned(), message.at));
                }
                refuses_revision(version, error, listed, context);
            }
            Ok(_) if listed == Some(false) => {
                let what = "a revision is served that server/discover does not list";
                context.broken(&rule::STATE_07, what, "refuse it with -32022");
            }
            _ => {}
        }
        if Method::known(&request.method) == Some(Method::Discover) {
            self.discovers(result, context);
        }
    }

    fn discovers(&mut self, result: &Result<&Value, &Value>, context: &mut Context<'_>) {
        let violation = match result {
            Ok(result) => {
                let versions = result.get("supportedVersions").and_then(Value::as_array);
                let texts: Option<Vec<String>> =
                    versions.and_then(|all| all.iter().map(|it| Some(it.as_str()?.to_owned())).collect());
                self.supported = texts.filter(|texts| !texts.is_empty() && texts.len() <= 64);
                if self.supported.is_none() {
                    Some("the result of server/discover lists no supportedVersions")
                } else if !result.get("capabilities").is_some_and(Value::is_object) {
                    Some("the result of server/discover has no capabilities")
                } else {
                    None
                }
            }
            Err(error) => match error.get("code").and_then(Value::as_i64) {
                Some(code::METHOD_NOT_FOUND) if context.state.serves_stateless => {
                    Some("server/discover does not exist")
                }
                _ => return,
            },
        };
        let expected = "answer server/discover with supportedVersions and capabilities";
        context.judge(&rule::STATE_09, violation.map(|what| (what.to_owned(), expected)));
    }
}

fn version_of(params: &Value) -> Option<&str> {
    params.get("_meta")?.get(keys::PROTOCOL_VERSION)?.as_str()
}

fn refuses_revision(version: &str, error: &Value, listed: Option<bool>, context: &mut Context<'_>) {
    let data = |name| error.get("data").and_then(|data| data.get(name));
    let supported = data("supported").and_then(Value::as_array);
    let what = if listed == Some(true) {
        Some("-32022 for a revision that server/discover lists")
    } else if !supported.is_some_and(|all| all.iter().all(Value::is_string)) {
        Some("-32022 without the supported revisions")
    } else if data("requested").and_then(Value::as_str) != Some(version) {
        Some("-32022 without the requested revision")
    } else {
        None
    };
    let expected = "send data.supported with the revisions that are served, and data.requested as it came";
    context.judge(&rule::STATE_07, what.map(|what| (what.to_owned(), expected)));
}

/// A server without sessions that is asked for one.
fn refuses_session(request: &Request, result: &Result<&Value, &Value>, context: &mut Context<'_>) {
    let requested = request.params.get("protocolVersion").and_then(Value::as_str);
    let is_right = requested.is_some_and(|it| it.parse::<Revision>().is_ok())
        && request.params.get("capabilities").is_some_and(Value::is_object)
        && request.params.get("clientInfo").is_some_and(Value::is_object);
    let Err(error) = result else { return };
    if context.state.serves_stateless && context.state.negotiated.is_none() && is_right {
        let text = error.to_string();
        let names = Revision::ALL
            .into_iter()
            .any(|revision| Some(revision.as_str()) != requested && text.contains(revision.as_str()));
        let violation = || {
            (
                "initialize was refused without the supported revisions".to_owned(),
                "name the supported revisions in the error",
            )
        };
        context.judge(&rule::STATE_15, (!names).then(violation));
    }
}

//! Rules about authorization, as far as heads show them: challenges, tokens in the URL, requests that need no token where others
//! do.

use std::collections::HashSet;

use refmcp_proto::revision::Revision;
use refmcp_proto::rule::{self, Rule};

use crate::auditor::checks::values::violation_if;
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::{Stream, header};
use crate::auditor::message::Message;
use crate::recording::{Event, EventKind, Header};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::AUTH_02, &rule::AUTH_04, &rule::AUTH_15, &rule::AUTH_18, &rule::HTTP_26, &rule::SEC_08];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Authorization {
    /// What was asked for on each stream, as long as it has no response.
    asked: Vec<(Option<u64>, String)>,
    /// What was refused with 401, as it had no token.
    protected: HashSet<String>,
}

/// Requests and protected operations that are remembered, each.
const MAX_KEPT: usize = 1024;

impl Check for Authorization {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if let (Role::Client, Some((method, params)), true) =
            (message.from, message.request(), context.state.is_http())
        {
            let name = params.get("name").or_else(|| params.get("uri")).and_then(|name| name.as_str());
            self.ask(message.stream, format!("{method} {}", name.unwrap_or_default()));
        }
    }

    fn event(&mut self, event: &Event, context: &mut Context<'_>) {
        match &event.kind {
            EventKind::Request { target, headers, .. } => {
                let in_url = query_names(target).any(|name| name == "access_token");
                if in_url || header(headers, "authorization").is_some() {
                    let expected = "send the token in the Authorization header of every request";
                    let violation = violation_if(in_url, "the token is in the URL", expected);
                    context.judge(&rule::AUTH_15, violation);
                }
            }
            EventKind::Response { status, headers, .. } => {
                let Some(stream) = context.state.stream(event.stream) else { return };
                check_challenge(*status, headers, stream, context);
                self.check_access(event.stream, *status, stream, context);
            }
            _ => {}
        }
    }
}

impl Authorization {
    fn ask(&mut self, stream: Option<u64>, what: String) {
        self.asked.retain(|(known, _)| *known != stream);
        if self.asked.len() < MAX_KEPT {
            self.asked.push((stream, what));
        }
    }

    /// What needs a token needs one every time.
    fn check_access(&mut self, id: Option<u64>, status: u16, stream: &Stream, context: &mut Context<'_>) {
        let Some(at) = self.asked.iter().position(|(known, _)| *known == id) else { return };
        let (_, asked) = self.asked.swap_remove(at);
        if stream.header("authorization").is_some() {
            return;
        }
        let names_session = stream.header("mcp-session-id").is_some();
        let is_let_in = (200..300).contains(&status);
        if self.protected.contains(&asked) && (is_let_in || status == 401) {
            let (rule, what) = match names_session {
                true => (&rule::HTTP_26, "a session id is taken instead of a token"),
                false => (&rule::SEC_08, "a request without a token is served, which was refused before"),
            };
            let violation =
                violation_if(is_let_in, what, "answer every request without a valid token with 401");
            context.judge_in(stream.revision.or(context.state.negotiated), rule, Role::Server, violation);
        }
        if status == 401 && self.protected.len() < MAX_KEPT {
            self.protected.insert(asked);
        }
    }
}

/// 401 and 403 fit the reason that the challenge names, and the challenge has what the client needs.
fn check_challenge(status: u16, headers: &[Header], stream: &Stream, context: &mut Context<'_>) {
    let named = stream.header("mcp-protocol-version").and_then(|version| version.parse::<Revision>().ok());
    let revision = context.state.negotiated.or(named).or(stream.revision);
    let challenge = header(headers, "www-authenticate").unwrap_or_default();
    let error = ["invalid_token", "insufficient_scope", "invalid_request"]
        .into_iter()
        .find(|error| parameter(challenge, "error").is_some_and(|value| value == *error));
    let wanted = match error {
        Some("invalid_token") => Some(401),
        Some("insufficient_scope") => Some(403),
        Some(_) => Some(400),
        None if status == 403 && !challenge.is_empty() && stream.header("authorization").is_none() => {
            Some(401)
        }
        None if status == 401 => Some(401),
        None => None,
    };
    if let Some(wanted) = wanted.filter(|_| matches!(status, 400 | 401 | 403)) {
        let what = match error {
            Some(error) => format!("{error} comes with status {status}"),
            None => format!("a request without a token is answered with {status} and a challenge"),
        };
        let expected = "answer a missing or invalid token with 401, a missing scope with 403";
        context.require(&rule::AUTH_02, status == wanted, &what, expected);
    }
    if status == 401 {
        let is_named = parameter(challenge, "resource_metadata").is_some();
        let violation =
            violation_if(!is_named, "the challenge of 401 names no resource_metadata", "name its URL there");
        context.judge_in(revision, &rule::AUTH_04, Role::Server, violation);
    }
    if error == Some("insufficient_scope") {
        let is_named = parameter(challenge, "scope").is_some();
        let expected = "name all scopes that the operation needs in scope";
        let violation = violation_if(!is_named, "a challenge for want of a scope names none", expected);
        context.judge_in(revision, &rule::AUTH_18, Role::Server, violation);
    }
}

/// The value of a parameter of a challenge, without quotes.
fn parameter<'a>(challenge: &'a str, name: &str) -> Option<&'a str> {
    challenge.split([',', ' ']).find_map(|part| {
        let (found, value) = part.trim().split_once('=')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim_matches('"'))
    })
}

/// The names in the query of a target; values may be masked.
fn query_names(target: &str) -> impl Iterator<Item = &str> {
    let query = target.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter_map(|parameter| parameter.split('=').next())
}

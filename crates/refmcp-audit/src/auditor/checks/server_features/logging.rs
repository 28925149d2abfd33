//! Rules about log messages and their levels.

use refmcp_proto::revision::LogScope;
use refmcp_proto::rule::{self, Rule};
use refmcp_transport::observer::Side;
use serde_json::Value;

use crate::auditor::checks::values::text;
use crate::auditor::checks::{Check, Context};
use crate::auditor::message::Message;
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::LOG_01, &rule::LOG_02, &rule::LOG_03, &rule::LOG_06];

/// The levels, the least one first.
const LEVELS: [&str; 8] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Logging {
    /// The least level that the client set, as an index of the levels.
    least: Option<usize>,
}

impl Check for Logging {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        let scope = message.revision.map(|revision| revision.rules().log_scope);
        if let Some((method, params)) = message.request() {
            let wanted = match scope {
                Some(LogScope::Request) => params.get("_meta").and_then(|meta| meta.get(LEVEL_KEY)),
                _ => params.get("level").filter(|_| method == "logging/setLevel"),
            };
            if let Some(wanted) = wanted {
                judge_level(wanted, context);
            }
        } else if let Some((request, _)) = message.result() {
            if request.method == "logging/setLevel" {
                self.least = text(&request.params, "level").and_then(index_of);
            }
        } else if let Some(("notifications/message", params)) = message.notification()
            && message.from == Role::Server
        {
            if let Some(declared) = context.state.server.declares(&["logging"]) {
                let what = "a log message of a server that does not declare logging";
                context.require(&rule::LOG_01, declared, what, "declare the logging capability");
            }
            let level = params.get("level").unwrap_or(&Value::Null);
            judge_level(level, context);
            let Some(level) = level.as_str().and_then(index_of) else { return };
            match scope {
                Some(LogScope::Session) => self.judge_session(level, context),
                Some(LogScope::Request) => judge_request(level, message, context),
                None => {}
            }
        }
    }
}

impl Logging {
    fn judge_session(&self, level: usize, context: &mut Context<'_>) {
        // What a client receives on several streams may have been sent in another order.
        if let Some(least) =
            self.least.filter(|_| !(context.state.is_http() && context.state.side == Side::Client))
        {
            let what = "a log message below the level that the client has set";
            let expected = "send log messages at the level of logging/setLevel or above";
            context.require(&rule::LOG_02, level >= least, what, expected);
        }
    }
}

/// Without sessions a log message belongs to a request that wants it; over HTTP that is the one of its stream.
fn judge_request(level: usize, message: &Message<'_>, context: &mut Context<'_>) {
    let requests = || {
        let all = context.state.unanswered(Role::Client).map(|(_, request)| request);
        all.filter(|request| !context.state.has_streams() || request.stream == message.stream)
    };
    // Subscriptions have a rule of their own, and a request that is not known may want anything.
    if requests().any(|request| request.method == "subscriptions/listen") || requests().next().is_none() {
        return;
    }
    let wanted = requests().filter_map(|request| text(request.params.get("_meta")?, LEVEL_KEY));
    let least = wanted.map(|wanted| index_of(wanted).unwrap_or(0)).min();
    let what = match least {
        None => "a log message, and no request that waits wants any",
        Some(_) => "a log message below the level that the request names",
    };
    let expected = "send log messages to requests that name a logLevel, at that level or above";
    context.require(&rule::LOG_03, least.is_some_and(|least| level >= least), what, expected);
}

fn judge_level(level: &Value, context: &mut Context<'_>) {
    let is_level = level.as_str().and_then(index_of).is_some();
    let what = "a log level that does not exist";
    let expected = "use debug, info, notice, warning, error, critical, alert or emergency";
    context.require(&rule::LOG_06, is_level, what, expected);
}

fn index_of(level: &str) -> Option<usize> {
    LEVELS.iter().position(|known| *known == level)
}

//! Rules about the handshake of a session: what initialize and its answer have, and what may be sent before it is done.

use refmcp_proto::revision::{Lifecycle, Method, NotificationMethod, Revision, ServerMethod};
use refmcp_proto::rule::{self, Rule};
use refmcp_transport::observer::Side;
use serde_json::Value;

use crate::auditor::checks::base_protocol::meta;
use crate::auditor::checks::{Check, Context};
use crate::auditor::conversation::Handshake;
use crate::auditor::message::{Body, Message};
use crate::verdict::{Evidence, Role};

pub(in crate::auditor::checks) static RULES: &[&Rule] = &[
    &rule::LIFE_01,
    &rule::LIFE_02,
    &rule::LIFE_03,
    &rule::LIFE_04,
    &rule::LIFE_05,
    &rule::LIFE_06,
    &rule::LIFE_13,
];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct HandshakeOrder {
    /// The client has sent notifications/initialized, at whatever time.
    confirmed: bool,
    /// The client has sent a request before it should: what the server sends then may belong to that.
    client_is_early: bool,
    server_is_early: bool,
    /// A request that came before the confirmation over HTTP, where they may overtake each other.
    unconfirmed: Option<Evidence>,
}

const CONFIRM: &str =
    "send notifications/initialized once, after the result of initialize and before other requests";

impl Check for HandshakeOrder {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if message.is_stateless() {
            return;
        }
        match (message.from, &message.body) {
            (Role::Client, Body::Request { method: "initialize", params, .. }) => {
                if context.state.is_http() {
                    *self = Self::default();
                }
                opens(params, context);
            }
            (Role::Client, Body::Request { method, params, .. }) => {
                self.requests(message, method, params, context);
            }
            (Role::Client, Body::Notification { method: "notifications/initialized", .. }) => {
                self.confirms(context);
            }
            (Role::Server, Body::Response { request: Some(request), result: Ok(result), .. })
                if request.method == "initialize" && context.state.handshake == Handshake::Requested =>
            {
                if !self.client_is_early {
                    context.judge_party(&rule::LIFE_03, Role::Client, None);
                }
                agrees(result, context);
            }
            (Role::Server, Body::Request { method, .. } | Body::Notification { method, .. }) => {
                self.server_sends(method, context);
            }
            _ => {}
        }
    }

    fn finished(&mut self, context: &mut Context<'_>) {
        if let Some(evidence) = self.unconfirmed.take().filter(|_| !self.confirmed) {
            let what = "requests, and no notifications/initialized".to_owned();
            context.break_earlier(&rule::LIFE_02, Role::Client, (what, CONFIRM), evidence);
        }
    }
}

impl HandshakeOrder {
    /// The client sends a request other than initialize.
    fn requests(&mut self, message: &Message<'_>, method: &str, params: &Value, context: &mut Context<'_>) {
        let is_notification = NotificationMethod::known(method).is_some();
        if Method::known(method) == Some(Method::Ping) || is_notification || !context.state.is_whole() {
            return;
        }
        match context.state.handshake {
            // Beside the parameters it has another rule.
            Handshake::None if message.value.get("_meta").is_some() => {}
            Handshake::None if !meta::is_stateless(message, method, params.get("_meta"), context.state) => {
                self.client_is_early = true;
                let what = format!("{method} before initialize");
                context.broken(&rule::LIFE_01, what, "open the session with initialize first");
            }
            Handshake::Requested => {
                self.client_is_early = true;
                let what = format!("{method} before initialize was answered");
                context.broken(&rule::LIFE_03, what, "wait for the result of initialize");
            }
            Handshake::Answered if !self.confirmed => {
                self.client_is_early = true;
                let may_overtake = context.state.is_http() && context.state.side == Side::Server;
                if may_overtake {
                    let Message { at, stream, .. } = *message;
                    let text = message.text.chars().take(200).collect();
                    self.unconfirmed.get_or_insert(Evidence { at, stream, text, ..Evidence::default() });
                } else {
                    let what = format!("{method} before notifications/initialized");
                    context.broken(&rule::LIFE_02, what, CONFIRM);
                }
            }
            _ => {}
        }
    }

    fn confirms(&mut self, context: &mut Context<'_>) {
        let what = match context.state.handshake {
            _ if !context.state.is_whole() => return,
            _ if self.confirmed => Some("notifications/initialized a second time"),
            Handshake::Answered => None,
            Handshake::None => Some("notifications/initialized without initialize"),
            Handshake::Requested | Handshake::Ready => {
                Some("notifications/initialized before initialize was answered")
            }
        };
        context.judge(&rule::LIFE_02, what.map(|what| (what.to_owned(), CONFIRM)));
        if what.is_none() && !self.server_is_early {
            context.judge_party(&rule::LIFE_04, Role::Server, None);
        }
        self.confirmed = true;
    }

    fn server_sends(&mut self, method: &str, context: &mut Context<'_>) {
        let is_allowed = ServerMethod::known(method) == Some(ServerMethod::Ping)
            || matches!(
                NotificationMethod::known(method),
                Some(NotificationMethod::Log | NotificationMethod::Cancelled)
            );
        let is_early = context.state.handshake < Handshake::Ready && !self.confirmed && !self.client_is_early;
        if is_early && !is_allowed && context.state.is_whole() {
            self.server_is_early = true;
            let what = format!("{method} before notifications/initialized");
            let expected =
                "wait for notifications/initialized, and send only ping and log messages until then";
            context.broken(&rule::LIFE_04, what, expected);
        }
    }
}

/// initialize, which opens a session.
fn opens(params: &Value, context: &mut Context<'_>) {
    let is_text = |value: &Value, name: &str| value.get(name).is_some_and(Value::is_string);
    let what = if context.state.handshake >= Handshake::Answered && !context.state.is_http() {
        Some("initialize a second time in a session")
    } else if !is_text(params, "protocolVersion") {
        Some("initialize has no protocolVersion")
    } else if !params.get("capabilities").is_some_and(Value::is_object) {
        Some("initialize has no capabilities")
    } else if !params.get("clientInfo").is_some_and(|info| is_text(info, "name") && is_text(info, "version"))
    {
        Some("initialize has no clientInfo with name and version")
    } else {
        None
    };
    let expected = "send initialize once, with protocolVersion, capabilities and clientInfo";
    context.judge(&rule::LIFE_01, what.map(|what| (what.to_owned(), expected)));
    if let Some(version) = params.get("protocolVersion").and_then(Value::as_str) {
        requests_revision(version, context);
    }
}

fn requests_revision(version: &str, context: &mut Context<'_>) {
    let what = match version.parse::<Revision>() {
        Ok(revision) if revision.lifecycle() == Lifecycle::Handshake => None,
        Ok(_) => Some("initialize requests a revision that has no initialize"),
        // Older and newer ones may be known elsewhere.
        Err(_) if is_between_revisions(version) => Some("initialize requests a revision that does not exist"),
        Err(_) => return,
    };
    context.judge(
        &rule::LIFE_05,
        what.map(|what| (what.to_owned(), "request the newest revision with sessions that you support")),
    );
}

fn is_between_revisions(version: &str) -> bool {
    let mut all = Revision::ALL.into_iter().map(Revision::as_str);
    all.next().is_some_and(|oldest| version > oldest) && version < Revision::LATEST.as_str()
}

/// The result of initialize.
fn agrees(result: &Value, context: &mut Context<'_>) {
    let version = result.get("protocolVersion").and_then(Value::as_str);
    let info = |name| result.get("serverInfo").and_then(|info| info.get(name)).is_some_and(Value::is_string);
    let what = if version.is_none() {
        Some("the result of initialize has no protocolVersion")
    } else if !result.get("capabilities").is_some_and(Value::is_object) {
        Some("the result of initialize has no capabilities")
    } else if !info("name") || !info("version") {
        Some("the result of initialize has no serverInfo with name and version")
    } else {
        None
    };
    let expected = "answer initialize with protocolVersion, capabilities and serverInfo";
    context.judge(&rule::LIFE_13, what.map(|what| (what.to_owned(), expected)));
    let Some(version) = version else { return };
    let what = match version.parse::<Revision>() {
        Ok(revision) if revision.lifecycle() == Lifecycle::Handshake => None,
        Ok(_) => Some("initialize was answered with a revision that has no initialize"),
        Err(_) if is_between_revisions(version) => {
            Some("initialize was answered with a revision that does not exist")
        }
        Err(_) => return,
    };
    context.judge(
        &rule::LIFE_06,
        what.map(|what| {
            (what.to_owned(), "answer with the requested revision, or with another one that has sessions")
        }),
    );
}

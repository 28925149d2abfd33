//! Rules about subscriptions.

use std::collections::HashMap;

use refmcp_proto::model::keys;
use refmcp_proto::revision::{Method, NotificationMethod};
use refmcp_proto::rule::{self, Rule};
use serde_json::Value;

use crate::auditor::checks::{Check, Context};
use crate::auditor::message::{Body, Message};
use crate::recording::{Event, EventKind};
use crate::verdict::Role;

pub(in crate::auditor::checks) static RULES: &[&Rule] =
    &[&rule::SUB_01, &rule::SUB_02, &rule::SUB_03, &rule::SUB_04, &rule::SUB_06, &rule::SUB_07];

#[derive(Debug, Default)]
pub(in crate::auditor::checks) struct Subscriptions {
    open: HashMap<SubscriptionKey, Subscription>,
    /// One was left out, so an unknown one says nothing.
    is_overfull: bool,
}

/// The HTTP request, and the id of subscriptions/listen.
type SubscriptionKey = (Option<u64>, String);

#[derive(Debug)]
struct Subscription {
    id: Value,
    filter: Value,
    is_acknowledged: bool,
    /// It has a response, after which messages may still be under way.
    has_ended: bool,
}

/// Subscriptions that are remembered.
const MAX_SUBSCRIPTIONS: usize = 1024;

const LABEL: &str = "send the id of subscriptions/listen, as it came, as subscriptionId in _meta";

impl Check for Subscriptions {
    fn message(&mut self, message: &Message<'_>, context: &mut Context<'_>) {
        if !message.is_stateless() {
            return;
        }
        match (message.from, &message.body) {
            (Role::Client, Body::Request { id, method, params })
                if Method::known(method) == Some(Method::Listen) =>
            {
                let stream = message.stream.filter(|_| context.state.has_streams());
                self.listens(stream, id, params, context);
            }
            (Role::Server, Body::Notification { method, params }) => {
                if let Some(method) = NotificationMethod::known(method) {
                    self.notifies(message, method, params, context);
                }
            }
            (Role::Server, Body::Response { id, request: Some(request), result })
                if Method::known(&request.method) == Some(Method::Listen) =>
            {
                let stream = request.stream.filter(|_| context.state.has_streams());
                self.ends(stream, id, *result, context);
            }
            _ => {}
        }
    }

    fn event(&mut self, event: &Event, context: &mut Context<'_>) {
        let Some(stream) = event.stream.filter(|_| context.state.has_streams()) else { return };
        match event.kind {
            EventKind::Ended { direction } => {
                let is_server = context.state.sender(direction) == Role::Server;
                let of_stream = |(key, it): (&SubscriptionKey, &Subscription)| {
                    key.0 == Some(stream) && it.is_acknowledged && !it.has_ended
                };
                if is_server && self.open.iter().any(of_stream) {
                    let what = "the stream of a subscription ended without a result";
                    context.broken(&rule::SUB_06, what, "send a result before the stream ends");
                }
                self.open.retain(|key, _| key.0 != Some(stream));
            }
            EventKind::Failed { .. } => self.open.retain(|key, _| key.0 != Some(stream)),
            _ => {}
        }
    }
}

impl Subscriptions {
    fn listens(&mut self, stream: Option<u64>, id: &Value, params: &Value, context: &mut Context<'_>) {
        let filter = params.get("notifications").unwrap_or(&Value::Null);
        let what = if !filter.is_object() {
            Some("subscriptions/listen has no filter in notifications")
        } else if LISTS.iter().any(|(_, member)| filter.get(member).is_some_and(|it| !it.is_boolean())) {
            Some("the filter of subscriptions/listen has a list that is no boolean")
        } else if NAMED.iter().any(|(_, member)| filter.get(member).is_some_and(|it| !is_texts(it))) {
            Some("the filter of subscriptions/listen has names that are no array of strings")
        } else {
            None
        };
        let expected = "send notifications with the lists as booleans, and resourceSubscriptions as URIs";
        context.judge(&rule::SUB_01, what.map(|what| (what.to_owned(), expected)));
        if self.open.len() >= MAX_SUBSCRIPTIONS {
            self.is_overfull = true;
            return;
        }
        let subscription =
            Subscription { id: id.clone(), filter: filter.clone(), is_acknowledged: false, has_ended: false };
        self.open.insert((stream, id.to_string()), subscription);
    }

    fn notifies(
        &mut self,
        message: &Message<'_>,
        method: NotificationMethod,
        params: &Value,
        context: &mut Context<'_>,
    ) {
        let label = params.get("_meta").and_then(|meta| meta.get(keys::SUBSCRIPTION_ID));
        let is_change = LISTS.iter().chain(&NAMED).any(|(change, _)| *change == method);
        let is_acknowledgement = method == NotificationMethod::SubscriptionsAcknowledged;
        let is_log = method == NotificationMethod::Log;
        if !is_change && !is_acknowledgement && !is_log {
            return;
        }
        let is_meant = |(key, _): &(&SubscriptionKey, &mut Subscription)| {
            !context.state.has_streams() || key.0 == message.stream
        };
        let mut here = self.open.iter_mut().filter(is_meant).map(|(_, it)| it);
        if is_log {
            // Over streamable HTTP the stream says where it belongs, elsewhere its label.
            let on_subscription =
                if context.state.has_streams() { here.next().is_some() } else { label.is_some() };
            if on_subscription {
                let what = "a log message on a subscription";
                context.broken(&rule::SUB_07, what, "send log messages on the stream of their request");
            }
            return;
        }
        let Some(label) = label else {
            let what = format!("{} without subscriptionId", method.name());
            return context.broken(&rule::SUB_04, what, LABEL);
        };
        let Some(subscription) = here.find(|it| it.id == *label) else {
            if !self.is_overfull {
                let what = format!("{} with a subscriptionId that no subscription has", method.name());
                context.broken(&rule::SUB_04, what, LABEL);
            }
            return;
        };
        context.kept(&rule::SUB_04);
        if is_acknowledgement {
            acknowledges(subscription, params, context);
            subscription.is_acknowledged = true;
        } else {
            if !subscription.is_acknowledged {
                let what = format!("{} before the acknowledgement", method.name());
                context.broken(&rule::SUB_03, what, "send notifications/subscriptions/acknowledged first");
            }
            let violation = || {
                let what = format!("{}, which the subscription does not want", method.name());
                (what, "send what the filter of subscriptions/listen names")
            };
            context.judge(&rule::SUB_02, (!wants(&subscription.filter, method)).then(violation));
            context.kept(&rule::SUB_07);
        }
    }

    /// The response to subscriptions/listen.
    fn ends(
        &mut self,
        stream: Option<u64>,
        id: &Value,
        result: Result<&Value, &Value>,
        context: &mut Context<'_>,
    ) {
        let Some(subscription) = self.open.get_mut(&(stream, id.to_string())) else { return };
        subscription.has_ended = true;
        let Ok(result) = result else { return };
        context.kept(&rule::SUB_06);
        let label = result.get("_meta").and_then(|meta| meta.get(keys::SUBSCRIPTION_ID));
        let violation =
            || ("the result of subscriptions/listen has not its subscriptionId".to_owned(), LABEL);
        context.judge(&rule::SUB_04, (label != Some(id)).then(violation));
        // It may be under way on a pipe while notifications follow, but not over HTTP.
        if stream.is_none() && self.open.len() > MAX_SUBSCRIPTIONS / 2 {
            self.open.retain(|_, it| !it.has_ended);
        }
    }
}

/// Notifications that a member of the filter wants as a whole.
const LISTS: [(NotificationMethod, &str); 3] = [
    (NotificationMethod::ToolsListChanged, "toolsListChanged"),
    (NotificationMethod::PromptsListChanged, "promptsListChanged"),
    (NotificationMethod::ResourcesListChanged, "resourcesListChanged"),
];

/// Notifications that a member of the filter wants about what it names. Those of tasks have rules of their own.
const NAMED: [(NotificationMethod, &str); 1] =
    [(NotificationMethod::ResourceUpdated, "resourceSubscriptions")];

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|texts| texts.iter().all(Value::is_string))
}

fn wants(filter: &Value, method: NotificationMethod) -> bool {
    let list = LISTS.iter().find(|(change, _)| *change == method);
    let named = NAMED.iter().find(|(change, _)| *change == method);
    list.is_some_and(|(_, member)| filter.get(member) == Some(&Value::Bool(true)))
        || named.is_some_and(|(_, member)| {
            filter.get(member).and_then(Value::as_array).is_some_and(|it| !it.is_empty())
        })
}

/// The acknowledgement has the part of the filter that is served.
fn acknowledges(subscription: &Subscription, params: &Value, context: &mut Context<'_>) {
    let served = params.get("notifications");
    let more = |member: &str| {
        let (asked, served) = (subscription.filter.get(member), served.and_then(|served| served.get(member)));
        match served {
            Some(Value::Bool(true)) => asked != Some(&Value::Bool(true)),
            Some(Value::Array(names)) => {
                let asked = asked.and_then(Value::as_array);
                names.iter().any(|name| asked.is_none_or(|asked| !asked.contains(name)))
            }
            _ => false,
        }
    };
    let what = if subscription.is_acknowledged {
        Some("a subscription was acknowledged a second time")
    } else if !served.is_some_and(Value::is_object) {
        Some("an acknowledgement without the filter that is served")
    } else if LISTS.iter().chain(&NAMED).any(|(_, member)| more(member)) {
        Some("an acknowledgement has more than was asked for")
    } else {
        None
    };
    let expected = "acknowledge once and first, with the part of the filter that is served";
    context.judge(&rule::SUB_03, what.map(|what| (what.to_owned(), expected)));
}

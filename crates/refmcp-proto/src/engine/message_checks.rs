//! Findings about a single message: `_meta` in the wrong place, notifications under names that the protocol does not
//! have. Such messages are served without what is wrong, or ignored; the finding says what to send instead.

use crate::finding::Finding;
use crate::jsonrpc::{DecodeError, Message, Notification};
use crate::revision::{NotificationMethod, Revision, Rules};
use crate::rule::{self, Rule};

/// Notifications of the Language Server Protocol, and those that are meant.
const FOREIGN: [(&str, NotificationMethod); 2] =
    [("$/cancelRequest", NotificationMethod::Cancelled), ("$/progress", NotificationMethod::Progress)];

/// The findings about a message of a client that need no more than the message.
pub fn client_message(message: &Message<'_>) -> impl Iterator<Item = Finding> + use<> {
    [misplaced_meta(message), misnamed(message, NotificationMethod::client_may_send)].into_iter().flatten()
}

/// The findings about a message of a server.
pub(super) fn server_message(message: &Message<'_>) -> impl Iterator<Item = Finding> + use<> {
    [misplaced_meta(message), misnamed(message, NotificationMethod::server_may_send)].into_iter().flatten()
}

/// The finding about bytes that are no message.
pub fn malformed(fault: &DecodeError) -> Finding {
    let example = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let expected = format!("send a JSON-RPC 2.0 message such as {example}");
    Finding::new(fault.rule, fault.error.message.clone(), expected)
}

/// The notification that a client means by this method, if any.
pub(super) fn meant_notification(method: &str) -> Option<&'static str> {
    let meant = NotificationMethod::known(method).or_else(|| NotificationMethod::misnamed(method))?;
    meant.client_may_send(Revision::LATEST_SESSION.rules()).then_some(meant.name())
}

fn misplaced_meta(message: &Message<'_>) -> Option<Finding> {
    let (what, expected) = match message.misplaced_meta()? {
        "params" => ("_meta beside params was ignored", "send it inside, as params._meta"),
        _ => ("_meta beside result was ignored", "send it inside, as result._meta"),
    };
    Some(Finding::new(&rule::RPC_01, what, expected))
}

/// A notification without its prefix or with another, or of another protocol.
fn misnamed(message: &Message<'_>, may_send: fn(NotificationMethod, &Rules) -> bool) -> Option<Finding> {
    let Message::Notification(Notification { method, .. }) = message else { return None };
    let foreign = FOREIGN.iter().find(|(name, _)| name == method).map(|(_, meant)| *meant);
    let meant = foreign.or_else(|| NotificationMethod::misnamed(method))?;
    let what = match foreign {
        Some(_) => format!("{method} is not of this protocol"),
        None => format!("the notification {method} was ignored"),
    };
    if !Revision::ALL.iter().any(|revision| may_send(meant, revision.rules())) {
        let expected = format!("do not send it: {} is a notification of the other side", meant.name());
        return Some(Finding::new(&rule::LIFE_08, what, expected));
    }
    let member = if meant == NotificationMethod::Cancelled { " with params.requestId" } else { "" };
    Some(Finding::new(rule_of(meant), what, format!("send {}{member}", meant.name())))
}

/// The rule that a notification follows.
fn rule_of(method: NotificationMethod) -> &'static Rule {
    match method {
        NotificationMethod::Initialized => &rule::LIFE_02,
        NotificationMethod::Cancelled => &rule::CANC_01,
        NotificationMethod::Progress => &rule::PROG_01,
        NotificationMethod::RootsListChanged => &rule::ROOT_02,
        NotificationMethod::Log => &rule::LOG_01,
        NotificationMethod::ToolsListChanged => &rule::TOOL_02,
        NotificationMethod::PromptsListChanged => &rule::PROMPT_01,
        NotificationMethod::ResourcesListChanged => &rule::RES_01,
        NotificationMethod::ResourceUpdated => &rule::RES_04,
        NotificationMethod::SubscriptionsAcknowledged => &rule::SUB_03,
        NotificationMethod::ElicitationComplete => &rule::ELIC_13,
        NotificationMethod::TaskStatus => &rule::TASK_12,
        NotificationMethod::Task => &rule::XTASK_13,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::{Incoming, Limits, decode};

    fn rules(text: &str) -> Vec<&'static str> {
        let Ok(Incoming::One(message)) = decode(text.as_bytes(), &Limits::default()) else {
            panic!("{text} is no message")
        };
        client_message(&message).map(|finding| finding.rule.id).collect()
    }

    #[test]
    fn a_misnamed_notification_is_told_its_name() {
        for (name, rule) in [
            ("initialized", "LIFE-02"),
            ("cancelled", "CANC-01"),
            ("progress", "PROG-01"),
            ("roots/list_changed", "ROOT-02"),
            ("notification/initialized", "LIFE-02"),
            ("Notifications/roots/list_changed", "ROOT-02"),
            // Only servers send these.
            ("message", "LIFE-08"),
            ("resources/updated", "LIFE-08"),
            ("notification/tools/list_changed", "LIFE-08"),
            ("$/cancelRequest", "CANC-01"),
            ("$/progress", "PROG-01"),
        ] {
            assert_eq!(rules(&format!(r#"{{"jsonrpc":"2.0","method":"{name}"}}"#)), [rule], "{name}");
        }
    }

    #[test]
    fn every_notification_of_the_table_is_found_by_a_wrong_name() {
        for name in NotificationMethod::NAMES {
            for wrong in [name.replace("notifications/", ""), name.replace("notifications", "notification")] {
                let text = format!(r#"{{"jsonrpc":"2.0","method":"{wrong}"}}"#);
                assert_eq!(rules(&text).len(), 1, "{wrong}");
            }
        }
    }

    #[test]
    fn correct_messages_have_no_findings() {
        for right in [
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            r#"{"jsonrpc":"2.0","method":"something/else"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"progress"}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{"_meta":{}}}"#,
        ] {
            assert_eq!(rules(right), Vec::<&str>::new(), "{right}");
        }
        assert_eq!(rules(r#"{"jsonrpc":"2.0","method":"initialized","_meta":{}}"#), ["RPC-01", "LIFE-02"]);
    }
}

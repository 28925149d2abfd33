//! Findings about a single message: `_meta` in the wrong place, notifications under names that the protocol does not
//! have. Such messages are served without what is wrong, or ignored; the finding says what to send instead.

use crate::finding::Finding;
use crate::jsonrpc::{DecodeError, Message, Notification};
use crate::revision::{Lifecycle, NotificationMethod, Revision, Rules};
use crate::rule::{self, Rule};

/// Notifications of the Language Server Protocol, and those that are meant.
const FOREIGN: [(&str, NotificationMethod); 2] =
    [("$/cancelRequest", NotificationMethod::Cancelled), ("$/progress", NotificationMethod::Progress)];

/// What is expected of a session's request whose `_meta` is no object.
pub(crate) const SESSION_META: &str = "send params._meta as an object, or leave it out";

/// The findings about a message of a client that need no more than the message and its revision, if that is known.
pub fn client_message(message: &Message<'_>, revision: Option<Revision>) -> Vec<Finding> {
    findings(message, revision, NotificationMethod::client_may_send)
}

/// The findings about a message of a server.
pub(super) fn server_message(message: &Message<'_>, revision: Option<Revision>) -> Vec<Finding> {
    findings(message, revision, NotificationMethod::server_may_send)
}

/// Nearly all messages are requests and responses without a mistake: a finding takes more to make than to rule out.
fn findings(
    message: &Message<'_>,
    revision: Option<Revision>,
    may_send: fn(NotificationMethod, &Rules) -> bool,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(place) = message.misplaced_meta() {
        findings.push(misplaced_meta(place));
    }
    if let Message::Notification(notification) = message {
        findings.extend(misnamed(notification, revision, may_send));
    }
    findings
}

/// The finding about bytes that are no message.
pub fn malformed(error: &DecodeError) -> Finding {
    let example = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let expected = format!("send a JSON-RPC 2.0 message such as {example}");
    Finding::new(error.rule, error.error.message.clone(), expected)
}

/// The notification that a client means by this method, if any.
pub(super) fn meant_notification(method: &str) -> Option<&'static str> {
    let meant = NotificationMethod::known(method).or_else(|| NotificationMethod::misnamed(method))?;
    meant.client_may_send(Revision::LATEST_SESSION.rules()).then_some(meant.name())
}

fn misplaced_meta(place: &str) -> Finding {
    let (what, expected) = match place {
        "params" => ("_meta beside params was ignored", "send it inside, as params._meta"),
        _ => ("_meta beside result was ignored", "send it inside, as result._meta"),
    };
    Finding::new(&rule::RPC_01, what, expected)
}

/// A notification without its prefix or with another, or of another protocol.
fn misnamed(
    Notification { method, .. }: &Notification<'_>,
    revision: Option<Revision>,
    may_send: fn(NotificationMethod, &Rules) -> bool,
) -> Option<Finding> {
    let foreign = FOREIGN.iter().find(|(name, _)| name == method).map(|(_, meant)| *meant);
    let meant = foreign.or_else(|| NotificationMethod::misnamed(method))?;
    let what = match foreign {
        Some(_) => format!("{method} is not of this protocol"),
        None => format!("the notification {method} was ignored"),
    };
    let sends = |revision: &Revision| may_send(meant, revision.rules());
    let (rule, expected) = if !Revision::ALL.iter().any(sends) {
        let expected = format!("do not send it: {} is a notification of the other side", meant.name());
        (&rule::LIFE_08, expected)
    } else if revision.as_ref().is_some_and(|revision| !sends(revision)) {
        (rule_of(meant), format!("do not send it: this revision has no {}", meant.name()))
    } else if meant == NotificationMethod::Cancelled && is_stateless(revision) {
        let expected = "over HTTP close the stream of the request; elsewhere send notifications/cancelled \
                        with params.requestId";
        (&rule::CANC_04, expected.to_owned())
    } else {
        let member = if meant == NotificationMethod::Cancelled { " with params.requestId" } else { "" };
        (rule_of(meant), format!("send {}{member}", meant.name()))
    };
    let finding = Finding::new(rule, what, expected);
    // Where the revision has no rule about the notification, it is still no message of the protocol.
    Some(if finding.is_of(revision) { finding } else { Finding { rule: &rule::RPC_01, ..finding } })
}

fn is_stateless(revision: Option<Revision>) -> bool {
    revision.is_some_and(|revision| revision.lifecycle() == Lifecycle::PerRequest)
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
        rules_in(None, text)
    }

    fn rules_in(revision: Option<Revision>, text: &str) -> Vec<&'static str> {
        let Ok(Incoming::One(message)) = decode(text.as_bytes(), &Limits::default()) else {
            panic!("{text} is no message")
        };
        let found = client_message(&message, revision);
        for finding in &found {
            assert!(finding.is_of(revision), "{} in {revision:?}: {text}", finding.rule);
        }
        found.iter().map(|finding| finding.rule.id).collect()
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
                for revision in Revision::ALL {
                    assert_eq!(rules_in(Some(revision), &text).len(), 1, "{wrong} in {revision}");
                }
            }
        }
    }

    #[test]
    fn a_misnamed_cancellation_follows_the_rule_of_its_revision() {
        let cancel = r#"{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}"#;
        assert_eq!(rules_in(Some(Revision::LATEST_SESSION), cancel), ["CANC-01"]);
        assert_eq!(rules_in(Some(Revision::LATEST), cancel), ["CANC-04"]);
        let log = r#"{"jsonrpc":"2.0","method":"message"}"#;
        assert_eq!(rules_in(Some(Revision::ALL[0]), log), ["RPC-01"], "it has no rule about this");
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

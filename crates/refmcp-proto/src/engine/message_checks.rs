//! Findings about a single message: `_meta` in the wrong place, notifications under names that the protocol does not
//! have. Such messages are served without what is wrong, or ignored; the finding says what to send instead.

use crate::finding::Finding;
use crate::jsonrpc::{DecodeError, Message, Notification};
use crate::revision::{NotificationMethod, Revision};

/// A method that the protocol does not have, the rule for the notification that was meant, and the finding.
type Misnamed = (&'static str, &'static str, &'static str);

/// A notification without its prefix: its name, the rule, and how the finding begins to say what to send.
macro_rules! without_prefix {
    ($name:literal, $rule:literal, $instead:literal) => {
        (
            $name,
            $rule,
            concat!("the notification ", $name, " was ignored; ", $instead, " notifications/", $name),
        )
    };
}

/// What clients send in place of their notifications.
const FROM_CLIENTS: [Misnamed; 6] = [
    without_prefix!("initialized", "LIFE-02", "send"),
    without_prefix!("cancelled", "CANC-01", "send"),
    without_prefix!("progress", "PROG-01", "send"),
    without_prefix!("roots/list_changed", "ROOT-02", "send"),
    (
        "$/cancelRequest",
        "CANC-01",
        "$/cancelRequest is not of this protocol; send notifications/cancelled with params.requestId",
    ),
    ("$/progress", "PROG-01", "$/progress is not of this protocol; send notifications/progress"),
];

/// What servers send in place of their notifications.
const FROM_SERVERS: [Misnamed; 9] = [
    without_prefix!("cancelled", "CANC-01", "it is"),
    without_prefix!("progress", "PROG-01", "it is"),
    without_prefix!("message", "LOG-01", "it is"),
    without_prefix!("tools/list_changed", "TOOL-02", "it is"),
    without_prefix!("prompts/list_changed", "PROMPT-01", "it is"),
    without_prefix!("resources/list_changed", "RES-01", "it is"),
    without_prefix!("resources/updated", "RES-04", "it is"),
    ("$/cancelRequest", "CANC-01", "$/cancelRequest is not of this protocol; it is notifications/cancelled"),
    ("$/progress", "PROG-01", "$/progress is not of this protocol; it is notifications/progress"),
];

/// The findings about a message of a client that need no more than the message.
pub fn client_message(message: &Message<'_>) -> impl Iterator<Item = Finding> + use<> {
    [misplaced_meta(message), misnamed(message, &FROM_CLIENTS)].into_iter().flatten()
}

/// The findings about a message of a server.
pub(super) fn server_message(message: &Message<'_>) -> impl Iterator<Item = Finding> + use<> {
    [misplaced_meta(message), misnamed(message, &FROM_SERVERS)].into_iter().flatten()
}

/// The finding about bytes that are no message.
pub fn malformed(fault: &DecodeError) -> Finding {
    let example = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let what = format!("{}; send a JSON-RPC 2.0 message such as {example}", fault.error.message);
    Finding { rule: "RPC-01", what: what.into() }
}

/// The notification that a client means by this method, if any.
pub(super) fn meant_notification(method: &str) -> Option<&'static str> {
    let meant = NotificationMethod::known(method).or_else(|| NotificationMethod::without_prefix(method))?;
    meant.client_may_send(Revision::LATEST_SESSION.rules()).then_some(meant.name())
}

fn misplaced_meta(message: &Message<'_>) -> Option<Finding> {
    let what = match message.misplaced_meta()? {
        "params" => "_meta beside params was ignored; send it inside, as params._meta",
        _ => "_meta beside result was ignored; send it inside, as result._meta",
    };
    Some(Finding { rule: "RPC-01", what: what.into() })
}

fn misnamed(message: &Message<'_>, names: &[Misnamed]) -> Option<Finding> {
    let Message::Notification(Notification { method, .. }) = message else { return None };
    let (_, rule, what) = names.iter().find(|(name, ..)| name == method)?;
    Some(Finding { rule, what: (*what).into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jsonrpc::{Incoming, Limits, decode};

    fn rules(text: &str) -> Vec<&'static str> {
        let Ok(Incoming::One(message)) = decode(text.as_bytes(), &Limits::default()) else {
            panic!("{text} is no message")
        };
        client_message(&message).map(|finding| finding.rule).collect()
    }

    #[test]
    fn every_misnamed_finding_names_the_notification() {
        for (name, _, what) in FROM_CLIENTS.iter().chain(&FROM_SERVERS) {
            let meant = match *name {
                "$/cancelRequest" => "notifications/cancelled".to_owned(),
                "$/progress" => "notifications/progress".to_owned(),
                name => format!("notifications/{name}"),
            };
            assert!(what.contains(&meant) && what.contains(name), "{name}: {what}");
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

//! Mistakes that a single message shows: `_meta` in the wrong place, notifications under names that the protocol does
//! not have. Such messages are served without what is wrong, or ignored; the finding says what to send instead.

use crate::finding::Finding;
use crate::jsonrpc::{DecodeError, Message, Notification};

/// A name that the protocol does not have, the rule for the notification that was meant, and what to send.
type Misnamed = (&'static str, &'static str, &'static str);

/// What clients send in place of their notifications.
const FROM_CLIENTS: [Misnamed; 6] = [
    ("initialized", "LIFE-02", "the notification initialized was ignored; send notifications/initialized"),
    ("cancelled", "CANC-01", "the notification cancelled was ignored; send notifications/cancelled"),
    ("progress", "PROG-01", "the notification progress was ignored; send notifications/progress"),
    (
        "roots/list_changed",
        "ROOT-02",
        "the notification roots/list_changed was ignored; send notifications/roots/list_changed",
    ),
    (
        "$/cancelRequest",
        "CANC-01",
        "$/cancelRequest is not of this protocol; send notifications/cancelled with params.requestId",
    ),
    ("$/progress", "PROG-01", "$/progress is not of this protocol; send notifications/progress"),
];

/// What servers send in place of their notifications.
const FROM_SERVERS: [Misnamed; 9] = [
    ("cancelled", "CANC-01", "the notification cancelled was ignored; it is notifications/cancelled"),
    ("progress", "PROG-01", "the notification progress was ignored; it is notifications/progress"),
    ("message", "LOG-01", "the notification message was ignored; it is notifications/message"),
    (
        "tools/list_changed",
        "TOOL-02",
        "the notification tools/list_changed was ignored; it is notifications/tools/list_changed",
    ),
    (
        "prompts/list_changed",
        "PROMPT-01",
        "the notification prompts/list_changed was ignored; it is notifications/prompts/list_changed",
    ),
    (
        "resources/list_changed",
        "RES-01",
        "the notification resources/list_changed was ignored; it is notifications/resources/list_changed",
    ),
    (
        "resources/updated",
        "RES-04",
        "the notification resources/updated was ignored; it is notifications/resources/updated",
    ),
    ("$/cancelRequest", "CANC-01", "$/cancelRequest is not of this protocol; it is notifications/cancelled"),
    ("$/progress", "PROG-01", "$/progress is not of this protocol; it is notifications/progress"),
];

/// What a message of a client shows, as far as it needs no more than the message to see it.
pub fn client_message(message: &Message<'_>) -> impl Iterator<Item = Finding> + use<> {
    [misplaced_meta(message), misnamed(message, &FROM_CLIENTS)].into_iter().flatten()
}

/// The same for a message of a server.
pub(super) fn server_message(message: &Message<'_>) -> impl Iterator<Item = Finding> + use<> {
    [misplaced_meta(message), misnamed(message, &FROM_SERVERS)].into_iter().flatten()
}

/// What is wrong with bytes that are no message.
pub fn malformed(fault: &DecodeError) -> Finding {
    let example = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let what = format!("{}; send a JSON-RPC 2.0 message such as {example}", fault.error.message);
    Finding { rule: "RPC-01", what: what.into() }
}

/// The name of the notification that a client means by this method, if it means one.
pub(super) fn meant_notification(method: &str) -> Option<&'static str> {
    Some(match method.strip_prefix("notifications/").unwrap_or(method) {
        "initialized" => "notifications/initialized",
        "cancelled" => "notifications/cancelled",
        "progress" => "notifications/progress",
        "roots/list_changed" => "notifications/roots/list_changed",
        _ => return None,
    })
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
    fn every_text_names_what_to_send() {
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
    fn right_messages_show_nothing() {
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

//! Values that a recorded server made up, and what another server made up in their place.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json::Value;

use super::json_text::{replaced, string};
use super::part::{Part, PartKind};

/// Members whose values a server makes up, and a client repeats.
const MADE_UP: [&str; 6] =
    ["nextCursor", "requestState", "taskId", "elicitationId", "sessionId", "subscriptionId"];

/// The fewest characters of other texts that are taken for made up: random letters and digits.
const MIN_RANDOM: usize = 16;

/// What is written in place of what.
#[derive(Debug, Default)]
pub(super) struct Substitutions {
    /// Texts.
    texts: HashMap<String, String>,
    /// Ids of requests of the server, as they are written.
    ids: HashMap<String, String>,
    /// Tokens under which the server wants progress, as they are written.
    tokens: HashMap<String, String>,
}

impl Substitutions {
    /// Learns from a message of the recorded server and the one that came in its place.
    pub(super) fn learn(&mut self, recorded: &Part, live: &Part) {
        self.learn_values("", &recorded.value, &live.value);
        if let (PartKind::Request { id, .. }, PartKind::Request { id: new, .. }) =
            (&recorded.kind, &live.kind)
        {
            self.ids.insert(id.to_string(), new.to_string());
        }
        if let (Some(token), Some(new)) = (recorded.requested_token(), live.requested_token()) {
            self.tokens.insert(token.to_string(), new.to_string());
        }
    }

    /// Learns an id of an SSE event.
    pub(super) fn learn_text(&mut self, recorded: &str, live: &str) {
        if recorded != live {
            self.texts.insert(recorded.to_owned(), live.to_owned());
        }
    }

    fn learn_values(&mut self, name: &str, recorded: &Value, live: &Value) {
        match (recorded, live) {
            (Value::Object(recorded), Value::Object(live)) => {
                for (name, value) in recorded {
                    if let Some(live) = live.get(name) {
                        self.learn_values(name, value, live);
                    }
                }
            }
            (Value::Array(recorded), Value::Array(live)) => {
                for (value, live) in recorded.iter().zip(live) {
                    self.learn_values(name, value, live);
                }
            }
            (Value::String(recorded), Value::String(live))
                if MADE_UP.contains(&name) || is_random(recorded) =>
            {
                self.learn_text(recorded, live);
            }
            _ => {}
        }
    }

    /// The text that is sent in place of a recorded one.
    pub(super) fn text<'a>(&'a self, recorded: &'a str) -> &'a str {
        self.texts.get(recorded).map_or(recorded, String::as_str)
    }

    /// The message that is sent in place of a recorded one of the client.
    pub(super) fn message(&self, text: &str) -> String {
        let is_response = |text: &str| {
            let value: Value = serde_json::from_str(text).unwrap_or_default();
            value.is_object() && value.get("method").is_none()
        };
        let (answers, reports) = (is_response(text), text.contains("notifications/progress"));
        replaced(text, |path, raw| match path {
            [id] if answers && id == "id" => self.ids.get(raw).cloned(),
            [params, token] if reports && params == "params" && token == "progressToken" => {
                self.tokens.get(raw).cloned()
            }
            _ => self.replaced_text(path, raw),
        })
    }

    fn replaced_text(&self, path: &[Cow<'_, str>], raw: &str) -> Option<String> {
        if matches!(path, [name] if name == "method" || name == "jsonrpc") {
            return None;
        }
        let new = self.texts.get(&string(raw)?)?;
        Some(Value::from(new.as_str()).to_string())
    }
}

/// Whether a text is a random one, as ids and sealed values are.
fn is_random(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "-_+/=.".contains(c);
    text.len() >= MIN_RANDOM
        && text.chars().all(fits)
        && text.chars().any(|c| c.is_ascii_digit())
        && text.chars().any(|c| c.is_ascii_alphabetic())
        && !text.contains("//")
}

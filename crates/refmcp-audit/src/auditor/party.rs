//! What the parties of a conversation say of themselves.

use serde_json::Value;

/// What a party says of itself, by `initialize`, `server/discover` or `_meta`.
#[derive(Debug, Default)]
pub(crate) struct PartyFacts {
    /// Name and version.
    pub(crate) name: String,
    /// The capabilities, an object once they are known.
    pub(crate) capabilities: Value,
}

impl PartyFacts {
    /// Whether the party declares the capability that these names lead to; `None` while its capabilities are not known.
    pub(crate) fn declares(&self, names: &[&str]) -> Option<bool> {
        self.capabilities.is_object().then(|| declares(&self.capabilities, names))
    }
}

/// Whether capabilities have what these names lead to; what is null or false is not declared.
pub(crate) fn declares(capabilities: &Value, names: &[&str]) -> bool {
    let found = names.iter().try_fold(capabilities, |value, name| value.get(name));
    found.is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)))
}

/// The name and the version of an implementation.
pub(super) fn name(info: &Value) -> String {
    let member = |name| info.get(name).and_then(Value::as_str).unwrap_or_default();
    let text = format!("{} {}", member("name"), member("version"));
    text.trim().chars().take(200).collect()
}

//! Parameters and results of `elicitation/create`.

use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::value::RawValue;

use crate::model::{Extra, FormSchema, JsonObject, Meta, NotificationMeta};

/// Parameters of `elicitation/create`, told apart by `mode`; without one it is a form.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ElicitParams {
    /// Ask by a form.
    Form(ElicitFormParams),
    /// Send the user to a URL.
    Url(ElicitUrlParams),
}

impl ElicitParams {
    /// What the user is told.
    pub fn message(&self) -> &str {
        match self {
            Self::Form(params) => &params.message,
            Self::Url(params) => &params.message,
        }
    }
}

impl<'de> Deserialize<'de> for ElicitParams {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Frame {
            mode: Option<String>,
        }

        // Raw, because reading into a map would lose the order of the form's fields.
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        let Frame { mode } = serde_json::from_str(raw.get()).map_err(de::Error::custom)?;
        match mode.as_deref() {
            None | Some("form") => serde_json::from_str(raw.get()).map(Self::Form).map_err(de::Error::custom),
            Some("url") => serde_json::from_str(raw.get()).map(Self::Url).map_err(de::Error::custom),
            Some(other) => Err(de::Error::custom(format_args!(
                "`mode` of elicitation must be `form` or `url`, not {other:?}"
            ))),
        }
    }
}

from_variants! {
    ElicitParams { ElicitFormParams => Form, ElicitUrlParams => Url }
}

/// The way a user is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitMode {
    /// By a form.
    Form,
    /// By opening a URL.
    Url,
}

json_object! {
    /// Asks the user by a form.
    pub struct ElicitFormParams {
        /// Absent or [`ElicitMode::Form`]; absent is understood in every revision.
        mode?: ElicitMode,
        /// What the user is told.
        message: String,
        /// The form.
        requested_schema: FormSchema,
        _meta: Meta,
        /// A message with its form.
        fn new,
    }

    /// Sends the user to a URL.
    pub struct ElicitUrlParams {
        /// Always [`ElicitMode::Url`].
        mode: ElicitMode,
        /// What the user is told.
        message: String,
        /// Where to go.
        url: String,
        /// What a notice of completion refers to (one older revision only, required there).
        elicitation_id?: String,
        _meta: Meta,
    } without Default
}

impl ElicitUrlParams {
    /// A request to visit a URL.
    pub fn new(message: impl Into<String>, url: impl Into<String>) -> Self {
        Self {
            mode: ElicitMode::Url,
            message: message.into(),
            url: url.into(),
            elicitation_id: None,
            meta: None,
            extra: Extra::new(),
        }
    }
}

json_object! {
    /// Parameters of `notifications/elicitation/complete` (one older revision only).
    pub struct ElicitationCompleteParams {
        /// Which visit is over.
        elicitation_id: String,
        _meta: NotificationMeta,
    }

    /// What the user did.
    pub struct ElicitResult {
        /// How the user reacted.
        action: ElicitAction,
        /// What was filled in; only with an accepted form.
        content?: JsonObject,
        _meta: Meta,
        /// A reaction without content.
        fn new,
    } without Default
}

impl ElicitResult {
    /// A form that was filled in.
    pub fn accept(content: JsonObject) -> Self {
        Self { content: Some(content), ..Self::new(ElicitAction::Accept) }
    }
}

/// How the user reacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ElicitAction {
    /// Agreed.
    Accept,
    /// Refused.
    Decline,
    /// Went away without choosing.
    Cancel,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn elicitation_params_are_told_apart_by_mode() {
        let read = |json: Value| serde_json::from_value::<ElicitParams>(json).map_err(|e| e.to_string());
        let form =
            json!({"message": "m", "requestedSchema": {"type": "object", "properties": {}}, "task": {}});
        let params = read(form.clone()).unwrap();
        assert!(matches!(params, ElicitParams::Form(_)));
        assert_eq!(serde_json::to_value(&params).unwrap(), form);

        let url = json!({"mode": "url", "message": "m", "url": "https://e", "elicitationId": "1"});
        let params = read(url.clone()).unwrap();
        assert!(matches!(params, ElicitParams::Url(_)));
        assert_eq!(serde_json::to_value(&params).unwrap(), url);

        assert!(read(json!({"mode": "voice", "message": "m"})).unwrap_err().contains("`mode`"));
        assert!(read(json!({"mode": "url", "message": "m"})).unwrap_err().contains("`url`"));
        assert!(read(json!({"mode": null, "message": "m"})).unwrap_err().contains("`requestedSchema`"));
    }
}

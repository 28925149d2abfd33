//! Inputs of VS Code: values that a person is asked for before a server is started.

use std::path::{Path, PathBuf};

use refmcp_auth::Secret;
use serde_json::{Map, Value};

use super::Problem;

/// A value to ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Input {
    /// `${input:ID}` refers to it.
    pub(crate) id: String,
    pub(crate) source: PathBuf,
    pub(crate) description: String,
    /// The value of an empty answer, which may be a password.
    pub(crate) default: Option<Secret>,
    pub(crate) kind: InputKind,
}

/// How to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum InputKind {
    Prompt {
        password: bool,
    },
    Pick {
        /// Labels and values.
        options: Vec<(String, String)>,
    },
}

impl Input {
    /// True if the answer is not to be shown.
    pub(crate) fn is_secret(&self) -> bool {
        self.kind == InputKind::Prompt { password: true }
    }

    /// True if this answer is among those allowed.
    pub(crate) fn allows(&self, answer: &str) -> bool {
        match &self.kind {
            InputKind::Prompt { .. } => true,
            InputKind::Pick { options } => options.iter().any(|(_, value)| value == answer),
        }
    }
}

/// Reads one of a file's inputs.
pub(super) fn read(source: &Path, at: usize, value: &Value) -> Result<Input, Problem> {
    let wrong = |member: &str, message: &str| {
        let place = format!("inputs[{at}]{}{member}", if member.is_empty() { "" } else { "." });
        Problem::error(source, message).of_member(&place)
    };
    let members = value.as_object().ok_or_else(|| wrong("", "must be an object"))?;
    let text = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(wrong(name, "must be a string")),
    };
    let flag = |name: &str| match members.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(set)) => Ok(*set),
        Some(_) => Err(wrong(name, "must be true or false")),
    };
    let id = text("id")?.filter(|id| !id.is_empty()).ok_or_else(|| wrong("id", "is missing"))?;
    let kind = match text("type")?.as_deref() {
        Some("promptString") => InputKind::Prompt { password: flag("password")? },
        Some("pickString") => InputKind::Pick { options: options(members, &wrong)? },
        Some(_) => return Err(wrong("type", "must be promptString or pickString")),
        None => return Err(wrong("type", "is missing")),
    };
    let description = text("description")?.unwrap_or_default();
    let default = text("default")?.map(Secret::new);
    let input = Input { id, source: source.to_owned(), description, default, kind };
    match &input.default {
        Some(default) if !input.allows(default.reveal()) => Err(wrong("default", "is none of the options")),
        _ => Ok(input),
    }
}

fn options(
    members: &Map<String, Value>,
    wrong: &impl Fn(&str, &str) -> Problem,
) -> Result<Vec<(String, String)>, Problem> {
    let listed = members.get("options").and_then(Value::as_array).filter(|options| !options.is_empty());
    let listed = listed.ok_or_else(|| wrong("options", "must be a list of what there is to choose from"))?;
    let option = |option: &Value| {
        let part = |name| option.get(name).and_then(Value::as_str).map(str::to_owned);
        match option {
            Value::String(text) => Some((text.clone(), text.clone())),
            _ => Some((part("label")?, part("value")?)),
        }
    };
    let options: Option<Vec<_>> = listed.iter().map(option).collect();
    options.ok_or_else(|| wrong("options", "must be strings, or objects with a label and a value"))
}

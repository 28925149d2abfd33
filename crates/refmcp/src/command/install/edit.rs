//! One server's entry in the text of a configuration file: everything else in the text stays as it is written, with its
//! comments, its order, its indentation, its trailing commas and its line endings.

use jsonc_parser::cst::CstObjectProp;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use jsonc_parser::errors::ParseError;
use serde_json::Value;

use crate::config::{BYTE_ORDER_MARK, SYNTAX};

/// An entry: members in the order in which they are written.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry(Vec<(String, CstInputValue)>);

/// What becomes of a text.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edited {
    /// The entry was not there.
    Added(String),
    /// Another entry of that name was there.
    Replaced(String),
    /// The entry is there already.
    Same,
}

/// Why a text is not edited.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum EditError {
    #[error("line {line}, column {column}: {what}")]
    Syntax { line: usize, column: usize, what: String },
    #[error("it is no JSON object")]
    NotAnObject,
    #[error("{0:?} is no object in it")]
    ListIsNoObject(String),
    #[error("{0:?} is there twice; remove one of them")]
    Twice(String),
    #[error("more than the entry would change, which is a fault of refmcp")]
    MoreWouldChange,
}

/// The text with the entry of this name among the servers, which are the member `list`.
pub(super) fn with_entry(text: &str, list: &str, name: &str, entry: &Entry) -> Result<Edited, EditError> {
    let (mark, content) = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(content) => (BYTE_ORDER_MARK.to_string(), content),
        None => (String::new(), text),
    };
    let root = parsed(content)?;
    let before = values(&root);
    let top = root.object_value_or_create().ok_or(EditError::NotAnObject)?;
    only(&top, list)?;
    let servers =
        top.object_value_or_create(list).ok_or_else(|| EditError::ListIsNoObject(list.to_owned()))?;
    let known = only(&servers, name)?;
    let wanted = entry.to_value();
    let is_new = known.is_none();
    match known {
        Some(property)
            if property.value().and_then(|value| value.to_serde_value()) == Some(wanted.clone()) =>
        {
            return Ok(Edited::Same);
        }
        Some(property) => property.set_value(entry.to_input()),
        None => {
            servers.append(name, entry.to_input());
        }
    }
    let edited = root.to_string();
    if !is_only_change(before, &values(&parsed(&edited)?), list, name, &wanted) {
        return Err(EditError::MoreWouldChange);
    }
    let edited = mark + &edited;
    Ok(if is_new { Edited::Added(edited) } else { Edited::Replaced(edited) })
}

fn parsed(text: &str) -> Result<CstRootNode, EditError> {
    CstRootNode::parse(text, &SYNTAX).map_err(|error: ParseError| EditError::Syntax {
        line: error.line_display(),
        column: error.column_display(),
        what: error.kind().to_string(),
    })
}

/// What the text means; an empty one means an empty object.
fn values(root: &CstRootNode) -> Value {
    root.to_serde_value().unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

/// The member of this name; it must not be there twice, since programs differ in which one they take.
fn only(object: &CstObject, name: &str) -> Result<Option<CstObjectProp>, EditError> {
    let is_meant = |property: &CstObjectProp| property.decoded_name().as_deref() == Some(name);
    let mut found = object.properties().into_iter().filter(is_meant);
    let first = found.next();
    if found.next().is_some() { Err(EditError::Twice(name.to_owned())) } else { Ok(first) }
}

/// Whether the two mean the same but for this entry.
fn is_only_change(mut before: Value, after: &Value, list: &str, name: &str, wanted: &Value) -> bool {
    let Some(top) = before.as_object_mut() else { return false };
    let servers = top.entry(list).or_insert_with(|| Value::Object(serde_json::Map::new()));
    let Some(servers) = servers.as_object_mut() else { return false };
    servers.insert(name.to_owned(), wanted.clone());
    before == *after
}

impl Entry {
    pub(super) fn add(&mut self, name: &str, value: impl Into<CstInputValue>) {
        self.0.push((name.to_owned(), value.into()));
    }

    fn to_input(&self) -> CstInputValue {
        self.0.clone().into()
    }

    pub(super) fn to_value(&self) -> Value {
        // An empty text is one that can be edited.
        let Ok(root) = parsed("") else { return Value::Null };
        root.set_value(self.to_input());
        values(&root)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(command: &str) -> Entry {
        let mut entry = Entry::default();
        entry.add("command", command);
        entry.add("args", vec!["stdio"]);
        entry
    }

    fn edited(text: &str) -> String {
        match with_entry(text, "servers", "new", &entry("run")).unwrap() {
            Edited::Added(text) | Edited::Replaced(text) => text,
            Edited::Same => panic!("nothing has changed"),
        }
    }

    #[test]
    fn an_entry_is_added_and_the_rest_of_the_text_stays() {
        for (text, expected) in [
            (
                "",
                "{\n  \"servers\": {\n    \"new\": {\n      \"command\": \"run\",\n      \"args\": [\"stdio\"]\n    }\n  }\n}\n",
            ),
            (
                "// mine\n{\n\t\"servers\": {\n\t\t\"a\": { \"url\": \"x\" }, // last\n\t},\n\t\"inputs\": [ ],\n}\n",
                "// mine\n{\n\t\"servers\": {\n\t\t\"a\": { \"url\": \"x\" }, // last\n\t\t\"new\": {\n\t\t\t\"command\": \"run\",\n\
                 \t\t\t\"args\": [\"stdio\"],\n\t\t},\n\t},\n\t\"inputs\": [ ],\n}\n",
            ),
            (
                "{\r\n    \"z\": 1,\r\n    \"servers\": {\r\n        \"a\": {} /* a */\r\n        // tail\r\n    }\r\n}",
                "{\r\n    \"z\": 1,\r\n    \"servers\": {\r\n        \"a\": {}, /* a */\r\n        \"new\": {\r\n\
                 \x20           \"command\": \"run\",\r\n            \"args\": [\"stdio\"]\r\n        }\r\n        // tail\r\n    }\r\n}",
            ),
            (
                "\u{feff}{ \"servers\": {\n    // none yet\n  } }\n",
                "\u{feff}{ \"servers\": {\n    // none yet\n    \"new\": {\n      \"command\": \"run\",\n      \"args\": [\"stdio\"]\n    }\n  } }\n",
            ),
        ] {
            assert_eq!(edited(text), expected, "{text:?}");
        }
    }

    #[test]
    fn an_entry_of_the_same_name_is_replaced_in_its_place() {
        let text = "{\n  \"servers\": {\n    /* one */ \"new\": { \"command\": \"old\" } /* two */,\n    \"b\": {}\n  }\n}\n";
        let expected = "{\n  \"servers\": {\n    /* one */ \"new\": {\n      \"command\": \"run\",\n      \"args\": [\"stdio\"]\n\
                        \x20   } /* two */,\n    \"b\": {}\n  }\n}\n";
        let outcome = with_entry(text, "servers", "new", &entry("run")).unwrap();
        assert_eq!(outcome, Edited::Replaced(expected.to_owned()));
        assert_eq!(with_entry(expected, "servers", "new", &entry("run")), Ok(Edited::Same));
        // The same in other words, with its members in another order.
        let same = r#"{"servers": {"n\u0065w": {"args": ["stdio",], "command": "run"}}}"#;
        assert_eq!(with_entry(same, "servers", "new", &entry("run")), Ok(Edited::Same));
    }

    #[test]
    fn any_text_survives() {
        let odd = "C:\\Program Files\\\"x\" \n\t\u{1} é 漢 ${input:a}";
        let mut entry = Entry::default();
        entry.add("command", odd);
        entry.add("env", vec![(odd.to_owned(), CstInputValue::from(odd))]);
        let Ok(Edited::Added(text)) = with_entry("{}", "mcpServers", odd, &entry) else { panic!("added") };
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["mcpServers"][odd], entry.to_value());
    }

    #[test]
    fn a_text_that_is_wrong_is_not_edited() {
        let syntax = |text: &str| match with_entry(text, "servers", "new", &entry("run")) {
            Err(EditError::Syntax { line, column, .. }) => (line, column),
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(syntax("{\n  \"servers\": {\n    \"é\": oops\n  }\n}"), (3, 10));
        assert_eq!(syntax("{} {}"), (1, 4));
        for text in [
            "{",
            "{'servers': {}}",
            "{servers: {}}",
            "{\"a\": 1 \"b\": 2}",
            "{\"a\": 0x1}",
            "{\"a\": \"open}",
        ] {
            syntax(text);
        }
        syntax(&format!("{{\"a\":{}", "[".repeat(100_000)));
        for (text, expected) in [
            ("[]", EditError::NotAnObject),
            ("\"text\"", EditError::NotAnObject),
            ("{\"servers\": null}", EditError::ListIsNoObject("servers".to_owned())),
            ("{\"servers\": []}", EditError::ListIsNoObject("servers".to_owned())),
            ("{\"servers\": {}, \"servers\": {}}", EditError::Twice("servers".to_owned())),
            ("{\"servers\": {\"new\": {}, \"new\": {}}}", EditError::Twice("new".to_owned())),
        ] {
            assert_eq!(with_entry(text, "servers", "new", &entry("run")), Err(expected), "{text}");
        }
    }
}

//! Reading a part of a message as a type, with errors that name the member that does not fit.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Deserializer;

use super::excerpt;

/// Reads a JSON text that stands at `place` in a message.
///
/// # Errors
/// When the text does not fit the type: the path of the member, from `place` on, and what is wrong with it.
pub fn read_member<'a, T: Deserialize<'a>>(place: &str, text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| describe::<T>(place, text, &error))
}

/// Reads the text once more and remembers the way to the fault: what fits, as nearly everything does, needs no path.
#[cold]
fn describe<'a, T: Deserialize<'a>>(place: &str, text: &'a str, error: &serde_json::Error) -> String {
    let why = without_place(error);
    match serde_path_to_error::deserialize::<_, T>(&mut Deserializer::from_str(text)) {
        Err(found) if found.path().iter().next().is_some() => {
            let path = excerpt(&found.path().to_string());
            let dot = if path.starts_with('[') { "" } else { "." };
            format!("{place}{dot}{path}: {why}")
        }
        _ => format!("{place}: {why}"),
    }
}

/// A serde message for a peer and for logs: without a line and column, which would point into a part of the text only,
/// without the names of our types, without the value, which may be a secret, and short.
pub fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(" at line ").map_or(text.as_str(), |(before, _)| before);
    let text = without_value(text);
    match text.split_once("expected struct ") {
        Some((before, rest)) => {
            let after = rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
            shortened(&format!("{before}expected an object{after}"))
        }
        None => shortened(&text),
    }
}

/// A serde message without the value that it complains about: `invalid type: string "x", expected u8`.
fn without_value(text: &str) -> Cow<'_, str> {
    let complains =
        ["invalid type: ", "invalid value: ", "unknown variant "].iter().any(|it| text.contains(it));
    // What is expected comes last: the value may have the same words.
    match (text.find(['"', '`']), text.rfind(", expected ")) {
        (Some(value), Some(expected)) if complains && value < expected => {
            format!("{}{}", text[..value].trim_end(), &text[expected..]).into()
        }
        _ => text.into(),
    }
}

/// A long text without its middle.
fn shortened(text: &str) -> String {
    const END: usize = 150;
    let end = text.char_indices().rev().nth(END).map_or(0, |(at, _)| at);
    let (beginning, end) = text.split_at(end);
    excerpt(beginning) + end
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;
    use crate::model::{CompleteParams, GetPromptParams, SetLevelParams};

    fn error<T: for<'a> Deserialize<'a>>(text: &str) -> String {
        read_member::<T>("params", text).err().expect("it should not fit")
    }

    #[test]
    fn errors_name_the_member() {
        assert_eq!(
            error::<GetPromptParams>(r#"{"name":"review","arguments":{"code":"x","language":7}}"#),
            "params.arguments.language: invalid type: integer, expected a string"
        );
        let reference = r#""ref":{"type":"ref/prompt","name":"review"}"#;
        assert!(
            error::<CompleteParams>(&format!(r#"{{{reference},"argument":{{"name":"code","value":true}}}}"#))
                .starts_with("params.argument.value: ")
        );
        let argument = r#""argument":{"name":"code","value":""}"#;
        let context = r#""context":{"arguments":{"language":null}}"#;
        assert!(
            error::<CompleteParams>(&format!("{{{reference},{argument},{context}}}"))
                .starts_with("params.context.arguments.language: ")
        );
        assert!(
            error::<CompleteParams>(&format!(r#"{{"ref":{{"type":"ref/prompt","name":3}},{argument}}}"#))
                .starts_with("params.ref: ")
        );
        assert!(error::<SetLevelParams>(r#"{"level":"INFO"}"#).starts_with("params.level: "));
        assert!(error::<Vec<u8>>("[1,true]").starts_with("params[1]: "));
    }

    #[test]
    fn an_error_of_the_whole_value_has_no_path() {
        assert_eq!(error::<GetPromptParams>("{}"), "params: missing field `name`");
        assert!(error::<BTreeMap<String, Value>>("3").starts_with("params: "));
    }

    #[test]
    fn long_names_are_cut() {
        let name = "x".repeat(10_000);
        let text = format!(r#"{{"name":"review","arguments":{{"{name}":7}}}}"#);
        assert!(error::<GetPromptParams>(&text).len() < 400);
    }

    #[test]
    fn serde_messages_have_no_values() {
        #[derive(Debug, serde::Deserialize)]
        enum Level {
            Low,
            High,
        }
        for value in ["hunter2", "a, expected \\\"b\\\"", "`", &"x".repeat(10_000)] {
            let error = serde_json::from_str::<u8>(&format!("\"{value}\"")).unwrap_err();
            assert_eq!(without_place(&error), "invalid type: string, expected u8");
            let error = serde_json::from_str::<Level>(&format!("\"{value}\"")).unwrap_err();
            assert_eq!(without_place(&error), "unknown variant, expected `Low` or `High`");
        }
        let error = serde_json::from_str::<u8>("true").unwrap_err();
        assert_eq!(without_place(&error), "invalid type: boolean, expected u8");
        let error = serde_json::from_str::<u8>("300").unwrap_err();
        assert_eq!(without_place(&error), "invalid value: integer, expected u8");
        let _ = (Level::Low, Level::High);
    }
}

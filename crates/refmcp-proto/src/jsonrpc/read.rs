//! Reading a part of a message as a type, with errors that name the member that does not fit.

use serde::Deserialize;
use serde_json::Deserializer;

use super::{excerpt, without_place};

/// Reads a JSON text that stands at `place` in a message.
///
/// # Errors
/// When the text does not fit the type: the path of the member, from `place` on, and what is wrong with it.
pub fn read_member<'a, T: Deserialize<'a>>(place: &str, text: &'a str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|fault| describe::<T>(place, text, &fault))
}

/// Reads the text once more and remembers the way to the fault: what fits, as nearly everything does, needs no path.
#[cold]
fn describe<'a, T: Deserialize<'a>>(place: &str, text: &'a str, fault: &serde_json::Error) -> String {
    let why = without_place(fault);
    match serde_path_to_error::deserialize::<_, T>(&mut Deserializer::from_str(text)) {
        Err(found) if found.path().iter().next().is_some() => {
            let path = excerpt(&found.path().to_string());
            let dot = if path.starts_with('[') { "" } else { "." };
            format!("{place}{dot}{path}: {why}")
        }
        _ => format!("{place}: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;
    use crate::model::{CompleteParams, GetPromptParams, SetLevelParams};

    fn fault<T: for<'a> Deserialize<'a>>(text: &str) -> String {
        read_member::<T>("params", text).err().expect("it should not fit")
    }

    #[test]
    fn errors_name_the_member() {
        assert_eq!(
            fault::<GetPromptParams>(r#"{"name":"review","arguments":{"code":"x","language":7}}"#),
            "params.arguments.language: invalid type: integer, expected a string"
        );
        let reference = r#""ref":{"type":"ref/prompt","name":"review"}"#;
        assert!(
            fault::<CompleteParams>(&format!(r#"{{{reference},"argument":{{"name":"code","value":true}}}}"#))
                .starts_with("params.argument.value: ")
        );
        let argument = r#""argument":{"name":"code","value":""}"#;
        let context = r#""context":{"arguments":{"language":null}}"#;
        assert!(
            fault::<CompleteParams>(&format!("{{{reference},{argument},{context}}}"))
                .starts_with("params.context.arguments.language: ")
        );
        assert!(
            fault::<CompleteParams>(&format!(r#"{{"ref":{{"type":"ref/prompt","name":3}},{argument}}}"#))
                .starts_with("params.ref: ")
        );
        assert!(fault::<SetLevelParams>(r#"{"level":"INFO"}"#).starts_with("params.level: "));
        assert!(fault::<Vec<u8>>("[1,true]").starts_with("params[1]: "));
    }

    #[test]
    fn an_error_of_the_whole_value_has_no_path() {
        assert_eq!(fault::<GetPromptParams>("{}"), "params: missing field `name`");
        assert!(fault::<BTreeMap<String, Value>>("3").starts_with("params: "));
    }

    #[test]
    fn long_names_are_cut() {
        let name = "x".repeat(10_000);
        let text = format!(r#"{{"name":"review","arguments":{{"{name}":7}}}}"#);
        assert!(fault::<GetPromptParams>(&text).len() < 400);
    }
}

//! Where results go: as text for people, as one JSON document, or nowhere because every message is printed anyway.

use anyhow::Result;
use serde::Serialize;
use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde_json::value::RawValue;

use crate::args::{OutputFormat, SharedOptions};
use crate::ui::output::{print, print_aside, print_json};
use crate::ui::redact::masked;
use crate::ui::render::{Rendered, View};

/// How results are shown.
#[derive(Debug, Clone)]
pub(crate) struct Printer {
    output: OutputFormat,
    view: View,
}

impl Printer {
    pub(crate) fn new(shared: &SharedOptions) -> Self {
        Self { output: shared.output, view: View::for_stdout(shared.no_color) }
    }

    /// Shows a result.
    pub(crate) fn show<T: Into<Rendered>>(
        &self,
        result: &impl Serialize,
        text: impl FnOnce(&View) -> T,
    ) -> Result<()> {
        match self.output {
            OutputFormat::Text => {
                let Rendered { text, notes } = text(&self.view).into();
                print_aside(&masked(&notes));
                write(text.as_bytes())
            }
            OutputFormat::Json => {
                Ok(print_json(&format!("{}\n", laid_out(&serde_json::to_string(result)?)))?)
            }
            // Each message was printed when it passed.
            OutputFormat::Jsonl => Ok(()),
        }
    }

    /// Shows a result whose bytes may be wanted as they are, by a program that reads them.
    pub(crate) fn show_bytes<T: Into<Rendered>>(
        &self,
        result: &impl Serialize,
        bytes: Option<Vec<u8>>,
        text: impl FnOnce(&View) -> T,
    ) -> Result<()> {
        match bytes.filter(|_| self.output == OutputFormat::Text && self.view.is_piped) {
            Some(bytes) => write(&bytes),
            None => self.show(result, text),
        }
    }

    pub(crate) fn output(&self) -> OutputFormat {
        self.output
    }

    pub(crate) fn view(&self) -> &View {
        &self.view
    }
}

/// A result beside the JSON text that the server wrote, so that output keeps its members in their order.
pub(crate) struct WithRawJson<T> {
    pub(crate) item: T,
    pub(crate) text: Box<RawValue>,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for WithRawJson<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let item = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        Ok(Self { item, text })
    }
}

/// Writes to standard output; a reader that has left wants no more.
pub(crate) fn write(bytes: &[u8]) -> Result<()> {
    Ok(print(bytes)?)
}

/// Where JSON is nested more deeply than this, it is no easier to read on many lines.
const DEEPEST: usize = 64;

/// A JSON text on lines of its own, with everything in it as it was written.
pub(crate) fn laid_out(json: &str) -> String {
    let mut laid_out = String::with_capacity(json.len() * 2);
    let (mut depth, mut rest) = (0_usize, json.trim_start());
    while let Some(next) = rest.chars().next() {
        let length = if next == '"' { text_length(rest) } else { next.len_utf8() };
        let (token, behind) = rest.split_at(length);
        rest = behind.trim_start();
        match next {
            '{' | '[' => {
                depth += 1;
                laid_out.push(next);
                if !rest.starts_with(['}', ']']) {
                    break_line(&mut laid_out, depth, depth);
                }
            }
            '}' | ']' => {
                if !laid_out.ends_with(['{', '[']) {
                    break_line(&mut laid_out, depth.saturating_sub(1), depth);
                }
                depth = depth.saturating_sub(1);
                laid_out.push(next);
            }
            ',' => {
                laid_out.push(next);
                break_line(&mut laid_out, depth, depth);
            }
            ':' => laid_out.push_str(": "),
            _ => laid_out.push_str(token),
        }
    }
    laid_out
}

/// Begins a line, unless what it belongs to is too deep.
fn break_line(text: &mut String, indent: usize, depth: usize) {
    if depth <= DEEPEST {
        text.push('\n');
        text.extend(std::iter::repeat_n("  ", indent));
    }
}

/// How long the text is that begins with a quotation mark.
fn text_length(json: &str) -> usize {
    let mut escaped = false;
    let end = json.bytes().skip(1).position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    end.map_or(json.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_laid_out_is_what_was_written() {
        let written = r#" {"z":1.0,"a":[ ],"m":{"text":"a \"{,:}\" \\","b":[1,-2e3,null,{}]},"z":"ä"}"#;
        let expected = r#"{
  "z": 1.0,
  "a": [],
  "m": {
    "text": "a \"{,:}\" \\",
    "b": [
      1,
      -2e3,
      null,
      {}
    ]
  },
  "z": "ä"
}"#;
        assert_eq!(laid_out(written), expected);
        assert_eq!(laid_out(expected), expected);
        for plain in ["7", "\"a b\"", "null", "[]", "{}"] {
            assert_eq!(laid_out(plain), plain);
        }
    }

    #[test]
    fn it_is_laid_out_as_ever() {
        let value = serde_json::json!({"a": [1, {"b": "c\nd"}, []], "e": {"f": {}, "g": [[2]]}, "h": false});
        assert_eq!(laid_out(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
    }

    #[test]
    fn depth_does_not_make_it_long() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(laid_out(&deep).len() < deep.len() + 100 * DEEPEST * 2);
    }
}

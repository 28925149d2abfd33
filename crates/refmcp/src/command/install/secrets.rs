//! The text of a configuration file as it may be shown: without the secrets of any entry, and with the same lines.

use std::collections::BTreeMap;
use std::iter::once;
use std::ops::Range;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, parse_to_ast};
use refmcp_client::redact::{self, MASK};

use crate::config::{BYTE_ORDER_MARK, SYNTAX};
use crate::ui::redact::is_reference;

/// The text with its secrets masked, line by line. A text that is not understood has nothing but masks.
pub(super) fn masked(text: &str) -> String {
    let shown = replaced(text).filter(|shown| shown.lines().count() == text.lines().count());
    shown.unwrap_or_else(|| text.lines().map(|_| format!("{MASK}\n")).collect())
}

/// What stands in place of the parts that are or hold a secret, by where they begin.
#[derive(Default)]
struct Replacements(BTreeMap<usize, (usize, String)>);

fn replaced(text: &str) -> Option<String> {
    let content = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let collect = CollectOptions { comments: CommentCollectionStrategy::Separate, tokens: false };
    let parsed = parse_to_ast(content, &collect, &SYNTAX).ok()?;
    let mut replacements = Replacements::default();
    if let Some(value) = &parsed.value {
        replacements.find(value);
    }
    for comment in parsed.comments.iter().flat_map(|comments| comments.values()).flat_map(|list| list.iter())
    {
        let shown = content.get(comment.start()..comment.end())?.split('\n').map(comment_line);
        replacements.add(comment.start()..comment.end(), shown.collect::<Vec<_>>().join("\n"));
    }
    let mut shown = text.get(..text.len() - content.len())?.to_owned();
    let mut done = 0;
    for (start, (end, part)) in replacements.0 {
        shown += content.get(done..start)?;
        shown += &part;
        done = end;
    }
    Some(shown + content.get(done..)?)
}

impl Replacements {
    fn add(&mut self, place: Range<usize>, shown: String) {
        self.0.insert(place.start, (place.end, shown));
    }

    /// A string that is shown as this.
    fn string(&mut self, place: &impl Ranged, text: &str, shown: &str) {
        if shown != text && !is_reference(text) {
            self.add(place.start()..place.end(), serde_json::Value::from(shown).to_string());
        }
    }

    /// Finds what is masked elsewhere too, and all values of objects called `env` or `headers`.
    fn find(&mut self, value: &Value<'_>) {
        match value {
            Value::Object(object) => {
                for property in &object.properties {
                    match (property.name.as_str(), &property.value) {
                        ("env" | "headers", Value::Object(secrets)) => {
                            secrets.properties.iter().for_each(|secret| self.hide(&secret.value));
                        }
                        (name, Value::StringLit(text)) => {
                            let shown = redact::words(&["", &format!("--{name}"), &text.value]);
                            self.string(text, &text.value, shown.last().map_or(MASK, String::as_str));
                        }
                        (_, other) => self.find(other),
                    }
                }
            }
            Value::Array(array) => {
                let words: Vec<_> = array.elements.iter().filter_map(Value::as_string_lit).collect();
                let texts: Vec<&str> = words.iter().map(|word| word.value.as_ref()).collect();
                for (word, shown) in words.iter().zip(redact::words(&texts)) {
                    self.string(*word, &word.value, &shown);
                }
                array.elements.iter().for_each(|element| self.find(element));
            }
            // Those of objects and arrays are seen with what stands beside them.
            _ => {}
        }
    }

    fn hide(&mut self, value: &Value<'_>) {
        match value {
            Value::StringLit(text) => self.string(text, &text.value, MASK),
            Value::NumberLit(number) => self.string(number, number.value, MASK),
            Value::Object(object) => object.properties.iter().for_each(|property| self.hide(&property.value)),
            Value::Array(array) => array.elements.iter().for_each(|element| self.hide(element)),
            Value::BooleanLit(_) | Value::NullKeyword(_) => {}
        }
    }
}

/// A line of a comment. One with quotes may be a part of an entry: of it, the name of a member is shown.
fn comment_line(line: &str) -> String {
    match (line.contains('"'), line.split_once("\":")) {
        (true, Some((name, _))) => format!("{name}\": {MASK}"),
        (true, None) => MASK.to_owned(),
        (false, _) => {
            let words: Vec<&str> = once("").chain(line.split(' ')).collect();
            redact::words(&words).get(1..).unwrap_or_default().join(" ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_where_they_stand_and_all_else_stays() {
        let text = "\u{feff}// team: KEY=HUSH, see docs\r\n{\n\t\"servers\": { /* é\n \"Authorization\": \"HUSH\" */\n\
                    \"a\": {\"url\": \"https://me:HUSH@h/mcp?key=HUSH\", \"type\": \"http\",\n\
                    \"headers\": {\"X-Foo\": \"HUSH\", \"X-Ref\": \"${input:t}\", \"n\": 1234}},\n\
                    \"b\": {\"command\": \"run\", \"args\": [\"-v\", \"--token\", \"HU\\u0053H\"], \"apiKey\": \"HUSH\",\n\
                    \"env\": {\"A\": \"x\"}, }, },\n}";
        let shown = "\u{feff}// team: KEY=*** see docs\r\n{\n\t\"servers\": { /* é\n \"Authorization\": ***\n\
                    \"a\": {\"url\": \"https://***@h/mcp?key=***\", \"type\": \"http\",\n\
                    \"headers\": {\"X-Foo\": \"***\", \"X-Ref\": \"${input:t}\", \"n\": \"***\"}},\n\
                    \"b\": {\"command\": \"run\", \"args\": [\"-v\", \"--token\", \"***\"], \"apiKey\": \"***\",\n\
                    \"env\": {\"A\": \"***\"}, }, },\n}";
        assert_eq!(masked(text), shown);
        let plain = "// mine\n{\n  \"servers\": {\"a\": {\"url\": \"https://h/mcp\"}} // fast\n}\n";
        assert_eq!(masked(plain), plain);
        assert_eq!(masked(""), "");
    }

    #[test]
    fn a_text_that_is_not_understood_is_hidden_whole() {
        assert_eq!(masked("{\n  \"a\": HUSH\n"), "***\n***\n");
    }
}

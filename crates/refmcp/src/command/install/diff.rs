//! What changes in a text, as a unified diff. An edit is in one place, so there is one hunk: what is between the lines
//! that both texts begin with and those that both end with. Secrets in it are masked.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::iter::once;
use std::ops::Range;

use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, parse_to_ast};
use refmcp_client::redact::{self, MASK};

use crate::config::{BYTE_ORDER_MARK, SYNTAX};
use crate::ui::redact::is_reference;
use crate::ui::style::Paint;
use crate::ui::text::one_line;

/// Lines that are shown around a change.
const CONTEXT: usize = 3;

/// The change of a file from one content to another; `None` where there is no file. A content is shown as `shown` gives it,
/// with as many lines: a change of what is not shown is a change too.
pub(super) fn unified(
    file: &str,
    before: Option<&str>,
    after: Option<&str>,
    shown: fn(&str) -> String,
    paint: Paint,
) -> String {
    let [old_shown, new_shown] = [before, after].map(|content| content.map(shown));
    let (old, new) = (lines(before), lines(after));
    let (old_lines, new_lines) = (lines(old_shown.as_deref()), lines(new_shown.as_deref()));
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(same).count().min(most);
    let (from, until) = (head.saturating_sub(CONTEXT), CONTEXT.min(tail));
    let name = |content: Option<&str>| content.map_or("/dev/null".into(), |_| one_line(file));
    let mut shown = String::new();
    let place = |first: usize, total: usize| {
        let count = total - tail + until - first;
        format!("{},{count}", if count == 0 { first } else { first + 1 })
    };
    let title = format!("--- {}\n+++ {}", name(before), name(after));
    // Writing to a text does not fail.
    let _ = writeln!(shown, "{}", paint.strong(&title));
    let _ = writeln!(
        shown,
        "{}",
        paint.value(&format!("@@ -{} +{} @@", place(from, old.len()), place(from, new.len())))
    );
    let mut show = |sign: char, line: &str, style: &dyn Fn(&str) -> String| {
        let (text, end) =
            line.strip_suffix('\n').map_or((line, "\n\\ No newline at end of file"), |text| (text, ""));
        let text = text.strip_suffix('\r').unwrap_or(text);
        let _ = writeln!(shown, "{}{end}", style(&format!("{sign}{}", shown_line(text))));
    };
    for line in old_lines.get(from..head).unwrap_or_default() {
        show(' ', line, &str::to_owned);
    }
    for line in old_lines.get(head..old.len() - tail).unwrap_or_default() {
        show('-', line, &|text| paint.wrong(text));
    }
    for line in new_lines.get(head..new.len() - tail).unwrap_or_default() {
        show('+', line, &|text| paint.added(text));
    }
    for line in new_lines.get(new.len() - tail..new.len() - tail + until).unwrap_or_default() {
        show(' ', line, &str::to_owned);
    }
    shown
}

/// A line with its tabs, and without anything that steers a terminal.
fn shown_line(line: &str) -> String {
    line.split('\t').map(one_line).collect::<Vec<_>>().join("\t")
}

fn lines(text: Option<&str>) -> Vec<&str> {
    text.unwrap_or_default().split_inclusive('\n').collect()
}

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

    fn diff(before: Option<&str>, after: Option<&str>) -> String {
        unified("f", before, after, str::to_owned, Paint::PLAIN)
    }

    #[test]
    fn the_lines_around_a_change_are_shown() {
        let shown = diff(Some("1\n2\n3\n4\n5\n6\n7\n8\n"), Some("1\n2\n3\n4\nx\n\ty\n6\n7\n8\n"));
        assert_eq!(shown, "--- f\n+++ f\n@@ -2,7 +2,8 @@\n 2\n 3\n 4\n-5\n+x\n+\ty\n 6\n 7\n 8\n");
    }

    #[test]
    fn a_change_that_is_not_shown_is_seen() {
        let shown = |text: &str| text.replace(['x', 'y'], "*");
        let diff = unified("f", Some("a\nx\n"), Some("a\ny\n"), shown, Paint::PLAIN);
        assert_eq!(diff, "--- f\n+++ f\n@@ -1,2 +1,2 @@\n a\n-*\n+*\n");
    }

    #[test]
    fn files_come_and_go() {
        assert_eq!(diff(None, Some("a\nb\n")), "--- /dev/null\n+++ f\n@@ -0,0 +1,2 @@\n+a\n+b\n");
        assert_eq!(diff(Some("a\n"), None), "--- f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n");
    }

    #[test]
    fn repeated_lines_and_ends_without_a_line_break_are_right() {
        assert_eq!(diff(Some("a\na\n"), Some("a\na\na\n")), "--- f\n+++ f\n@@ -1,2 +1,3 @@\n a\n a\n+a\n");
        let shown = diff(Some("{}"), Some("{\n}"));
        let end = "\\ No newline at end of file\n";
        assert_eq!(shown, format!("--- f\n+++ f\n@@ -1,1 +1,2 @@\n-{{}}\n{end}+{{\n+}}\n{end}"));
    }

    #[test]
    fn nothing_steers_the_terminal() {
        let shown = diff(None, Some("a\x1b[2J\r\n"));
        assert!(shown.ends_with("+a␛[2J\n"), "{shown:?}");
    }

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

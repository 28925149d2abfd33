//! The conversation on the page: the events of the excerpt, and the evidence of violations beyond it.

use std::fmt::Write;

use super::super::excerpt::{Entry, Excerpt};
use super::super::markup::{escaped, escaped_line};
use super::{Mark, Violations};
use crate::verdict::Role;

/// Messages with more brackets and commas than this are not laid out, since each would become a line.
const MAX_LINES: usize = 200;

/// Deeper members are not indented further.
const MAX_INDENT: usize = 12;

/// Writes the events in their order.
pub(super) fn write(excerpt: &Excerpt, violations: &Violations<'_>, out: &mut String) {
    out.push_str("<section id=\"conversation\" aria-labelledby=\"conversation-title\" tabindex=\"0\">\n");
    out.push_str("<h2 id=\"conversation-title\">Conversation</h2>\n");
    let last = excerpt.entries.last().map_or(0, |entry| entry.event);
    let beyond = violations.by_event.range(last + 1..).filter_map(|(_, marks)| marks.first());
    if excerpt.events == 0 && violations.by_event.is_empty() {
        out.push_str(
            "<p class=\"muted\">The report has no events: the recording is not at hand or is empty.</p>\n",
        );
    }
    out.push_str("<ol class=\"events\">\n");
    let start = excerpt.entries.first().map_or(0, |entry| entry.at);
    let mut next = 1;
    for entry in &excerpt.entries {
        write_event(&Shown::from(entry), start, violations, out);
        next = entry.event + 1;
    }
    for mark in beyond {
        write_gap(mark.evidence.event.saturating_sub(next), out);
        write_event(&Shown::from(mark), start, violations, out);
        next = mark.evidence.event + 1;
    }
    write_gap((excerpt.events + 1).saturating_sub(next), out);
    out.push_str("</ol>\n</section>\n");
}

/// An event as it is shown.
struct Shown<'a> {
    event: u64,
    at: u64,
    connection: u64,
    stream: Option<u64>,
    from: Option<Role>,
    title: &'a str,
    text: &'a str,
}

impl<'a> From<&'a Entry> for Shown<'a> {
    fn from(entry: &'a Entry) -> Self {
        let Entry { event, at, connection, stream, from, title, text } = entry;
        let (event, at, connection) = (*event, *at, *connection);
        Self { event, at, connection, stream: *stream, from: *from, title, text }
    }
}

impl<'a> From<&'a Mark<'_>> for Shown<'a> {
    fn from(mark: &'a Mark<'_>) -> Self {
        let evidence = mark.evidence;
        Self {
            event: evidence.event,
            at: evidence.at,
            connection: evidence.connection,
            stream: evidence.stream,
            from: None,
            title: "evidence",
            text: &evidence.text,
        }
    }
}

fn write_event(shown: &Shown<'_>, start: u64, violations: &Violations<'_>, out: &mut String) {
    let marks = violations.by_event.get(&shown.event).map_or(&[][..], Vec::as_slice);
    let (class, sender) = match shown.from {
        Some(Role::Client) => ("client", "client to server"),
        Some(Role::Server) => ("server", "server to client"),
        None => ("neither", ""),
    };
    let broken = if marks.is_empty() { "" } else { " broken" };
    let offset = shown.at.saturating_sub(start);
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<li id=\"event-{}\" class=\"event from-{class}{broken}\" tabindex=\"-1\"><p class=\"head\"><span class=\"title\">{}</span> \
         <span class=\"muted\">{sender}</span> <span class=\"muted place\">event {}, +{}.{:03} s, connection {}{}</span></p>",
        shown.event,
        escaped_line(shown.title),
        shown.event,
        offset / 1000,
        offset % 1000,
        shown.connection,
        shown.stream.map(|stream| format!(", HTTP request {stream}")).unwrap_or_default(),
    );
    if !marks.is_empty() {
        out.push_str("<p class=\"marks\">breaks ");
        for (at, Mark { anchor, rule, .. }) in marks.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let _ =
                write!(out, "{comma}<a href=\"#{anchor}\">{}</a> ({})", escaped_line(&rule.id), rule.level);
        }
        out.push_str("</p>");
    }
    if !shown.text.is_empty() {
        let _ = write!(out, "<pre>{}</pre>", escaped(&laid_out(shown.text)));
    }
    out.push_str("</li>\n");
}

fn write_gap(events: u64, out: &mut String) {
    if events > 0 {
        let what = super::counted(events, "event");
        let _ = writeln!(out, "<li class=\"gap muted\">{what} left out; the recording has them.</li>");
    }
}

/// A JSON text with line breaks between members; every other character stays as it is. Texts that are no objects or arrays, and
/// those with many members, are not changed.
fn laid_out(text: &str) -> String {
    let is_break = |c: char| matches!(c, '{' | '[' | ',');
    if !text.starts_with(['{', '[']) || text.matches(is_break).count() > MAX_LINES || text.len() < 60 {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len() * 2);
    let (mut depth, mut in_string, mut is_escaped) = (0_usize, false, false);
    let mut characters = text.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth.min(MAX_INDENT)));
    };
    while let Some(c) = characters.next() {
        if in_string {
            out.push(c);
            in_string = c != '"' || is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            continue;
        }
        match c {
            '"' => {
                in_string = true;
                out.push(c);
            }
            '{' | '[' if matches!(characters.peek(), Some('}' | ']')) => {
                out.push(c);
                out.extend(characters.next());
            }
            '{' | '[' => {
                depth += 1;
                out.push(c);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(c);
            }
            ',' => {
                out.push(c);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            c if c.is_whitespace() => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_messages_are_laid_out_and_no_string_is_changed() {
        let text =
            r#"{"jsonrpc":"2.0","params":{"a":[1.0e2,"x, {y} \" [z]"],"b":{},"c":"\\"},"id":12345678}"#;
        let expected = "{\n  \"jsonrpc\": \"2.0\",\n  \"params\": {\n    \"a\": [\n      1.0e2,\n      \
                        \"x, {y} \\\" [z]\"\n    ],\n    \"b\": {},\n    \"c\": \"\\\\\"\n  },\n  \"id\": 12345678\n}";
        assert_eq!(laid_out(text), expected);
        assert_eq!(laid_out("{\"id\":1}"), "{\"id\":1}");
    }

    #[test]
    fn hostile_nesting_stays_small() {
        let deep = "[".repeat(4000);
        assert_eq!(laid_out(&deep), deep);
        assert!(laid_out(&"[1,".repeat(100)).len() < 200 * 40);
    }
}

//! Text from servers, as a terminal shows it: without what would control the terminal, and in columns.

use std::borrow::Cow;

pub(crate) use refmcp_audit::visible::{escaped_json, multi_line, one_line};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many columns a text takes.
pub(crate) fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// The beginning of a text that takes no more than so many columns; `…` stands for the rest.
pub(crate) fn truncate(text: &str, columns: usize) -> Cow<'_, str> {
    if width(text) <= columns {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > columns {
            break;
        }
        out.push(c);
    }
    if columns > 0 {
        out.push('…');
    }
    Cow::Owned(out)
}

/// The first line of a text, harmless; `…` stands for further ones.
pub(crate) fn first_line(text: &str) -> String {
    let text = text.trim();
    let (line, more) = text.split_once('\n').map_or((text, false), |(line, _)| (line, true));
    let line = one_line(line.trim_end()).into_owned();
    if more { line + " …" } else { line }
}

/// A text whose lines all begin with this.
pub(crate) fn indent(text: &str, with: &str) -> String {
    let lines =
        text.lines().map(|line| if line.is_empty() { String::new() } else { format!("{with}{line}") });
    lines.collect::<Vec<_>>().join("\n")
}

/// The lines of a text, each of no more than so many columns. Words are never broken: names and addresses stay whole.
pub(crate) fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && width(&line) + 1 + width(word) > columns {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() || lines.is_empty() {
        lines.push(line);
    }
    lines
}

/// The columns of the widest word.
pub(crate) fn widest_word(text: &str) -> usize {
    text.split(' ').map(width).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_by_columns() {
        for (text, columns, cut) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("漢字漢字", 5, "漢字…"),
            ("漢字漢字", 4, "漢…"),
            ("abc", 1, "…"),
            ("abc", 0, ""),
        ] {
            assert_eq!(truncate(text, columns), cut, "{text} {columns}");
            assert!(width(&truncate(text, columns)) <= columns);
        }
    }

    #[test]
    fn the_first_line_says_that_there_are_more() {
        assert_eq!(first_line("  one\n"), "one");
        assert_eq!(first_line("one\r\ntwo"), "one …");
        assert_eq!(indent("a\n\nb", "  "), "  a\n\n  b");
    }

    #[test]
    fn lines_break_between_words_only() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(
            wrap("see https://example.org/long for more", 10),
            ["see", "https://example.org/long", "for more"]
        );
        assert_eq!(wrap("漢字 漢字", 5), ["漢字", "漢字"]);
        assert_eq!(wrap("", 5), [""]);
        assert_eq!(widest_word("a bcd ef"), 3);
    }
}

//! Examples in a document: blocks of `console`, in which a line `$ command` is followed by what the command prints.
//! A command goes on in the next line after a `\` and within `'`; `…` in the output stands for anything, over lines
//! too. Blocks of `console terminal` run at a terminal, and what is typed stands behind a question.

/// A command and what it should print.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Example {
    /// The line of the document that the command stands in.
    pub(crate) line: usize,
    /// Whether it runs at a terminal.
    pub(crate) on_terminal: bool,
    pub(crate) command: String,
    pub(crate) expected: String,
}

/// Every example of a document, in order.
pub(crate) fn examples(document: &str) -> Vec<Example> {
    let mut examples: Vec<Example> = Vec::new();
    let (mut inside, mut on_terminal, mut goes_on) = (false, false, false);
    for (line, text) in (1..).zip(document.lines()) {
        if text.starts_with("```") {
            on_terminal = text == "```console terminal";
            inside = !inside && (on_terminal || text == "```console");
            goes_on = false;
        } else if !inside {
            // Whatever stands between the blocks is for people.
        } else if let (Some(command), false) = (text.strip_prefix("$ "), goes_on) {
            examples.push(Example {
                line,
                on_terminal,
                command: command.to_owned(),
                expected: String::new(),
            });
            goes_on = is_open(command);
        } else if let Some(example) = examples.last_mut() {
            let part = if goes_on { &mut example.command } else { &mut example.expected };
            if !part.is_empty() {
                part.push('\n');
            }
            part.push_str(text);
            goes_on = goes_on && is_open(&example.command);
        }
    }
    examples
}

/// Whether the shell would wait for the rest of a command.
fn is_open(command: &str) -> bool {
    command.ends_with('\\') || command.matches('\'').count() % 2 == 1
}

/// Nothing when the output is as expected, else both side by side, with a mark where they part.
pub(crate) fn difference(expected: &str, actual: &str) -> Option<String> {
    let (expected, actual) = (tidied(expected), tidied(actual));
    if matches(&expected, &actual) {
        return None;
    }
    let lines: Vec<&str> = expected.lines().collect();
    let begins = |count: usize| matches(&format!("{}…", lines[..count].join("\n")), &actual);
    let wrong = (1..=lines.len()).find(|count| !begins(*count)).map(|count| count - 1);
    let mut text = String::from("  expected:\n");
    for (place, line) in lines.iter().enumerate() {
        text += &format!("  {} {line}\n", if wrong == Some(place) { ">" } else { "|" });
    }
    if wrong.is_none() {
        text += "  > (and nothing more)\n";
    }
    text += "  actual:\n";
    for line in actual.lines() {
        text += &format!("  | {line}\n");
    }
    Some(text)
}

/// Without white space at the end of a line or of the whole, which is not visible.
fn tidied(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_end().to_owned()
}

/// Whether a text is as expected, where `…` stands for anything.
pub(crate) fn matches(expected: &str, actual: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = parts.next().and_then(|first| actual.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_commands_and_what_follows() {
        let document = "Text\n```console\n$ one \\\n  two \\\n  three\nfirst\n\nthird\n$ quiet\n```\n$ no example\n\
                        ```sh\n$ none either\n```\n```console terminal\n$ last 'a\n$ b'\nout\n```\n";
        let example = |line, command: &str, expected: &str| Example {
            line,
            on_terminal: line > 15,
            command: command.to_owned(),
            expected: expected.to_owned(),
        };
        let wanted = [
            example(3, "one \\\n  two \\\n  three", "first\n\nthird"),
            example(9, "quiet", ""),
            example(16, "last 'a\n$ b'", "out"),
        ];
        assert_eq!(examples(document), wanted);
    }

    #[test]
    fn an_ellipsis_stands_for_anything() {
        for (expected, actual) in [
            ("", ""),
            ("same", "same"),
            ("…", ""),
            ("…", "a\nb"),
            ("a…", "a"),
            ("a … c", "a b c"),
            ("a\n…\nd", "a\nb\nc\nd"),
            ("a…b…c", "a1b2b3c"),
            ("…c", "a c b c"),
        ] {
            assert!(matches(expected, actual), "{expected:?} {actual:?}");
        }
        for (expected, actual) in
            [("", "a"), ("a", ""), ("a", "ab"), ("a…", "b"), ("…a", "ab"), ("a…a", "a"), ("a…b…c", "acb")]
        {
            assert!(!matches(expected, actual), "{expected:?} {actual:?}");
        }
    }

    #[test]
    fn what_cannot_be_seen_makes_no_difference() {
        assert_eq!(difference("a\ndata:\n", "a\r\ndata: \r\n\r\n"), None);
        assert!(difference("a\nb", "a\n\nb").is_some());
    }

    #[test]
    fn a_difference_shows_where_it_begins() {
        let shown = difference("a\n…\nc\nd", "a\nb\nc\ne").unwrap();
        assert_eq!(shown, "  expected:\n  | a\n  | …\n  | c\n  > d\n  actual:\n  | a\n  | b\n  | c\n  | e\n");
        let shown = difference("a", "a\nb").unwrap();
        assert!(shown.contains("  > (and nothing more)\n"), "{shown}");
        let shown = difference("", "a").unwrap();
        assert!(shown.contains("  > (and nothing more)\n"), "{shown}");
    }
}

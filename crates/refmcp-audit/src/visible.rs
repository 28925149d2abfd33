//! Text from peers, made harmless to show. Escape sequences can rewrite what is on the screen, and characters that turn the
//! direction of writing or cannot be seen can make a text say something else than it seems to; all of them are shown as what
//! they are.

use std::borrow::Cow;
use std::fmt::Write;

/// A text on one line: line breaks and tabs become spaces.
pub fn one_line(text: &str) -> Cow<'_, str> {
    neutral(text, |c| matches!(c, '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}').then_some(" "))
}

/// A text that keeps its lines and tabs.
pub fn multi_line(text: &str) -> Cow<'_, str> {
    let text =
        if text.contains("\r\n") { Cow::Owned(text.replace("\r\n", "\n")) } else { Cow::Borrowed(text) };
    let keep = |c: char| match c {
        '\n' => Some("\n"),
        '\t' => Some("\t"),
        '\u{2028}' | '\u{2029}' => Some("\n"),
        _ => None,
    };
    match text {
        Cow::Borrowed(text) => neutral(text, keep),
        Cow::Owned(text) => Cow::Owned(neutral(&text, keep).into_owned()),
    }
}

/// Replaces what is dangerous; `special` says what becomes of white space.
fn neutral(text: &str, special: impl Fn(char) -> Option<&'static str>) -> Cow<'_, str> {
    if !text.chars().any(is_dangerous) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match special(c) {
            Some(instead) => out.push_str(instead),
            None if is_dangerous(c) => show(c, &mut out),
            None => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A JSON text with what is dangerous written as escape sequences, which mean the same: such characters stand only within
/// strings there, and white space between them.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    let is_escaped = |c: char| is_dangerous(c) && !matches!(c, '\n' | '\t' | '\r');
    if !json.chars().any(is_escaped) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_escaped(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Writes a character that does something as one that does nothing.
fn show(c: char, out: &mut String) {
    let picture = match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + c as u32),
        '\x7f' => Some('\u{2421}'),
        _ => None,
    };
    match picture {
        Some(picture) => out.push(picture),
        // Writing to a string cannot fail.
        None => drop(write!(out, "<U+{:04X}>", c as u32)),
    }
}

/// Whether a character controls a terminal, turns the direction of writing, or hides.
fn is_dangerous(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Direction.
            '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            // Separators that some take for line breaks.
            | '\u{2028}' | '\u{2029}'
            // Without width; the joiners, which scripts and emoji need, are not among them.
            | '\u{00ad}' | '\u{034f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180e}'
            | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            // Tags and further variation selectors, in which whole sentences can hide.
            | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_keeps_its_meaning_without_what_controls_terminals() {
        let json = "{\"a\": \"\u{9b}2J \u{7f} \u{202e}x\u{e0041} \u{feff}ä 👍\",\n\t\"b\": 1}";
        let escaped = escaped_json(json);
        assert_eq!(escaped, "{\"a\": \"\\u009b2J \\u007f \\u202ex\\udb40\\udc41 \\ufeffä 👍\",\n\t\"b\": 1}");
        let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        assert_eq!(read(&escaped), read(json));
    }

    #[test]
    fn escapes_and_what_cannot_be_seen_are_shown() {
        for (text, shown) in [
            ("plain, äöü, 漢字, 👩\u{200d}💻", "plain, äöü, 漢字, 👩\u{200d}💻"),
            ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
            ("\x1b]0;title\x07", "␛]0;title␇"),
            ("\x1b]8;;http://evil\x1b\\link", "␛]8;;http://evil␛\\link"),
            ("\u{9b}2J", "<U+009B>2J"),
            ("a\u{8}\u{8}b", "a␈␈b"),
            ("\x7f", "␡"),
            ("safe\u{202e}txt.exe", "safe<U+202E>txt.exe"),
            ("\u{2066}x\u{2069}", "<U+2066>x<U+2069>"),
            ("\u{200f}", "<U+200F>"),
            ("zero\u{200b}width\u{feff}", "zero<U+200B>width<U+FEFF>"),
            ("tag\u{e0041}", "tag<U+E0041>"),
            ("selector\u{e0100}", "selector<U+E0100>"),
            ("\0", "␀"),
        ] {
            assert_eq!(one_line(text), shown, "{text:?}");
            assert_eq!(multi_line(text), shown, "{text:?}");
        }
    }

    #[test]
    fn lines_are_kept_or_joined() {
        for (text, one, many) in [
            ("a\nb", "a b", "a\nb"),
            ("a\r\nb", "a  b", "a\nb"),
            ("a\rb", "a b", "a␍b"),
            ("a\tb", "a b", "a\tb"),
            ("a\u{2028}b", "a b", "a\nb"),
        ] {
            assert_eq!(one_line(text), one, "{text:?}");
            assert_eq!(multi_line(text), many, "{text:?}");
        }
    }

    #[test]
    fn nothing_dangerous_is_left_of_any_character() {
        for c in (0..=0x10_ffff).filter_map(char::from_u32) {
            let text = c.to_string();
            assert!(!one_line(&text).chars().any(is_dangerous), "{c:?}");
            let left = multi_line(&text);
            assert!(!left.chars().any(|c| is_dangerous(c) && !matches!(c, '\n' | '\t')), "{c:?}");
        }
    }
}

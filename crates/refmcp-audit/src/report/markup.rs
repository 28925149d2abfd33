//! Text within HTML and XML.

use crate::visible::{multi_line, one_line};

/// A text of several lines, harmless and with the characters of markup escaped.
pub(super) fn escaped(text: &str) -> String {
    escape(&multi_line(text))
}

/// A text on one line, for attributes and headings.
pub(super) fn escaped_line(text: &str) -> String {
    escape(&one_line(text))
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML has no way to write them.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_is_markup_or_control() {
        let text = "</pre><script>alert(1)</script>\" onclick='x' & \u{202e}\x1b[2J\0\u{ffff}\ntwo";
        let shown = "&lt;/pre&gt;&lt;script&gt;alert(1)&lt;/script&gt;&quot; onclick=&#39;x&#39; &amp; \
                     &lt;U+202E&gt;␛[2J␀\u{fffd}\ntwo";
        assert_eq!(escaped(text), shown);
        assert_eq!(escaped_line(text), shown.replace('\n', " "));
    }
}

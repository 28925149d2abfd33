//! JSON as people write it: with comments and trailing commas.

/// Plain JSON of the same length, line for line and column for column, so that an error is where it says.
pub(super) fn plain(text: &str) -> String {
    let mut plain = Plain { out: String::with_capacity(text.len()), comma: None };
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    while let Some(character) = rest.chars().next() {
        let taken = match character {
            '"' => string(rest),
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            // A comment that does not end is left as it is, for the parser to complain of.
            '/' if rest.starts_with("/*") => match rest.get(2..).and_then(|inside| inside.find("*/")) {
                Some(inside) => inside + 4,
                None => 1,
            },
            other => other.len_utf8(),
        };
        let (piece, after) = rest.split_at(taken);
        if taken > 1 && character == '/' {
            plain.blank(piece);
        } else {
            plain.keep(piece);
        }
        rest = after;
    }
    plain.out
}

/// The length of a string with its quotes, or of what there is of it.
fn string(text: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    text.len()
}

struct Plain {
    out: String,
    /// Where a comma is that nothing has followed yet.
    comma: Option<usize>,
}

impl Plain {
    fn blank(&mut self, comment: &str) {
        self.out.extend(comment.chars().map(|character| if character == '\n' { '\n' } else { ' ' }));
    }

    fn keep(&mut self, piece: &str) {
        if matches!(piece, "}" | "]")
            && let Some(comma) = self.comma
        {
            self.out.replace_range(comma..=comma, " ");
        }
        if piece == "," && self.comma.is_none() && self.follows_a_value() {
            self.comma = Some(self.out.len());
        } else if !piece.trim().is_empty() {
            self.comma = None;
        }
        self.out.push_str(piece);
    }

    /// A comma with nothing before it is an error that stays one.
    fn follows_a_value(&self) -> bool {
        !matches!(self.out.trim_end().chars().next_back(), None | Some('{' | '[' | ',' | ':'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn means(text: &str) -> Option<String> {
        let value: serde_json::Value = serde_json::from_str(&plain(text)).ok()?;
        Some(value.to_string())
    }

    #[test]
    fn comments_and_trailing_commas_are_gone() {
        let text = "\u{feff}// one\n{\"a\": [1, /* two\n*/ 2,], // three\n\"b\": {\"c\": 1 , /**/ }, }\n//";
        assert_eq!(means(text).unwrap(), r#"{"a":[1,2],"b":{"c":1}}"#);
    }

    #[test]
    fn strings_are_left_alone() {
        let text = r#"{"a": "// no", "b": "/* no */", "c": "\"// ,]", "d": "\\", "e": ",}"}"#;
        assert_eq!(plain(text), text);
    }

    #[test]
    fn errors_stay_errors() {
        for text in ["{,}", "[,]", "[1,,]", "[1,,2]", "{\"a\":,}", "/* open", "{} / {}", "\"open", "/", ""] {
            assert_eq!(means(text), None, "{text}");
        }
    }

    #[test]
    fn places_stay_the_same() {
        let text = "{ /* é */\n  \"a\": 1, // x\n  \"b\": oops\n}";
        let fault = serde_json::from_str::<serde_json::Value>(&plain(text)).unwrap_err();
        assert_eq!((fault.line(), fault.column()), (3, 8));
    }
}

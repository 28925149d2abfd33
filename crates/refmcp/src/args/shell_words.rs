//! A line of words as a shell would take it apart, without anything a shell would do besides.

use serde_json::Value;

use super::{UsageError, usage};

/// Brackets of a line that are taken for JSON and are none, before the others are left alone: each try reads on.
const MAX_TRIES: usize = 64;

/// Takes a line apart at its spaces. Single quotes keep everything, double quotes everything but `\"` and `\\`, a
/// backslash outside of quotes the next character. A JSON object or array is kept as it is where a word begins, and
/// after `=`: its quotes belong to it.
///
/// # Errors
///
/// A quote is not closed, a backslash ends the line, or an object or array after `:=` is no JSON.
pub(crate) fn split_words(line: &str) -> Result<Vec<String>, UsageError> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = line.chars();
    let mut not_json = 0;
    while let Some(c) = rest.next() {
        match c {
            c if c.is_whitespace() => words.extend(word.take()),
            '{' | '[' if not_json < MAX_TRIES && word.as_deref().is_none_or(|word| word.ends_with('=')) => {
                let text = line.get(line.len() - rest.as_str().len() - c.len_utf8()..).unwrap_or_default();
                let word = word.get_or_insert_default();
                match json(text) {
                    Ok(Some(json)) => {
                        word.push_str(json);
                        rest = text.get(json.len()..).unwrap_or_default().chars();
                    }
                    Err(error) if word.ends_with(":=") => {
                        let key = word.trim_end_matches(":=");
                        return Err(usage!("{key}: is no JSON: {error}"));
                    }
                    _ => {
                        not_json += 1;
                        word.push(c);
                    }
                }
            }
            quote @ ('\'' | '"') => quoted(&mut rest, quote, word.get_or_insert_default())?,
            '\\' => {
                let next = rest.next().ok_or_else(|| UsageError::new("a backslash ends the line"))?;
                word.get_or_insert_default().push(next);
            }
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Ok(words)
}

/// The JSON value that a text begins with, if it ends where a word does.
fn json(text: &str) -> Result<Option<&str>, serde_json::Error> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    values.next().transpose()?;
    let (value, rest) = text.split_at(values.byte_offset());
    Ok(Some(value).filter(|_| rest.is_empty() || rest.starts_with(char::is_whitespace)))
}

/// Reads up to the quote that closes.
fn quoted(rest: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Result<(), UsageError> {
    let open = || usage!("the quote {quote} is not closed");
    loop {
        match rest.next().ok_or_else(open)? {
            c if c == quote => return Ok(()),
            '\\' if quote == '"' => match rest.next().ok_or_else(open)? {
                c @ ('"' | '\\') => word.push(c),
                c => word.extend(['\\', c]),
            },
            c => word.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use refmcp_client::redact;

    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        let cases: [(&str, &[&str]); 15] = [
            ("", &[]),
            ("  a  b ", &["a", "b"]),
            ("'a b' c", &["a b", "c"]),
            (r#""a \"b\" \n" c"#, &[r#"a "b" \n"#, "c"]),
            (r"a\ b", &["a b"]),
            ("a'b'\"c\"", &["abc"]),
            ("''", &[""]),
            ("a=$HOME `x` *", &["a=$HOME", "`x`", "*"]),
            (r"'\'", &[r"\"]),
            (
                r#"a:={"k":[1, 2]} b={"s": "x y"} ["c"]"#,
                &[r#"a:={"k":[1, 2]}"#, r#"b={"s": "x y"}"#, r#"["c"]"#],
            ),
            (r#"a:='{"k": 1}' b:="[1]""#, &[r#"a:={"k": 1}"#, "b:=[1]"]),
            (r#"a={"k" b=["c"]d"#, &["a={k", "b=[c]d"]),
            ("[ -f x ] {print} x[1", &["[", "-f", "x", "]", "{print}", "x[1"]),
            (r#"a:=["ä\"}" ,{}] b"#, &[r#"a:=["ä\"}" ,{}]"#, "b"]),
            (r#"--json={"a": 1}"#, &[r#"--json={"a": 1}"#]),
        ];
        for (line, words) in cases {
            assert_eq!(split_words(line).unwrap(), words, "{line}");
        }
        for bad in ["'a", "\"a", "\"a\\", "a\\", "a:={\"k\": x}", "a:=[1"] {
            assert!(split_words(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn many_brackets_are_taken_apart_in_little_time() {
        assert_eq!(split_words(&"[ ".repeat(100_000)).unwrap().len(), 100_000);
        assert!(split_words(&format!("a:={}", "[".repeat(100_000))).is_err());
    }

    #[test]
    fn joined_words_come_apart_again() {
        let words = ["npx", "-y", "", "a b", "it's", "$x", "\"q\"", "back\\slash"].map(str::to_owned);
        assert_eq!(split_words(&redact::joined(&words)).unwrap(), words);
        assert_eq!(redact::joined(&["a", "b c"]), "a 'b c'");
    }
}

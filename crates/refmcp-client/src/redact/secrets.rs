//! Secrets of a target that are known: masked in what a server wrote before it is quoted.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

use super::MASK;

/// What a URL encodes: everything but unreserved characters.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A shorter value is no secret worth the name: masking every `1` would hide what went wrong.
const MIN_LENGTH: usize = 4;

/// A value of this length or more is masked within longer words too.
const DISTINCT: usize = 8;

/// Backslashes before a character that are taken for its escape.
const MAX_BACKSLASHES: usize = 16;

/// The secrets that a command, its variables, its headers or a URL hold.
///
/// ```
/// use refmcp_client::redact::Secrets;
///
/// let secrets = Secrets::default().with_words(&["API_KEY=hush", "server", "--token", "quiet"]);
/// assert_eq!(secrets.masked("no access for hush, quiet"), "no access for ***, ***");
/// ```
#[derive(Clone, Default)]
#[must_use]
pub struct Secrets {
    /// The longest first, so that a part of one does not break another.
    values: Vec<String>,
}

impl Secrets {
    /// Knows what [`words`](super::words) hides of these as well.
    pub fn with_words<S: AsRef<str>>(mut self, words: &[S]) -> Self {
        for (word, shown) in words.iter().zip(super::by_place(words)) {
            self.add_hidden(word.as_ref(), &shown);
        }
        self
    }

    /// Knows the secrets of a URL as well.
    pub fn with_url(mut self, url: &str) -> Self {
        self.add_hidden(url, &super::url(url));
        self
    }

    /// Knows this value as well: one of a variable or a header.
    pub fn with_value(mut self, value: &str) -> Self {
        self.add(value);
        // A key of several lines may come line by line.
        value.lines().filter(|line| line.chars().count() >= DISTINCT).for_each(|line| self.insert(line));
        self
    }

    /// Knows all of these as well.
    pub fn extend(&mut self, others: &Self) {
        others.values.iter().for_each(|value| self.insert(value));
    }

    /// The text with every known secret masked.
    #[must_use]
    pub fn masked<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.values.iter().fold(Cow::Borrowed(text), |text, secret| match find(&text, secret) {
            Some(_) => Cow::Owned(without(&text, secret)),
            None => text,
        })
    }

    /// The value with every known secret masked in its texts, and in the names of its members.
    #[must_use]
    pub fn masked_json(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.masked(&text).into(),
            Value::Array(items) => items.into_iter().map(|item| self.masked_json(item)).collect(),
            Value::Object(members) => members
                .into_iter()
                .map(|(name, member)| (self.masked(&name).into_owned(), self.masked_json(member)))
                .collect(),
            other => other,
        }
    }

    fn add(&mut self, value: &str) {
        let value = value.trim_matches(|c: char| c.is_whitespace() || c == '\'' || c == '"');
        if value.contains(MASK) || matches!(value, "true" | "false") {
            return;
        }
        let decoded = percent_decode_str(value).decode_utf8_lossy();
        let encoded = utf8_percent_encode(&decoded, RESERVED).to_string();
        // A header's value has a scheme before its secret.
        let behind_scheme = value.rsplit_once(' ').map_or("", |(_, last)| last);
        for form in [value, &decoded, &encoded, behind_scheme] {
            self.insert(form);
        }
    }

    fn insert(&mut self, form: &str) {
        if form.chars().count() >= MIN_LENGTH && !self.values.iter().any(|known| known == form) {
            let at = self.values.partition_point(|known| known.len() >= form.len());
            self.values.insert(at, form.to_owned());
        }
    }

    /// Adds what stands in a word where the masks stand in the word as it is shown.
    fn add_hidden(&mut self, word: &str, shown: &str) {
        if word == shown {
            return;
        }
        if word.starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str(word)
        {
            return self.add_texts(&value);
        }
        let mut between = shown.split(MASK);
        let start = between.next().unwrap_or_default();
        let Some(mut rest) = word.strip_prefix(start) else { return self.add(word) };
        let mut between = between.peekable();
        while let Some(next) = between.next() {
            let at = match between.peek() {
                None => rest.strip_suffix(next).map(str::len),
                Some(_) => rest.find(next),
            };
            // The shown word has another form, so nothing is known of where the secret begins.
            let Some((secret, behind)) = at.and_then(|at| rest.split_at_checked(at)) else {
                return self.add(rest);
            };
            self.add(secret);
            // Of the user in a URL, the password alone is a secret too.
            if let Some((_, password)) = secret.split_once(':').filter(|_| next.starts_with('@')) {
                self.add(password);
            }
            rest = behind.strip_prefix(next).unwrap_or(behind);
        }
    }

    fn add_texts(&mut self, value: &Value) {
        match value {
            Value::String(text) => self.add(text),
            Value::Array(items) => items.iter().for_each(|item| self.add_texts(item)),
            Value::Object(members) => members.values().for_each(|member| self.add_texts(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secrets({})", self.values.len())
    }
}

/// The text without a secret. A short one is masked only where it is a word of its own.
fn without(text: &str, secret: &str) -> String {
    let alone = |before: &str, behind: &str| {
        !before.ends_with(char::is_alphanumeric) && !behind.starts_with(char::is_alphanumeric)
    };
    let anywhere = secret.chars().count() >= DISTINCT;
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, found, behind)) = find(rest, secret) {
        out.push_str(before);
        out.push_str(if anywhere || alone(&out, behind) { MASK } else { found });
        rest = behind;
    }
    out + rest
}

/// What stands before a secret, the secret as it is written there, and what stands behind it.
fn find<'a>(text: &'a str, secret: &str) -> Option<(&'a str, &'a str, &'a str)> {
    let (at, length) = if text.contains('\\') {
        let mut places = text.char_indices();
        places.find_map(|(at, _)| Some((at, escaped_length(text.get(at..)?, secret)?)))?
    } else {
        (text.find(secret)?, secret.len())
    };
    let (before, rest) = text.split_at_checked(at)?;
    let (found, behind) = rest.split_at_checked(length)?;
    Some((before, found, behind))
}

/// The length of a secret that the text begins with, where its characters may be escaped, once or several times: as in
/// JSON, in the source of programs, and in what these print of values. Backslashes are not compared.
fn escaped_length(text: &str, secret: &str) -> Option<usize> {
    let mut rest = text;
    for char in secret.chars().filter(|char| *char != '\\') {
        let backslashes = rest.bytes().take(MAX_BACKSLASHES).take_while(|byte| *byte == b'\\').count();
        let bare = rest.get(backslashes..)?;
        rest = match bare.strip_prefix(char) {
            Some(behind) => behind,
            None if backslashes > 0 => behind_escape(bare, char)?,
            None => return None,
        };
    }
    Some(text.len() - rest.len()).filter(|length| *length > 0)
}

/// What follows on the escape of a character, which begins behind its backslash.
fn behind_escape(text: &str, char: char) -> Option<&str> {
    let code = u32::from(char);
    let letter = match char {
        '\n' => "n",
        '\r' => "r",
        '\t' => "t",
        _ => "",
    };
    let forms = [letter, &format!("x{code:02x}"), &format!("u{code:04x}"), &format!("u{{{code:x}}}")];
    let is_form = |form: &&str| {
        !form.is_empty() && text.get(..form.len()).is_some_and(|it| it.eq_ignore_ascii_case(form))
    };
    text.get(forms.into_iter().find(is_form)?.len()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_in_a_target_is_masked_in_a_text() {
        let secrets = Secrets::default()
            .with_words(&[
                "KEY=hush",
                "sh",
                "-c",
                "TOKEN='in script' exec server",
                "--header",
                "Authorization: Bearer in-header",
                "https://me:in-user@host/?a=in%20query&b=second-one",
                "{\"password\":\"in-json\"}",
            ])
            .with_url("http://host/?key=in-url")
            .with_value("in-variable")
            .with_value("base64+/key==");
        for secret in [
            "hush",
            "in script",
            "in-header",
            "in-user",
            "in query",
            "in%20query",
            "second-one",
            "in-json",
            "in-url",
            "in-variable",
            "base64%2B%2Fkey%3D%3D",
        ] {
            let text = format!("it is {secret}!");
            let masked = secrets.masked(&text);
            assert!(!masked.contains(secret) && masked.contains(MASK), "{secret}: {masked}");
        }
        assert_eq!(secrets.masked("hushed in-variables"), "hushed ***s");
        assert_eq!(secrets.masked("nothing"), "nothing");
        let value = serde_json::json!({ "hush": ["in-url", 1, { "a": "no hush" }] });
        assert_eq!(secrets.masked_json(value), serde_json::json!({ "***": ["***", 1, { "a": "no ***" }] }));
        assert!(!format!("{secrets:?}").contains("hush"));
    }

    #[test]
    fn a_secret_is_masked_in_every_form_it_is_written_in() {
        let (mut secrets, other) = (Secrets::default(), Secrets::default().with_value("other \"one\" x"));
        secrets.extend(&other.with_value("-----BEGIN KEY-----\nfirst line\nsecond line\nend"));
        for (text, masked) in [
            (r#"{"a":"other \"one\" x"}"#, r#"{"a":"***"}"#),
            (r#"{"a":"{\"b\":\"other \\\"one\\\" x\"}"}"#, r#"{"a":"{\"b\":\"***\"}"}"#),
            (r#"'other \"one\" x'"#, "'***'"),
            (r"other \u0022one\x22 x", "***"),
            (r"other \u{22}one\U0022 x, \n", r"***, \n"),
            (r"a\b: -----BEGIN KEY-----\nfirst line\nsecond line\nend", r"a\b: ***"),
            ("first line", "***"),
            ("[second line]", "[***]"),
            ("the end", "the end"),
        ] {
            assert_eq!(secrets.masked(text), masked);
        }
    }

    #[test]
    fn secrets_with_backslashes_and_quotes_are_masked_as_programs_print_them() {
        let secrets = Secrets::default().with_value(r#"it's\a "key" /+"#);
        for text in [
            r#"it's\a "key" /+"#,
            r#"it\'s\\a "key" /+"#,
            r#"it's\\a \"key\" /+"#,
            r#"it\'s\\a \"key\" \/\u002B"#,
        ] {
            assert_eq!(secrets.masked(&format!("<{text}>\\")), "<***>\\", "{text}");
        }
        let long = "\\".repeat(100_000);
        assert_eq!(secrets.masked(&long), long);
    }

    #[test]
    fn what_is_too_short_or_too_common_stays() {
        let secrets = Secrets::default().with_value("1").with_value("true").with_value("");
        assert_eq!(secrets.masked("1 is true"), "1 is true");
    }
}

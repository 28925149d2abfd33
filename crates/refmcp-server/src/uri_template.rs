//! URI templates (RFC 6570), read backwards: which values make a template into a given URI?
//!
//! Understood are `{name}`, which stands for anything inside one part of a URI, so without `/`, `?` and `#`, and `{+name}`,
//! which stands for anything. Encoded they are part of a value: whoever makes a path of it has to look for them.
//! Matching takes time linear in the URI for a fixed template: a value ends at the first place where the text
//! after it fits, and only the last one looks for the text's end.

use std::collections::BTreeMap;

/// A URI longer than this fits no template.
const MAX_URI: usize = 8 << 10;

/// A template that URIs can be matched against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UriTemplate {
    /// The text before the first value.
    prefix: String,
    values: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Value {
    name: String,
    anything: bool,
    /// The text up to the next value, or to the end.
    then: String,
}

/// Why a text is no template that can be matched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// A brace without its partner.
    #[error("a brace without its partner")]
    Unbalanced,
    /// A value without a usable name, or with an operator that is not understood.
    #[error("{{{0}}} is not understood; use {{name}} or {{+name}}")]
    Expression(String),
    /// Two values with nothing between them could share a URI in many ways.
    #[error("nothing stands between two values")]
    Adjacent,
    /// The same name twice.
    #[error("{{{0}}} stands twice")]
    Repeated(String),
}

impl UriTemplate {
    /// Reads a template.
    pub fn parse(template: &str) -> Result<Self, BadTemplate> {
        let mut pieces = template.split('{');
        let prefix = pieces.next().unwrap_or_default();
        if prefix.contains('}') {
            return Err(BadTemplate::Unbalanced);
        }
        let mut values: Vec<Value> = Vec::new();
        for piece in pieces {
            let (expression, then) = piece.split_once('}').ok_or(BadTemplate::Unbalanced)?;
            if then.contains('}') {
                return Err(BadTemplate::Unbalanced);
            }
            let (anything, name) = match expression.strip_prefix('+') {
                Some(name) => (true, name),
                None => (false, expression),
            };
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
                return Err(BadTemplate::Expression(expression.to_owned()));
            }
            if values.iter().any(|value| value.name == name) {
                return Err(BadTemplate::Repeated(name.to_owned()));
            }
            if values.last().is_some_and(|value| value.then.is_empty()) {
                return Err(BadTemplate::Adjacent);
            }
            values.push(Value { name: name.to_owned(), anything, then: then.to_owned() });
        }
        Ok(Self { prefix: prefix.to_owned(), values })
    }

    /// The names of its values.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| value.name.as_str())
    }

    /// The values that make the template into this URI, percent-decoded; `None` when none do.
    pub fn matches(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        if uri.len() > MAX_URI {
            return None;
        }
        let mut rest = uri.strip_prefix(self.prefix.as_str())?;
        let mut found = BTreeMap::new();
        for (position, value) in self.values.iter().enumerate() {
            let last = position + 1 == self.values.len();
            let text = if last {
                let text = rest.strip_suffix(value.then.as_str())?;
                rest = "";
                text
            } else {
                let (text, after) = rest.split_once(value.then.as_str())?;
                rest = after;
                text
            };
            if text.is_empty() || (!value.anything && text.contains(['/', '?', '#'])) {
                return None;
            }
            found.insert(value.name.clone(), percent_decode(text)?);
        }
        rest.is_empty().then_some(found)
    }
}

fn percent_decode(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let high = char::from(rest.next()?).to_digit(16)?;
            let low = char::from(rest.next()?).to_digit(16)?;
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn found(template: &str, uri: &str) -> Option<Vec<(String, String)>> {
        let template = UriTemplate::parse(template).unwrap();
        template.matches(uri).map(|values| values.into_iter().collect())
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.to_owned(), value.to_owned())
    }

    #[test]
    fn finds_values() {
        assert_eq!(
            found("test://template/{id}/data", "test://template/123/data"),
            Some(vec![pair("id", "123")])
        );
        assert_eq!(found("a:{x}-{y}", "a:1-2-3"), Some(vec![pair("x", "1"), pair("y", "2-3")]));
        assert_eq!(found("file:///{+path}", "file:///a/b.txt"), Some(vec![pair("path", "a/b.txt")]));
        assert_eq!(found("a:{x}", "a:%C3%A9"), Some(vec![pair("x", "é")]));
        assert_eq!(found("a:b", "a:b"), Some(vec![]));
        // What is encoded separates nothing, and is handed on as it was meant.
        for (encoded, value) in [
            ("..%2F..", "../.."),
            ("%2e%2e", ".."),
            ("%2F%2Fevil", "//evil"),
            ("1%3Fx%23y", "1?x#y"),
            ("a%5Cb", "a\\b"),
            ("%00", "\0"),
            ("%252e", "%2e"),
        ] {
            let uri = format!("test://h/{encoded}/data");
            assert_eq!(found("test://h/{id}/data", &uri), Some(vec![pair("id", value)]));
        }
    }

    #[test]
    fn refuses_what_does_not_fit() {
        for (template, uri) in [
            ("test://{id}/data", "test://1/2/data"),
            ("test://{id}/data", "test:///data"),
            ("test://{id}/data", "test://1/date"),
            ("a:{x}", "a:%FF"),
            ("a:{x}", "a:%G1"),
            ("a:b", "a:bc"),
            // A value reaches into no other part.
            ("test://h/{id}/data", "test://h/../x/data"),
            ("test://h/{id}/data", "test://h//evil/data"),
            ("test://h/{id}/data", "test://h/1?x=/data"),
            ("test://h/{id}", "test://h/1?x"),
            ("test://h/{id}", "test://h/1#x"),
            ("test://h/{id}", "test://evil/1"),
            ("test://h/{id}", "TEST://h/1"),
            ("test://h/a/{id}", "test://h/a/../b"),
            ("test://h/a/{id}", "test://h/a/%2e%2e/b"),
        ] {
            assert_eq!(found(template, uri), None, "{template} {uri}");
        }
    }

    #[test]
    fn bad_templates_are_named() {
        assert_eq!(UriTemplate::parse("a:{x"), Err(BadTemplate::Unbalanced));
        assert_eq!(UriTemplate::parse("a:x}"), Err(BadTemplate::Unbalanced));
        assert_eq!(UriTemplate::parse("a:{?q}"), Err(BadTemplate::Expression("?q".into())));
        assert_eq!(UriTemplate::parse("a:{x}{y}"), Err(BadTemplate::Adjacent));
        assert_eq!(UriTemplate::parse("a:{x}/{x}"), Err(BadTemplate::Repeated("x".into())));
    }

    #[test]
    fn long_input_is_no_work() {
        let template = UriTemplate::parse("a:{x}b{y}b{z}").unwrap();
        assert_eq!(template.matches(&format!("a:{}", "b".repeat(1_000_000))), None);
        assert_eq!(template.matches(&format!("a:{}", "a".repeat(8_000))), None);
    }
}

//! URI templates (RFC 6570): expansion for clients, matching for servers.
//!
//! Expansion knows all operators; values are strings, without lists and maps. Matching finds the values that make a
//! template into a given URI, for `{name}`, which stands for anything without `/`, `?` and `#`, and `{+name}`, which
//! stands for anything. Encoded separators are part of a value: handlers that make a path of it have to check. Matching is
//! linear in the URI: a value ends where the text after it is first found, and the last one at the text's end.

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
    reserved: bool,
    /// The text up to the next value, or to the end.
    then: String,
}

/// Why a template cannot be matched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UriTemplateError {
    /// A brace without its partner.
    #[error("a brace without its partner")]
    Unbalanced,
    /// A value without a usable name, or with an operator that cannot be matched.
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
    pub fn parse(template: &str) -> Result<Self, UriTemplateError> {
        let mut prefix = None;
        let mut values: Vec<Value> = Vec::new();
        for part in parts(template) {
            match part {
                Part::Text(text) if text.contains(['{', '}']) => return Err(UriTemplateError::Unbalanced),
                Part::Text(text) => match values.last_mut() {
                    Some(value) => value.then = text.to_owned(),
                    None => prefix = Some(text.to_owned()),
                },
                Part::Expression(operator, name) => {
                    let reserved = operator == Some('+');
                    let is_name =
                        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                    if !is_name || !(reserved || operator.is_none()) {
                        let operator = operator.map(String::from).unwrap_or_default();
                        return Err(UriTemplateError::Expression(operator + name));
                    }
                    if values.iter().any(|value| value.name == name) {
                        return Err(UriTemplateError::Repeated(name.to_owned()));
                    }
                    if values.last().is_some_and(|value| value.then.is_empty()) {
                        return Err(UriTemplateError::Adjacent);
                    }
                    values.push(Value { name: name.to_owned(), reserved, then: String::new() });
                }
            }
        }
        Ok(Self { prefix: prefix.unwrap_or_default(), values })
    }

    /// The names of its values.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.iter().map(|value| value.name.as_str())
    }

    /// The values that make the template into this URI, percent-decoded.
    pub fn matches(&self, uri: &str) -> Option<BTreeMap<String, String>> {
        if uri.len() > MAX_URI {
            return None;
        }
        let mut rest = uri.strip_prefix(self.prefix.as_str())?;
        let mut found = BTreeMap::new();
        for (position, value) in self.values.iter().enumerate() {
            let last = position + 1 == self.values.len();
            let (text, after) = if last {
                (rest.strip_suffix(value.then.as_str())?, "")
            } else {
                rest.split_once(value.then.as_str())?
            };
            rest = after;
            if text.is_empty() || (!value.reserved && text.contains(['/', '?', '#'])) {
                return None;
            }
            found.insert(value.name.clone(), percent_decode(text)?);
        }
        rest.is_empty().then_some(found)
    }
}

/// A variable of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// Whether the URI is of use without it, as without a query.
    pub optional: bool,
}

/// A value leads out of the template: `.` and `..` need no encoding and keep their meaning in a path.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} leads to another place than the template; read an address instead if you mean it")]
pub struct ExpandError(String);

/// The variables of a template, each once.
pub fn variables(template: &str) -> Vec<Variable> {
    let mut all: Vec<Variable> = Vec::new();
    for part in parts(template) {
        let Part::Expression(operator, list) = part else { continue };
        for (name, _) in names(list) {
            if !all.iter().any(|variable| variable.name == name) {
                let optional = matches!(operator, Some('?' | '&' | '#'));
                all.push(Variable { name: name.to_owned(), optional });
            }
        }
    }
    all
}

/// The URI; variables without a value are left out, and a brace that is not closed is text.
pub fn expand(template: &str, values: &BTreeMap<String, String>) -> Result<String, ExpandError> {
    let mut uri = String::new();
    for part in parts(template) {
        match part {
            Part::Text(text) => uri.push_str(text),
            Part::Expression(operator, list) => {
                let style = style(operator);
                let mut lead = style.first;
                for (name, most) in names(list) {
                    let Some(value) = values.get(name) else { continue };
                    uri.push_str(lead);
                    lead = style.between;
                    if style.named {
                        uri.push_str(name);
                        uri.push_str(if value.is_empty() { style.if_empty } else { "=" });
                    }
                    let value: String = value.chars().take(most).collect();
                    percent_encode(&mut uri, &value, style.reserved);
                }
            }
        }
    }
    if dot_segments(&uri) > dot_segments(template) { Err(ExpandError(uri)) } else { Ok(uri) }
}

fn dot_segments(uri: &str) -> usize {
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    path.split('/').filter(|segment| matches!(*segment, "." | "..")).count()
}

enum Part<'a> {
    Text(&'a str),
    /// An operator, and the names behind it.
    Expression(Option<char>, &'a str),
}

/// Takes a template apart; a brace that is not closed is text.
fn parts(template: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((inside, after)) = after.split_once('}') else { break };
        parts.push(Part::Text(before));
        let operator = inside.chars().next().filter(|c| "+#./;?&".contains(*c));
        let list = operator.and_then(|operator| inside.strip_prefix(operator)).unwrap_or(inside);
        parts.push(Part::Expression(operator, list));
        rest = after;
    }
    parts.push(Part::Text(rest));
    parts
}

/// The names in an expression, and how many characters are taken of each value.
fn names(list: &str) -> impl Iterator<Item = (&str, usize)> {
    list.split(',').filter(|name| !name.is_empty()).map(|name| {
        let name = name.trim_end_matches('*');
        let prefixed = name.split_once(':').and_then(|(name, most)| Some((name, most.parse().ok()?)));
        prefixed.unwrap_or((name, usize::MAX))
    })
}

/// How the values of one expression are written.
struct Style {
    first: &'static str,
    between: &'static str,
    named: bool,
    /// What follows the name of an empty value.
    if_empty: &'static str,
    /// Whether reserved characters are not encoded.
    reserved: bool,
}

fn style(operator: Option<char>) -> Style {
    let plain = Style { first: "", between: ",", named: false, if_empty: "", reserved: false };
    match operator {
        Some('+') => Style { reserved: true, ..plain },
        Some('#') => Style { first: "#", reserved: true, ..plain },
        Some('.') => Style { first: ".", between: ".", ..plain },
        Some('/') => Style { first: "/", between: "/", ..plain },
        Some(';') => Style { first: ";", between: ";", named: true, ..plain },
        Some('?') => Style { first: "?", between: "&", named: true, if_empty: "=", ..plain },
        Some('&') => Style { first: "&", between: "&", named: true, if_empty: "=", ..plain },
        _ => plain,
    }
}

fn percent_encode(uri: &mut String, value: &str, reserved: bool) {
    for byte in value.bytes() {
        let c = char::from(byte);
        let unreserved = c.is_ascii_alphanumeric() || "-._~".contains(c);
        if unreserved || reserved && ":/?#[]@!$&'()*+,;=".contains(c) {
            uri.push(c);
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
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
    use url::Url;

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
    fn matching_finds_values() {
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
    fn uris_that_do_not_match() {
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
    fn templates_that_cannot_be_matched() {
        assert_eq!(UriTemplate::parse("a:{x"), Err(UriTemplateError::Unbalanced));
        assert_eq!(UriTemplate::parse("a:x}"), Err(UriTemplateError::Unbalanced));
        assert_eq!(UriTemplate::parse("a:{?q}"), Err(UriTemplateError::Expression("?q".into())));
        assert_eq!(UriTemplate::parse("a:{x}{y}"), Err(UriTemplateError::Adjacent));
        assert_eq!(UriTemplate::parse("a:{x}/{x}"), Err(UriTemplateError::Repeated("x".into())));
    }

    #[test]
    fn matching_long_uris_is_linear() {
        let template = UriTemplate::parse("a:{x}b{y}b{z}").unwrap();
        assert_eq!(template.matches(&format!("a:{}", "b".repeat(1_000_000))), None);
        assert_eq!(template.matches(&format!("a:{}", "a".repeat(8_000))), None);
    }

    #[test]
    fn variables_in_their_order() {
        let found = variables("memo://{shelf}/{name:3}{/path*}{?q,shelf}");
        let found: Vec<(&str, bool)> = found.iter().map(|v| (v.name.as_str(), v.optional)).collect();
        assert_eq!(found, [("shelf", false), ("name", false), ("path", false), ("q", true)]);
        assert!(variables("plain {unclosed").is_empty());
    }

    #[test]
    fn expansion_by_operator() {
        let values = [("v", "value"), ("h", "Hello World!"), ("p", "/foo/bar"), ("e", ""), ("u", "é")];
        let values = values.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect();
        for (template, address) in [
            ("{v}", "value"),
            ("{h}", "Hello%20World%21"),
            ("{+h}", "Hello%20World!"),
            ("{+p}/here", "/foo/bar/here"),
            ("{p}", "%2Ffoo%2Fbar"),
            ("{#p,v}", "#/foo/bar,value"),
            ("X{.v,v}", "X.value.value"),
            ("{/v,e}", "/value/"),
            ("{;v,e}", ";v=value;e"),
            ("{?v,e,none}", "?v=value&e="),
            ("a?b{&v}", "a?b&v=value"),
            ("{v:3}{u}", "val%C3%A9"),
            ("{none}{?none}", ""),
            ("a{b", "a{b"),
            ("{}", ""),
        ] {
            assert_eq!(expand(template, &values).unwrap(), address, "{template}");
        }
    }

    /// Values that try to leave their part of the URI.
    const HOSTILE: [&str; 16] = [
        "..",
        ".",
        "../x",
        "x/../..",
        "%2e%2e/",
        "%2E%2E",
        "//evil.example/x",
        "?a=b",
        "&a=b",
        "#f",
        "\\..\\x",
        "\0",
        "\r\nx",
        "@evil.example",
        ":80/x",
        "{name}",
    ];

    #[test]
    fn expanded_values_stay_in_their_part_or_are_refused() {
        for value in HOSTILE {
            let values = BTreeMap::from([("v".to_owned(), value.to_owned())]);
            let made = |template: &str| expand(template, &values).map(|text| Url::parse(&text).unwrap());
            let decoded = |text: &str| form_decode(text);

            let in_path = made("https://h.example/docs/{v}/end");
            assert_eq!(in_path.is_err(), [".", ".."].contains(&value), "{value:?}");
            if let Ok(url) = in_path {
                let parts: Vec<_> = url.path_segments().unwrap().map(decoded).collect();
                assert_eq!(parts, ["docs", value, "end"], "{url}");
                assert_eq!((url.host_str(), url.query(), url.fragment()), (Some("h.example"), None, None));
            }
            let url = made("https://h.example/docs{?v}").unwrap();
            assert_eq!((url.path(), url.fragment()), ("/docs", None));
            let pairs: Vec<_> = url.query_pairs().into_owned().collect();
            assert_eq!(pairs, [("v".to_owned(), value.to_owned())], "{url}");

            // What may have slashes may have a query as well, but leads neither up nor to others.
            if let Ok(url) = made("https://h.example/docs/{+v}") {
                assert!(url.as_str().starts_with("https://h.example/docs/"), "{value:?}: {url}");
            } else {
                assert!(value.contains('.'), "{value:?}");
            }
            if let Ok(url) = made("https://h.example/docs{/v}") {
                assert!(url.as_str().starts_with("https://h.example/docs/"), "{value:?}: {url}");
            }
        }
        let up = |template: &str| {
            let values = [("v", ".."), ("w", ".")].map(|(name, value)| (name.to_owned(), value.to_owned()));
            expand(template, &values.into_iter().collect())
        };
        for template in ["a:/b/{v}", "a:/b/.{w}", "a:/b/{.w}", "a:/b{/w,v}", "a:/b/{+v}/c"] {
            assert!(up(template).unwrap_err().to_string().contains("another place"), "{template}");
        }
        // What the template itself says is its author's, and what ends no part is a name.
        assert_eq!(up("a:/b/../c{?v}").unwrap(), "a:/b/../c?v=..");
        assert_eq!(up("a:/b/x{v}").unwrap(), "a:/b/x..");
    }

    fn form_decode(text: &str) -> String {
        let form = format!("v={}", text.replace('+', "%2B"));
        url::form_urlencoded::parse(form.as_bytes()).next().unwrap().1.into_owned()
    }
}

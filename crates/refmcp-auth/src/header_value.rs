//! Parts of HTTP header values: lists, tokens and quoted strings (RFC 9110 §5.6).

use std::borrow::Cow;

use http::{HeaderMap, HeaderName};

/// The elements of a list header, from all of its lines.
pub fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> + use<'a> {
    let lines = headers.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

/// True if a list header has this element, ignoring case.
pub fn lists(headers: &HeaderMap, name: &HeaderName, element: &str) -> bool {
    list(headers, name).any(|listed| listed.eq_ignore_ascii_case(element))
}

/// The token at the beginning of a text, and what follows it.
pub fn token(text: &str) -> Option<(&str, &str)> {
    let found =
        split(text, |character| character.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(character));
    (!found.0.is_empty()).then_some(found)
}

/// True if a text is one token, such as the name of a header.
pub fn is_token(text: &str) -> bool {
    token(text).is_some_and(|(_, rest)| rest.is_empty())
}

/// The token or the quoted string at the beginning of a text, and what follows it.
pub fn token_or_quoted(text: &str) -> Option<(Cow<'_, str>, &str)> {
    let Some(quoted) = text.strip_prefix('"') else {
        return token(text).map(|(token, rest)| (token.into(), rest));
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((place, character)) = characters.next() {
        match character {
            '"' => return Some((value.into(), quoted.get(place + 1..)?)),
            '\\' => value.push(characters.next()?.1),
            other => value.push(other),
        }
    }
    None
}

/// Splits after the longest prefix of these characters.
pub(crate) fn split(text: &str, wanted: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|character| !wanted(character)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

#[cfg(test)]
mod tests {
    use http::header::{CONNECTION, UPGRADE};
    use http::{HeaderMap, HeaderValue};

    use super::*;

    #[test]
    fn a_list_goes_on_in_the_next_line() {
        let mut headers = HeaderMap::new();
        headers.append(CONNECTION, HeaderValue::from_static("close, X-Own "));
        headers.append(CONNECTION, HeaderValue::from_static("Upgrade"));
        assert_eq!(list(&headers, &CONNECTION).collect::<Vec<_>>(), ["close", "X-Own", "Upgrade"]);
        assert!(lists(&headers, &CONNECTION, "upgrade") && !lists(&headers, &CONNECTION, "own"));
        assert!(!lists(&headers, &UPGRADE, "upgrade"));
    }

    #[test]
    fn tokens_and_quoted_strings_are_read() {
        for (text, value, rest) in [
            ("a.b~c=d", "a.b~c", "=d"),
            ("a", "a", ""),
            (r#""a, \"b\" \\ü";x"#, "a, \"b\" \\ü", ";x"),
            (r#""""#, "", ""),
        ] {
            assert_eq!(token_or_quoted(text), Some((value.into(), rest)), "{text}");
        }
        for bad in ["", " a", "=a", r#""a"#, r#""a\"#] {
            assert_eq!(token_or_quoted(bad), None, "{bad}");
        }
        assert!(is_token("X-Own") && !is_token("") && !is_token("a b") && !is_token("ä"));
    }
}

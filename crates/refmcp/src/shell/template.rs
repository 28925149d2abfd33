//! Addresses made from a template, after RFC 6570. Values are texts; lists and tables of them cannot be typed.

use std::collections::BTreeMap;

/// A variable of a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Variable {
    pub(super) name: String,
    /// Whether the address is of use without it, as is one without a query.
    pub(super) optional: bool,
}

/// How the values of one expression are written.
struct Style {
    first: &'static str,
    between: &'static str,
    named: bool,
    /// What follows the name of an empty value.
    if_empty: &'static str,
    /// Whether characters that mean something in an address may stand as they are.
    reserved: bool,
}

/// A part of a template.
enum Part<'a> {
    Text(&'a str),
    Expression(char, &'a str),
}

/// A value that leads elsewhere. `.` and `..` need no encoding and cannot be kept from meaning what they mean in a path.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} leads to another place than the template; read an address instead if you mean it")]
pub(super) struct Astray(String);

/// The variables of a template, each once.
pub(super) fn variables(template: &str) -> Vec<Variable> {
    let mut all: Vec<Variable> = Vec::new();
    for part in parts(template) {
        let Part::Expression(operator, list) = part else { continue };
        for (name, _) in names(list) {
            if !all.iter().any(|variable| variable.name == name) {
                all.push(Variable { name: name.to_owned(), optional: matches!(operator, '?' | '&' | '#') });
            }
        }
    }
    all
}

/// The address; variables without a value are left out.
pub(super) fn expand(template: &str, values: &BTreeMap<String, String>) -> Result<String, Astray> {
    let mut address = String::new();
    for part in parts(template) {
        match part {
            Part::Text(text) => address.push_str(text),
            Part::Expression(operator, list) => {
                let style = style(operator);
                let mut lead = style.first;
                for (name, most) in names(list) {
                    let Some(value) = values.get(name) else { continue };
                    address.push_str(lead);
                    lead = style.between;
                    if style.named {
                        address.push_str(name);
                        address.push_str(if value.is_empty() { style.if_empty } else { "=" });
                    }
                    let value: String = value.chars().take(most).collect();
                    write_encoded(&mut address, &value, style.reserved);
                }
            }
        }
    }
    if dots(&address) > dots(template) { Err(Astray(address)) } else { Ok(address) }
}

/// How many parts of a path mean the part itself or the one above.
fn dots(address: &str) -> usize {
    let path = address.split(['?', '#']).next().unwrap_or_default();
    path.split('/').filter(|part| matches!(*part, "." | "..")).count()
}

/// Takes a template apart; a brace that is not closed is text.
fn parts(template: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((inside, after)) = after.split_once('}') else { break };
        parts.push(Part::Text(before));
        let operator = inside.chars().next().filter(|c| "+#./;?&".contains(*c));
        let list = operator.map_or(inside, |operator| inside.trim_start_matches(operator));
        parts.push(Part::Expression(operator.unwrap_or(' '), list));
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

fn style(operator: char) -> Style {
    let plain = Style { first: "", between: ",", named: false, if_empty: "", reserved: false };
    match operator {
        '+' => Style { reserved: true, ..plain },
        '#' => Style { first: "#", reserved: true, ..plain },
        '.' => Style { first: ".", between: ".", ..plain },
        '/' => Style { first: "/", between: "/", ..plain },
        ';' => Style { first: ";", between: ";", named: true, ..plain },
        '?' => Style { first: "?", between: "&", named: true, if_empty: "=", ..plain },
        '&' => Style { first: "&", between: "&", named: true, if_empty: "=", ..plain },
        _ => plain,
    }
}

fn write_encoded(address: &mut String, value: &str, reserved: bool) {
    for byte in value.bytes() {
        let c = char::from(byte);
        let stands = c.is_ascii_alphanumeric() || "-._~".contains(c);
        if stands || reserved && ":/?#[]@!$&'()*+,;=".contains(c) {
            address.push(c);
        } else {
            address.push_str(&format!("%{byte:02X}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use url::Url;

    use super::*;

    #[test]
    fn variables_are_found_in_their_order() {
        let found = variables("memo://{shelf}/{name:3}{/path*}{?q,shelf}");
        let found: Vec<(&str, bool)> = found.iter().map(|v| (v.name.as_str(), v.optional)).collect();
        assert_eq!(found, [("shelf", false), ("name", false), ("path", false), ("q", true)]);
        assert!(variables("plain {unclosed").is_empty());
    }

    #[test]
    fn values_are_written_as_the_operators_say() {
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

    /// What somebody may type, or a server may offer, to get out of the place that it is meant for.
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
    fn a_value_stays_in_its_part_of_an_address_or_is_refused() {
        for value in HOSTILE {
            let values = BTreeMap::from([("v".to_owned(), value.to_owned())]);
            let made = |template: &str| expand(template, &values).map(|text| Url::parse(&text).unwrap());
            let decoded = |text: &str| percent_decode(text);

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

    fn percent_decode(text: &str) -> String {
        let form = format!("v={}", text.replace('+', "%2B"));
        url::form_urlencoded::parse(form.as_bytes()).next().unwrap().1.into_owned()
    }
}

//! Single values as they are typed: durations, pairs, headers.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use refmcp_auth::header_value::is_token;
use refmcp_client::redact::{self, MASK};
use url::Url;

/// A duration: a number of seconds, or a number with its unit. Fractions are allowed.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let number: f64 = digits.parse().unwrap_or(f64::NAN);
    match number * unit {
        bad if bad.is_nan() => {
            Err("expected a number of seconds, or a number with ms, s, m or h, such as 90s".to_owned())
        }
        negative if negative < 0.0 => Err("must be more than 0".to_owned()),
        seconds if seconds > MAX_DURATION.as_secs_f64() => {
            Err(format!("too long: at most {} h, which is a year", MAX_DURATION.as_secs() / 3600))
        }
        seconds => Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string()),
    }
}

/// A number of bytes, or a number with its unit.
pub(super) fn memory(text: &str) -> Result<usize, String> {
    let digits = text.trim_end_matches(|char: char| char.is_ascii_alphabetic());
    let shift = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 0,
        "K" | "KB" | "KIB" => 10,
        "M" | "MB" | "MIB" => 20,
        "G" | "GB" | "GIB" => 30,
        _ => return Err("expected a number of bytes, or a number with K, M or G, such as 256M".to_owned()),
    };
    let number: usize = digits.parse().map_err(|_| "expected a whole number, such as 256M".to_owned())?;
    let bytes = number.checked_mul(1 << shift).ok_or("too much")?;
    if bytes < MIN_MEMORY {
        Err(format!("at least {}M, or nothing can be served", MIN_MEMORY >> 20))
    } else {
        Ok(bytes)
    }
}

/// The least memory that serves a few clients with messages of the longest size.
const MIN_MEMORY: usize = 16 << 20;

/// The longest duration; times that are far longer could not be added to the present.
const MAX_DURATION: Duration = Duration::from_secs(366 * 24 * 3600);

/// A time to wait, in seconds: at least a millisecond, since what gets no time always fails.
pub(super) fn timeout(text: &str) -> Result<Duration, String> {
    match seconds(text)? {
        none if none < Duration::from_millis(1) => Err("must be more than 0".to_owned()),
        some => Ok(some),
    }
}

/// `HOST:PORT` to listen on; a port alone is one of this machine.
pub(super) fn ops_address(text: &str) -> Result<String, String> {
    if text.parse::<u16>().is_ok() {
        return Ok(format!("127.0.0.1:{text}"));
    }
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => {
            // An address of version 6 has colons of its own.
            let is_bare = host.contains(':') && !(host.starts_with('[') && host.ends_with(']'));
            if is_bare { Err(format!("expected [{host}]:{port}")) } else { Ok(text.to_owned()) }
        }
        _ => Err("expected HOST:PORT, such as 127.0.0.1:9090, or a port".to_owned()),
    }
}

/// A name of the server as `Host` has it, with a port or without: no URL.
pub(super) fn host_name(text: &str) -> Result<String, String> {
    let bare = text.split_once("://").map_or(text, |(_, rest)| rest);
    let bare = bare.split(['/', '?', '#']).next().unwrap_or_default();
    if bare.is_empty() || bare.contains(|char: char| char.is_whitespace() || "@*,".contains(char)) {
        return Err("expected a name, with a port or without, such as mcp.example.com".to_owned());
    }
    if bare == text { Ok(bare.to_owned()) } else { Err(format!("a name is no URL; write {bare}")) }
}

/// A web origin as `Origin` has it, since the two are compared as they are: a scheme, a host and, if it is not the scheme's
/// own, a port.
pub(super) fn web_origin(text: &str) -> Result<String, String> {
    let example = "expected a scheme and a host, such as https://app.example.com";
    if text == "null" {
        return Ok(text.to_owned());
    }
    let Some((scheme, rest)) = text.split_once("://") else {
        // What has no scheme is a name in most cases.
        return Err(match Url::parse(&format!("https://{text}")) {
            Ok(url) if !text.contains(['*', ':']) => {
                format!("{example}; write {}", url.origin().ascii_serialization())
            }
            _ => example.to_owned(),
        });
    };
    let url = Url::parse(text).map_err(|_| example.to_owned())?;
    let origin = if matches!(url.scheme(), "http" | "https") {
        url.origin().ascii_serialization()
    } else {
        // Pages of browser extensions and editors have schemes of their own.
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if host.is_empty() {
            return Err(example.to_owned());
        }
        format!("{scheme}://{host}")
    };
    if origin == text { Ok(origin) } else { Err(format!("browsers send {origin}; write that")) }
}

/// The URL by which clients know the server.
pub(super) fn public_url(text: &str) -> Result<Url, String> {
    match Url::parse(text) {
        Ok(url) if !url.username().is_empty() || url.password().is_some() => {
            Err("a public URL has no user and no password: every client sees it".to_owned())
        }
        Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(url),
        _ if !text.is_empty() && Url::parse(&format!("https://{text}")).is_ok() && !text.contains("://") => {
            let url = redact::url(&format!("https://{text}"));
            Err(format!("expected a scheme, a host and a port; write {url}"))
        }
        _ => Err("expected a scheme, a host and a port, such as https://mcp.example.com".to_owned()),
    }
}

/// A value of an option, with its name and what it is.
pub(super) type NamedValue<T> = (&'static str, &'static str, T);

/// One of these values, by its name.
pub(super) fn one_of<T: Copy + Send + Sync>(
    values: &'static [NamedValue<T>],
) -> impl TypedValueParser<Value = T> {
    let names = values.iter().map(|(name, help, _)| PossibleValue::new(*name).help(*help));
    PossibleValuesParser::new(names).try_map(|typed| {
        let known = values.iter().find(|(name, ..)| *name == typed);
        known.map(|(_, _, value)| *value).ok_or("no such value")
    })
}

/// `KEY=VALUE`, with a key that is not empty.
pub(crate) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected KEY=VALUE".to_owned()),
    }
}

/// A path that stays right in another folder.
pub(super) fn absolute(path: &Path) -> PathBuf {
    // It can fail only where there is no folder to begin from; the path is then as good as it gets.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// A header field of HTTP.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// The field's name.
    pub(crate) name: String,
    /// The field's value, without space around it.
    pub(crate) value: String,
}

/// Values of headers can be secrets.
impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Header({}: {MASK})", self.name)
    }
}

/// `NAME: VALUE`, in characters that HTTP can carry.
pub(super) fn header(text: &str) -> Result<Header, String> {
    let Some((name, value)) = text.split_once(':') else {
        return Err("expected 'NAME: VALUE'".to_owned());
    };
    let (name, value) = (name.trim(), value.trim());
    if !is_token(name) {
        // Where the name was forgotten, this is the value.
        return Err("the part before the colon is no name of a header".to_owned());
    }
    // A line break in a value would begin another header.
    if value.chars().any(char::is_control) {
        return Err(format!("the value of {name} has a control character in it"));
    }
    Ok(Header { name: name.to_owned(), value: value.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_a_unit() {
        for (text, bytes) in
            [("33554432", 32 << 20), ("256M", 256 << 20), ("64mib", 64 << 20), ("2G", 2 << 30)]
        {
            assert_eq!(memory(text), Ok(bytes), "{text}");
        }
        for bad in ["", "M", "1.5G", "-1M", "12X", "1K", "99999999999G"] {
            assert!(memory(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn operators_listen_somewhere() {
        for (text, address) in [
            ("9090", "127.0.0.1:9090"),
            ("0.0.0.0:9090", "0.0.0.0:9090"),
            ("localhost:0", "localhost:0"),
            ("[::1]:9090", "[::1]:9090"),
        ] {
            assert_eq!(ops_address(text).as_deref(), Ok(address));
        }
        for bad in ["", ":9090", "localhost", "localhost:", "127.0.0.1:99999", "::1", "fe80::1:9090", "99999"]
        {
            assert!(ops_address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_no_urls_and_origins_have_schemes() {
        for good in ["mcp.example.com", "mcp.example.com:8443", "localhost", "[::1]:3000", "192.0.2.1"] {
            assert_eq!(host_name(good).as_deref(), Ok(good));
        }
        for (bad, hint) in [
            ("http://foo.example", "write foo.example"),
            ("https://foo.example:8443/mcp", "write foo.example:8443"),
            ("foo.example/", "write foo.example"),
            ("*.example", "such as mcp.example.com"),
            ("", "such as mcp.example.com"),
            ("a, b", "such as mcp.example.com"),
        ] {
            let said = host_name(bad).unwrap_err();
            assert!(said.contains(hint), "{bad}: {said}");
        }
        for good in ["https://foo.example", "http://localhost:5173", "vscode-webview://abc", "null"] {
            assert_eq!(web_origin(good).as_deref(), Ok(good));
        }
        for (bad, hint) in [
            ("foo.example", "write https://foo.example"),
            ("https://foo.example/", "write that"),
            ("https://Foo.example:443", "https://foo.example;"),
            ("*", "such as https://"),
            ("localhost:5173", "such as https://"),
            ("", "such as https://"),
            ("https://", "such as https://"),
        ] {
            let said = web_origin(bad).unwrap_err();
            assert!(said.contains(hint), "{bad}: {said}");
        }
        assert!(public_url("https://mcp.example.com").is_ok());
        for (bad, hint) in [
            ("mcp.example.com", "write https://mcp.example.com"),
            ("mcp.example.com:8443", "write https://mcp.example.com:8443"),
            ("ftp://mcp.example.com", "such as https://mcp.example.com"),
            ("https://user:hush@mcp.example.com", "no user and no password"),
            ("", "such as https://mcp.example.com"),
        ] {
            let said = public_url(bad).unwrap_err();
            assert!(said.contains(hint), "{bad}: {said}");
        }
    }

    #[test]
    fn durations_are_seconds_or_have_a_unit() {
        for (good, millis) in
            [("0.5", 500), ("250ms", 250), ("4s", 4000), ("1.5m", 90_000), ("2h", 7_200_000)]
        {
            assert_eq!(seconds(good), Ok(Duration::from_millis(millis)), "{good}");
        }
        for bad in ["-1", "x", "NaN", "1e300", "4 s", "s", "4d", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn pairs_are_split_at_the_first_sign() {
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(pair("a="), Ok(("a".to_owned(), String::new())));
        for bad in ["", "a", "=b"] {
            assert!(pair(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn headers_are_what_http_can_carry() {
        let good = header("Authorization:  Bearer a:b ").unwrap();
        assert_eq!((good.name.as_str(), good.value.as_str()), ("Authorization", "Bearer a:b"));
        assert_eq!(header("X-Empty:").unwrap().value, "");
        for bad in ["", "x", ": y", "a b: c", "a: b\nc: d", "ä: b"] {
            assert!(header(bad).is_err(), "{bad}");
        }
    }
}

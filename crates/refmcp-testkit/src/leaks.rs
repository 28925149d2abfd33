//! Searches logs for secrets: those that are known, and whatever has the shape of one.
//!
//! Nothing but the standard library is used here, so that the commands of a contributor can read this file as well
//! without depending on a crate of ours.

use std::collections::BTreeSet;
use std::fmt;

/// Texts shorter than this are found everywhere by chance.
const MIN_LENGTH: usize = 4;

/// What a secret made by a machine has at least.
const RANDOM: usize = 16;

/// What the scheme of a credential is called, up to the credential.
const SCHEMES: [&str; 4] = ["bearer ", "dpop ", "basic ", "mcp.bearer."];

/// What the value of these opens something.
const NAMES: [&str; 15] = [
    "access_token",
    "refresh_token",
    "id_token",
    "subject_token",
    "actor_token",
    "form_token",
    "token",
    "client_secret",
    "client_assertion",
    "assertion",
    "code",
    "code_verifier",
    "authorization",
    "mcp-session-id",
    "sessionid",
];

/// Secret parameters of a URL.
const IN_ADDRESSES: [&str; 4] = ["code", "state", "form_token", "access_token"];

/// Secrets that were seen.
#[derive(Clone, Default)]
pub struct Secrets(BTreeSet<String>);

impl Secrets {
    /// Remembers one. Of a signed token only the signature counts: without it the rest is useless.
    pub fn add(&mut self, text: &str) {
        let text = text.trim();
        let last = text.rsplit('.').next().unwrap_or_default();
        let secret = if text.starts_with("eyJ") && last.len() >= RANDOM { last } else { text };
        if secret.len() >= MIN_LENGTH {
            self.0.insert(secret.to_owned());
        }
    }

    /// Remembers what is secret in the addresses of a text.
    pub fn add_addresses(&mut self, text: &str) {
        for part in text.split(|c: char| c.is_whitespace() || "?&#\"'<>;".contains(c)) {
            if let Some((name, value)) = part.split_once('=')
                && IN_ADDRESSES.contains(&name)
                && value.len() >= RANDOM
            {
                self.add(value);
            }
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The first leak of a log: one of these, or something of that shape, with what stands around it.
    pub fn leak(&self, log: &str) -> Option<String> {
        let seen = self.0.iter().find_map(|secret| Some((log.find(secret.as_str())?, "a secret")));
        let (at, what) = seen.or_else(|| shape(log))?;
        Some(format!("{what} is in the log: {}", around(log, at)))
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} secrets", self.len())
    }
}

/// The level of a line such as `2026-01-01T00:00:00.000000Z  INFO …`, if it is one of a log.
pub fn level(line: &str) -> Option<&str> {
    let (time, rest) = line.split_once(' ')?;
    let is_time = time.len() >= 20 && time.ends_with('Z') && time.as_bytes().get(10) == Some(&b'T');
    let level = rest.trim_start().split(' ').next()?;
    (is_time && ["TRACE", "DEBUG", "INFO", "WARN", "ERROR"].contains(&level)).then_some(level)
}

/// Where something looks like a credential, and what it looks like.
fn shape(log: &str) -> Option<(usize, &'static str)> {
    let mut start = 0;
    for line in log.split_inclusive('\n') {
        if let Some((at, what)) = shape_in(line) {
            return Some((start + at, what));
        }
        start += line.len();
    }
    None
}

fn shape_in(line: &str) -> Option<(usize, &'static str)> {
    if let Some((at, _)) = line.match_indices("eyJ").find(|(at, _)| is_signed(&line[*at..])) {
        return Some((at, "a signed token"));
    }
    // Letters keep their places.
    let small = line.to_ascii_lowercase();
    for scheme in SCHEMES {
        let found = small.match_indices(scheme).map(|(at, _)| at + scheme.len());
        if let Some(at) = found.into_iter().find(|at| is_random(&line[*at..])) {
            return Some((at, "a credential"));
        }
    }
    for name in NAMES {
        let found = small.match_indices(name).filter(|(at, _)| !small[..*at].ends_with(is_of_name));
        let mut values = found.filter_map(|(at, _)| value_after(line, at + name.len()));
        if let Some(at) = values.find(|at| is_random(&line[*at..])) {
            return Some((at, "a named secret"));
        }
    }
    None
}

/// Where the value of a name begins that ends here: after `=`, `: `, `": "`, `=Some("` and their like.
fn value_after(line: &str, end: usize) -> Option<usize> {
    let rest = line[end..].trim_start_matches(['"', '\\']).trim_start();
    let rest = rest.strip_prefix(['=', ':', ','])?.trim_start();
    let rest = rest.strip_prefix("Some(").unwrap_or(rest).trim_start_matches(['"', '\\']);
    Some(line.len() - rest.len())
}

/// Whether it begins with a header, claims and a signature.
fn is_signed(text: &str) -> bool {
    let end = text.find(|c: char| !is_of_token(c) || "~+/=%".contains(c)).unwrap_or(text.len());
    let parts: Vec<&str> = text[..end].split('.').collect();
    matches!(parts[..], [header, claims, signature, ..]
        if header.len() >= RANDOM && claims.len() > 1 && signature.len() >= RANDOM)
}

/// Whether it begins with something long that is no word of a language or of a protocol.
fn is_random(text: &str) -> bool {
    let end = text.find(|c: char| !is_of_token(c)).unwrap_or(text.len());
    let word = &text[..end];
    let is_plain = |c: char| c.is_ascii_lowercase() || "_-.:/=".contains(c);
    word.len() >= RANDOM && !word.chars().all(is_plain)
}

fn is_of_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~+/=%".contains(c)
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-".contains(c)
}

/// What stands around a place, on its line.
fn around(log: &str, at: usize) -> String {
    let from = log[..at].rfind('\n').map_or(0, |end| end + 1);
    let to = log[at..].find('\n').map_or(log.len(), |end| at + end);
    let (before, after) = (&log[from..at], &log[at..to]);
    let before: String = before.chars().rev().take(300).collect::<Vec<_>>().into_iter().rev().collect();
    let after: String = after.chars().take(80).collect();
    format!("{before}»{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiJhIn0.c2lnbmF0dXJlLW9mLWl0";
    const OPAQUE: &str = "q7Xw0Zk4n1Vt8Rb2Yc5L";

    #[test]
    fn a_secret_that_was_seen_is_found_wherever_it_stands() {
        let mut secrets = Secrets::default();
        assert_eq!(secrets.leak("a line\nhush, hush\n"), None);
        secrets.add(" hush \n");
        secrets.add("no");
        assert_eq!((secrets.len(), format!("{secrets:?}")), (1, "1 secrets".to_owned()));
        let found = secrets.leak("a line\nthey say hush, hush\nanother, no").unwrap();
        assert_eq!(found, "a secret is in the log: they say »hush, hush");
        assert_eq!(secrets.leak("no secret here"), None);
    }

    #[test]
    fn of_a_signed_token_the_signature_counts() {
        let mut secrets = Secrets::default();
        secrets.add(TOKEN);
        assert!(secrets.leak("x c2lnbmF0dXJlLW9mLWl0 x").is_some());
        assert_eq!(secrets.leak("x eyJhbGciOiJFUzI1NiJ9 x"), None);
    }

    #[test]
    fn secrets_of_addresses_are_remembered() {
        let mut secrets = Secrets::default();
        secrets.add_addresses(
            "  http://h/authorize?client_id=abcdefghijklmnopq&state=S1234567890123456&x=y\r\n",
        );
        secrets.add_addresses("location: http://h/callback?code=C1234567890123456&state=short");
        assert_eq!(secrets.len(), 2);
        assert!(secrets.leak("S1234567890123456").is_some() && secrets.leak("C1234567890123456").is_some());
    }

    #[test]
    fn unknown_secrets_are_found_by_their_shape() {
        let none = Secrets::default();
        for text in [
            TOKEN.to_owned(),
            format!("mcp, mcp.bearer.{OPAQUE}"),
            format!("Authorization: Bearer {OPAQUE}"),
            format!("\"authorization\": \"DPoP {OPAQUE}\""),
            format!("basic {OPAQUE}=="),
            format!("grant_type=authorization_code&code={OPAQUE}"),
            format!("code_verifier={OPAQUE}"),
            format!("refresh_token=Some(\"{OPAQUE}\")"),
            format!("{{\\\"client_secret\\\":\\\"{OPAQUE}\\\"}}"),
            format!("client_assertion: \"{OPAQUE}\""),
            format!("\"mcp-session-id\": {OPAQUE}"),
            format!("/messages?sessionId={OPAQUE}"),
        ] {
            assert!(none.leak(&format!("first\nit says {text}\n")).is_some(), "{text}");
        }
    }

    #[test]
    fn lines_of_a_log_are_told_from_others() {
        assert_eq!(level("2026-01-01T00:00:00.000000Z  INFO a: b"), Some("INFO"));
        assert_eq!(level("2026-01-01T00:00:00.000000Z ERROR"), Some("ERROR"));
        for other in
            ["", "INFO a: b", "2026-01-01T00:00:00.000000Z hello", "  http://127.0.0.1:3000/x?a=Z INFO"]
        {
            assert_eq!(level(other), None, "{other}");
        }
    }

    #[test]
    fn what_only_speaks_of_secrets_is_none() {
        let none = Secrets::default();
        for text in [
            "Bearer realm=\"mcp\", resource_metadata=\"http://127.0.0.1:3000/.well-known/x\"",
            "Bearer error=\"insufficient_scope\", scope=\"mcp:write\"",
            "code=unsupported_grant_type",
            "code=-32602",
            "token_endpoint=\"http://127.0.0.1:3000/token\"",
            "access_token: Secret(…)",
            "authorization: Sensitive",
            "grant_type=authorization_code&code=…",
            "the token was refused: its signature is of another key",
            "eyJhbGciOiJFUzI1NiJ9 alone is a header",
        ] {
            assert_eq!(none.leak(text), None, "{text}");
        }
    }
}

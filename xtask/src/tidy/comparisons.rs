//! Secrets are compared in the same time wherever they differ: by `Secret`, which does so by itself, and never as text.
//!
//! What is a secret is known by its name, for want of types in a text; `==` and `!=` with a constant are about no secret.

use super::Violation;
use super::source::Source;

/// Where secrets are held against each other.
const WHERE: [&str; 6] = [
    "crates/refmcp-auth/src/",
    "crates/refmcp-issuer/src/",
    "crates/refmcp-http/src/",
    "crates/refmcp-client/src/auth/",
    "crates/refmcp/src/command/auth/",
    "crates/refmcp/src/command/serve/",
];

/// What secrets are called, alone or as the last word of a name.
const SECRETS: [&str; 16] = [
    "token",
    "secret",
    "code",
    "state",
    "verifier",
    "challenge",
    "password",
    "passphrase",
    "assertion",
    "cookie",
    "credential",
    "digest",
    "hash",
    "mac",
    "signature",
    "tag",
];

/// Ends of names that look like those of secrets: codes of errors.
const PUBLIC: [&str; 3] = ["error.code", "error_code", "status_code"];

/// What leaves a secret the text or the bytes that it is.
const SAME: [&str; 11] = [
    "as_ref",
    "as_deref",
    "as_str",
    "as_bytes",
    "as_slice",
    "clone",
    "into_owned",
    "to_owned",
    "to_string",
    "trim",
    "unwrap_or_default",
];

/// What shows the text of a secret.
const REVEALS: [&str; 2] = ["reveal", "reveal_pem"];

/// Comparisons that are none of texts, and why.
const ALLOWED: [(&str, &str, &str); 1] = [(
    "crates/refmcp-client/src/auth/login.rs",
    "before.token == tokens.token",
    "both are of the type `Secret`",
)];

pub(crate) fn check(source: &Source) -> Vec<Violation> {
    if !WHERE.iter().any(|folder| source.path.starts_with(folder)) {
        return Vec::new();
    }
    let mut violations = Vec::new();
    for line in source.code() {
        let text = line.without_comment();
        for sign in ["==", "!="] {
            for (at, _) in text.match_indices(sign) {
                let (left, right) = (before(&text[..at]), after(&text[at + sign.len()..]));
                let secret = [left, right].into_iter().find(|side| is_secret(side));
                let Some(secret) = secret.filter(|_| !is_constant(left) && !is_constant(right)) else {
                    continue;
                };
                let allowed =
                    |(path, code, _): &(&str, &str, &str)| source.path == *path && text.contains(code);
                if !ALLOWED.iter().any(allowed) {
                    let what = format!(
                        "`{secret}` may be a secret: `Secret` compares in the same time, `{sign}` does not"
                    );
                    violations.push(Violation::new(&source.path, line.number, what));
                }
            }
        }
    }
    violations
}

/// The expression that ends here.
fn before(text: &str) -> &str {
    let mut depth = 0;
    let begins = text.char_indices().rev().find(|(_, c)| {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' => depth -= 1,
            _ => {}
        }
        depth < 0 || depth == 0 && "&|,;=<>!{".contains(*c)
    });
    let text = begins.map_or(text, |(at, c)| &text[at + c.len_utf8()..]).trim();
    let text = text.rsplit("return ").next().unwrap_or(text);
    ["if ", "while ", "match "].iter().fold(text, |text, word| text.strip_prefix(word).unwrap_or(text)).trim()
}

/// The expression that begins here.
fn after(text: &str) -> &str {
    let mut depth = 0;
    let text = text.trim_start().trim_start_matches(['*', '&']);
    let ends = text.char_indices().find(|(_, c)| {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ => {}
        }
        depth < 0 || depth == 0 && "&|,;={}".contains(*c)
    });
    ends.map_or(text, |(at, _)| &text[..at]).trim()
}

/// Whether a value is what its name says it is, and the name that of a secret.
fn is_secret(value: &str) -> bool {
    if REVEALS.iter().any(|name| value.contains(&format!(".{name}()"))) {
        return true;
    }
    let mut value = value.trim_start_matches(['*', '&']);
    // What wraps it is looked into.
    if let Some(inner) = value.strip_prefix("Some(").and_then(|value| value.strip_suffix(')')) {
        value = inner.trim_start_matches(['*', '&']);
    }
    value = value.trim_end_matches('?');
    while let Some((rest, last)) = value.rsplit_once('.')
        && let Some(name) = last.strip_suffix("()")
        && SAME.contains(&name)
    {
        value = rest.trim_end_matches('?');
    }
    let name = value.rsplit(['.', ':']).next().unwrap_or(value);
    let name = name.split('(').next().unwrap_or(name);
    let public = PUBLIC.iter().any(|public| value.trim_end_matches("()").ends_with(public));
    !public && SECRETS.contains(&name.rsplit('_').next().unwrap_or(name))
}

/// Whether a value is written down in the program: a literal, a constant, a variant.
fn is_constant(value: &str) -> bool {
    let inner = value.strip_prefix("Some(").unwrap_or(value).trim_start_matches(['*', '&']);
    let name = inner.rsplit("::").next().unwrap_or(inner);
    inner.starts_with(['"', '\'', 'b'].as_slice()) && inner.contains(['"', '\''])
        || inner.starts_with(|c: char| c.is_ascii_digit() || c == '-')
        || ["true", "false", "None"].contains(&inner)
        || name.starts_with(char::is_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> bool {
        !check(&Source::new("crates/refmcp-auth/src/a.rs", text)).is_empty()
    }

    #[test]
    fn secrets_that_are_compared_as_text_are_found() {
        for text in [
            "    if known.secret.reveal() == given {",
            "    if given != known.secret.reveal() {",
            "    known.client_secret == given",
            "    if found.is_some_and(|known| known.code == *given) {",
            "    let good = pkce::challenge(verifier) == code.challenge;",
            "    if token != kept.access_token.as_str() {",
            "    form.get(\"state\") == Some(state.as_str())",
            "    state(url).is_some_and(|sent| state(back).is_some_and(|back| back == state))",
            "    mac.as_ref() == given && more",
            "    return digest(text) != known;",
        ] {
            assert!(wrong(text), "{text}");
        }
    }

    #[test]
    fn what_only_has_to_do_with_secrets_is_fine() {
        for text in [
            "    if code.granted.client_id != client.id {",
            "    let same = self.secret.is(given);",
            "    if form.need(\"response_type\")? != \"code\" {",
            "    if name == \"access_token\" {",
            "    if self.state == State::Open {",
            "    if token.len() == length {",
            "    if tokens.token_type.as_deref() != Some(ID_JAG) {",
            "    if state.token.as_ref().map(|token| token.number) != number {",
            "    // a token == another",
            "    let token = given;",
            "    if refresh.is_none() == secret.is_none() {",
            "    if message.error_code() != Some(error.code) {",
        ] {
            assert!(!wrong(text), "{text}");
        }
    }

    #[test]
    fn tests_and_other_places_may_compare() {
        let text = "#[cfg(test)]\nmod tests {\n    fn a() {\n        b.token == c;\n    }\n}\n";
        assert!(!wrong(text));
        assert!(check(&Source::new("crates/refmcp-proto/src/a.rs", "    a.token == b\n")).is_empty());
    }

    #[test]
    fn every_folder_exists() {
        let root = refmcp_runners::shell::root();
        let paths = WHERE.into_iter().chain(ALLOWED.map(|(path, ..)| path));
        paths.for_each(|path| assert!(root.join(path).exists(), "{path}"));
    }

    #[test]
    fn what_is_allowed_has_a_reason() {
        assert!(ALLOWED.iter().all(|(path, code, why)| {
            WHERE.iter().any(|folder| path.starts_with(folder)) && code.contains("=") && !why.is_empty()
        }));
    }
}

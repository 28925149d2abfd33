//! Redaction of what is shown. The secrets of all targets are known to the whole process, and masked where text leaves
//! it beside results: errors, logs, what servers write to stderr, and files that quote any of these.

use std::borrow::Cow;
use std::sync::LazyLock;

use parking_lot::RwLock;
use refmcp_auth::secret::Secret;
use refmcp_client::redact::{self, Secrets};
use serde_json::Value;

use crate::config::Launch;

static KNOWN: LazyLock<RwLock<Secrets>> = LazyLock::new(RwLock::default);

/// Masks these as well from now on.
pub(crate) fn add_secrets(secrets: &Secrets) {
    KNOWN.write().extend(secrets);
}

/// A text without the secrets of any target.
pub(crate) fn masked(text: &str) -> Cow<'_, str> {
    KNOWN.read().masked(text)
}

/// A JSON value without the secrets of any target.
pub(crate) fn masked_json(value: Value) -> Value {
    KNOWN.read().masked_json(value)
}

/// Where a server is or how it is started, redacted. A reference such as `${input:token}` stays: its value is elsewhere.
pub(crate) fn launch(launch: &Launch) -> String {
    match launch {
        Launch::Command { program, args, env, .. } => {
            let words: Vec<&str> = std::iter::once(program).chain(args).map(String::as_str).collect();
            let (secrets, masked) = (values(env), redact::words(&words));
            let shown = words.iter().zip(masked).map(|(word, masked)| match is_reference(word) {
                true => (*word).to_owned(),
                false => secrets.masked(&masked).into_owned(),
            });
            redact::joined(&shown.collect::<Vec<_>>())
        }
        Launch::Remote { url, .. } if is_reference(url) => url.clone(),
        Launch::Remote { url, headers, .. } => values(headers).masked(&redact::url(url)).into_owned(),
    }
}

/// The values of variables or headers, which are secrets wherever else they stand.
fn values(pairs: &[(String, Secret)]) -> Secrets {
    let values = pairs.iter().map(|(_, value)| value.reveal()).filter(|value| !is_reference(value));
    values.fold(Secrets::default(), Secrets::with_value)
}

/// True if the whole word is a reference to a variable or an input.
pub(crate) fn is_reference(word: &str) -> bool {
    word.strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|name| !name.contains(['$', '}']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::UrlTransport;

    #[test]
    fn commands_are_shown_without_their_secrets() {
        let env = vec![("KEY".to_owned(), Secret::new("HUSH"))];
        for (words, shown) in [
            (&["run", "-v", "a b"][..], "run -v 'a b'"),
            (&["run", "--token", "HUSH", "x"], "run --token *** x"),
            (&["run", "HUSH", "--dir=/x/HUSH"], "run *** --dir=/x/***"),
            (&["run", "--token", "${input:t}"], "run --token '${input:t}'"),
            (&["run", "--api-key=HUSH", "-e", "GITHUB_TOKEN=HUSH"], "run --api-key=*** -e GITHUB_TOKEN=***"),
        ] {
            let mut words = words.iter().map(|word| (*word).to_owned());
            let program = words.next().unwrap();
            let (args, env) = (words.collect(), env.clone());
            let launch = Launch::Command { program, args, env, cwd: None, env_file: None };
            assert_eq!(super::launch(&launch), shown);
        }
    }

    #[test]
    fn addresses_are_shown_without_their_secrets() {
        let headers = vec![("Authorization".to_owned(), Secret::new("HUSH"))];
        for (url, shown) in [
            ("https://host/mcp", "https://host/mcp"),
            ("https://me:HUSH@host:1/mcp?key=HUSH", "https://***@host:1/mcp?key=***"),
            ("https://host/HUSH/mcp", "https://host/***/mcp"),
            ("${input:url}", "${input:url}"),
        ] {
            let (url, headers) = (url.to_owned(), headers.clone());
            let launch = Launch::Remote { transport: UrlTransport::Auto, url, headers };
            assert_eq!(super::launch(&launch), shown);
        }
    }
}

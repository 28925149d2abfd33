//! Servers as they are shown: without what may be a secret.

use refmcp_client::config::Launch;
use url::Url;

use crate::args::join_words;

/// What stands for a secret.
const MASK: &str = "***";

/// Parts of names whose values are secrets.
const SECRET_NAMES: [&str; 9] =
    ["token", "secret", "password", "passwd", "apikey", "api-key", "api_key", "authorization", "credential"];

/// Where a server is or how it is started, without secrets: values of a query, passwords, and words of a command that
/// are named like one.
pub(crate) fn target(launch: &Launch) -> String {
    match launch {
        Launch::Command { program, args, .. } => {
            let mut words = vec![address(program)];
            let mut is_secret = false;
            for arg in args {
                words.push(if is_secret && !is_variable(arg) { MASK.to_owned() } else { word(arg) });
                is_secret = arg.starts_with('-') && !arg.contains('=') && is_secret_name(arg);
            }
            join_words(&words)
        }
        Launch::Http { url, .. } | Launch::Sse { url, .. } | Launch::WebSocket { url, .. } => address(url),
        _ => String::new(),
    }
}

/// A word of a command: `NAME=VALUE`, `Name: value`, or an address.
fn word(word: &str) -> String {
    if word.contains("://") {
        return address(word);
    }
    for sign in ["=", ": "] {
        if let Some((name, value)) = word.split_once(sign)
            && is_secret_name(name)
            && !is_variable(value)
        {
            return format!("{name}{sign}{MASK}");
        }
    }
    word.to_owned()
}

/// An address without a password, the values of its query and its fragment.
fn address(text: &str) -> String {
    let Some(at) = text.find("://") else { return text.to_owned() };
    // What stands before the scheme may be the name of an option.
    let start = text.get(..at).and_then(|head| head.rfind('=')).map_or(0, |sign| sign + 1);
    let (before, text) = text.split_at(start);
    let (text, query) = text.split_once('?').map_or((text, None), |(text, query)| (text, Some(query)));
    let text = text.split('#').next().unwrap_or_default();
    let mut shown = match Url::parse(text) {
        Ok(mut url) if url.password().is_some() => {
            // It can only fail for addresses without a host, and those have no password.
            let _ = url.set_password(Some(MASK));
            url.to_string()
        }
        _ => text.to_owned(),
    };
    if let Some(query) = query {
        let query = query.split('#').next().unwrap_or_default();
        let pairs = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, value)) if !is_variable(value) => format!("{name}={MASK}"),
            Some(_) => pair.to_owned(),
            None => MASK.to_owned(),
        });
        shown = format!("{shown}?{}", pairs.collect::<Vec<_>>().join("&"));
    }
    format!("{before}{shown}")
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit(['-', '_']).next().unwrap_or_default();
    matches!(last, "key" | "pwd" | "auth" | "bearer") || SECRET_NAMES.iter().any(|part| name.contains(part))
}

/// Whether the value is elsewhere.
fn is_variable(value: &str) -> bool {
    value
        .strip_prefix("${")
        .and_then(|rest| rest.strip_suffix('}'))
        .is_some_and(|name| !name.contains(['$', '}']))
}

#[cfg(test)]
mod tests {
    use refmcp_client::config::Secret;

    use super::*;

    #[test]
    fn commands_are_shown_without_their_secrets() {
        let env = vec![("KEY".to_owned(), Secret::new("HUSH"))];
        for (words, shown) in [
            (&["run", "-v", "a b"][..], "run -v 'a b'"),
            (&["run", "--token", "HUSH", "x"], "run --token '***' x"),
            (&["run", "--token", "${input:t}"], "run --token '${input:t}'"),
            (
                &["run", "--api-key=HUSH", "-e", "GITHUB_TOKEN=HUSH"],
                "run '--api-key=***' -e 'GITHUB_TOKEN=***'",
            ),
            (&["run", "--key", "HUSH"], "run --key '***'"),
            (&["run", "--keyboard", "de", "--monkey=1"], "run --keyboard de --monkey=1"),
            (&["run", "--header", "Authorization: Bearer HUSH"], "run --header 'Authorization: ***'"),
            (&["run", "--to=https://a:HUSH@b/?x=HUSH"], "run '--to=https://a:***@b/?x=***'"),
        ] {
            let mut words = words.iter().map(|word| (*word).to_owned());
            let program = words.next().unwrap();
            let (args, env) = (words.collect(), env.clone());
            let launch = Launch::Command { program, args, env, cwd: None, env_file: None };
            assert_eq!(target(&launch), shown);
        }
    }

    #[test]
    fn addresses_are_shown_without_their_secrets() {
        let headers = vec![("Authorization".to_owned(), Secret::new("HUSH"))];
        for (url, shown) in [
            ("https://host/mcp", "https://host/mcp"),
            ("https://me:HUSH@host:1/mcp?key=HUSH&flag#HUSH", "https://me:***@host:1/mcp?key=***&***"),
            ("https://host/?key=${input:key}", "https://host/?key=${input:key}"),
            ("${input:url}", "${input:url}"),
            ("https://host/#HUSH", "https://host/"),
        ] {
            let launch = Launch::Http { url: url.to_owned(), headers: headers.clone() };
            assert_eq!(target(&launch), shown);
        }
    }
}

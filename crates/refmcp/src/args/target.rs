//! The target of a command: a URL, a command that starts a server, or a configured name; and how it is shown without
//! its secrets.

use std::fmt;

use refmcp_client::redact;
use ring::digest;
use url::Url;

use super::{UsageError, usage};

/// A server: its URL, or how it is started. It is displayed without its secrets (see [`TargetName`]).
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// At an address.
    Url {
        /// The address, with the scheme of the connection itself.
        url: Url,
        transport: UrlTransport,
    },
    /// A program that is started, with its arguments.
    Command(Vec<String>),
    /// A name that a configuration file explains.
    Named(String),
}

/// The transport to a server at a URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UrlTransport {
    /// Streamable HTTP, or what else the server turns out to speak.
    Auto,
    /// Streamable HTTP and nothing else.
    StreamableHttp,
    /// HTTP+SSE, the older transport.
    Sse,
    /// WebSocket.
    WebSocket,
}

/// Schemes of URLs, the schemes of their connections, and their transports.
const SCHEMES: [(&str, &str, UrlTransport); 6] = [
    ("http", "http", UrlTransport::Auto),
    ("https", "https", UrlTransport::Auto),
    ("ws", "ws", UrlTransport::WebSocket),
    ("wss", "wss", UrlTransport::WebSocket),
    ("sse+http", "http", UrlTransport::Sse),
    ("sse+https", "https", UrlTransport::Sse),
];

impl Target {
    /// A URL or a configured name.
    ///
    /// # Errors
    ///
    /// It is neither; the error says what to type instead.
    pub(crate) fn parse(word: &str) -> Result<Self, UsageError> {
        if let Some((scheme, rest)) = word.split_once("://") {
            return Self::from_address(word, scheme, rest);
        }
        if word.is_empty() {
            return Err(UsageError::new("the target is an empty word"));
        }
        let shown = redact::word(word);
        if ["/", "./", "../", "~/"].iter().any(|start| word.starts_with(start)) {
            let hint = "looks like a program: put it, with its arguments, after `--` at the end";
            return Err(usage!("{shown:?} {hint}"));
        }
        if is_host_and_port(word) {
            let address = redact::url(&format!("http://{word}"));
            let shown = address.strip_prefix("http://").unwrap_or(&address);
            return Err(usage!("{shown:?} looks like an address: write {address}"));
        }
        Ok(Self::Named(word.to_owned()))
    }

    fn from_address(word: &str, scheme: &str, rest: &str) -> Result<Self, UsageError> {
        let shown = redact::word(word);
        let scheme = scheme.to_ascii_lowercase();
        let Some((_, scheme, transport)) = SCHEMES.iter().find(|(name, ..)| *name == scheme) else {
            let names = SCHEMES.map(|(name, ..)| name).join(", ");
            return Err(usage!("{shown:?}: {scheme} is not one of {names}"));
        };
        let url = Url::parse(&format!("{scheme}://{rest}"))
            .map_err(|error| usage!("{shown:?} is no address: {error}"))?;
        Ok(Self::Url { url, transport: *transport })
    }

    /// Whether a word can only be the URL of a server.
    pub(crate) fn is_url(word: &str) -> bool {
        let scheme = word.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        scheme.is_some_and(|scheme| SCHEMES.iter().any(|(name, ..)| *name == scheme))
    }
}

/// `localhost:3000`, perhaps with a path.
fn is_host_and_port(word: &str) -> bool {
    let authority = word.split('/').next().unwrap_or_default();
    authority.rsplit_once(':').is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok())
}

/// Hexadecimal digits of a digest that tell targets apart which look alike once their secrets are hidden.
const DIGITS: usize = 16;

/// The name of a target. It displays as what may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TargetName {
    shown: String,
    key: String,
    is_command: bool,
}

impl TargetName {
    /// What identifies the target in files: what is shown, and where a secret is hidden, a digest of the whole.
    pub(crate) fn key(&self) -> &str {
        &self.key
    }

    /// Whether a command starts the server.
    pub(crate) fn is_command(&self) -> bool {
        self.is_command
    }

    /// A command line of ours about the target: its words, the target where it belongs, then these options.
    pub(crate) fn command_line(&self, words: &str, options: &str) -> String {
        if self.is_command {
            return format!("{words} {options} -- {}", self.shown);
        }
        format!("{words} {} {options}", redact::joined(&[&self.shown]))
    }
}

impl fmt::Display for TargetName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl Target {
    /// Its name, without secrets.
    pub(crate) fn name(&self) -> TargetName {
        let (whole, shown) = match self {
            Self::Url { url, transport } => {
                let prefix = if *transport == UrlTransport::Sse { "sse+" } else { "" };
                let whole = format!("{prefix}{url}");
                let shown = redact::url(&whole);
                (whole, shown)
            }
            Self::Command(words) => (redact::joined(words), redact::command_line(words)),
            Self::Named(name) => (name.clone(), name.clone()),
        };
        let key = if whole == shown {
            whole
        } else {
            let digest = sha256_hex(whole.as_bytes());
            format!("{shown} #{}", digest.get(..DIGITS).unwrap_or(&digest))
        };
        TargetName { shown, key, is_command: matches!(self, Self::Command(_)) }
    }
}

/// As it is shown and logged: without secrets, and such that it can be typed again where there are none.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(f)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

/// The SHA-256 of bytes, in hexadecimal digits.
pub(crate) fn sha256_hex(bytes: &[u8]) -> String {
    digest::digest(&digest::SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_told_apart() {
        let transport = |word: &str| match Target::parse(word).unwrap() {
            Target::Url { transport, .. } => Some(transport),
            _ => None,
        };
        for (word, expected) in [
            ("http://localhost:3000/mcp", Some(UrlTransport::Auto)),
            ("HTTPS://example.org", Some(UrlTransport::Auto)),
            ("ws://localhost/mcp/ws", Some(UrlTransport::WebSocket)),
            ("wss://example.org", Some(UrlTransport::WebSocket)),
            ("sse+http://localhost/sse", Some(UrlTransport::Sse)),
            ("sse+https://example.org/sse", Some(UrlTransport::Sse)),
            ("everything", None),
            ("io.github.someone/server", None),
        ] {
            assert_eq!(transport(word), expected, "{word}");
        }
    }

    #[test]
    fn other_words_are_explained() {
        for (word, hint) in [
            ("", "empty"),
            ("ftp://example.org", "http, https, ws"),
            ("http://", "is no address"),
            ("http://[::1", "is no address"),
            ("./server", "after `--`"),
            ("/usr/bin/server", "after `--`"),
            ("localhost:3000/mcp", "write http://localhost:3000/mcp"),
        ] {
            let error = Target::parse(word).unwrap_err().to_string();
            assert!(error.contains(hint), "{word}: {error}");
        }
    }

    fn command(words: &[&str]) -> Target {
        Target::Command(words.iter().map(|word| (*word).to_owned()).collect())
    }

    #[test]
    fn nothing_that_is_shown_or_kept_has_a_secret_in_it() {
        for (target, shown) in [
            (Target::parse("https://me:hush@example.org/mcp").unwrap(), "https://***@example.org/mcp"),
            (Target::parse("sse+http://localhost/sse?key=hush").unwrap(), "sse+http://localhost/sse?key=***"),
            (command(&["npx", "a b", "--token", "hush"]), "npx 'a b' --token ***"),
            (command(&["KEY=hush", "npx"]), "KEY=*** npx"),
        ] {
            let name = target.name();
            assert_eq!((target.to_string(), name.to_string()), (shown.to_owned(), shown.to_owned()));
            for text in [name.key(), &format!("{target:?} {name:?}")] {
                assert!(!text.contains("hush") && text.contains(shown), "{text}");
            }
            assert_ne!(name.key(), shown);
        }
    }

    #[test]
    fn targets_that_look_alike_are_told_apart() {
        let at = |word: &str| Target::parse(word).unwrap().name();
        assert_eq!(at("http://h/?k=one"), at("http://h/?k=one"));
        assert_ne!(at("http://h/?k=one").key(), at("http://h/?k=two").key());
        assert_ne!(
            command(&["x", "--key", "one"]).name().key(),
            command(&["x", "--key", "two"]).name().key()
        );
    }

    #[test]
    fn what_has_no_secret_is_known_by_what_is_shown() {
        for (target, shown) in [
            (Target::parse("http://localhost:3000/mcp").unwrap(), "http://localhost:3000/mcp"),
            (Target::parse("sse+http://localhost/sse").unwrap(), "sse+http://localhost/sse"),
            (Target::parse("name").unwrap(), "name"),
            (command(&["npx", "a b"]), "npx 'a b'"),
        ] {
            let name = target.name();
            assert_eq!((name.to_string().as_str(), name.key()), (shown, shown));
        }
        assert_eq!(command(&["npx", "a b"]).name().command_line("x", "--y"), "x --y -- npx 'a b'");
        assert_eq!(Target::Named("a b".to_owned()).name().command_line("x", "--y"), "x 'a b' --y");
    }
}

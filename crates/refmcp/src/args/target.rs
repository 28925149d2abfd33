//! Which server is meant.

use refmcp_client::redact;
use url::Url;

use super::UsageError;

/// A server: where it is, or how it is started. It is displayed without its secrets (see `TargetName`).
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Target {
    /// At an address.
    Url {
        /// The address, with the scheme of the connection itself.
        url: Url,
        /// How to talk there.
        transport: UrlTransport,
    },
    /// A program that is started, with its arguments.
    Command(Vec<String>),
    /// A name that a configuration file explains.
    Named(String),
}

/// How to talk to an address.
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

/// Schemes of addresses, and what they ask for.
const SCHEMES: [(&str, &str, UrlTransport); 6] = [
    ("http", "http", UrlTransport::Auto),
    ("https", "https", UrlTransport::Auto),
    ("ws", "ws", UrlTransport::WebSocket),
    ("wss", "wss", UrlTransport::WebSocket),
    ("sse+http", "http", UrlTransport::Sse),
    ("sse+https", "https", UrlTransport::Sse),
];

impl Target {
    /// What one word means.
    ///
    /// # Errors
    ///
    /// It is neither an address that can be talked to nor a name; the error says what to type instead.
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
            return Err(UsageError::new(format!("{shown:?} {hint}")));
        }
        if is_host_and_port(word) {
            let address = redact::url(&format!("http://{word}"));
            let shown = address.strip_prefix("http://").unwrap_or(&address);
            return Err(UsageError::new(format!("{shown:?} looks like an address: write {address}")));
        }
        Ok(Self::Named(word.to_owned()))
    }

    fn from_address(word: &str, scheme: &str, rest: &str) -> Result<Self, UsageError> {
        let shown = redact::word(word);
        let scheme = scheme.to_ascii_lowercase();
        let Some((_, scheme, transport)) = SCHEMES.iter().find(|(name, ..)| *name == scheme) else {
            let names = SCHEMES.map(|(name, ..)| name).join(", ");
            return Err(UsageError::new(format!("{shown:?}: {scheme} is not one of {names}")));
        };
        let url = Url::parse(&format!("{scheme}://{rest}"))
            .map_err(|fault| UsageError::new(format!("{shown:?} is no address: {fault}")))?;
        Ok(Self::Url { url, transport: *transport })
    }

    /// Whether a word can only be an address.
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
            let fault = Target::parse(word).unwrap_err().to_string();
            assert!(fault.contains(hint), "{word}: {fault}");
        }
    }
}

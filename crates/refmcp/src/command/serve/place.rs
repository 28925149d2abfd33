//! Where the server is reached, and what is said about it when it begins to listen.

use std::net::SocketAddr;

use anyhow::Result;
use serde_json::{Map, Value, json};
use url::Url;

use crate::args::UsageError;

/// Where the server is reached.
pub(super) struct Place {
    pub(super) address: SocketAddr,
    pub(super) secure: bool,
}

impl Place {
    /// The address of each transport.
    pub(super) fn endpoints(&self) -> [(&'static str, String); 3] {
        let at = |scheme: &str, path: &str| {
            let secure = if self.secure { "s" } else { "" };
            format!("{scheme}{secure}://{}{path}", self.address)
        };
        [
            ("streamable HTTP", at("http", "/mcp")),
            ("HTTP+SSE", at("http", "/sse")),
            ("WebSocket", at("ws", "/mcp/ws")),
        ]
    }

    /// What is said; `more` are further lines of a name and a text, each under a heading.
    pub(super) fn banner(&self, heading: &str, more: &[(&str, String)]) -> String {
        let endpoints = self.endpoints();
        let mut lines: String =
            endpoints.iter().map(|(name, url)| format!("  {name:<16}  {url}\n")).collect();
        if !more.is_empty() {
            lines += &format!("\n{heading}\n");
            lines.extend(more.iter().map(|(name, text)| format!("  {name:<16}  {text}\n")));
        }
        format!(
            "refmcp {version} is listening
{lines}
For a client's mcp.json:
  {{ \"mcpServers\": {{ \"refmcp\": {{ \"type\": \"http\", \"url\": \"{url}\" }} }} }}
",
            version = env!("CARGO_PKG_VERSION"),
            url = endpoints[0].1,
        )
    }

    /// The same as one JSON document on one line.
    pub(super) fn document(&self, more: &[(&str, String)]) -> String {
        let [http, sse, websocket] = self.endpoints().map(|(_, url)| url);
        let more: Map<String, Value> =
            more.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
        let document = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "endpoints": { "streamableHttp": http, "sse": sse, "webSocket": websocket },
            "authorization": more,
        });
        format!("{document}\n")
    }

    /// The origin by which clients know the server: tokens are for this one and no other, so it must be known.
    ///
    /// # Errors
    ///
    /// It is not known, or is one to which nobody should send a token.
    pub(super) fn origin(&self, public: Option<&Url>) -> Result<Url> {
        let url = match public {
            Some(url) => url.clone(),
            None if self.address.ip().is_unspecified() => {
                let what =
                    "with --auth, --host 0.0.0.0 and the like need --public-url: tokens are for one address";
                return Err(UsageError::new(what).into());
            }
            None => {
                let scheme = if self.secure { "https" } else { "http" };
                Url::parse(&format!("{scheme}://{}/", self.address))?
            }
        };
        let refused = |why: &str| Err(UsageError::new(format!("{url}: {why}")).into());
        if !refmcp_auth::uri::is_secure(&url) {
            return refused(
                "with --auth, a server beyond this machine needs https: --tls-cert, or --public-url",
            );
        }
        if !matches!(url.path(), "/" | "/mcp") || url.query().is_some() || url.fragment().is_some() {
            return refused("--public-url is a scheme, a host and a port");
        }
        let mut origin = url;
        origin.set_path("/");
        Ok(origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_for_an_address_that_is_known_and_safe() {
        let origin = |address: &str, secure, public: Option<&str>| {
            let place = Place { address: address.parse().unwrap(), secure };
            let public = public.map(|url| Url::parse(url).unwrap());
            place.origin(public.as_ref()).map(String::from).map_err(|fault| fault.to_string())
        };
        assert_eq!(origin("127.0.0.1:3000", false, None).unwrap(), "http://127.0.0.1:3000/");
        assert_eq!(origin("[::1]:3000", true, None).unwrap(), "https://[::1]:3000/");
        assert_eq!(origin("192.0.2.1:3000", true, None).unwrap(), "https://192.0.2.1:3000/");
        let public = Some("https://mcp.example/mcp");
        assert_eq!(origin("0.0.0.0:3000", false, public).unwrap(), "https://mcp.example/");
        for (address, public, hint) in [
            ("0.0.0.0:3000", None, "--public-url"),
            ("[::]:3000", None, "--public-url"),
            ("192.0.2.1:3000", None, "needs https"),
            ("127.0.0.1:3000", Some("http://mcp.example"), "needs https"),
            ("127.0.0.1:3000", Some("https://mcp.example/other"), "a scheme, a host"),
            ("127.0.0.1:3000", Some("https://mcp.example/?x"), "a scheme, a host"),
        ] {
            let fault = origin(address, false, public).unwrap_err();
            assert!(fault.contains(hint), "{fault}");
        }
    }
}

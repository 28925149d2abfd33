//! Where the server is reached, and what is said about it when it begins to listen.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::{Context, Result};
use refmcp_auth::uri::authority;
use refmcp_client::redact;
use refmcp_http::{EndpointPath, Listener, Tls};
use serde_json::{Map, Value, json};
use tokio::net::TcpListener;
use url::Url;

use crate::args::{ServeOptions, UsageError, usage};
use crate::command::reachable;

/// Where the server is reached.
pub(super) struct ServerAddresses {
    pub(super) at: ListenAddress,
    pub(super) secure: bool,
    /// Of the main endpoint.
    pub(super) path: EndpointPath,
    /// The host and port that clients elsewhere can use; an address that stands for all of a machine's is none.
    pub(super) shown: String,
    /// The address by which clients know it, if that is another.
    pub(super) public: Option<Url>,
}

/// What is listened on.
pub(super) enum ListenAddress {
    Address(SocketAddr),
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are none"))]
    Unix(PathBuf),
}

/// The name of each transport, and its address.
type Endpoints = [(&'static str, String); 3];

impl ServerAddresses {
    /// The address of each transport, without a proxy in front.
    pub(super) fn endpoints(&self) -> Endpoints {
        self.endpoints_at(self.secure, &self.shown)
    }

    /// The address of each transport, as clients know it.
    pub(super) fn public_endpoints(&self) -> Endpoints {
        match &self.public {
            Some(url) => self.endpoints_at(url.scheme() == "https", &authority(url)),
            None => self.endpoints(),
        }
    }

    fn endpoints_at(&self, secure: bool, host: &str) -> Endpoints {
        let secure = if secure { "s" } else { "" };
        [
            ("streamable HTTP", format!("http{secure}://{host}{}", self.path)),
            ("HTTP+SSE", format!("http{secure}://{host}/sse")),
            ("WebSocket", format!("ws{secure}://{host}{}", self.path.websocket())),
        ]
    }

    /// What is said; `ops` is where operators ask, if they have an address of their own, and `more` are further lines of
    /// a name and a text, under a heading.
    pub(super) fn banner(&self, ops: Option<&str>, heading: &str, more: &[(&str, String)]) -> String {
        let mut lines: String =
            self.endpoints().iter().map(|(name, url)| format!("  {name:<16}  {url}\n")).collect();
        if let Some(ops) = ops {
            lines += &format!("  {:<16}  http://{ops}/metrics\n", "operations");
        }
        if !more.is_empty() {
            lines += &format!("\n{heading}\n");
            lines.extend(more.iter().map(|(name, text)| format!("  {name:<16}  {text}\n")));
        }
        let (whereabouts, hint) = match &self.at {
            ListenAddress::Address(address) if address.ip().is_unspecified() => {
                (format!(" on every address of this machine, port {}", address.port()), None)
            }
            ListenAddress::Address(_) => (String::new(), None),
            ListenAddress::Unix(path) => {
                let hint = format!("curl --unix-socket {} http://localhost/readyz", path.display());
                (format!(" on the Unix socket {}", path.display()), Some(hint))
            }
        };
        let next = match hint.filter(|_| self.public.is_none()) {
            Some(command) => format!("To see whether it answers:\n  {command}\n"),
            None => format!(
                "For a client's mcp.json:\n  \
                 {{ \"mcpServers\": {{ \"refmcp\": {{ \"type\": \"http\", \"url\": \"{}\" }} }} }}\n",
                self.public_endpoints()[0].1
            ),
        };
        format!("refmcp {} is listening{whereabouts}\n{lines}\n{next}", env!("CARGO_PKG_VERSION"))
    }

    /// The hosts of the address by which clients know the server. Whatever stands in front of it may pass the name on with
    /// its port or without.
    pub(super) fn public_hosts(&self) -> Vec<String> {
        let Some(url) = &self.public else { return Vec::new() };
        let with_port = url.port().map(|_| authority(url));
        url.host_str().map(str::to_owned).into_iter().chain(with_port).collect()
    }

    /// Whether the address by which clients know the server is one that it can have.
    ///
    /// # Errors
    ///
    /// It is not.
    pub(super) fn check_public(&self) -> Result<()> {
        let Some(url) = &self.public else { return Ok(()) };
        let is_web = matches!(url.scheme(), "http" | "https") && url.has_host();
        let is_path = url.path() == "/" || url.path() == self.path.as_str();
        let is_bare = url.query().is_none() && url.fragment().is_none() && url.username().is_empty();
        if is_web && is_path && is_bare && url.password().is_none() {
            return Ok(());
        }
        Err(usage!("{}: --public-url is a scheme, a host and a port", redact::url(url.as_str())).into())
    }

    /// The same as one JSON document on one line.
    pub(super) fn document(&self, ops: Option<&str>, more: &[(&str, String)]) -> String {
        let [http, sse, websocket] = self.public_endpoints().map(|(_, url)| url);
        let more: Map<String, Value> =
            more.iter().map(|(name, text)| ((*name).to_owned(), json!(text))).collect();
        let document = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "endpoints": { "streamableHttp": http, "sse": sse, "webSocket": websocket },
            "operations": ops.map(|ops| format!("http://{ops}")),
            "authorization": more,
        });
        format!("{document}\n")
    }

    /// The origin by which clients know the server: tokens are for this one and no other, so it must be known.
    ///
    /// # Errors
    ///
    /// It is not known, or is one to which no client should send a token.
    pub(super) fn origin(&self) -> Result<Url> {
        let needs = |what: &str| {
            let what = format!("with --auth, {what} --public-url: tokens are for one address");
            Err(UsageError::new(what).into())
        };
        let url = match (&self.public, &self.at) {
            (Some(url), _) => url.clone(),
            (None, ListenAddress::Unix(_)) => return needs("--unix needs"),
            (None, ListenAddress::Address(address)) if address.ip().is_unspecified() => {
                return needs("--host 0.0.0.0 and the like need");
            }
            (None, ListenAddress::Address(address)) => {
                let scheme = if self.secure { "https" } else { "http" };
                Url::parse(&format!("{scheme}://{address}/"))?
            }
        };
        if !refmcp_auth::uri::is_secure(&url) {
            let why = "with --auth, a server beyond this machine needs https: --tls-cert, or --public-url";
            return Err(usage!("{url}: {why}").into());
        }
        self.check_public()?;
        let mut origin = url;
        origin.set_path("/");
        Ok(origin)
    }
}

/// Opens it; gives where it really is.
///
/// # Errors
///
/// It is taken, or the system refuses it.
pub(super) async fn listen(options: &ServeOptions, tls: Option<&Tls>) -> Result<(Listener, ListenAddress)> {
    #[cfg(unix)]
    if let Some(path) = &options.listen.unix {
        let socket = refmcp_http::UnixSocket::bind(path, options.listen.unix_mode).await;
        let socket = socket.context("cannot listen on the Unix socket")?;
        return Ok((socket.into(), ListenAddress::Unix(path.clone())));
    }
    check_host(options)?;
    let (listener, address) = reachable::listen(&options.host, options.port, tls.cloned()).await?;
    Ok((listener, ListenAddress::Address(address)))
}

/// The same for a relay in front of the server, which then listens on a port of its own that no other machine reaches.
///
/// # Errors
///
/// It is taken, or the system refuses it.
pub(super) async fn listen_behind(
    options: &ServeOptions,
) -> Result<(TcpListener, TcpListener, ListenAddress)> {
    check_host(options)?;
    let (public, address) = reachable::bind(&options.host, options.port).await?;
    let (private, _) = reachable::bind("127.0.0.1", 0).await?;
    Ok((public, private, ListenAddress::Address(address)))
}

fn check_host(options: &ServeOptions) -> Result<()> {
    if let Some(path) = options.host.strip_prefix("unix:") {
        let what = format!("--host is the address of a port; for a Unix socket say --unix {path}");
        return Err(UsageError::new(what).into());
    }
    if options.host.contains('/') {
        let what = "--host is an address or a name of this machine, such as 0.0.0.0, and no URL";
        return Err(UsageError::new(what).into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(at: &str, secure: bool, path: &str, public: Option<&str>) -> ServerAddresses {
        let at = match at.strip_prefix("unix:") {
            Some(path) => ListenAddress::Unix(path.into()),
            None => ListenAddress::Address(at.parse().unwrap()),
        };
        let public = public.map(|url| Url::parse(url).unwrap());
        let shown = match &at {
            ListenAddress::Address(address) => address.to_string(),
            ListenAddress::Unix(_) => "localhost".to_owned(),
        };
        ServerAddresses { at, secure, path: path.parse().unwrap(), shown, public }
    }

    #[test]
    fn tokens_are_for_an_address_that_is_known_and_safe() {
        let origin = |at: &str, secure, public: Option<&str>| {
            let origin = addresses(at, secure, "/mcp", public).origin();
            origin.map(String::from).map_err(|error| error.to_string())
        };
        assert_eq!(origin("127.0.0.1:3000", false, None).unwrap(), "http://127.0.0.1:3000/");
        assert_eq!(origin("[::1]:3000", true, None).unwrap(), "https://[::1]:3000/");
        assert_eq!(origin("192.0.2.1:3000", true, None).unwrap(), "https://192.0.2.1:3000/");
        let public = Some("https://mcp.example/mcp");
        assert_eq!(origin("0.0.0.0:3000", false, public).unwrap(), "https://mcp.example/");
        assert_eq!(origin("unix:/run/s", false, public).unwrap(), "https://mcp.example/");
        for (at, public, hint) in [
            ("0.0.0.0:3000", None, "--public-url"),
            ("[::]:3000", None, "--public-url"),
            ("unix:/run/s", None, "--unix needs --public-url"),
            ("192.0.2.1:3000", None, "needs https"),
            ("127.0.0.1:3000", Some("http://mcp.example"), "needs https"),
            ("127.0.0.1:3000", Some("https://mcp.example/other"), "a scheme, a host"),
            ("127.0.0.1:3000", Some("https://mcp.example/?x"), "a scheme, a host"),
        ] {
            let error = origin(at, false, public).unwrap_err();
            assert!(error.contains(hint), "{error}");
        }
    }

    #[test]
    fn what_is_said_follows_the_path_and_the_public_address() {
        let moved = addresses("127.0.0.1:3000", false, "/api/mcp", None).banner(None, "", &[]);
        assert!(moved.contains("http://127.0.0.1:3000/api/mcp\n"), "{moved}");
        assert!(moved.contains("ws://127.0.0.1:3000/api/mcp/ws\n"), "{moved}");
        assert!(moved.contains("\"url\": \"http://127.0.0.1:3000/api/mcp\""), "{moved}");
        let public = addresses("unix:/run/s", false, "/mcp", Some("https://mcp.example:8443"));
        assert!(public.banner(None, "", &[]).contains("\"url\": \"https://mcp.example:8443/mcp\""));
        assert_eq!(public.public_hosts(), ["mcp.example", "mcp.example:8443"]);
        assert_eq!(public.public_endpoints()[2].1, "wss://mcp.example:8443/mcp/ws");
        let socket = addresses("unix:/run/s", false, "/mcp", None).banner(None, "", &[]);
        assert!(socket.contains("listening on the Unix socket /run/s\n"), "{socket}");
        assert!(socket.ends_with("  curl --unix-socket /run/s http://localhost/readyz\n"), "{socket}");
        assert!(!socket.contains("mcp.json"), "{socket}");
    }

    #[test]
    fn a_public_address_is_an_origin() {
        let check = |public: &str| addresses("127.0.0.1:3000", false, "/mcp", Some(public)).check_public();
        for good in ["http://mcp.example", "https://mcp.example:8443/", "https://mcp.example/mcp"] {
            check(good).unwrap();
        }
        for bad in
            ["ftp://mcp.example", "https://mcp.example/other", "https://u:hush@mcp.example", "mailto:x"]
        {
            let error = check(bad).unwrap_err().to_string();
            assert!(error.contains("--public-url") && !error.contains("hush"), "{bad}: {error}");
        }
    }
}

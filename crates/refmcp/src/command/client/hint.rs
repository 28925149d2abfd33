//! What to try when a server at a URL cannot be reached: another scheme, another path, another certificate.

use std::time::Duration;

use refmcp_client::transport::TransportError;
use refmcp_client::{ConnectError, OpenError, RpcError};
use refmcp_proto::jsonrpc::code;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

/// How long it may take to find out whether a port speaks TLS.
const LOOK_WITHIN: Duration = Duration::from_secs(1);

/// What to try after this fault, if anything suggests itself. `server` is the URL that was tried.
pub(crate) async fn of_connecting(server: &str, fault: &ConnectError) -> Option<String> {
    let url =
        Url::parse(server).ok().filter(|url| matches!(url.scheme(), "http" | "https" | "ws" | "wss"))?;
    let OpenError::Transport(why) = fault.why() else { return None };
    let text = why.to_string();
    let secure = matches!(url.scheme(), "https" | "wss");
    match why {
        TransportError::Unreachable(_) if secure && text.contains("does not speak TLS") => {
            Some(format!("try {}", with_scheme(&url, secure)))
        }
        TransportError::Unreachable(_) if text.contains("not trusted here") => {
            Some("give that certificate with --cacert FILE".to_owned())
        }
        TransportError::Refused { status: 404, .. } => Some(elsewhere(&url)),
        TransportError::Refused { status: 400, body, .. } if !secure && body.contains("HTTPS") => {
            Some(format!("try {}", with_scheme(&url, secure)))
        }
        TransportError::Broken(_) | TransportError::Misbehaved(_) | TransportError::Unreachable(_)
            if !secure && !text.contains(" within ") && speaks_tls(&url).await =>
        {
            Some(format!("the server speaks TLS at this port: try {}", with_scheme(&url, secure)))
        }
        _ => None,
    }
}

/// Which option lets the client do what a server needs of it.
pub(crate) fn of_capability(error: &RpcError) -> Option<&'static str> {
    if error.code != code::MISSING_CAPABILITY {
        return None;
    }
    let wanted = error.data.as_ref()?.get("requiredCapabilities")?;
    let elicitation = wanted.get("elicitation");
    if wanted.get("sampling").is_some() {
        Some("give --sampler COMMAND to answer in place of a model, or run it at a terminal")
    } else if elicitation.is_some_and(|it| it.get("url").is_some()) {
        Some("web pages are visited from a terminal only")
    } else if elicitation.is_some() {
        Some("run it at a terminal to answer, or give --yes to accept forms with their defaults")
    } else if wanted.get("roots").is_some() {
        Some("give --root DIR to tell the server of a folder")
    } else {
        None
    }
}

/// The same address with TLS where it had none, and without where it had it.
fn with_scheme(url: &Url, secure: bool) -> String {
    let (scheme, rest) = url.as_str().split_once("://").unwrap_or_default();
    let web_socket = scheme.starts_with("ws");
    let other = match (web_socket, secure) {
        (true, true) => "ws",
        (true, false) => "wss",
        (false, true) => "http",
        (false, false) => "https",
    };
    format!("{other}://{rest}")
}

/// Where the endpoint may be instead.
fn elsewhere(url: &Url) -> String {
    let path = url.path();
    if matches!(url.scheme(), "ws" | "wss") || path.trim_end_matches('/').ends_with("/mcp") {
        return format!("nothing is at {path}: check the path of the URL");
    }
    let mut usual = url.clone();
    usual.set_path("/mcp");
    format!("nothing is at {path}: most servers have their endpoint at /mcp, try {usual}")
}

/// Whether a port answers a request of HTTP with an alert of TLS.
async fn speaks_tls(url: &Url) -> bool {
    /// What an alert begins with.
    const ALERT: u8 = 21;
    let looked = timeout(LOOK_WITHIN, async {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_or_known_default().unwrap_or_default();
        let mut stream = TcpStream::connect((host, port)).await?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
        stream.read_u8().await
    });
    matches!(looked.await, Ok(Ok(ALERT)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_addresses_are_proposed() {
        let at = |text: &str| Url::parse(text).unwrap();
        assert_eq!(with_scheme(&at("https://h:1/mcp"), true), "http://h:1/mcp");
        assert_eq!(with_scheme(&at("ws://h:1/"), false), "wss://h:1/");
        assert!(elsewhere(&at("http://h:1/")).ends_with("try http://h:1/mcp"));
        assert!(elsewhere(&at("http://h:1/mcp")).contains("check the path"));
    }
}

//! What to try when a server at a URL cannot be reached: another scheme, another path, another certificate.

use std::time::Duration;

use refmcp_client::transport::TransportError;
use refmcp_client::{ConnectError, OpenError, RpcError};
use refmcp_proto::jsonrpc::{code, excerpt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use url::Url;

/// How long it may take to find out what is spoken at a port.
const PROBE_TIMEOUT: Duration = Duration::from_secs(1);

/// What to try after this fault, if anything suggests itself. `server` is the URL that was tried, `is_sse` whether by
/// HTTP+SSE alone.
pub(crate) async fn of_connecting(server: &str, is_sse: bool, error: &ConnectError) -> Option<String> {
    let url =
        Url::parse(server).ok().filter(|url| matches!(url.scheme(), "http" | "https" | "ws" | "wss"))?;
    let OpenError::Transport(why) = error.why() else { return None };
    let text = why.to_string();
    let secure = matches!(url.scheme(), "https" | "wss");
    match why {
        TransportError::Unreachable(_) if secure && text.contains("does not speak TLS") => {
            Some(match probe(&url).await {
                Some(Spoken::Other(beginning)) => other_protocol(&beginning),
                _ => format!("try {}", with_scheme(&url)),
            })
        }
        TransportError::Unreachable(_) if text.contains("not trusted here") => {
            Some("give that certificate with --cacert FILE".to_owned())
        }
        TransportError::Refused { status: 400 | 404 | 405 | 406, .. } if is_sse && url.path() != "/sse" => {
            let sse = with_path(&url, "/sse");
            Some(format!("most servers have HTTP+SSE at /sse: try sse+{sse}, or {url} for streamable HTTP"))
        }
        TransportError::Refused { status: 404, body, .. } => Some(elsewhere(&url, "nothing", body)),
        // As servers of files and of web applications do.
        TransportError::Refused { status: 405 | 501, body, .. } => {
            Some(elsewhere(&url, "no endpoint of MCP", body))
        }
        TransportError::Misbehaved(_) if text.contains("content of type text/html") => {
            Some(elsewhere(&url, "a web page", ""))
        }
        TransportError::Refused { status: 400, body, .. } if !secure && body.contains("HTTPS") => {
            Some(format!("try {}", with_scheme(&url)))
        }
        TransportError::Broken(_) | TransportError::Misbehaved(_) | TransportError::Unreachable(_)
            if !secure && !text.contains(" within ") =>
        {
            match probe(&url).await? {
                Spoken::Tls => Some(format!("the server speaks TLS at this port: try {}", with_scheme(&url))),
                Spoken::Other(beginning) => Some(other_protocol(&beginning)),
                Spoken::Http => None,
            }
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
    let hints = [
        (
            wanted.get("sampling"),
            "give --sampler COMMAND to answer in place of a model, or run it at a terminal",
        ),
        (elicitation.and_then(|it| it.get("url")), "web pages are visited from a terminal only"),
        (elicitation, "run it at a terminal to answer, or give --yes to accept forms with their defaults"),
        (wanted.get("roots"), "give --root DIR to tell the server of a folder"),
    ];
    hints.into_iter().find_map(|(wanted, hint)| wanted.map(|_| hint))
}

/// The same address with TLS where it had none, and without where it had it.
fn with_scheme(url: &Url) -> String {
    let (scheme, rest) = url.as_str().split_once("://").unwrap_or_default();
    let other = match scheme {
        "https" => "http",
        "wss" => "ws",
        "ws" => "wss",
        _ => "https",
    };
    format!("{other}://{rest}")
}

/// Where the endpoint may be instead of `what` was found; `body` is what the server said, which may be just that.
fn elsewhere(url: &Url, what: &str, body: &str) -> String {
    let path = url.path();
    let is_web_socket = matches!(url.scheme(), "ws" | "wss");
    let usual = if is_web_socket { "/mcp/ws" } else { "/mcp" };
    let told = body.split_once("MCP is at ").and_then(|(_, told)| told.split_whitespace().next());
    if let Some(told) = told.filter(|told| told.starts_with('/')) {
        let told = if is_web_socket { format!("{}/ws", told.trim_end_matches('/')) } else { told.to_owned() };
        return format!("{what} is at {path}: try {}", with_path(url, &told));
    }
    match path.trim_end_matches('/') {
        "" => {}
        bare if bare != path => return format!("{what} is at {path}: try {}", with_path(url, bare)),
        bare if bare.ends_with(usual) => return format!("{what} is at {path}: check the path of the URL"),
        _ => {}
    }
    format!(
        "{what} is at {path}: check the path of the URL; many servers have their endpoint at {usual}, try {}",
        with_path(url, usual)
    )
}

fn with_path(url: &Url, path: &str) -> Url {
    let mut url = url.clone();
    url.set_path(path);
    url
}

/// What is spoken at a port.
enum Spoken {
    Tls,
    Http,
    /// Another protocol, which begins with this.
    Other(String),
}

/// What a port answers a request of HTTP with; nothing where it does not answer.
async fn probe(url: &Url) -> Option<Spoken> {
    /// What an alert of TLS begins with.
    const ALERT: u8 = 21;
    let looked = timeout(PROBE_TIMEOUT, async {
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = url.port_or_known_default().unwrap_or_default();
        let mut stream = TcpStream::connect((host, port)).await?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").await?;
        let mut beginning = [0; 64];
        let length = stream.read(&mut beginning).await?;
        std::io::Result::Ok(beginning.get(..length).unwrap_or_default().to_vec())
    });
    match looked.await.ok()?.ok()?.as_slice() {
        [] => None,
        [ALERT, ..] => Some(Spoken::Tls),
        http if http.starts_with(b"HTTP/") => Some(Spoken::Http),
        other => Some(Spoken::Other(String::from_utf8_lossy(other).into_owned())),
    }
}

fn other_protocol(beginning: &str) -> String {
    let beginning = excerpt(beginning.lines().next().unwrap_or_default());
    format!("the server does not speak HTTP at this port: it says {beginning:?}; check the port")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_addresses_are_proposed() {
        let at = |text: &str| Url::parse(text).unwrap();
        assert_eq!(with_scheme(&at("https://h:1/mcp")), "http://h:1/mcp");
        assert_eq!(with_scheme(&at("ws://h:1/")), "wss://h:1/");
        assert!(elsewhere(&at("http://h:1/"), "nothing", "").ends_with("try http://h:1/mcp"));
        assert!(elsewhere(&at("http://h:1/mcp"), "nothing", "").ends_with("check the path of the URL"));
        assert!(
            elsewhere(&at("http://h:1/mcp/"), "nothing", "")
                .ends_with("nothing is at /mcp/: try http://h:1/mcp")
        );
        assert!(elsewhere(&at("http://h:1/x/"), "nothing", "").ends_with("try http://h:1/x"));
        assert!(elsewhere(&at("ws://h:1/nope"), "nothing", "").ends_with("try ws://h:1/mcp/ws"));
        let told = "there is nothing here; MCP is at /x/y";
        assert_eq!(elsewhere(&at("http://h:1/z"), "nothing", told), "nothing is at /z: try http://h:1/x/y");
        assert_eq!(elsewhere(&at("ws://h:1/z"), "nothing", told), "nothing is at /z: try ws://h:1/x/y/ws");
        assert!(elsewhere(&at("ws://h:1/mcp/ws"), "nothing", "").ends_with("check the path of the URL"));
    }
}

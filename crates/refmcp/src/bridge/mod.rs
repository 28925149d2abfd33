//! `refmcp bridge`: clients on one transport and a server on another.
//!
//! | module | what it is |
//! |---|---|
//! | `gateway` | a server of ours in front, and the client library behind it |
//! | `upstream` | the server behind as one client has it |
//! | `running` | the calls at that server |
//! | `stdio` | the client of the gateway that started this process |

mod gateway;
mod running;
mod stdio;
mod upstream;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Result;
use refmcp_http::{Endpoint, EndpointPath, Listener, Options, Tls};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::args::{BridgeListenOptions, UrlTransport, UsageError, usage};
use crate::command::client::{LastLines, exit_error};
use crate::command::reachable::{OPEN_BRIDGE, authority, listen, outgoing_address, warn_if_open};
use crate::ui::output::announce;
use gateway::Gateway;
pub(crate) use gateway::Target;
pub(crate) use stdio::serve_stdio;

/// Sessions of all clients: each may be a process.
const MAX_SESSIONS: usize = 256;
const MAX_CONNECTIONS: usize = 1024;
/// How long exchanges may go on once the bridge is told to stop.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves clients that come over a listener, until it is told to stop.
pub(crate) async fn serve_listener(
    front: &Front<'_>,
    target: Target,
    last_lines: &LastLines,
    stop: &CancellationToken,
) -> Result<()> {
    let options = Options { path: front.path()?, ..front.options() };
    let (listener, at) = front.bind().await?;
    let gateway = Gateway::new(target, false);
    let client = tokio::select! {
        opened = gateway.open(None) => opened.map_err(|why| exit_error::of_connecting(&why, last_lines))?,
        () = stop.cancelled() => return Ok(()),
    };
    let endpoint = Endpoint::builder(gateway.server(&client.server())?).options(options).build();
    drop(client);
    front.announce(&at);
    endpoint.serve(listener, stop.clone(), STOP_TIMEOUT).await;
    gateway.close().await;
    Ok(())
}

/// The address that clients come to, with the options of a listener.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Front<'a> {
    pub(crate) url: &'a Url,
    pub(crate) transport: UrlTransport,
    pub(crate) listen: &'a BridgeListenOptions,
    pub(crate) as_json: bool,
}

impl Front<'_> {
    fn path(&self) -> Result<EndpointPath, UsageError> {
        let path = self.url.path();
        let path = match self.transport {
            UrlTransport::Auto | UrlTransport::StreamableHttp => path.parse(),
            UrlTransport::WebSocket => EndpointPath::websocket_only(path),
            UrlTransport::Sse => EndpointPath::http_sse_only(path),
        };
        path.map_err(|error| usage!("--from {}: {error}", self.url))
    }

    fn host(&self) -> &str {
        self.url.host_str().unwrap_or("127.0.0.1")
    }

    fn options(&self) -> Options {
        Options {
            hosts: self
                .listen
                .allow_host
                .iter()
                .map(String::as_str)
                .chain([self.host()])
                .map(Into::into)
                .collect(),
            origins: self.listen.allow_origin.clone(),
            max_message_size: gateway::MAX_MESSAGE_SIZE,
            stream_bytes: 2 * gateway::MAX_MESSAGE_SIZE,
            session_bytes: 4 * gateway::MAX_MESSAGE_SIZE,
            max_connections: MAX_CONNECTIONS,
            max_sessions: MAX_SESSIONS,
            max_sessions_per_client: Some(MAX_SESSIONS),
            require_version: false,
            require_accept: false,
            serve_duplicate_ids: true,
            ..Options::default()
        }
    }

    fn tls(&self) -> Result<Option<Tls>> {
        match (&self.listen.tls_cert, &self.listen.tls_key) {
            (Some(certificate), Some(key)) => Ok(Some(Tls::from_files(certificate, key)?.only_http1())),
            _ => Ok(None),
        }
    }

    /// The listener, and the address by which clients reach it.
    async fn bind(&self) -> Result<(Listener, String)> {
        let port = self.url.port_or_known_default().unwrap_or_default();
        let (listener, address) = listen(self.host(), port, self.tls()?).await?;
        warn_if_open(address, OPEN_BRIDGE);
        Ok((listener, self.shown(address)))
    }

    /// A name stays as it was given; an address that stands for all of a machine's is none to connect to.
    fn shown(&self, address: SocketAddr) -> String {
        let prefix = if self.transport == UrlTransport::Sse { "sse+" } else { "" };
        let authority = if address.ip().is_unspecified() {
            authority(address, &self.listen.allow_host, outgoing_address)
        } else {
            format!("{}:{}", self.host(), address.port())
        };
        format!("{prefix}{}://{authority}{}", self.url.scheme(), self.url.path())
    }

    fn announce(&self, at: &str) {
        let banner = if self.as_json {
            format!("{}\n", json!({ "version": env!("CARGO_PKG_VERSION"), "listening": at }))
        } else {
            format!("refmcp bridge is listening on {at}\n")
        };
        announce(&banner);
    }
}

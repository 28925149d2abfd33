//! `refmcp serve`: the reference server for any number of clients, over HTTP.

use std::io::{Write, stdout};
use std::net::SocketAddr;

use anyhow::{Context, Result};
use refmcp_http::{Endpoint, Options};
use refmcp_server::transport::stdio::told_to_stop;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::reference_options;
use crate::args::{Policy, ServeOptions};

pub(crate) fn run(options: ServeOptions) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let served = runtime.block_on(serve(options));
    // A handler that still computes must not keep the process alive.
    runtime.shutdown_background();
    served
}

async fn serve(options: ServeOptions) -> Result<()> {
    let at = format!("{}:{}", options.host, options.port);
    let listener = TcpListener::bind(&at).await.with_context(|| format!("cannot listen on {at}"))?;
    let address = listener.local_addr().context("no address")?;
    let lenient = options.server.policy == Policy::Lenient;
    let http = Options {
        hosts: own_names(&options, address),
        origins: options.allow_origin,
        require_version: !lenient,
        serve_duplicate_ids: lenient,
        ..Options::default()
    };
    let grace = options.server.grace;
    let mut reference = reference_options(options.server);
    reference.endpoints = endpoints(address);
    let server = refmcp_reference::server_with(reference, |builder| builder.grace(grace))?;
    if let Err(fault) = stdout().write_all(banner(address).as_bytes()) {
        // Whoever closed our output does not want to read it; the server is no worse for that.
        tracing::debug!(%fault, "the banner was not read");
    }
    let stop = CancellationToken::new();
    let signals = tokio::spawn(told_to_stop(stop.clone()));
    let served = Endpoint::new(server, http).serve(listener, stop, options.shutdown_timeout).await;
    signals.abort();
    served.context("serving")
}

/// Names under which clients reach us when we listen beyond this machine.
fn own_names(options: &ServeOptions, address: SocketAddr) -> Vec<String> {
    let mut names = options.allow_host.clone();
    if !address.ip().is_loopback() {
        names.push(options.host.clone());
    }
    names
}

fn endpoints(address: SocketAddr) -> Vec<String> {
    [("http", "/mcp"), ("http", "/sse"), ("ws", "/mcp/ws")]
        .map(|(scheme, path)| format!("{scheme}://{address}{path}"))
        .to_vec()
}

fn banner(address: SocketAddr) -> String {
    format!(
        "refmcp {version} is listening
  streamable HTTP   http://{address}/mcp
  HTTP+SSE          http://{address}/sse
  WebSocket         ws://{address}/mcp/ws

For a client's mcp.json:
  {{ \"mcpServers\": {{ \"refmcp\": {{ \"type\": \"http\", \"url\": \"http://{address}/mcp\" }} }} }}
",
        version = env!("CARGO_PKG_VERSION"),
    )
}

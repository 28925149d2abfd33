//! `refmcp-interop-server-rmcp stdio` or `http PORT`: the server of the scenario, on rmcp. It serves until it is
//! stopped, or its input ends.

#![allow(deprecated, reason = "older revisions have what the newest one is about to give up")]

mod scenario;
mod tools;

use std::env;

use anyhow::{Context, Result, bail};
use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use scenario::Scenario;

#[tokio::main]
async fn main() -> Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["stdio"] => {
            let running = Scenario::default().serve(rmcp::transport::stdio()).await?;
            running.waiting().await?;
            Ok(())
        }
        ["http", port] => listen(port.parse().context("the port is no number")?).await,
        _ => bail!("usage: refmcp-interop-server-rmcp stdio | http PORT"),
    }
}

async fn listen(port: u16) -> Result<()> {
    let config = StreamableHttpServerConfig::default();
    let stop = config.cancellation_token.clone();
    let service: StreamableHttpService<Scenario, LocalSessionManager> =
        StreamableHttpService::new(|| Ok(Scenario::default()), Default::default(), config);
    let router = axum::Router::new().nest_service("/mcp", service);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let mut told = signal(SignalKind::terminate())?;
    let stopped = async move {
        told.recv().await;
        stop.cancel();
    };
    Ok(axum::serve(listener, router).with_graceful_shutdown(stopped).await?)
}

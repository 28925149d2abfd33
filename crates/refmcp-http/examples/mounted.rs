//! An application of your own with an MCP server in it: its page at `/`, the server at `/mcp`.
//!
//! `cargo run --example mounted [ADDRESS]`

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use refmcp_http::Endpoint;
use refmcp_server::{Call, CallError, Server, Tool};
use tokio::net::TcpListener;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Greet {
    /// Whom to greet.
    name: String,
}

async fn greet(_: Call, Greet { name }: Greet) -> Result<String, CallError> {
    Ok(format!("Hello, {name}!"))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let server =
        Server::builder("greeter", "1.0").tool(Tool::new("greet", "Greets a person", greet)).build()?;
    let endpoint = Endpoint::builder(server).build();
    // An application that has `/healthz` or `/metrics` of its own nests the router instead, or serves those of the
    // endpoint elsewhere: `Options::ops` and `Endpoint::ops_router`.
    let application = Router::new().route("/", get("A page of the application")).merge(endpoint.router());
    let listener = TcpListener::bind(address).await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    // With the addresses of its clients, the endpoint knows who is on this machine, and how often each one asks.
    let application = application.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, application)
        .with_graceful_shutdown(async move {
            let _ = tokio::signal::ctrl_c().await;
            // Streams would go on for ever otherwise.
            endpoint.shut_down();
        })
        .await?;
    Ok(())
}

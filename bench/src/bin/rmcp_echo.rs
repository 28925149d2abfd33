//! The same `echo` tool on the official Rust SDK, as its documentation writes servers.
//! Usage: `rmcp_echo stdio`, or `rmcp_echo CONFIGURATION PORT`

use anyhow::{Context, Result, bail};
use axum::Router;
use axum::serve::ListenerExt;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ServerCapabilities, ServerConfig};
use rmcp::transport::stdio;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, ServerHandler, ServiceExt, tool, tool_handler, tool_router};
use tokio::net::TcpListener;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Echo {
    message: String,
}

#[derive(Clone)]
struct Server {
    tool_router: ToolRouter<Self>,
}

#[tool_router]
impl Server {
    fn new() -> Self {
        Self { tool_router: Self::tool_router() }
    }

    #[tool(description = "Returns the text")]
    async fn echo(
        &self,
        Parameters(Echo { message }): Parameters<Echo>,
    ) -> Result<CallToolResult, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text(message)]))
    }
}

// Without this argument, which is optional, it would make a new router for every call.
#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let defaults = StreamableHttpServerConfig::default();
    let (config, nodelay, port) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["stdio"] => {
            Server::new().serve(stdio()).await?.waiting().await?;
            return Ok(());
        }
        ["defaults", port] => (defaults, false, port),
        ["nodelay", port] => (defaults, true, port),
        ["json", port] => (defaults.with_legacy_session_mode(false).with_json_response(true), true, port),
        _ => bail!("usage: rmcp_echo stdio | defaults PORT | nodelay PORT | json PORT"),
    };
    let service =
        StreamableHttpService::new(|| Ok(Server::new()), LocalSessionManager::default().into(), config);
    let router = Router::new().nest_service("/mcp", service);
    let listener = TcpListener::bind(("127.0.0.1", port.parse().context("not a port")?)).await?;
    if nodelay {
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true); // failing this, the benchmark shows it
        });
        axum::serve(listener, router).await?;
    } else {
        axum::serve(listener, router).await?;
    }
    Ok(())
}

//! Our client; see `caller`. `REVISION` in the environment asks for one.

use std::env;
use std::sync::Arc;

use anyhow::Result;
use refmcp_bench::caller::{self, How, Task};
use refmcp_client::child::ChildProcess;
use refmcp_client::http::StreamableHttp;
use refmcp_client::transport::Connector;
use refmcp_client::websocket::WebSocket;
use refmcp_client::{Client, VersionPolicy};
use serde_json::json;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> Result<()> {
    let report = match caller::task()? {
        Task::Calls { in_flight, time, how } => {
            let client = connect(&how).await?;
            let calling = client.clone();
            let call = move || {
                let client = calling.clone();
                async move {
                    let result = client.call_tool("echo", json!({ "message": "hello" })).await?;
                    anyhow::ensure!(!result.content.is_empty(), "no answer");
                    Ok(())
                }
            };
            let report = caller::calls(in_flight, time, call).await?;
            client.close().await;
            report
        }
        Task::Memory { few, many, url } => {
            caller::memory_per_connection(few, many, || connect_to(How::Url(url.clone()))).await?
        }
    };
    println!("{report}");
    Ok(())
}

async fn connect_to(how: How) -> Result<Client> {
    connect(&how).await
}

async fn connect(how: &How) -> Result<Client> {
    let server: Arc<dyn Connector> = match how {
        How::Url(url) if url.starts_with("ws") => Arc::new(WebSocket::new(url)?),
        How::Url(url) => Arc::new(StreamableHttp::new(url)?),
        How::Stdio(command) => Arc::new(ChildProcess::new(&command[0]).args(&command[1..])),
    };
    let era: VersionPolicy = env::var("REVISION").map_or(Ok(VersionPolicy::Auto), |era| era.parse())?;
    Ok(Client::builder("bench", "1").version_policy(era).connect_to(server).await?)
}

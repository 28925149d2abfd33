//! The client of rmcp, as its documentation starts it; see `caller`.

use anyhow::Result;
use refmcp_bench::caller::{self, How, Task};
use rmcp::model::CallToolRequestParams;
use rmcp::service::RunningService;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{RoleClient, ServiceExt};
use serde_json::json;
use tokio::process::Command;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> Result<()> {
    let report = match caller::task()? {
        Task::Calls { in_flight, time, how } => {
            let client = connect(how).await?;
            let peer = client.peer().clone();
            let call = move || {
                let peer = peer.clone();
                async move {
                    let arguments = json!({ "message": "hello" }).as_object().cloned().unwrap_or_default();
                    let result =
                        peer.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments)).await?;
                    anyhow::ensure!(!result.content.is_empty(), "no answer");
                    Ok(())
                }
            };
            let report = caller::calls(in_flight, time, call).await?;
            client.cancel().await?;
            report
        }
        Task::Memory { few, many, url } => {
            caller::memory_per_connection(few, many, || connect(How::Url(url.clone()))).await?
        }
    };
    println!("{report}");
    Ok(())
}

async fn connect(how: How) -> Result<RunningService<RoleClient, ()>> {
    Ok(match how {
        How::Url(url) => ().serve(StreamableHttpClientTransport::from_uri(url)).await?,
        How::Stdio(command) => {
            let mut process = Command::new(&command[0]);
            process.args(&command[1..]);
            ().serve(TokioChildProcess::new(process)?).await?
        }
    })
}

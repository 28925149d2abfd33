//! The connection to the suite's server.

use std::time::Duration;

use refmcp_client::http::StreamableHttp;
use refmcp_client::model::{CallToolResult, Tool};
use refmcp_client::{Client, Event, Host, VersionPolicy};
use serde::Serialize;

use crate::run_config::RunConfig;
use crate::scenarios::BoxError;

/// Shorter than the limit of the suite, so that the error says what took so long.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Connects in the revision of the run, and in no other.
pub(crate) async fn connect(config: &RunConfig, host: Host) -> Result<Client, BoxError> {
    connect_to(StreamableHttp::new(&config.url)?, config, host).await
}

/// The same, with another connector.
pub(crate) async fn connect_to(
    server: StreamableHttp,
    config: &RunConfig,
    host: Host,
) -> Result<Client, BoxError> {
    let builder = Client::builder("refmcp-conformance-client", env!("CARGO_PKG_VERSION"))
        .host(host.on_event(report))
        .version_policy(VersionPolicy::Exactly(config.revision))
        .open_timeout(TIMEOUT)
        .timeout(TIMEOUT);
    Ok(builder.connect(server).await?)
}

/// Findings help to find the reason of a failure.
fn report(event: &Event) {
    if let Event::Finding(finding) = event {
        println!("{}: {finding}", finding.rule);
    }
}

/// The listed tool of this name.
pub(crate) fn tool<'a>(tools: &'a [Tool], name: &str) -> Result<&'a Tool, BoxError> {
    let found = tools.iter().find(|tool| tool.name == name);
    found.ok_or_else(|| format!("the server lists no tool called {name}").into())
}

/// Calls a tool that is to succeed.
pub(crate) async fn call(client: &Client, tool: &str, arguments: impl Serialize) -> Result<(), BoxError> {
    let result: CallToolResult = client.call_tool(tool, arguments).await?;
    if result.is_error == Some(true) {
        return Err(format!("{tool} failed: {:?}", result.content).into());
    }
    Ok(())
}

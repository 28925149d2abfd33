//! The suite's server, as every scenario meets it.

use std::time::Duration;

use refmcp_client::http::{HttpSettings, StreamableHttp};
use refmcp_client::model::{CallToolResult, Tool};
use refmcp_client::{Client, Event, Host, VersionPolicy};
use serde::Serialize;

use crate::assignment::Assignment;
use crate::scenarios::Fault;

/// Shorter than the suite waits for a scenario, so that it is said what took so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens a conversation in the revision that the run is about, and in no other.
pub(crate) async fn connect(assignment: &Assignment, host: Host) -> Result<Client, Fault> {
    connect_with(HttpSettings::default(), assignment, host).await
}

/// The same, over connections that are used in another way than usual.
pub(crate) async fn connect_with(
    settings: HttpSettings,
    assignment: &Assignment,
    host: Host,
) -> Result<Client, Fault> {
    connect_to(StreamableHttp::new(&assignment.url)?.settings(settings), assignment, host).await
}

/// The same, with a server that is reached in another way than usual.
pub(crate) async fn connect_to(
    server: StreamableHttp,
    assignment: &Assignment,
    host: Host,
) -> Result<Client, Fault> {
    let builder = Client::builder("refmcp-conformance-client", env!("CARGO_PKG_VERSION"))
        .host(host.on_event(report))
        .era(VersionPolicy::Exactly(assignment.revision))
        .open_timeout(PATIENCE)
        .timeout(PATIENCE);
    Ok(builder.connect(server).await?)
}

/// What the library noticed helps whoever looks for the reason of a failure.
fn report(event: &Event) {
    if let Event::Finding(finding) = event {
        println!("{}: {}", finding.rule, finding.what);
    }
}

/// The listed tool of this name.
pub(crate) fn tool<'a>(tools: &'a [Tool], name: &str) -> Result<&'a Tool, Fault> {
    let found = tools.iter().find(|tool| tool.name == name);
    found.ok_or_else(|| format!("the server lists no tool called {name}").into())
}

/// Calls a tool that is to succeed.
pub(crate) async fn call(client: &Client, tool: &str, arguments: impl Serialize) -> Result<(), Fault> {
    let result: CallToolResult = client.call_tool(tool, arguments).await?;
    if result.is_error == Some(true) {
        return Err(format!("{tool} failed: {:?}", result.content).into());
    }
    Ok(())
}

//! Streams of events that break off.

use refmcp_client::Host;
use refmcp_client::http::HttpSettings;
use serde_json::json;

use super::Fault;
use crate::assignment::Assignment;
use crate::server;

/// The server closes the stream before it answers; the answer comes on the next one, after the pause it asked for.
pub(super) async fn retry(assignment: Assignment) -> Result<(), Fault> {
    // The server of this scenario gives its answer to the first stream that is asked for after the call, whatever for.
    let mut settings = HttpSettings::default();
    settings.get_stream = false;
    let client = server::connect_with(settings, &assignment, Host::new()).await?;
    server::call(&client, "test_reconnection", json!({})).await?;
    client.close().await;
    Ok(())
}

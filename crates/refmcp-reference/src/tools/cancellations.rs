//! What was cancelled, and when it really stopped.

use refmcp_server::{Call, CallError, Json, Timestamp, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cancellation_log::{self, Cancelled, MAX_TAG_CHARACTERS};

pub(super) fn tools() -> Vec<Tool> {
    let description = "Tells which calls were cancelled, when, and when work on them really stopped";
    vec![Tool::new("cancellations", description, cancellations).title("Cancellations").read_only().inline()]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// Only calls that were started with this tag; must be given where there is no session
    #[schemars(length(max = MAX_TAG_CHARACTERS))]
    tag: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Report {
    /// The cancelled calls, in the order in which they stopped
    cancelled: Vec<Entry>,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
struct Entry {
    /// The tool that was called
    tool: &'static str,
    /// The client's id of the request
    request_id: String,
    /// The tag it was started with
    #[serde(skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    /// When the server heard of the cancellation
    cancelled_at: String,
    /// When the work stopped; absent while it goes on
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_at: Option<String>,
    /// The milliseconds between the two
    #[serde(skip_serializing_if = "Option::is_none")]
    stopped_after_ms: Option<f64>,
}

async fn cancellations(call: Call, Wanted { tag }: Wanted) -> Result<Json<Report>, CallError> {
    let cancelled = cancellation_log::cancelled(&call, tag.as_deref());
    let cancelled =
        cancelled.ok_or_else(|| CallError::new("without a session, say by its tag which calls are meant"))?;
    Ok(Json(Report { cancelled: cancelled.into_iter().map(entry).collect() }))
}

fn entry(work: Cancelled) -> Entry {
    let Cancelled { about, cancelled_at, stopped_at } = work;
    Entry {
        tool: about.tool,
        request_id: about.request_id,
        tag: about.tag,
        cancelled_at: cancelled_at.to_rfc3339(),
        stopped_at: stopped_at.map(Timestamp::to_rfc3339),
        stopped_after_ms: stopped_at.map(|stopped| (stopped - cancelled_at).as_secs_f64() * 1000.0),
    }
}

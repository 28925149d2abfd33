//! The tool `tour`: its results are steps, and say what has happened, what comes next, and what the client should do.

use std::sync::Arc;
use std::time::Duration;

use refmcp_server::model::{CallToolResult, ContentBlock, JsonObject};
use refmcp_server::peer::Peer;
use refmcp_server::{Call, CallError, Json, NoArguments, RpcError, Tool, ToolOutput};
use schemars::JsonSchema;
use serde::Serialize;
use tokio::time::sleep;

use super::Tours;
use super::in_call::{run_of, situation};
use super::progress::{Situation, StepState, TourProgress};
use super::step::{Occasion, Step};
use crate::tools::content;

/// The name of the tool.
pub(super) const NAME: &str = "tour";
/// How many seconds a call waits to be cancelled.
const CANCEL_WITHIN: u32 = 8;

/// The tool.
pub(super) fn tool(tours: Tours) -> Tool {
    let description =
        "Leads a client through the features of MCP: call it again and again, and do what its results say";
    Tool::new(NAME, description, move |call: Call, _: NoArguments| answer(tours.clone(), call))
        .title("Tour")
        .read_only()
        .annotate(|hints| hints.open_world(false))
}

/// How far the tour is.
#[derive(Serialize, JsonSchema)]
struct Report {
    /// What has happened, and how it ended
    happened: Vec<Happened>,
    /// What can still happen
    open: Vec<String>,
    /// What to do now
    now: String,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct Happened {
    /// The step
    step: &'static str,
    /// How it ended
    outcome: String,
}

/// A report, with content blocks behind it.
struct Told(Report, Vec<ContentBlock>);

impl ToolOutput for Told {
    fn schema() -> Option<Arc<JsonObject>> {
        Json::<Report>::schema()
    }

    fn into_result(self) -> Result<CallToolResult, CallError> {
        let Self(report, more) = self;
        let data = serde_json::to_value(&report)?;
        let mut blocks = vec![ContentBlock::text(report.text())];
        blocks.extend(more);
        // The same for clients that know no structured content.
        blocks.push(ContentBlock::text(data.to_string()));
        Ok(CallToolResult::new(blocks).structured_content(data))
    }
}

impl Report {
    fn new(progress: &TourProgress, about: &Situation<'_>, now: String) -> Self {
        let mut report = Self { happened: Vec::new(), open: Vec::new(), now };
        // Pages are there whenever the client lists.
        for (step, state) in progress.lines(about).filter(|(step, _)| step.occasion() != Occasion::List) {
            match state {
                StepState::Open => report.open.push(format!("{step}: {}", step.shows())),
                _ => report.happened.push(Happened { step: step.name(), outcome: state.to_string() }),
            }
        }
        report
    }

    fn text(&self) -> String {
        let mut text = format!(
            "The tour: {} of {} steps have happened.\n",
            self.happened.len(),
            self.happened.len() + self.open.len()
        );
        for Happened { step, outcome } in &self.happened {
            text += &format!("- {step}: {outcome}\n");
        }
        if !self.open.is_empty() {
            text += &format!("\nTo come:\n- {}\n", self.open.join("\n- "));
        }
        text + "\n" + &self.now
    }
}

async fn answer(tours: Tours, call: Call) -> Result<Told, CallError> {
    let run = run_of(&tours, &call).await?;
    let (peer, about) = (call.peer(), situation(&tours, &call));
    let step = tours.with(peer, |progress| progress.next_result(run, &about));
    let end = |how: &str| {
        if let Some(step) = step {
            tours.with(peer, |progress| progress.end(step, how));
        }
        tours.with(peer, |progress| advice(progress, &about))
    };
    let mut blocks = Vec::new();
    let now = match step {
        Some(Step::Content) => {
            blocks = content::mixed();
            end("sent")
        }
        Some(Step::ToolError) => {
            let how = "This result says isError, as a part of the tour.";
            return Err(CallError::new(format!("{how} {}", end("sent"))));
        }
        Some(Step::ProtocolError) => {
            let how = "this JSON-RPC error is a part of the tour.";
            return Err(RpcError::invalid_params(format!("{how} {}", end("sent"))).into());
        }
        Some(Step::Cancel) => {
            let _waiting = Waiting { tours: tours.clone(), peer: peer.clone() };
            for second in 1..=CANCEL_WITHIN {
                sleep(Duration::from_secs(1)).await;
                let message = format!("the tour: cancel this call ({second} of {CANCEL_WITHIN})");
                call.progress(1.0 + f64::from(second), None, message).await;
            }
            end("not cancelled")
        }
        _ => end(""),
    };
    Ok(tours.with(peer, |progress| Told(Report::new(progress, &about, now), blocks)))
}

/// What the client should do now.
fn advice(progress: &TourProgress, about: &Situation<'_>) -> String {
    let is_open = |(step, state): &(Step, StepState<'_>)| {
        *state == StepState::Open && step.occasion() != Occasion::List
    };
    let open: Vec<&str> = progress.lines(about).filter(is_open).map(|(step, _)| step.name()).collect();
    let has = |step: Step| open.contains(&step.name());
    match progress.coming_result(about) {
        Some(Step::Cancel) => {
            format!("Call {NAME} again, and cancel that call: it takes {CANCEL_WITHIN} seconds.")
        }
        Some(_) => format!("Call {NAME} again."),
        None if has(Step::Cut) || has(Step::Expiry) => format!("Call {NAME} again."),
        None if has(Step::VersionFallback) => {
            format!("The session ends now: the next request gets 404. Call {NAME} again in a new session.")
        }
        None if open.is_empty() => "The tour is over.".to_owned(),
        None => format!(
            "The tour is over but for {}: subscribe to a resource, or change the roots.",
            open.join(", ")
        ),
    }
}

/// A call that waits to be cancelled: dropped before its time it was.
struct Waiting {
    tours: Tours,
    peer: Peer,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.tours.with(&self.peer, |progress| progress.end(Step::Cancel, "cancelled"));
    }
}

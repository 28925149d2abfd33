//! `research`: a long task with stages, questions and a result. The same handler answers calls that do not become tasks.

use std::time::Duration;

use refmcp_server::model::{BooleanSchema, Choices, FormSchema, SingleChoiceSchema, TaskSupport};
use refmcp_server::{Call, CallError, ElicitOutcome, Json, Tool};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::sleep;

/// What can be looked at: the value, and its title.
const FOCUSES: [(&str, &str); 3] =
    [("history", "History"), ("present", "Present state"), ("outlook", "Outlook")];
/// The sources, in the order in which they are read, and whether they are disputed.
const SOURCES: [(&str, bool); 4] =
    [("encyclopaedia", false), ("archive", false), ("newspaper", true), ("letter to the editor", true)];
/// Stages: planning, each source, writing.
const STAGES: u32 = 2 + SOURCES.len() as u32;

pub(super) fn tools() -> Vec<Tool> {
    let description =
        "Looks into a topic in stages, asks what to look at and what to leave out, and writes a report";
    let tool = Tool::new("research", description, research).title("Research").read_only();
    // What it asks is beyond the server.
    vec![tool.annotate(|hints| hints.open_world(true)).task(TaskSupport::Optional)]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Research {
    /// What to look into
    #[schemars(length(min = 1, max = 200))]
    topic: String,
    /// How long each stage takes, in milliseconds
    #[serde(default = "third_of_a_second")]
    #[schemars(range(max = 60_000))]
    stage_ms: u64,
    /// Whether questions are asked; a client that cannot be asked gets all of it
    #[serde(default = "yes")]
    ask: bool,
}

fn third_of_a_second() -> u64 {
    300
}

fn yes() -> bool {
    true
}

#[derive(Serialize, JsonSchema)]
struct Report {
    /// What was looked into
    topic: String,
    /// What the user wanted to know about it
    focus: String,
    /// The sources that the report rests on
    sources: Vec<&'static str>,
    /// What was found
    summary: String,
}

async fn research(
    call: Call,
    Research { topic, stage_ms, ask }: Research,
) -> Result<(String, Json<Report>), CallError> {
    let stage = Duration::from_millis(stage_ms);
    let asks = ask && call.peer().capabilities.elicits_forms();
    work(&call, 1, stage, "planning").await?;
    let focus = if asks { ask_focus(&call, &topic)? } else { None };
    let focus = focus.unwrap_or_else(|| "everything".to_owned());
    for (number, (source, _)) in (2..).zip(SOURCES) {
        work(&call, number, stage, &format!("reading the {source}")).await?;
    }
    let with_disputed = !asks || ask_disputed(&call)?;
    work(&call, STAGES, stage, "writing the report").await?;
    let used = SOURCES.into_iter().filter(|(_, disputed)| with_disputed || !disputed);
    let sources: Vec<&str> = used.map(|(source, _)| source).collect();
    let summary = format!("{} sources agree that {topic} is worth a closer look ({focus}).", sources.len());
    let text = format!("# {topic}\n\n{summary}\n\nSources: {}", sources.join(", "));
    Ok((text, Json(Report { topic, focus, sources, summary })))
}

/// A stage of the work, which is done once however often the handler runs.
async fn work(call: &Call, number: u32, time: Duration, what: &str) -> Result<(), CallError> {
    call.once(&format!("stage {number}"), async {
        call.progress(number.into(), Some(STAGES.into()), what).await;
        sleep(time).await;
        Ok(())
    })
    .await
}

/// What the user wants to know; `None` where they do not say.
fn ask_focus(call: &Call, topic: &str) -> Result<Option<String>, CallError> {
    let focus = SingleChoiceSchema::new(Choices::titled(FOCUSES)).title("Focus");
    let form = FormSchema::new().required("focus", focus);
    Ok(match call.elicit("focus", format!("What do you want to know about {topic}?"), form)? {
        ElicitOutcome::Accepted(values) => values.get("focus").and_then(Value::as_str).map(str::to_owned),
        ElicitOutcome::Declined | ElicitOutcome::Cancelled => None,
    })
}

fn ask_disputed(call: &Call) -> Result<bool, CallError> {
    let disputed = SOURCES.iter().filter(|(_, disputed)| *disputed).count();
    let use_them = BooleanSchema::new().title("Use them").with_default(false);
    let form = FormSchema::new().required("use", use_them);
    let question = format!("{disputed} of {} sources are disputed. Use them all the same?", SOURCES.len());
    Ok(match call.elicit("disputed", question, form)? {
        ElicitOutcome::Accepted(values) => values.get("use") == Some(&Value::Bool(true)),
        ElicitOutcome::Declined | ElicitOutcome::Cancelled => false,
    })
}

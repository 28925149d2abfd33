//! What a client hears beside results: log messages, updates, and streams that end early.

use std::time::Duration;

use refmcp_server::model::LogLevel;
use refmcp_server::{Call, CallError, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

use crate::cancellation_log::RunningWork;
use crate::resources::builtin;

/// Who speaks in log messages.
const LOGGER: &str = "refmcp-reference";
/// What `simulate` updates.
const UPDATED: &str = "file:///resources/notes.txt";

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new("log_all", "Sends one log message at each of the eight levels", log_all)
            .title("Log at every level")
            .read_only()
            .inline(),
        Tool::new("simulate", "Sends log messages or resource updates for a while, then answers", simulate)
            .title("Simulate activity")
            .annotate(|hints| hints.read_only(false).destructive(false)),
        Tool::new(
            "close_stream",
            "Ends the stream of this call before the result, so that the client has to resume",
            close_stream,
        )
        .title("Close the stream")
        .read_only(),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LogAll {
    /// What the messages say
    #[serde(default = "test_message")]
    text: String,
}

fn test_message() -> String {
    "a test message".to_owned()
}

async fn log_all(call: Call, LogAll { text }: LogAll) -> Result<String, CallError> {
    for level in LogLevel::ALL {
        call.log(level, LOGGER, json!({ "text": text, "level": level })).await;
    }
    Ok(format!("logged at {} levels; those below the level you set were not sent", LogLevel::ALL.len()))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Simulate {
    /// What is sent
    what: What,
    /// The time between two of them, in milliseconds
    #[serde(default = "one_second")]
    #[schemars(range(min = 10, max = 600_000))]
    every_ms: u64,
    /// How long it goes on, in milliseconds
    #[serde(default = "five_seconds")]
    #[schemars(range(max = 600_000))]
    for_ms: u64,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum What {
    /// Log messages at changing levels
    Logs,
    /// Updates of file:///resources/notes.txt, for those who subscribed to it
    Updates,
}

fn one_second() -> u64 {
    1000
}

fn five_seconds() -> u64 {
    5000
}

async fn simulate(call: Call, Simulate { what, every_ms, for_ms }: Simulate) -> Result<String, CallError> {
    let _working = RunningWork::start(&call, "simulate", None);
    let every = Duration::from_millis(every_ms);
    let end = Instant::now() + Duration::from_millis(for_ms);
    let mut ticks = interval_at(Instant::now() + every, every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut sent = 0usize;
    while ticks.tick().await <= end {
        match what {
            What::Logs => {
                let level = LogLevel::ALL
                    .into_iter()
                    .cycle()
                    .nth(sent % LogLevel::ALL.len())
                    .unwrap_or(LogLevel::Info);
                call.log(level, LOGGER, json!({ "simulated": sent + 1 })).await;
            }
            What::Updates => builtin::touch(call.server(), UPDATED)?,
        }
        sent += 1;
    }
    let what = match what {
        What::Logs => "log messages",
        What::Updates => "updates of file:///resources/notes.txt",
    };
    Ok(format!("{sent} {what} in {for_ms} ms"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CloseStream {
    /// When the stream ends, in milliseconds from now
    #[serde(default)]
    #[schemars(range(max = 60_000))]
    after_ms: u64,
}

async fn close_stream(call: Call, CloseStream { after_ms }: CloseStream) -> Result<String, CallError> {
    let _working = RunningWork::start(&call, "close_stream", None);
    sleep(Duration::from_millis(after_ms)).await;
    call.close_stream();
    // The result comes when the client has been sent away, so that it has to come back for it.
    sleep(RECONNECT_DELAY).await;
    Ok("the stream was closed before this result, if the transport has streams and the revision lets them be \
        taken up again"
        .to_owned())
}

/// How long a client that was sent away stays without its result at least.
const RECONNECT_DELAY: Duration = Duration::from_millis(200);

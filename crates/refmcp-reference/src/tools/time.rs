//! Tools that take their time, report progress and stop when they are cancelled.

use std::time::Duration;

use refmcp_server::{Call, CallError, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

use crate::cancellation_log::{MAX_TAG_CHARACTERS, RunningWork};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "long_task",
            "Works in steps, reports progress after each, and stops at once when cancelled",
            long_task,
        )
        .title("Long task")
        .read_only(),
        Tool::new("slow", "Sleeps, then answers", slow).title("Slow").read_only(),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct LongTask {
    /// How many steps there are
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 10_000))]
    steps: u32,
    /// How long each takes, in milliseconds
    #[serde(default = "fifth_of_a_second")]
    #[schemars(range(max = 60_000))]
    step_ms: u64,
    /// The step that fails, if one should
    #[schemars(range(min = 1, max = 10_000))]
    fail_at: Option<u32>,
    /// A name to ask `cancellations` for
    #[schemars(length(max = MAX_TAG_CHARACTERS))]
    tag: Option<String>,
}

fn five() -> u32 {
    5
}

fn fifth_of_a_second() -> u64 {
    200
}

async fn long_task(
    call: Call,
    LongTask { steps, step_ms, fail_at, tag }: LongTask,
) -> Result<String, CallError> {
    let _working = RunningWork::start(&call, "long_task", tag);
    for step in 1..=steps {
        sleep(Duration::from_millis(step_ms)).await;
        if fail_at == Some(step) {
            return Err(CallError::new(format!(
                "failed at step {step} of {steps}, after {} were done",
                step - 1
            )));
        }
        call.progress(step.into(), Some(steps.into()), format!("step {step} of {steps}")).await;
    }
    Ok(format!("done: {steps} of {steps} steps"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Slow {
    /// How long to sleep, in milliseconds
    #[schemars(range(max = 600_000))]
    ms: u64,
    /// A name to ask `cancellations` for
    #[schemars(length(max = MAX_TAG_CHARACTERS))]
    tag: Option<String>,
}

async fn slow(call: Call, Slow { ms, tag }: Slow) -> Result<String, CallError> {
    let _working = RunningWork::start(&call, "slow", tag);
    sleep(Duration::from_millis(ms)).await;
    Ok(format!("slept for {ms} ms"))
}

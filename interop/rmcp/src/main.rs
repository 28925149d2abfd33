//! The scenario on rmcp, the official Rust SDK. Usage: see `../README.md`.

// rmcp marks roots, sampling and logging as deprecated; the scenario is about them.
#![allow(deprecated)]

mod exit_recorder;
mod form;
mod observed;
mod scenario;
mod session;

use std::fs::File;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tokio::time::timeout;

use crate::scenario::{FEATURES, Scenario, Unsupported};

const CLIENT: &str = "rmcp";
const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];
const FEATURE_TIMEOUT: Duration = Duration::from_secs(10);

// One thread: rmcp hands every notification to a task of its own, and only so do they stay in order.
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [output, revision, dashes, server @ ..] = arguments.as_slice() else { return Ok(usage()) };
    if dashes != "--" || server.is_empty() || !REVISIONS.contains(&revision.as_str()) {
        return Ok(usage());
    }
    let folder = std::env::temp_dir().join(format!("scenario-{}", session::run_number()));
    std::fs::create_dir(&folder)?;
    let mut lines = File::create(output)?;
    let mut scenario = Scenario::new(revision.clone(), server.to_vec(), folder.clone())?;
    let transport = scenario.transport();
    let refusal = scenario.refusal().await;
    let mut failures = 0;
    for feature in FEATURES {
        let (status, detail) = match &refusal {
            Some(refusal) => ("unsupported", refusal.clone()),
            None => run(&mut scenario, feature).await,
        };
        failures += u32::from(status == "failed");
        let spoken = scenario.revision();
        writeln!(
            lines,
            "{}",
            json!({
                "client": CLIENT, "transport": transport, "revision": spoken, "feature": feature, "status": status,
                "detail": detail
            })
        )?;
        println!("{CLIENT} {transport} {spoken} {status:11} {feature}  {detail}");
    }
    drop(scenario);
    std::fs::remove_dir_all(folder)?;
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// One feature: its status and what there is to say about it.
async fn run(scenario: &mut Scenario, feature: &str) -> (&'static str, String) {
    match timeout(FEATURE_TIMEOUT, scenario.run(feature)).await {
        Ok(Ok(detail)) => ("ok", detail),
        Ok(Err(error)) if error.is::<Unsupported>() => ("unsupported", error.to_string()),
        Ok(Err(error)) => ("failed", format!("{error:#}")),
        Err(_) => ("failed", format!("no end within {FEATURE_TIMEOUT:?}")),
    }
}

fn usage() -> ExitCode {
    eprintln!(
        "usage: refmcp-interop-rmcp FEATURES.jsonl {} -- SERVER [ARG...] | -- URL PAGED_URL",
        REVISIONS.join("|")
    );
    ExitCode::from(2)
}

//! The client that the official conformance suite starts, once for each scenario: does what the scenario wants, with
//! nothing but the public API of the client library.

#![allow(clippy::print_stdout, reason = "a command line program speaks through its output")]
#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod redirect_browser;
mod run_config;
mod scenarios;
mod server;

use std::env;
use std::process::ExitCode;

use run_config::RunConfig;
use scenarios::{BoxError, Scenario};

/// The exit code of wrong usage.
const MISUSED: u8 = 2;

/// The filter of the log, which goes to stderr.
const LOG: &str = "REFMCP_LOG";

fn main() -> ExitCode {
    if let Ok(filter) = env::var(LOG) {
        let lines = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
        lines.with_writer(std::io::stderr).init();
    }
    let arguments = env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    let config = match RunConfig::read(arguments, |name| env::var(name).ok()) {
        Ok(config) => config,
        Err(error) => return misused(&error.to_string()),
    };
    let Some(scenario) = scenarios::find(&config.scenario) else {
        let known = scenarios::names().collect::<Vec<_>>().join(", ");
        return misused(&format!("no scenario is called {:?}; those that are: {known}", config.scenario));
    };
    match run(scenario, config) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(scenario: Scenario, config: RunConfig) -> Result<(), BoxError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        scenario(config).await?.close().await;
        Ok(())
    })
}

fn misused(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(MISUSED)
}

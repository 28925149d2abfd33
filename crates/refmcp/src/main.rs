//! `refmcp`: parses the command line and runs the command.

// `eprintln!` panics where stderr cannot be written: `ui::output::print_aside` does not.
#![warn(clippy::print_stderr)]

mod args;
mod arguments;
mod audit;
mod bridge;
mod command;
mod completion;
mod config;
mod logging;
mod record;
mod relay;
mod shell;
mod signals;
mod store;
mod ui;

use std::process::ExitCode;

use anyhow::{Context, Result};

use args::{Action, ExitReason};

/// Requests are many small allocations by one thread, freed by another, which the system's allocator is slow at; and
/// memory is given back after a peak.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (log, action) = match args::parse() {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if let Action::CompleteLine(shell, words) = &action {
        // Before anything is logged: the shell shows the line that is being typed.
        completion::run(*shell, words);
        return ExitCode::SUCCESS;
    }
    let as_json = action.has_json_errors();
    match logging::start(&log.log, log.log_format, action.log_style()).and_then(|_log| run(action)) {
        Ok(reason) => reason.into(),
        Err(error) => {
            ui::error::report(&error, as_json);
            ExitReason::of(&error).into()
        }
    }
}

/// Runs the command, then reports what an audit of it has found.
fn run(action: Action) -> Result<ExitReason> {
    let audited = action.record_options().filter(|options| options.audit).cloned();
    let ended = run_command(action);
    if let Some(options) = audited {
        audit::report(&options)?;
    }
    ended
}

fn run_command(action: Action) -> Result<ExitReason> {
    match action {
        Action::Stdio(options) => command::stdio::run(*options).map(|()| ExitReason::Done),
        Action::Serve(options) => command::serve::run(*options).map(|()| ExitReason::Done),
        Action::Client(command, shared) => command::client::run(command, &shared),
        Action::Relay(options, url) => relay::run(&options, url.as_ref()),
        Action::Report(options) => command::report::run(&options),
        Action::Trust(command) => command::trust::run(command),
        Action::Log(query) => command::log::run(&query),
        Action::Servers(options) => command::servers::run(&options),
        Action::Install(options) => command::install::run(&options),
        Action::Completions(shell) => print_with(|to| args::print_completions(shell, to)),
        Action::Man => print_with(args::print_manual),
        // Done by `main`.
        Action::CompleteLine(..) => Ok(ExitReason::Done),
    }
}

fn print_with(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Result<ExitReason> {
    let mut text = Vec::new();
    write(&mut text).and_then(|()| ui::output::print(&text)).context("cannot write to standard output")?;
    Ok(ExitReason::Done)
}

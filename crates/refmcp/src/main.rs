//! The command line: reads what was typed and runs the command.

mod args;
mod arguments;
mod bridge;
mod command;
mod completion;
mod config;
mod logging;
mod shell;
mod store;
mod ui;

use std::process::ExitCode;

use anyhow::{Context, Result};

use args::{Action, ExitReason};

/// Requests are many small things made by one thread and dropped by another, which the system's allocator is slow at;
/// and what a crowd of clients has used is given back when they have left.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (log, action) = match args::parse() {
        Ok(parsed) => parsed,
        Err(code) => return code,
    };
    if let Action::CompleteLine(shell, words) = &action {
        // Before anything is logged: a line that is being typed must not be written over.
        completion::run(*shell, words);
        return ExitCode::SUCCESS;
    }
    let as_json = action.has_json_errors();
    match logging::start(&log.log, log.log_format).and_then(|_log| run(action)) {
        Ok(reason) => reason.into(),
        Err(fault) => {
            ui::error::report(&fault, as_json);
            ExitReason::of(&fault).into()
        }
    }
}

fn run(action: Action) -> Result<ExitReason> {
    match action {
        Action::Stdio(options) => command::stdio::run(options).map(|()| ExitReason::Done),
        Action::Serve(options) => command::serve::run(*options).map(|()| ExitReason::Done),
        Action::Client(command, shared) => command::client::run(command, &shared),
        Action::Trust(command) => command::trust::run(command),
        Action::Log(query) => command::log::run(&query),
        Action::Servers(options) => command::servers::run(&options),
        Action::Install(options) => command::install::run(&options),
        Action::Completions(shell) => {
            let mut script = Vec::new();
            args::print_completions(shell, &mut script).context("cannot write the script")?;
            written(&script)
        }
        // It is done already.
        Action::CompleteLine(..) => Ok(ExitReason::Done),
        Action::Man => {
            let mut page = Vec::new();
            args::print_manual(&mut page).context("cannot write the page")?;
            written(&page)
        }
    }
}

fn written(bytes: &[u8]) -> Result<ExitReason> {
    ui::output::print(bytes).context("cannot write to standard output")?;
    Ok(ExitReason::Done)
}

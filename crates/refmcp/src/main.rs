//! The command line: reads what was typed and runs the command.

mod args;
mod command;
mod logging;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

/// Requests are many small things made by one thread and dropped by another, which the system's allocator is slow at;
/// and what a crowd of clients has used is given back when they have left.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = logging::start(&args.log, args.log_format).and_then(|_log| match args.command {
        Command::Stdio(options) => command::stdio::run(options),
        Command::Serve(options) => command::serve::run(options),
    });
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            eprintln!("refmcp: {fault:#}");
            ExitCode::FAILURE
        }
    }
}

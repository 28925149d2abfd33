//! The command line: reads what was typed and runs the command.

mod args;
mod command;
mod logging;

use std::process::ExitCode;

use clap::Parser;

use args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    let done = logging::start(&args.log).and_then(|_log| match args.command {
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

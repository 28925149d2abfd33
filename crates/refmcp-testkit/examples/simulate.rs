//! Runs simulated conversations: `simulate COUNT`, or `simulate --seed SEED` for one with its transcript.
//! `cargo xtask simulate` builds it in release mode.

#![allow(clippy::print_stdout, reason = "a command line program speaks through its output")]

use std::process::ExitCode;
use std::time::Instant;

use refmcp_testkit::simulation;

/// Conversations between two lines of progress.
const BATCH: u64 = 100_000;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let number = |text: &str| text.parse::<u64>().ok();
    match args[..] {
        ["--seed", seed] if number(seed).is_some() => one(number(seed).unwrap_or_default()),
        [count] if number(count).is_some() => many(0, number(count).unwrap_or_default()),
        [count, "--seed", seed] if number(count).is_some() && number(seed).is_some() => {
            many(number(seed).unwrap_or_default(), number(count).unwrap_or_default())
        }
        _ => {
            eprintln!("usage: simulate [COUNT] [--seed SEED]");
            ExitCode::from(2)
        }
    }
}

/// Shows the conversation of a seed.
fn one(seed: u64) -> ExitCode {
    match simulation::run(seed..seed.saturating_add(1)) {
        Ok(summary) => {
            println!("{}{summary}", simulation::transcript(seed));
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

/// Runs so many conversations from this seed on.
fn many(first: u64, count: u64) -> ExitCode {
    let (begin, end) = (Instant::now(), first.saturating_add(count));
    let mut seed = first;
    while seed < end {
        let until = end.min(seed.saturating_add(BATCH));
        match simulation::run(seed..until) {
            Ok(summary) => {
                let (done, seconds) = (until - first, begin.elapsed().as_secs_f64());
                println!("{done} conversations in {seconds:.1} s; the last: {summary}");
            }
            Err(failure) => {
                println!("{failure}");
                return ExitCode::FAILURE;
            }
        }
        seed = until;
    }
    ExitCode::SUCCESS
}

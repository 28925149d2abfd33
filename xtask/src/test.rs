//! The one test command: every step in turn, each with its time, and what came of it.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use refmcp_runners::{Build, Tally, conformance, interop, shell, soak};

use crate::readme::Checkout;
use crate::rust_tests::Selection;
use crate::{lint, packages, readme, rust_tests, tidy};

/// Runs every step, also after one that failed, and prints a summary.
pub(crate) fn everything() -> Result<ExitCode> {
    let mut steps = Steps::default();
    steps.run("tidy", tidy::run);
    steps.run("format", lint::format);
    steps.run("lock files", lint::lock_files);
    steps.run("clippy", lint::clippy);
    steps.run("docs", lint::docs);
    steps.run("packages", packages::install);
    steps.run_tests(Selection::ALL);
    let (mut clone, mut build) = (None, None);
    steps.run("release build", || {
        let checkout = clone.insert(Checkout::fresh()?);
        let release = checkout.build_release()?;
        // What is not committed is tried as well, in a build of its own.
        build = Some(if checkout.is_tree() { release } else { Build::of_tree()? });
        Ok(())
    });
    steps.run("readme", || readme::run(clone.as_ref().context("not run: there is no clone")?));
    let build = build.context("not run: there is no build to run against");
    steps.run_counted("interop", || interop::everything(build.as_ref().map_err(again)?));
    steps.run_counted("conformance", || conformance::run(build.as_ref().map_err(again)?));
    if cfg!(target_os = "linux") {
        steps.run_counted("soak", || soak::short(build.as_ref().map_err(again)?));
    } else {
        steps.not_checked.push("soak: what a process uses is measured on Linux alone".to_owned());
    }
    Ok(steps.summary().exit_code())
}

/// The same error for one more step.
fn again(error: &anyhow::Error) -> anyhow::Error {
    anyhow!("{error:#}")
}

/// The packages that a new tool, prompt, resource or method touches.
pub(crate) const QUICK: [&str; 3] = ["refmcp-proto", "refmcp-server", "refmcp-reference"];

/// What most changes break first, in seconds: the promises, and the crates that need no network.
pub(crate) fn quick() -> Result<ExitCode> {
    let mut steps = Steps::default();
    steps.run("tidy", tidy::run);
    steps.run("format", lint::format);
    steps.run("clippy", || lint::clippy_of(&QUICK));
    steps.run_tests(Selection { packages: &QUICK, filter: None, documentation: false });
    Ok(steps.summary().exit_code())
}

/// Only the Rust tests whose name contains `filter`.
pub(crate) fn only(filter: &str) -> Result<ExitCode> {
    let mut steps = Steps::default();
    steps.run_tests(Selection { filter: Some(filter), ..Selection::ALL });
    Ok(steps.summary().exit_code())
}

#[derive(Debug, Default)]
struct Steps {
    done: Vec<Step>,
    /// What could not be checked on this machine, and why.
    not_checked: Vec<String>,
}

#[derive(Debug)]
struct Step {
    name: &'static str,
    tally: Tally,
    took: Duration,
}

impl Steps {
    /// Runs a step that either passes or fails; true when it passed.
    fn run(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) -> bool {
        self.run_counted(name, || step().map(|()| Tally { passed: 1, failed: 0 }))
    }

    /// Runs Rust tests, and keeps what they could not check.
    fn run_tests(&mut self, selection: Selection<'_>) {
        let mut not_checked = Vec::new();
        self.run("tests", || rust_tests::run(selection, &mut not_checked));
        self.not_checked.append(&mut not_checked);
    }

    /// Runs a step that counts for itself what passed and failed in it.
    fn run_counted(&mut self, name: &'static str, step: impl FnOnce() -> Result<Tally>) -> bool {
        shell::section(name);
        let begin = Instant::now();
        let tally = step().unwrap_or_else(|error| {
            println!("{} {error:#}", shell::red("error:"));
            Tally { passed: 0, failed: 1 }
        });
        let took = begin.elapsed();
        println!("{name}: {} in {}", verdict(tally), shell::duration(took));
        self.done.push(Step { name, tally, took });
        tally.failed == 0
    }

    /// Prints every step, what was not checked and, alone on the last line, what was counted.
    fn summary(&self) -> Tally {
        shell::section("summary");
        let mut total = Tally::default();
        for step in &self.done {
            total += step.tally;
            println!("{:<14} {:>12}   {}", step.name, shell::duration(step.took), verdict(step.tally));
        }
        if !self.not_checked.is_empty() {
            println!("\n{}", shell::red(&format!("not checked: {}", self.not_checked.len())));
            for what in &self.not_checked {
                println!("  {what}");
            }
        }
        println!("\n{total}");
        total
    }
}

fn verdict(tally: Tally) -> String {
    match tally {
        Tally { passed: 1, failed: 0 } => shell::green("passed"),
        Tally { passed: 0, failed: 1 } => shell::red("FAILED"),
        Tally { failed: 0, .. } => shell::green(&tally.to_string()),
        _ => shell::red(&tally.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use anyhow::bail;

    use super::*;

    #[test]
    fn a_failed_step_is_counted_and_the_next_one_runs() {
        let mut steps = Steps::default();
        assert!(steps.run("one", || Ok(())));
        assert!(!steps.run("two", || bail!("broken")));
        assert!(!steps.run_counted("three", || Ok(Tally { passed: 5, failed: 2 })));
        let total = steps.summary();
        assert_eq!(total, Tally { passed: 6, failed: 3 });
        assert_eq!(total.to_string(), "6 passed, 3 failed");
    }
}

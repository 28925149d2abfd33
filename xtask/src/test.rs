//! The one test command: every step in turn, each with its time, and what came of it.

use std::fmt;
use std::ops::AddAssign;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::shell::{self, cargo};
use crate::{conformance, interop, lint, readme, tidy};

/// What was counted: steps, and the cells of the interop table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
}

impl Tally {
    pub(crate) fn exit_code(self) -> ExitCode {
        if self.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// How long the Rust tests may take, building them included; many times what they need.
const TESTS_WITHIN: Duration = Duration::from_secs(40 * 60);

/// Runs every step, also after one that failed, and prints a summary.
pub(crate) fn everything() -> Result<ExitCode> {
    let mut steps = Steps::default();
    steps.run("tidy", tidy::run);
    steps.run("format", lint::format);
    steps.run("clippy", lint::clippy);
    steps.run("docs", lint::docs);
    steps.run("packages", crate::packages::install);
    steps.run("tests", tests);
    let built = steps.run("release build", release);
    steps.run("readme", readme::run);
    steps.run_counted("interop", || {
        if !built {
            bail!("not run: there is no release build to run against");
        }
        interop::everything()
    });
    steps.run_counted("conformance", || {
        if !built {
            bail!("not run: there is no release build to run against");
        }
        conformance::run()
    });
    Ok(steps.summary().exit_code())
}

/// Only the Rust tests whose name contains `filter`.
pub(crate) fn only(filter: &str) -> Result<()> {
    shell::run(&mut cargo(["test", "--workspace", "--all-features", "--no-fail-fast", "--", filter]))
}

/// Unit, integration and documentation tests; the examples are built, for tests that run them.
fn tests() -> Result<()> {
    let mut tests = cargo(["test", "--workspace", "--all-features", "--no-fail-fast"]);
    shell::run_within(&mut tests, TESTS_WITHIN)
}

/// What foreign clients and the conformance suite start; in one go, since building one without the other builds parts
/// of it differently.
pub(crate) fn release() -> Result<()> {
    shell::run(&mut cargo(["build", "--release", "--package", "refmcp", "--package", "refmcp-conformance"]))
}

#[derive(Debug, Default)]
struct Steps {
    done: Vec<Step>,
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

    /// Prints every step and, alone on the last line, what was counted.
    fn summary(&self) -> Tally {
        shell::section("summary");
        let mut total = Tally::default();
        for step in &self.done {
            total += step.tally;
            println!("{:<14} {:>12}   {}", step.name, shell::duration(step.took), verdict(step.tally));
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

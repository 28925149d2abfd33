//! Counted results: steps, scenarios, cells of the interop table.

use std::fmt;
use std::ops::AddAssign;
use std::process::ExitCode;

/// How much passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// What passed.
    pub passed: usize,
    /// What failed.
    pub failed: usize,
}

impl Tally {
    /// Success if nothing failed.
    pub fn exit_code(self) -> ExitCode {
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

//! `refmcp relay`: what passes through it is the same on both sides, and in the trace.

#![cfg(unix)]

#[path = "../support/mod.rs"]
mod support;

mod attacks;
mod faults;
mod http;
mod own_server;
mod refusals;
mod stdio;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use support::wait_for;
use tempfile::TempDir;

/// A trace in a folder of its own.
struct Trace {
    folder: TempDir,
}

impl Trace {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("trace.jsonl")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    /// Its lines so far.
    fn lines(&self) -> Vec<Value> {
        let text = self.text();
        text.split_inclusive('\n').filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Waits for a line.
    fn wait(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        wait_for(&format!("{what} in the trace"), || self.lines().into_iter().find(|line| is_it(line)))
    }
}

//! What the command line client prints, on which stream, and how it ends.

#![cfg(unix)]

mod certificates;
mod declined;
mod exits;
mod hints;
mod lists;
mod lost;
mod media;
mod results;
#[path = "../serving/mod.rs"]
mod serving;
mod timeouts;
mod unread;

use std::fs;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const REFMCP: &str = env!("CARGO_BIN_EXE_refmcp");

/// A user with a home and a state folder of their own.
struct User {
    folder: TempDir,
}

/// How a command ended.
#[derive(Debug)]
struct Ended {
    code: i32,
    out: String,
    err: String,
    took: Duration,
}

impl User {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(REFMCP);
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("REFMCP_STATE_DIR", self.folder.path().join("state"))
            .env("HOME", self.folder.path())
            .env_remove("REFMCP_LOG")
            .stdin(Stdio::null());
        command
    }

    fn run(&self, words: &[&str]) -> Ended {
        let began = Instant::now();
        ended(self.command(words).output().unwrap(), began.elapsed())
    }

    /// Runs a command against the reference server, started for it.
    fn with_reference(&self, words: &[&str]) -> Ended {
        self.with(words, &[REFMCP, "stdio"])
    }

    /// Runs a command against a shell script that is started for it.
    fn with_script(&self, words: &[&str], script: &str) -> Ended {
        self.with(words, &["sh", "-c", script])
    }

    fn with(&self, words: &[&str], server: &[&str]) -> Ended {
        let words: Vec<&str> = words.iter().chain(&["--"]).chain(server).copied().collect();
        self.run(&words)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

fn ended(output: Output, took: Duration) -> Ended {
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
        took,
    }
}

/// A server of an older revision as a shell script, with these capabilities: what follows the id in the answer to each
/// method. Other requests have no method.
fn scripted(capabilities: &str, answers: &[(&str, &str)]) -> String {
    let opening = format!(
        r#""result":{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"serverInfo":{{"name":"s","version":"1"}}}}"#
    );
    let mut cases = String::new();
    for (method, answer) in [("initialize", opening.as_str())].iter().chain(answers) {
        cases += &format!("  *'\"method\":\"{method}\"'*) answer='{answer}' ;;\n");
    }
    format!(
        r#"while read -r line; do
  case "$line" in *'"id":'*) ;; *) continue ;; esac
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
{cases}  *) answer='"error":{{"code":-32601,"message":"Method not found"}}' ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$id" "$answer"
done"#
    )
}

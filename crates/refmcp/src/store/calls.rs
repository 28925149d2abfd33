//! The calls that were made from here, a line of JSON each, added at the end and never changed. When the file grows
//! long it becomes the earlier one, and the one that was the earlier goes.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use refmcp_proto::model::JsonObject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::folder::{StateFolder, private};
use super::timestamp::rfc3339;

/// The file that is written to, and the one from before.
const FILES: [&str; 2] = ["calls.jsonl", "calls.earlier.jsonl"];

/// Bytes of a file after which the next is begun.
const MAX_FILE: u64 = 8 << 20;

/// Bytes of the arguments of one call; longer ones are left out.
const MAX_ARGUMENTS: usize = 16 << 10;

/// Characters of any other text of a call.
const MAX_TEXT: usize = 1000;

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CallEntry {
    pub(crate) time: String,
    /// Of which server, as it is shown.
    pub(crate) target: String,
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    pub(crate) outcome: Outcome,
    /// What else there is to say: the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) detail: Option<String>,
    /// How long it took, in milliseconds.
    pub(crate) duration_ms: u64,
}

/// What came of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Outcome {
    /// A result.
    Ok,
    /// A result in which the tool says that it failed.
    ToolError,
    /// An error from the server.
    Error,
    /// No answer: it could not be reached, went away, or took too long.
    NoAnswer,
    /// It was called off here.
    Cancelled,
    /// It was not made: the user refused, or the tool is disabled.
    Refused,
}

impl Outcome {
    /// In words.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::ToolError => "tool error",
            Self::Error => "error",
            Self::NoAnswer => "no answer",
            Self::Cancelled => "cancelled",
            Self::Refused => "refused",
        }
    }
}

impl CallEntry {
    /// A call that began then and has now ended; with `masked`, only the names of its arguments are kept.
    pub(crate) fn new(
        began: SystemTime,
        target: &str,
        tool: &str,
        arguments: &JsonObject,
        masked: bool,
        outcome: Outcome,
        took: Duration,
    ) -> Self {
        let names = || arguments.keys().map(|name| (name.clone(), Value::from("***"))).collect();
        let arguments = Value::Object(if masked { names() } else { arguments.clone() });
        let length = arguments.to_string().len();
        Self {
            time: rfc3339(began),
            target: shortened(target),
            tool: shortened(tool),
            arguments: if length > MAX_ARGUMENTS {
                json!({"…": format!("{length} bytes")})
            } else {
                arguments
            },
            outcome,
            detail: None,
            duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Says what else there is to say.
    #[must_use]
    pub(crate) fn detail(mut self, detail: &str) -> Self {
        self.detail = Some(shortened(detail));
        self
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

/// Adds a call.
pub(crate) fn append(folder: &StateFolder, entry: &CallEntry) -> Result<()> {
    append_within(folder, entry, MAX_FILE)
}

fn append_within(folder: &StateFolder, entry: &CallEntry, longest: u64) -> Result<()> {
    let mut line = serde_json::to_vec(entry).context("cannot write down the call")?;
    line.push(b'\n');
    // Two processes must not both find the file too long and move it.
    let _locked = folder.lock()?;
    let [current, earlier] = FILES.map(|name| folder.file(name));
    let length = fs::metadata(&current).map_or(0, |metadata| metadata.len());
    if length > 0 && length + line.len() as u64 > longest {
        fs::rename(&current, &earlier).with_context(|| format!("cannot move {}", current.display()))?;
    }
    let mut file = private(OpenOptions::new().append(true).create(true))
        .open(&current)
        .with_context(|| format!("cannot open {}", current.display()))?;
    // In one piece, so that no line is ever torn.
    file.write_all(&line).with_context(|| format!("cannot write {}", current.display()))
}

/// The calls that were made.
pub(crate) struct Calls {
    /// From the oldest to the newest.
    pub(crate) entries: Vec<CallEntry>,
    /// Lines that could not be read.
    pub(crate) damaged: usize,
}

/// Reads the calls that were made.
pub(crate) fn read(folder: &StateFolder) -> Result<Calls> {
    let mut calls = Calls { entries: Vec::new(), damaged: 0 };
    for name in FILES.into_iter().rev() {
        let content = folder.read(name)?.unwrap_or_default();
        for line in content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match serde_json::from_slice(line) {
                Ok(entry) => calls.entries.push(entry),
                Err(_) => calls.damaged += 1,
            }
        }
    }
    Ok(calls)
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    fn entry(tool: &str, masked: bool) -> CallEntry {
        let arguments = json!({"key": "secret", "n": 1});
        let arguments = arguments.as_object().unwrap();
        let took = Duration::from_millis(12);
        CallEntry::new(UNIX_EPOCH, "http://a/", tool, arguments, masked, Outcome::Ok, took)
    }

    #[test]
    fn calls_are_kept_in_order() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        assert!(read(&folder).unwrap().entries.is_empty());
        let entries = [entry("one", false), entry("two", false).detail("it said no")];
        for entry in &entries {
            append(&folder, entry).unwrap();
        }
        assert_eq!(read(&folder).unwrap().entries, entries);
        let text = fs::read_to_string(folder.file(FILES[0])).unwrap();
        assert!(
            text.starts_with("{\"time\":\"1970-01-01T00:00:00.000Z\",\"target\":\"http://a/\""),
            "{text}"
        );
    }

    #[test]
    fn arguments_can_be_masked_and_are_never_long() {
        assert_eq!(entry("a", true).arguments, json!({"key": "***", "n": "***"}));
        let long = json!({"text": "x".repeat(MAX_ARGUMENTS)});
        let long = long.as_object().unwrap();
        let entry = CallEntry::new(UNIX_EPOCH, "t", "a", long, false, Outcome::Ok, Duration::ZERO);
        assert_eq!(entry.arguments, json!({"…": "16395 bytes"}));
        assert_eq!(entry.detail(&"ä".repeat(5000)).detail.unwrap().chars().count(), MAX_TEXT + 1);
    }

    #[test]
    fn files_stay_short_and_the_latest_calls_are_there() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        for number in 0..50 {
            append_within(&folder, &entry(&format!("t{number}"), false), 1000).unwrap();
        }
        for name in FILES {
            assert!(fs::metadata(folder.file(name)).unwrap().len() <= 1000);
        }
        let tools: Vec<String> = read(&folder).unwrap().entries.into_iter().map(|entry| entry.tool).collect();
        let expected: Vec<String> = (50 - tools.len()..50).map(|number| format!("t{number}")).collect();
        assert!(tools.len() >= 6, "{tools:?}");
        assert_eq!(tools, expected);
    }

    #[test]
    fn lines_that_are_damaged_are_counted() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        append(&folder, &entry("one", false)).unwrap();
        let mut file = OpenOptions::new().append(true).open(folder.file(FILES[0])).unwrap();
        file.write_all(b"{\"time\":\n\xff\n\n").unwrap();
        append(&folder, &entry("two", false)).unwrap();
        let calls = read(&folder).unwrap();
        assert_eq!((calls.entries.len(), calls.damaged), (2, 2));
    }

    #[test]
    fn calls_made_at_once_are_all_kept() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| append(&folder, &entry("t", false)).unwrap());
            }
        });
        let calls = read(&folder).unwrap();
        assert_eq!((calls.entries.len(), calls.damaged), (8, 0));
    }
}

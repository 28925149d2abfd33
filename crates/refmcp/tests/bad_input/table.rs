//! Tables of bad input: what is sent, and what must come back.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::support::{Client, Version};

/// The revisions that every table is tried under: the seeds' own, the newest with sessions, and the one without.
pub(crate) const VERSIONS: [Version; 3] =
    [Version::Session("2025-06-18"), Version::Session("2025-11-25"), Version::Stateless];

/// How long an answer may take: a second, or more where nothing is optimised.
const SOON: Duration = Duration::from_secs(if cfg!(debug_assertions) { 5 } else { 1 });

/// Text that must not turn up in the log, whatever is made of it.
pub(crate) fn long(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// One line of a table.
pub(crate) struct Row {
    name: String,
    sent: Vec<u8>,
    expected: Expected,
}

enum Expected {
    /// A JSON-RPC error with this code, a message that contains this word, and this id.
    Error(i64, &'static str, Id),
    /// A tool's result that tells of an error and contains this word.
    ToolError(&'static str),
    /// A result with this id.
    Served(&'static str),
    Nothing,
}

#[derive(Debug, Clone, Copy)]
enum Id {
    /// The request's own, as JSON.
    Is(&'static str),
    /// What stands for an id that cannot be read.
    Unreadable,
}

pub(crate) fn row(name: impl Into<String>, sent: impl Into<Vec<u8>>) -> Row {
    Row { name: name.into(), sent: sent.into(), expected: Expected::Nothing }
}

impl Row {
    /// An error that answers a request of id 7.
    pub(crate) fn error(self, code: i64, word: &'static str) -> Self {
        Self { expected: Expected::Error(code, word, Id::Is("7")), ..self }
    }

    /// An error that answers something without a readable id.
    pub(crate) fn unreadable(self, code: i64, word: &'static str) -> Self {
        Self { expected: Expected::Error(code, word, Id::Unreadable), ..self }
    }

    /// A result for a request of id 7.
    pub(crate) fn served(self) -> Self {
        self.served_as("7")
    }

    /// A result for a request of this id.
    pub(crate) fn served_as(self, id: &'static str) -> Self {
        Self { expected: Expected::Served(id), ..self }
    }

    /// The error for arguments that do not fit: a JSON-RPC error in old revisions, a result in new ones.
    pub(crate) fn bad_arguments(self, version: Version, word: &'static str) -> Self {
        match version {
            Version::Session("2025-06-18") => self.error(-32602, word),
            _ => Self { expected: Expected::ToolError(word), ..self },
        }
    }

    fn check(&self, version: Version, client: &mut Client) {
        let name = &self.name;
        let start = Instant::now();
        client.process.send_line(&self.sent);
        let word = match self.expected {
            Expected::Nothing => return client.hears_nothing(name),
            Expected::Error(_, word, _) | Expected::ToolError(word) => word,
            Expected::Served(_) => "",
        };
        let line = client.process.next_line().unwrap_or_else(|| panic!("{version:?}, {name}: it has gone"));
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        let place = format!("{version:?}, {name}: {}", line.chars().take(500).collect::<String>());
        // Read as text: an id may have more digits than any number.
        let id_text = id_of(&line);
        match self.expected {
            Expected::Error(code, _, id) => {
                assert_eq!(answer["error"]["code"], code, "{place}");
                match id {
                    Id::Is(id) => assert_eq!(id_text, Some(id), "{place}"),
                    Id::Unreadable if has_null_ids(version) => assert_eq!(id_text, Some("null"), "{place}"),
                    Id::Unreadable => assert_eq!(id_text, None, "{place}"),
                }
            }
            Expected::ToolError(_) => assert_eq!(answer["result"]["isError"], true, "{place}"),
            Expected::Served(id) => {
                assert!(answer["result"].is_object(), "{place}");
                assert_eq!(id_text, Some(id), "{place}");
            }
            Expected::Nothing => {}
        }
        assert!(start.elapsed() < SOON, "{place} took {:?}", start.elapsed());
        assert!(line.contains(word), "{place} does not say {word}");
        if answer["result"]["isError"] == true || answer.get("error").is_some() {
            let message =
                answer["error"]["message"].as_str().or(answer["result"]["content"][0]["text"].as_str());
            assert!(message.is_some_and(|message| message.len() < 2000), "{place} is too long");
        }
        client.hears_nothing(name);
    }
}

/// Before 2025-11-25 the schema has no error without an id.
fn has_null_ids(version: Version) -> bool {
    matches!(version, Version::Session("2025-03-26" | "2025-06-18"))
}

fn id_of(line: &str) -> Option<&str> {
    let members: HashMap<&str, &RawValue> = serde_json::from_str(line).expect("an object");
    members.get("id").map(|id| id.get())
}

/// Sends every row; after each the same client is served, and another one too.
pub(crate) fn try_all(rows: impl Fn(Version) -> Vec<Row>) {
    for version in VERSIONS {
        try_under(version, &[], &rows(version));
    }
}

/// The same under one revision, with these options.
pub(crate) fn try_under(version: Version, options: &[&str], rows: &[Row]) {
    let options: Vec<&str> = options.iter().chain(&["--log", "trace"]).copied().collect();
    let mut client = Client::start(version, &options);
    let mut bystander = Client::start(version, &options);
    for row in rows {
        row.check(version, &mut client);
        bystander.hears_nothing(&row.name);
    }
    let log = client.process.errors();
    assert!(!log.contains("panicked"), "{log}");
    assert!(!log.contains(&long(200)), "input in the log: {}", log.chars().take(3000).collect::<String>());
}

/// A request of id 7 under this revision.
pub(crate) fn request(version: Version, method: &str, params: &Value) -> String {
    version.request(7, method, params)
}

/// A tool call of id 7 under this revision.
pub(crate) fn call(version: Version, tool: &str, arguments: &Value) -> String {
    version.call(7, tool, arguments)
}

/// A good request of id 7, one of its parts replaced.
pub(crate) fn altered(version: Version, part: &str, by: &str) -> String {
    let good = request(version, "tools/list", &json!({}));
    assert!(good.contains(part), "{part} is not in {good}");
    good.replacen(part, by, 1)
}

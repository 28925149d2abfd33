//! The lines of a transcript.

use std::ops::Range;
use std::time::Duration;

use serde_json::{Map, Value};

use super::placeholders;
use super::{RevisionSet, Settings};

/// A transcript: its lines, and what they mean.
#[derive(Debug)]
pub struct File {
    pub(super) lines: Vec<String>,
    pub(super) conversations: Vec<Conversation>,
}

#[derive(Debug, Clone)]
pub(super) struct Conversation {
    pub(super) title: String,
    pub(super) revisions: RevisionSet,
    pub(super) capabilities: Value,
    pub(super) settings: Settings,
    pub(super) steps: Vec<Step>,
}

/// Something that is done, and what comes of it.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) only: RevisionSet,
    pub(super) action: Action,
    /// Where the lines of the action stand.
    pub(super) lines: Range<usize>,
    pub(super) expected: Vec<Expected>,
    pub(super) events: Vec<(RevisionSet, String)>,
}

#[derive(Debug, Clone)]
pub(super) enum Action {
    Open,
    Send(String),
    SendExactly(String),
    Wait(Duration),
    Do(String),
}

/// A message that has to come; `None` when none may.
#[derive(Debug, Clone)]
pub(super) struct Expected {
    pub(super) only: RevisionSet,
    pub(super) message: Option<Value>,
    pub(super) lines: Range<usize>,
}

impl File {
    /// Reads a transcript; an error begins with its line.
    pub fn parse(text: &str) -> Result<Self, String> {
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let empty = Conversation {
            title: String::new(),
            revisions: RevisionSet::all(),
            capabilities: Value::Object(Map::new()),
            settings: Settings::new(),
            steps: Vec::new(),
        };
        let mut common = empty;
        let mut conversations: Vec<Conversation> = Vec::new();
        for range in logical_lines(&lines) {
            let text = joined(&lines, &range);
            let wrong = |why: String| format!("{}: {why}", range.start + 1);
            if let Some(title) = text.strip_prefix("== ") {
                conversations.push(Conversation { title: title.to_owned(), ..common.clone() });
            } else {
                let conversation = conversations.last_mut().unwrap_or(&mut common);
                conversation.add(&text, range.clone()).map_err(wrong)?;
            }
        }
        if !common.steps.is_empty() {
            return Err("1: a conversation begins with a line == and its title".to_owned());
        }
        Ok(Self { lines, conversations })
    }
}

impl Conversation {
    fn add(&mut self, line: &str, lines: Range<usize>) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let action = |rest: &str, action: fn(String) -> Action| {
            let (only, text) = only(rest)?;
            Ok::<_, String>((only, action(text.to_owned())))
        };
        let (only, action) = match word {
            "$OPEN" => (RevisionSet::all(), Action::Open),
            "->" => action(rest, Action::Send)?,
            "=>" => action(rest, Action::SendExactly)?,
            "do" => action(rest, Action::Do)?,
            "wait" => (RevisionSet::all(), Action::Wait(duration(rest)?)),
            "<-" | "see" => return self.expect(word, rest, lines),
            _ => return self.set(line),
        };
        self.steps.push(Step { only, action, lines, expected: Vec::new(), events: Vec::new() });
        Ok(())
    }

    fn expect(&mut self, word: &str, rest: &str, lines: Range<usize>) -> Result<(), String> {
        let (only, text) = only(rest)?;
        let step = self.steps.last_mut().ok_or("nothing was done that this could come of")?;
        if word == "see" {
            step.events.push((only, text.to_owned()));
            return Ok(());
        }
        let message = match text {
            "nothing" => None,
            text => Some(placeholders::parse(text)?),
        };
        step.expected.push(Expected { only, message, lines });
        Ok(())
    }

    fn set(&mut self, line: &str) -> Result<(), String> {
        let (name, value) = line.split_once(": ").ok_or("neither a step nor a setting")?;
        if !self.steps.is_empty() {
            return Err("a setting after the first step".to_owned());
        }
        match name {
            "revisions" => self.revisions = value.parse()?,
            "capabilities" => {
                self.capabilities = serde_json::from_str(value).map_err(|error| error.to_string())?;
            }
            _ => drop(self.settings.insert(name.to_owned(), value.to_owned())),
        }
        Ok(())
    }
}

/// The lines that mean something, each with those that continue it.
fn logical_lines(lines: &[String]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match ranges.last_mut() {
            Some(range) if line.starts_with(' ') && range.end == at => range.end += 1,
            _ => ranges.push(at..at + 1),
        }
    }
    ranges
}

fn joined(lines: &[String], range: &Range<usize>) -> String {
    let mut parts = lines.iter().skip(range.start).take(range.len());
    let mut text = parts.next().map(|line| line.trim_end().to_owned()).unwrap_or_default();
    parts.for_each(|part| text.push_str(part.trim()));
    text
}

fn only(text: &str) -> Result<(RevisionSet, &str), String> {
    let named = text.strip_prefix('[').and_then(|rest| rest.split_once("] "));
    // A batch begins with a bracket too, and no revision is written with one of these.
    match named.filter(|(set, _)| !set.contains(['{', '"', '['])) {
        Some((set, rest)) => Ok((set.parse()?, rest)),
        None => Ok((RevisionSet::all(), text)),
    }
}

/// Reads a time like `250ms`, `30s` or `10m`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time like 250ms, 30s or 10m");
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    match unit {
        "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "m" => Ok(Duration::from_secs(number * 60)),
        _ => Err(wrong()),
    }
}

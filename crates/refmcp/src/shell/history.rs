//! What was typed, in this session and in those before: a private file of lines, of limited size.

use std::collections::VecDeque;

use refmcp_client::redact;

use super::commands::without_values;
use crate::args::split_words;
use crate::store::StateFolder;
use crate::ui::redact::masked;

/// The file.
const FILE: &str = "history";

/// Lines that are kept.
const MAX_LINES: usize = 1000;

/// Bytes of a line that is kept; longer ones are only for this session.
const MAX_LINE_BYTES: usize = 4096;

/// Lines that were typed, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    folder: Option<StateFolder>,
    lines: VecDeque<String>,
    /// Whether values of arguments are left out of what is kept and shown.
    mask_arguments: bool,
}

impl History {
    /// What was typed before, and where to keep what comes.
    pub(super) fn load(mask_arguments: bool) -> Self {
        match StateFolder::from_env() {
            Ok(folder) => Self { lines: read(&folder), folder: Some(folder), mask_arguments },
            Err(error) => {
                tracing::debug!("what is typed is not kept: {error:#}");
                Self { mask_arguments, ..Self::default() }
            }
        }
    }

    /// The lines as they were typed.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// The lines as they may be shown.
    pub(super) fn shown(&self) -> impl Iterator<Item = String> {
        self.lines.iter().filter_map(|line| self.harmless(line))
    }

    /// A line as it may be kept and shown. `None` for one whose words cannot be told apart.
    fn harmless(&self, line: &str) -> Option<String> {
        let line = if self.mask_arguments { without_values(line)? } else { line.to_owned() };
        without_secrets(&line)
    }

    /// Keeps a line; not one that begins with a space, and not the same twice in a row.
    pub(super) fn add(&mut self, line: &str) {
        if line.trim().is_empty()
            || line.starts_with(' ')
            || self.lines.back().is_some_and(|last| last == line)
        {
            return;
        }
        push(&mut self.lines, line);
        let Some(folder) = self.folder.as_ref().filter(|_| line.len() <= MAX_LINE_BYTES) else { return };
        let Some(line) = self.harmless(line) else { return };
        if let Err(error) = keep(folder, &line) {
            // Once is enough: what was typed before does not come back, and the rest works without.
            tracing::warn!("what is typed is not kept: {error:#}");
            self.folder = None;
        }
    }
}

fn push(lines: &mut VecDeque<String>, line: &str) {
    lines.push_back(line.to_owned());
    while lines.len() > MAX_LINES {
        lines.pop_front();
    }
}

/// Other sessions keep their lines as well, so the file is read again each time.
fn keep(folder: &StateFolder, line: &str) -> anyhow::Result<()> {
    let _locked = folder.lock()?;
    let mut lines: VecDeque<String> = read(folder).iter().filter_map(|line| without_secrets(line)).collect();
    push(&mut lines, line);
    let mut content = lines.make_contiguous().join("\n");
    content.push('\n');
    folder.replace(FILE, content.as_bytes())
}

/// A line without the secrets that this process knows, and of `connect` without those of its target. `None` for one
/// whose words cannot be told apart.
fn without_secrets(line: &str) -> Option<String> {
    let line = &*masked(line);
    if line.split_whitespace().next() != Some("connect") {
        return Some(line.to_owned());
    }
    let words = split_words(line).ok()?;
    let (connect, target) = words.split_first()?;
    let shown = redact::words(target);
    if shown == target {
        Some(line.to_owned())
    } else {
        Some(format!("{connect} {}", redact::joined(&shown)))
    }
}

fn read(folder: &StateFolder) -> VecDeque<String> {
    let content = folder.read(FILE).unwrap_or_else(|error| {
        tracing::warn!("what was typed before is lost: {error:#}");
        None
    });
    let content = String::from_utf8_lossy(&content.unwrap_or_default()).into_owned();
    // Lines go to the terminal as they are, so nothing may be in them that could not have been typed.
    let harmless = |line: &&str| !line.is_empty() && !line.chars().any(char::is_control);
    let lines: Vec<&str> = content.lines().filter(harmless).collect();
    lines.iter().skip(lines.len().saturating_sub(MAX_LINES)).map(|line| (*line).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(path: &std::path::Path) -> History {
        let folder = StateFolder::at(path);
        History { lines: read(&folder), folder: Some(folder), mask_arguments: false }
    }

    fn kept(path: &std::path::Path) -> Vec<String> {
        at(path).lines().map(str::to_owned).collect()
    }

    #[test]
    fn lines_of_all_sessions_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (mut one, mut other) = (at(folder.path()), at(folder.path()));
        for line in ["tools", "tools", "", "  ", " secret", "echo message=ä"] {
            one.add(line);
        }
        other.add("prompts");
        one.add("exit");
        assert_eq!(kept(folder.path()), ["tools", "echo message=ä", "prompts", "exit"]);
        assert_eq!(one.lines().collect::<Vec<_>>(), ["tools", "echo message=ä", "exit"]);
    }

    #[test]
    fn secrets_of_targets_are_neither_kept_nor_shown() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "connect http://h/?key=hush\n").unwrap();
        let mut history = at(folder.path());
        for line in ["connect -- npx 'a b' --token hush", "connect 'hush", "connect plain", "echo a=connect"]
        {
            history.add(line);
        }
        let shown = [
            "connect 'http://h/?key=***'",
            "connect -- npx 'a b' --token ***",
            "connect plain",
            "echo a=connect",
        ];
        assert_eq!(kept(folder.path()), shown);
        assert_eq!(history.shown().collect::<Vec<_>>(), shown);
        assert!(history.lines().any(|line| line.ends_with("--token hush")), "it can be typed again");
    }

    #[test]
    fn values_of_arguments_are_left_out_on_request() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), "echo message=before\n").unwrap();
        let mut history = History { mask_arguments: true, ..at(folder.path()) };
        for line in ["echo message=hush", "tools", "echo message='hush"] {
            history.add(line);
        }
        assert_eq!(kept(folder.path()), ["echo message=before", "call echo message=***", "tools"]);
        assert!(history.shown().all(|line| !line.contains("hush")));
    }

    #[test]
    fn what_is_kept_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let before: String = (0..MAX_LINES).map(|number| format!("line {number}\n")).collect();
        std::fs::write(folder.path().join(FILE), before).unwrap();
        let mut history = at(folder.path());
        history.add("the newest");
        history.add(&"x".repeat(MAX_LINE_BYTES + 1));
        let lines = kept(folder.path());
        assert_eq!((lines.len(), lines[0].as_str()), (MAX_LINES, "line 1"));
        assert_eq!(lines.last().unwrap(), "the newest");
    }

    #[test]
    fn a_damaged_file_does_no_harm() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(FILE), b"good\n\n\x1b[2J\n\xff\xfe\nlast").unwrap();
        assert_eq!(kept(folder.path()), ["good", "\u{fffd}\u{fffd}", "last"]);
    }
}

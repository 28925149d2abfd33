//! A step of a scenario as data: the words of a command line, what it exits with and what is to be seen of it.

use serde_json::Value;

/// Something that a server can do, and the commands that show it.
#[derive(Debug)]
pub(super) struct Feature {
    pub(super) name: &'static str,
    /// The pointer among the revisions of the first one that has it. Before, a server may refuse it.
    pub(super) since: usize,
    /// The pointer of the first revision that no longer has it.
    pub(super) until: usize,
    pub(super) steps: Vec<Step>,
}

impl Feature {
    pub(super) fn new(name: &'static str, steps: impl Into<Vec<Step>>) -> Self {
        Self { name, since: 0, until: usize::MAX, steps: steps.into() }
    }

    pub(super) fn since(self, since: usize) -> Self {
        Self { since, ..self }
    }

    pub(super) fn until(self, until: usize) -> Self {
        Self { until, ..self }
    }

    /// Whether a revision has it.
    pub(super) fn is_in(&self, revision: usize) -> bool {
        (self.since..self.until).contains(&revision)
    }
}

/// A word that stands for what the first step of the feature has printed.
pub(super) const PRINTED: &str = "PRINTED";

/// A command line of refmcp, without the target.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) words: &'static [&'static str],
    pub(super) output: &'static str,
    pub(super) exit: i32,
    pub(super) checks: &'static [Check],
    /// The command goes on by itself; it is stopped when a line of its output has one of these.
    pub(super) watched: &'static [&'static str],
    /// What a second command does to the same server as long as the first one watches.
    pub(super) meanwhile: Option<&'static [&'static str]>,
}

impl Step {
    fn new(output: &'static str, words: &'static [&'static str], checks: &'static [Check]) -> Self {
        Self { words, output, exit: 0, checks, watched: &[], meanwhile: None }
    }

    /// A command that prints one JSON document.
    pub(super) fn json(words: &'static [&'static str], checks: &'static [Check]) -> Self {
        Self::new("json", words, checks)
    }

    /// A command that prints what people read.
    pub(super) fn text(words: &'static [&'static str], checks: &'static [Check]) -> Self {
        Self::new("text", words, checks)
    }

    /// A command that prints every message.
    pub(super) fn messages(words: &'static [&'static str], checks: &'static [Check]) -> Self {
        Self::new("jsonl", words, checks)
    }

    pub(super) fn exits(self, exit: i32) -> Self {
        Self { exit, ..self }
    }

    pub(super) fn watched_for(self, watched: &'static [&'static str]) -> Self {
        Self { watched, ..self }
    }

    pub(super) fn while_doing(self, words: &'static [&'static str]) -> Self {
        Self { meanwhile: Some(words), ..self }
    }
}

/// What is to be seen of a command.
#[derive(Debug)]
pub(super) enum Check {
    /// The document it prints is this one, as JSON, but for what revisions add to every result.
    Is(&'static str),
    /// The document has this value, as JSON, at this pointer.
    At(&'static str, &'static str),
    /// The entries of the list at this pointer have these names, in this order, with spaces between them.
    Names(&'static str, &'static str),
    /// It prints exactly this.
    Prints(&'static str),
    /// It prints this among other things.
    Says(&'static str),
    /// So many lines of what it prints have this in them.
    Lines(usize, &'static str),
    /// It writes this to standard error, among other things.
    Complains(&'static str),
    /// It writes this nowhere.
    Hides(&'static str),
}

/// What output of a command.
#[derive(Debug)]
pub(super) struct CommandOutput {
    pub(super) exit: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

impl CommandOutput {
    /// What is wrong with it, if anything is.
    pub(super) fn fault(&self, exit: i32, checks: &[Check]) -> Option<String> {
        if self.exit != Some(exit) {
            return Some(format!("exit code {:?} and not {exit}: {}", self.exit, self.reason()));
        }
        checks.iter().find_map(|check| self.fails(check))
    }

    /// What a person would read as the reason.
    pub(super) fn reason(&self) -> String {
        let error = self.err.lines().rev().find_map(|line| line.trim().strip_prefix("refmcp: "));
        let said = || self.out.trim().to_owned();
        error.map_or_else(
            || if self.out.trim().is_empty() { self.err.trim().to_owned() } else { said() },
            str::to_owned,
        )
    }

    fn fails(&self, check: &Check) -> Option<String> {
        let expected = |what: String| Some(format!("{what}, but it printed {:?} {:?}", self.out, self.err));
        match check {
            Check::Is(document) => match (self.document(), parsed(document)) {
                (Ok(found), Ok(wanted)) if found == wanted => None,
                (Ok(found), Ok(wanted)) => Some(format!("{wanted} was expected, not {found}")),
                (Err(error), _) | (_, Err(error)) => Some(error),
            },
            Check::At(pointer, value) => match (self.document(), parsed(value)) {
                (Ok(found), Ok(wanted)) if found.pointer(pointer) == Some(&wanted) => None,
                (Ok(found), Ok(wanted)) => Some(format!("{wanted} was expected at {pointer} of {found}")),
                (Err(error), _) | (_, Err(error)) => Some(error),
            },
            Check::Names(pointer, names) => match self.document().map(|document| named(&document, pointer)) {
                Ok(found) if found == *names => None,
                Ok(found) => Some(format!("{names} were expected at {pointer}, not {found}")),
                Err(error) => Some(error),
            },
            Check::Prints(text) if self.out == *text => None,
            Check::Prints(text) => expected(format!("{text:?} was expected")),
            Check::Says(part) if self.out.contains(part) => None,
            Check::Says(part) => expected(format!("{part:?} was expected")),
            Check::Lines(count, part) => match self.out.lines().filter(|line| line.contains(part)).count() {
                found if found == *count => None,
                found => expected(format!("{count} lines with {part:?} were expected, not {found}")),
            },
            Check::Complains(part) if self.err.contains(part) => None,
            Check::Complains(part) => expected(format!("{part:?} was expected on standard error")),
            Check::Hides(part) if self.out.contains(part) || self.err.contains(part) => {
                expected(format!("{part:?} was not expected"))
            }
            Check::Hides(_) => None,
        }
    }

    /// The document, without what some revisions and some SDKs add to every result and others leave out.
    pub(super) fn document(&self) -> Result<Value, String> {
        let mut document = parsed(&self.out)?;
        if let Some(members) = document.as_object_mut() {
            for added in ["resultType", "_meta", "ttlMs", "cacheScope"] {
                members.remove(added);
            }
            if members.get("isError") == Some(&Value::Bool(false)) {
                members.remove("isError");
            }
        }
        Ok(document)
    }
}

fn parsed(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{text:?} is no JSON document: {error}"))
}

fn named(document: &Value, pointer: &str) -> String {
    let entries = document.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
    entries.filter_map(|entry| entry.get("name")?.as_str()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(out: &str) -> CommandOutput {
        CommandOutput { exit: Some(0), out: out.to_owned(), err: "refmcp: no\n".to_owned() }
    }

    #[test]
    fn documents_are_compared_without_what_revisions_add() {
        let answer = output(r#"{"content":[],"isError":false,"resultType":"complete","_meta":{},"more":1}"#);
        assert_eq!(answer.fault(0, &[Check::Is(r#"{"content":[],"more":1}"#)]), None);
        assert!(answer.fault(0, &[Check::Is(r#"{"content":[]}"#)]).is_some());
        assert!(answer.fault(0, &[Check::Is(r#"{"content":[],"more":1,"isError":true}"#)]).is_some());
        assert_eq!(answer.fault(0, &[Check::At("/more", "1")]), None);
        assert!(answer.fault(0, &[Check::At("/less", "1")]).is_some());
        assert!(answer.fault(5, &[]).unwrap().contains("exit code Some(0) and not 5: no"));
    }

    #[test]
    fn lists_and_lines_are_compared() {
        let lists = output(r#"{"tools":[{"name":"a"},{"name":"b"}]}"#);
        assert_eq!(lists.fault(0, &[Check::Names("/tools", "a b")]), None);
        assert!(lists.fault(0, &[Check::Names("/tools", "b a")]).is_some());
        let lines = output("one\ntwo\none\n");
        assert_eq!(lines.fault(0, &[Check::Lines(2, "one"), Check::Hides("three"), Check::Says("wo")]), None);
        assert_eq!(lines.fault(0, &[Check::Complains("no"), Check::Prints("one\ntwo\none\n")]), None);
        let wrong = [
            Check::Lines(1, "one"),
            Check::Hides("no"),
            Check::Says("x"),
            Check::Complains("x"),
            Check::Prints("one\n"),
        ];
        for check in wrong {
            assert!(lines.fault(0, &[check]).is_some());
        }
    }

    #[test]
    fn a_feature_has_its_time() {
        let feature = Feature::new("it", []).since(1).until(3);
        assert_eq!([0, 1, 2, 3].map(|revision| feature.is_in(revision)), [false, true, true, false]);
    }
}

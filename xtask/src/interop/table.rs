//! Client, feature, revision: what came of it.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde::Deserialize;

use crate::test::Tally;

/// One line that a client wrote.
#[derive(Debug, Deserialize)]
struct Line {
    client: String,
    revision: String,
    feature: String,
    status: Status,
    #[serde(default)]
    detail: String,
}

/// Ordered from best to worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    Unsupported,
    Failed,
}

#[derive(Debug)]
struct Cell {
    status: Status,
    detail: String,
}

/// What one run told.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    ok: usize,
    unsupported: usize,
    pub(crate) failed: usize,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>3} ok {:>3} unsupported {:>3} failed", self.ok, self.unsupported, self.failed)
    }
}

impl Counts {
    fn count(&mut self, status: Status) {
        match status {
            Status::Ok => self.ok += 1,
            Status::Unsupported => self.unsupported += 1,
            Status::Failed => self.failed += 1,
        }
    }
}

/// The results of all runs over one transport.
#[derive(Debug)]
pub(crate) struct Table {
    transport: &'static str,
    clients: Vec<String>,
    revisions: Vec<String>,
    /// In the order in which they were first heard of.
    features: Vec<String>,
    cells: BTreeMap<(String, String, String), Cell>,
    problems: Vec<String>,
}

impl Table {
    pub(crate) fn new(transport: &'static str, clients: &[&str], revisions: &[&str]) -> Self {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        Self {
            transport,
            clients: own(clients),
            revisions: own(revisions),
            features: Vec::new(),
            cells: BTreeMap::new(),
            problems: Vec::new(),
        }
    }

    /// Something that went wrong outside any cell.
    pub(crate) fn problem(&mut self, what: String) {
        self.problems.push(what);
    }

    /// Takes in what one run wrote.
    pub(crate) fn add(&mut self, client: &str, revision: &str, lines: &str) -> Counts {
        let mut counts = Counts::default();
        for text in lines.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str::<Line>(text) {
                Err(error) => self.problem(format!("{client} {revision}: cannot read `{text}`: {error}")),
                Ok(line) if line.client != client || line.revision != revision => {
                    let (as_client, spoke) = (&line.client, &line.revision);
                    self.problem(format!(
                        "{client} {revision}: {} is told of {as_client} {spoke}",
                        line.feature
                    ));
                }
                Ok(line) => {
                    counts.count(line.status);
                    self.put(line);
                }
            }
        }
        counts
    }

    /// Of two lines about the same, the worse one stays.
    fn put(&mut self, line: Line) {
        if !self.features.contains(&line.feature) {
            self.features.push(line.feature.clone());
        }
        let cell = Cell { status: line.status, detail: line.detail };
        let key = (line.client, line.revision, line.feature);
        if self.cells.get(&key).is_none_or(|old| old.status < cell.status) {
            self.cells.insert(key, cell);
        }
    }

    fn cell(&self, client: &str, revision: &str, feature: &str) -> Option<&Cell> {
        self.cells.get(&(client.to_owned(), revision.to_owned(), feature.to_owned()))
    }

    /// Every place of the table, told about or not.
    fn places(&self) -> impl Iterator<Item = (&str, &str, &str)> {
        self.clients.iter().flat_map(move |client| {
            self.revisions.iter().flat_map(move |revision| {
                self.features
                    .iter()
                    .map(move |feature| (client.as_str(), revision.as_str(), feature.as_str()))
            })
        })
    }

    /// What is wrong with a cell, if anything is.
    fn fault(cell: Option<&Cell>) -> Option<&str> {
        match cell {
            None => Some("nothing is told of it"),
            Some(Cell { status: Status::Failed, detail }) => Some(detail),
            Some(Cell { status: Status::Unsupported, detail }) if detail.trim().is_empty() => {
                Some("unsupported, but it does not say why")
            }
            Some(_) => None,
        }
    }

    /// Everything that must not be, in words: the same fault of several features at once.
    pub(crate) fn failures(&self) -> Vec<String> {
        let cells = self.clients.iter().flat_map(|client| {
            let faults = self.grouped(client, Self::fault);
            faults.into_iter().map(move |group| format!("{client} {group}"))
        });
        self.problems.iter().cloned().chain(self.silent()).chain(cells).collect()
    }

    /// Clients that took part and of which nothing works: they show nothing, whatever their reasons are.
    fn silent(&self) -> Vec<String> {
        let works =
            |client: &str| self.cells.iter().any(|(key, cell)| key.0 == client && cell.status == Status::Ok);
        let silent = self.clients.iter().filter(|client| self.revisions.len() > 1 && !works(client));
        let mut told: Vec<_> =
            silent.map(|client| format!("{client}: nothing works in any revision")).collect();
        if self.features.is_empty() {
            told.push("no client told of any feature".to_owned());
        }
        told
    }

    /// How many cells say what.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.cells.values().for_each(|cell| counts.count(cell.status));
        counts
    }

    /// Cells that are as they should be, and everything that is not.
    pub(crate) fn tally(&self) -> Tally {
        let places = self.places().count();
        let faulty =
            self.places().filter(|place| Self::fault(self.cell(place.0, place.1, place.2)).is_some()).count();
        Tally { passed: places - faulty, failed: faulty + self.problems.len() + self.silent().len() }
    }

    /// One table for each client, its features down and its revisions across, and why what is unsupported is so.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("# Interoperability over {}\n", self.transport);
        let width = self.features.iter().map(String::len).max().unwrap_or(0).max("feature".len());
        for client in &self.clients {
            let _ = writeln!(text, "\n## {client}\n");
            text += &row("feature", width, self.revisions.iter().map(String::as_str));
            text += &row(&"-".repeat(width), width, self.revisions.iter().map(|_| "-----------"));
            for feature in &self.features {
                let words = self.revisions.iter().map(|revision| self.word(client, revision, feature));
                text += &row(feature, width, words);
            }
            text += &self.reasons(client);
        }
        text
    }

    fn word(&self, client: &str, revision: &str, feature: &str) -> &'static str {
        match self.cell(client, revision, feature) {
            None => "",
            Some(Cell { status: Status::Ok, .. }) => "ok",
            Some(Cell { status: Status::Unsupported, .. }) => "unsupported",
            Some(Cell { status: Status::Failed, .. }) => "FAILED",
        }
    }

    /// Why cells of this client are unsupported.
    fn reasons(&self, client: &str) -> String {
        let reasons = self.grouped(client, |cell| match cell {
            Some(Cell { status: Status::Unsupported, detail }) => Some(detail),
            _ => None,
        });
        let lines: String = reasons.iter().map(|group| format!("- {group}\n")).collect();
        if lines.is_empty() { lines } else { format!("\nUnsupported:\n\n{lines}") }
    }

    /// What `tell` says of this client's cells: `revision features: text`, each text once for a revision.
    fn grouped(&self, client: &str, tell: fn(Option<&Cell>) -> Option<&str>) -> Vec<String> {
        let mut groups: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
        for (_, revision, feature) in self.places().filter(|place| place.0 == client) {
            if let Some(text) = tell(self.cell(client, revision, feature)) {
                groups.entry((revision, text)).or_default().push(feature);
            }
        }
        let in_words = |((revision, text), features): ((&str, &str), Vec<&str>)| {
            let all = features.len() == self.features.len();
            let features = if all { "everything".to_owned() } else { features.join(", ") };
            format!("{revision} {features}: {}", text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        groups.into_iter().map(in_words).collect()
    }
}

fn row<'a>(first: &str, width: usize, cells: impl Iterator<Item = &'a str>) -> String {
    let cells: String = cells.map(|cell| format!(" {cell:<11} |")).collect();
    format!("| {first:<width$} |{cells}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(client: &str, revision: &str, feature: &str, status: &str, detail: &str) -> String {
        serde_json::json!({
            "client": client, "revision": revision, "feature": feature, "status": status, "detail": detail
        })
        .to_string()
            + "\n"
    }

    #[test]
    fn a_full_table_passes() {
        let mut table = Table::new("stdio", &["a"], &["2025-06-18", "2026-07-28"]);
        let counts = table.add("a", "2025-06-18", &line("a", "2025-06-18", "ping", "ok", ""));
        table.add(
            "a",
            "2026-07-28",
            &line("a", "2026-07-28", "ping", "unsupported", "not in this\nrevision"),
        );
        assert_eq!(counts, Counts { ok: 1, ..Counts::default() });
        assert_eq!(table.failures(), Vec::<String>::new());
        assert_eq!(table.tally(), Tally { passed: 2, failed: 0 });
        let expected = "\
# Interoperability over stdio

## a

| feature | 2025-06-18  | 2026-07-28  |
| ------- | ----------- | ----------- |
| ping    | ok          | unsupported |

Unsupported:

- 2026-07-28 everything: not in this revision
";
        assert_eq!(table.markdown(), expected);
    }

    #[test]
    fn an_empty_cell_fails() {
        let mut table = Table::new("stdio", &["a", "b"], &["r"]);
        table.add("a", "r", &(line("a", "r", "ping", "ok", "") + &line("a", "r", "echo", "ok", "")));
        table.add("b", "r", &line("b", "r", "echo", "ok", ""));
        assert_eq!(table.failures(), ["b r ping: nothing is told of it"]);
        assert_eq!(table.tally(), Tally { passed: 3, failed: 1 });
        assert!(table.markdown().contains("| ping    |             |"));
    }

    #[test]
    fn unsupported_needs_a_reason_and_failed_fails() {
        let mut table = Table::new("stdio", &["a"], &["r"]);
        let counts = table.add(
            "a",
            "r",
            &(line("a", "r", "ping", "unsupported", " ") + &line("a", "r", "echo", "failed", "said nothing")),
        );
        assert_eq!(counts.failed, 1);
        assert_eq!(
            table.failures(),
            ["a r echo: said nothing", "a r ping: unsupported, but it does not say why"]
        );
        assert_eq!(table.tally(), Tally { passed: 0, failed: 2 });
        assert!(table.markdown().contains("FAILED"));
    }

    #[test]
    fn the_same_fault_is_told_once_and_counted_for_each_cell() {
        let mut table = Table::new("stdio", &["a"], &["r"]);
        let lines = ["b", "c", "d"].map(|feature| line("a", "r", feature, "failed", "no session")).concat();
        table.add("a", "r", &(lines + &line("a", "r", "e", "ok", "")));
        assert_eq!(table.failures(), ["a r b, c, d: no session"]);
        assert_eq!(table.tally(), Tally { passed: 1, failed: 3 });
    }

    #[test]
    fn a_client_of_which_nothing_works_fails() {
        let mut table = Table::new("stdio", &["a"], &["r", "s"]);
        table.add("a", "r", &line("a", "r", "ping", "unsupported", "too old"));
        table.add("a", "s", &line("a", "s", "ping", "unsupported", "too new"));
        assert_eq!(table.failures(), ["a: nothing works in any revision"]);
        assert_eq!(table.tally(), Tally { passed: 2, failed: 1 });
    }

    #[test]
    fn the_worse_of_two_lines_stays() {
        let mut table = Table::new("stdio", &["a"], &["r"]);
        let (good, bad) = (line("a", "r", "ping", "ok", ""), line("a", "r", "ping", "failed", "late"));
        table.add("a", "r", &(good.clone() + &bad + &good));
        assert_eq!(table.failures(), ["a r everything: late"]);
    }

    #[test]
    fn what_cannot_be_placed_is_a_problem() {
        let mut table = Table::new("stdio", &["a"], &["r"]);
        table.add("a", "r", &("half a li\n".to_owned() + &line("a", "s", "ping", "ok", "")));
        assert_eq!(table.failures().len(), 3, "{:?}", table.failures());
        assert_eq!(table.failures()[1], "a r: ping is told of a s");
        assert_eq!(table.failures()[2], "no client told of any feature");
    }
}

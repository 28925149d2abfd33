//! Client, transport, feature, revision: what came of it.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use serde::Deserialize;

use crate::Tally;
use crate::server::Transport;

/// One line that a client wrote.
#[derive(Debug, Deserialize)]
struct Line {
    client: String,
    transport: String,
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

/// A client over a transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Section {
    pub(crate) client: &'static str,
    pub(crate) transport: Transport,
}

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} over {}", self.client, self.transport.title())
    }
}

#[derive(Debug)]
struct Cell {
    status: Status,
    detail: String,
}

/// The result of one feature in one run.
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

/// Whether a client has done something, by its lines.
pub(crate) fn has_ok(lines: &str) -> bool {
    lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Line>(line).ok())
        .any(|line| line.status == Status::Ok)
}

/// The results of all runs.
#[derive(Debug)]
pub(crate) struct Table {
    sections: Vec<Section>,
    revisions: Vec<&'static str>,
    /// In the order in which they were first heard of.
    features: Vec<String>,
    cells: BTreeMap<CellKey, Cell>,
    problems: Vec<String>,
}

/// A section, a revision and a feature.
type CellKey = (Section, &'static str, String);

impl Table {
    pub(crate) fn new(sections: &[Section], revisions: &[&'static str]) -> Self {
        Self {
            sections: sections.to_vec(),
            revisions: revisions.to_vec(),
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
    pub(crate) fn add(&mut self, section: Section, revision: &'static str, lines: &str) -> Counts {
        let mut counts = Counts::default();
        for text in lines.lines().filter(|line| !line.trim().is_empty()) {
            match serde_json::from_str::<Line>(text) {
                Err(error) => self.problem(format!("{section} {revision}: cannot read `{text}`: {error}")),
                Ok(line) => {
                    let Line { client, transport, revision: spoke, feature, .. } = &line;
                    if (client.as_str(), transport.as_str(), spoke.as_str())
                        == (section.client, section.transport.seen().name(), revision)
                    {
                        counts.count(line.status);
                        self.put(section, revision, line);
                    } else {
                        let whose = format!("{client} {transport} {spoke}");
                        self.problem(format!("{section} {revision}: {feature} is a result of {whose}"));
                    }
                }
            }
        }
        counts
    }

    /// Of two lines about the same, the worse one stays.
    fn put(&mut self, section: Section, revision: &'static str, line: Line) {
        if !self.features.contains(&line.feature) {
            self.features.push(line.feature.clone());
        }
        let cell = Cell { status: line.status, detail: line.detail };
        let key = (section, revision, line.feature);
        if self.cells.get(&key).is_none_or(|old| old.status < cell.status) {
            self.cells.insert(key, cell);
        }
    }

    /// The key of every cell, reported or not.
    fn keys(&self) -> impl Iterator<Item = CellKey> {
        self.sections.iter().flat_map(|section| self.keys_of(*section))
    }

    fn keys_of(&self, section: Section) -> impl Iterator<Item = CellKey> {
        self.revisions.iter().flat_map(move |revision| {
            self.features.iter().map(move |feature| (section, *revision, feature.clone()))
        })
    }

    /// What is wrong with a cell, if anything is.
    fn fault(cell: Option<&Cell>) -> Option<&str> {
        match cell {
            None => Some("no result"),
            Some(Cell { status: Status::Failed, detail }) => Some(detail),
            Some(Cell { status: Status::Unsupported, detail }) if detail.trim().is_empty() => {
                Some("unsupported, but it does not say why")
            }
            Some(_) => None,
        }
    }

    /// Everything that must not be, in words: the same fault of several features at once.
    pub(crate) fn failures(&self) -> Vec<String> {
        let cells = self.sections.iter().flat_map(|section| {
            let faults = self.grouped(*section, Self::fault);
            faults.into_iter().map(move |group| format!("{section} {group}"))
        });
        self.problems.iter().cloned().chain(self.silent()).chain(cells).collect()
    }

    /// Clients and transports of which nothing works: they show nothing, whatever their reasons are. A client may
    /// lack any transport but stdio, a transport may be lacked by any client but not by all of them.
    fn silent(&self) -> Vec<String> {
        let works = |matches: &dyn Fn(&Section) -> bool| {
            self.cells.iter().any(|((section, ..), cell)| matches(section) && cell.status == Status::Ok)
        };
        let mut silent = Vec::new();
        for client in self.clients() {
            let has_stdio = self.sections.contains(&Section { client, transport: Transport::Stdio });
            if has_stdio && self.revisions.len() > 1 && !works(&|section| section.client == client) {
                silent.push(format!("{client}: nothing works in any revision"));
            }
        }
        for transport in self.transports() {
            if self.clients().len() > 1 && !works(&|section| section.transport == transport) {
                silent.push(format!("over {}: nothing works with any client", transport.title()));
            }
        }
        if self.features.is_empty() {
            silent.push("no client reported any feature".to_owned());
        }
        silent
    }

    fn clients(&self) -> Vec<&'static str> {
        let mut clients: Vec<_> = self.sections.iter().map(|section| section.client).collect();
        clients.dedup();
        clients
    }

    fn transports(&self) -> Vec<Transport> {
        let mut transports: Vec<_> = self.sections.iter().map(|section| section.transport).collect();
        transports.sort();
        transports.dedup();
        transports
    }

    /// How many cells say what.
    pub(crate) fn counts(&self) -> Counts {
        self.counts_where(|_| true)
    }

    fn counts_where(&self, matches: impl Fn(&Section) -> bool) -> Counts {
        let mut counts = Counts::default();
        let cells = self.cells.iter().filter(|((section, ..), _)| matches(section));
        cells.for_each(|(_, cell)| counts.count(cell.status));
        counts
    }

    /// Cells that are as they should be, and everything that is not.
    pub(crate) fn tally(&self) -> Tally {
        let keys = self.keys().count();
        let faulty = self.keys().filter(|key| Self::fault(self.cells.get(key)).is_some()).count();
        Tally { passed: keys - faulty, failed: faulty + self.problems.len() + self.silent().len() }
    }

    /// The summary, and then a table for each client and transport, its features down and its revisions across, and
    /// why what is unsupported is so.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!("# Interoperability\n\n{}", self.summary());
        let width = self.features.iter().map(String::len).max().unwrap_or(0).max("feature".len());
        for section in &self.sections {
            let _ = writeln!(text, "\n## {section}\n");
            text += &row("feature", width, 11, self.revisions.iter().copied());
            text += &row(&"-".repeat(width), width, 11, self.revisions.iter().map(|_| "-----------"));
            for feature in &self.features {
                let words = self.revisions.iter().map(|revision| self.word(*section, revision, feature));
                text += &row(feature, width, 11, words);
            }
            text += &self.reasons(*section);
        }
        text
    }

    /// Clients down, transports across: how many cells are ok, unsupported, failed.
    pub(crate) fn summary(&self) -> String {
        let transports = self.transports();
        let width = self.clients().iter().map(|client| client.len()).max().unwrap_or(0).max("client".len());
        let mut text = row("client", width, 15, transports.iter().map(|transport| transport.title()));
        text += &row(&"-".repeat(width), width, 15, transports.iter().map(|_| "---------------"));
        for client in self.clients() {
            let counts = transports.iter().map(|transport| {
                let here = Section { client, transport: *transport };
                let Counts { ok, unsupported, failed } = self.counts_where(|section| *section == here);
                format!("{ok} / {unsupported} / {failed}")
            });
            let counts: Vec<_> = counts.collect();
            text += &row(client, width, 15, counts.iter().map(String::as_str));
        }
        text + "\nIn each place: ok / unsupported / failed.\n"
    }

    fn word(&self, section: Section, revision: &'static str, feature: &str) -> &'static str {
        match self.cells.get(&(section, revision, feature.to_owned())) {
            None => "",
            Some(Cell { status: Status::Ok, .. }) => "ok",
            Some(Cell { status: Status::Unsupported, .. }) => "unsupported",
            Some(Cell { status: Status::Failed, .. }) => "FAILED",
        }
    }

    /// Why cells of this section are unsupported.
    fn reasons(&self, section: Section) -> String {
        let reasons = self.grouped(section, |cell| match cell {
            Some(Cell { status: Status::Unsupported, detail }) => Some(detail),
            _ => None,
        });
        let lines: String = reasons.iter().map(|group| format!("- {group}\n")).collect();
        if lines.is_empty() { lines } else { format!("\nUnsupported:\n\n{lines}") }
    }

    /// What `describe` says of this section's cells: `revision features: text`, each text once for a revision.
    fn grouped(&self, section: Section, describe: fn(Option<&Cell>) -> Option<&str>) -> Vec<String> {
        let mut groups: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
        for key in self.keys_of(section) {
            if let Some(text) = describe(self.cells.get(&key)) {
                groups.entry((key.1, text)).or_default().push(key.2);
            }
        }
        let in_words = |((revision, text), features): ((&str, &str), Vec<String>)| {
            let all = features.len() == self.features.len();
            let features = if all { "everything".to_owned() } else { features.join(", ") };
            format!("{revision} {features}: {}", text.split_whitespace().collect::<Vec<_>>().join(" "))
        };
        groups.into_iter().map(in_words).collect()
    }
}

fn row<'a>(first: &str, width: usize, rest: usize, cells: impl Iterator<Item = &'a str>) -> String {
    let cells: String = cells.map(|cell| format!(" {cell:<rest$} |")).collect();
    format!("| {first:<width$} |{cells}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over(client: &'static str, transport: Transport) -> Section {
        Section { client, transport }
    }

    fn stdio(client: &'static str) -> Section {
        over(client, Transport::Stdio)
    }

    fn line(section: Section, revision: &str, feature: &str, status: &str, detail: &str) -> String {
        let line = serde_json::json!({
            "client": section.client, "transport": section.transport.name(), "revision": revision,
            "feature": feature, "status": status, "detail": detail
        });
        line.to_string() + "\n"
    }

    #[test]
    fn a_client_that_did_something_says_so() {
        let (ok, unsupported) =
            (line(stdio("a"), "r", "ping", "ok", ""), line(stdio("a"), "r", "ping", "unsupported", ""));
        assert!(has_ok(&format!("{unsupported}{ok}")));
        assert!(!has_ok(&unsupported) && !has_ok("") && !has_ok("{"));
    }

    #[test]
    fn a_full_table_passes() {
        let (pipe, web) = (stdio("a"), over("a", Transport::StreamableHttp));
        let mut table = Table::new(&[pipe, web], &["2025-06-18", "2026-07-28"]);
        let counts = table.add(pipe, "2025-06-18", &line(pipe, "2025-06-18", "ping", "ok", ""));
        table.add(
            pipe,
            "2026-07-28",
            &line(pipe, "2026-07-28", "ping", "unsupported", "not in this\nrevision"),
        );
        table.add(web, "2025-06-18", &line(web, "2025-06-18", "ping", "ok", ""));
        table.add(web, "2026-07-28", &line(web, "2026-07-28", "ping", "ok", ""));
        assert_eq!(counts, Counts { ok: 1, ..Counts::default() });
        assert_eq!(table.failures(), Vec::<String>::new());
        assert_eq!(table.tally(), Tally { passed: 4, failed: 0 });
        let expected = "\
# Interoperability

| client | stdio           | streamable HTTP |
| ------ | --------------- | --------------- |
| a      | 1 / 1 / 0       | 2 / 0 / 0       |

In each place: ok / unsupported / failed.

## a over stdio

| feature | 2025-06-18  | 2026-07-28  |
| ------- | ----------- | ----------- |
| ping    | ok          | unsupported |

Unsupported:

- 2026-07-28 everything: not in this revision

## a over streamable HTTP

| feature | 2025-06-18  | 2026-07-28  |
| ------- | ----------- | ----------- |
| ping    | ok          | ok          |
";
        assert_eq!(table.markdown(), expected);
    }

    #[test]
    fn an_empty_cell_fails() {
        let (a, b) = (stdio("a"), stdio("b"));
        let mut table = Table::new(&[a, b], &["r"]);
        table.add(a, "r", &(line(a, "r", "ping", "ok", "") + &line(a, "r", "echo", "ok", "")));
        table.add(b, "r", &line(b, "r", "echo", "ok", ""));
        assert_eq!(table.failures(), ["b over stdio r ping: no result"]);
        assert_eq!(table.tally(), Tally { passed: 3, failed: 1 });
        assert!(table.markdown().contains("| ping    |             |"));
    }

    #[test]
    fn unsupported_needs_a_reason_and_failed_fails() {
        let a = stdio("a");
        let mut table = Table::new(&[a], &["r"]);
        let lines =
            line(a, "r", "ping", "unsupported", " ") + &line(a, "r", "echo", "failed", "said nothing");
        let counts = table.add(a, "r", &lines);
        assert_eq!(counts.failed, 1);
        assert_eq!(
            table.failures(),
            [
                "a over stdio r echo: said nothing",
                "a over stdio r ping: unsupported, but it does not say why"
            ]
        );
        assert_eq!(table.tally(), Tally { passed: 0, failed: 2 });
        assert!(table.markdown().contains("FAILED"));
    }

    #[test]
    fn the_same_fault_is_told_once_and_counted_for_each_cell() {
        let a = stdio("a");
        let mut table = Table::new(&[a], &["r"]);
        let lines = ["b", "c", "d"].map(|feature| line(a, "r", feature, "failed", "no session")).concat();
        table.add(a, "r", &(lines + &line(a, "r", "e", "ok", "")));
        assert_eq!(table.failures(), ["a over stdio r b, c, d: no session"]);
        assert_eq!(table.tally(), Tally { passed: 1, failed: 3 });
    }

    #[test]
    fn a_client_of_which_nothing_works_fails() {
        let a = stdio("a");
        let mut table = Table::new(&[a], &["r", "s"]);
        table.add(a, "r", &line(a, "r", "ping", "unsupported", "too old"));
        table.add(a, "s", &line(a, "s", "ping", "unsupported", "too new"));
        assert_eq!(table.failures(), ["a: nothing works in any revision"]);
        assert_eq!(table.tally(), Tally { passed: 2, failed: 1 });
    }

    #[test]
    fn a_client_may_lack_a_transport_but_not_all_clients_the_same() {
        let (a, b) = (over("a", Transport::WebSocket), over("b", Transport::WebSocket));
        let mut table = Table::new(&[a, b], &["r", "s"]);
        for revision in ["r", "s"] {
            table.add(a, revision, &line(a, revision, "ping", "unsupported", "no such transport"));
            table.add(b, revision, &line(b, revision, "ping", "unsupported", "no such transport"));
        }
        assert_eq!(table.failures(), ["over WebSocket: nothing works with any client"]);
        let mut table = Table::new(&[a], &["r"]);
        table.add(a, "r", &line(a, "r", "ping", "unsupported", "no such transport"));
        assert_eq!(table.failures(), Vec::<String>::new());
    }

    #[test]
    fn the_worse_of_two_lines_stays() {
        let a = stdio("a");
        let mut table = Table::new(&[a], &["r"]);
        let (good, bad) = (line(a, "r", "ping", "ok", ""), line(a, "r", "ping", "failed", "late"));
        table.add(a, "r", &(good.clone() + &bad + &good));
        assert_eq!(table.failures(), ["a over stdio r everything: late"]);
    }

    #[test]
    fn what_cannot_be_placed_is_a_problem() {
        let a = stdio("a");
        let mut table = Table::new(&[a], &["r"]);
        let elsewhere = line(over("a", Transport::HttpSse), "r", "echo", "ok", "");
        table.add(a, "r", &("half a li\n".to_owned() + &line(a, "s", "ping", "ok", "") + &elsewhere));
        assert_eq!(table.failures().len(), 4, "{:?}", table.failures());
        assert_eq!(table.failures()[1], "a over stdio r: ping is a result of a stdio s");
        assert_eq!(table.failures()[2], "a over stdio r: echo is a result of a sse r");
        assert_eq!(table.failures()[3], "no client reported any feature");
    }
}

//! What output of the scenarios: which revision was agreed on for what was asked, and what each feature did.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::Tally;

/// What output of one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Ok(String),
    /// It cannot be done, for this reason.
    Unsupported(String),
    Failed(String),
}

/// The scenario through one server over one transport.
#[derive(Debug, Default)]
pub(super) struct Section {
    pub(super) server: &'static str,
    pub(super) transport: &'static str,
    /// What was asked for, and what was agreed on.
    pub(super) eras: Vec<(&'static str, Outcome)>,
    /// The revisions of the whole scenario.
    pub(super) revisions: Vec<&'static str>,
    pub(super) features: Vec<&'static str>,
    pub(super) cells: BTreeMap<(&'static str, &'static str), Outcome>,
    pub(super) problems: Vec<String>,
}

impl Section {
    fn title(&self) -> String {
        format!("{} over {}", self.server, self.transport)
    }

    /// Everything that was to be found out, with what output of it: nothing, when it was not found out.
    fn outcomes(&self) -> impl Iterator<Item = (String, Option<&Outcome>)> {
        let eras =
            self.eras.iter().map(|(era, outcome)| (format!("--protocol-version {era}"), Some(outcome)));
        let cells = self.revisions.iter().flat_map(move |revision| {
            let cell = move |feature: &&'static str| {
                (format!("{revision} {feature}"), self.cells.get(&(*revision, *feature)))
            };
            self.features.iter().map(cell)
        });
        eras.chain(cells)
    }

    /// What must not be, in words.
    pub(super) fn faults(&self) -> Vec<String> {
        let bad = |(what, outcome): (String, Option<&Outcome>)| match outcome {
            None => Some(format!("{what}: no result")),
            Some(Outcome::Failed(why)) => Some(format!("{what}: {why}")),
            Some(Outcome::Unsupported(why)) if why.trim().is_empty() => {
                Some(format!("{what}: unsupported, but it does not say why"))
            }
            Some(_) => None,
        };
        let faults = self.outcomes().filter_map(bad).chain(self.problems.iter().cloned());
        faults.map(|error| format!("{}: {error}", self.title())).collect()
    }

    pub(super) fn tally(&self) -> Tally {
        let faults = self.faults().len();
        let good = self.outcomes().count() + self.problems.len() - faults;
        Tally { passed: good, failed: faults }
    }

    fn markdown(&self) -> String {
        let mut text = format!("\n## {}\n\n", self.title());
        text += &row("feature", self.revisions.iter().copied());
        text += &row("-", self.revisions.iter().map(|_| "-"));
        for feature in &self.features {
            text += &row(
                feature,
                self.revisions.iter().map(|revision| word(self.cells.get(&(*revision, *feature)))),
            );
        }
        let reasons: Vec<_> = self.outcomes().filter_map(|(what, outcome)| reason(&what, outcome)).collect();
        if !reasons.is_empty() {
            let _ = write!(text, "\nUnsupported:\n\n{}", reasons.concat());
        }
        text
    }
}

/// All sections as a page.
pub(super) fn markdown(sections: &[Section]) -> String {
    let mut text = "# Foreign servers\n\nWhat was agreed on for each `--protocol-version`:\n\n".to_owned();
    let eras: Vec<_> =
        sections.first().into_iter().flat_map(|section| &section.eras).map(|(era, _)| *era).collect();
    text += &row("server", eras.iter().copied());
    text += &row("-", eras.iter().map(|_| "-"));
    for section in sections {
        text += &row(&section.title(), section.eras.iter().map(|(_, outcome)| agreed(outcome)));
    }
    sections.iter().fold(text, |text, section| text + &section.markdown())
}

fn agreed(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Ok(revision) => revision,
        other => word(Some(other)),
    }
}

fn word(outcome: Option<&Outcome>) -> &'static str {
    match outcome {
        None => "",
        Some(Outcome::Ok(_)) => "ok",
        Some(Outcome::Unsupported(_)) => "unsupported",
        Some(Outcome::Failed(_)) => "FAILED",
    }
}

fn reason(what: &str, outcome: Option<&Outcome>) -> Option<String> {
    match outcome {
        Some(Outcome::Unsupported(why)) => {
            let why: Vec<_> = why.split_whitespace().collect();
            Some(format!("- {what}: {}\n", why.join(" ")))
        }
        _ => None,
    }
}

fn row<'a>(first: &str, cells: impl Iterator<Item = &'a str>) -> String {
    let cells: String = cells.map(|cell| format!(" {cell} |")).collect();
    format!("| {first} |{cells}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section() -> Section {
        let good = || Outcome::Ok(String::new());
        Section {
            server: "a",
            transport: "stdio",
            eras: vec![
                ("auto", Outcome::Ok("r".to_owned())),
                ("modern", Outcome::Unsupported("too\nnew".to_owned())),
            ],
            revisions: vec!["r"],
            features: vec!["ping", "echo"],
            cells: BTreeMap::from([(("r", "ping"), good()), (("r", "echo"), good())]),
            problems: Vec::new(),
        }
    }

    #[test]
    fn a_full_section_passes() {
        let section = section();
        assert_eq!(section.faults(), Vec::<String>::new());
        assert_eq!(section.tally(), Tally { passed: 4, failed: 0 });
        let expected = "\
# Foreign servers

What was agreed on for each `--protocol-version`:

| server | auto | modern |
| - | - | - |
| a over stdio | r | unsupported |

## a over stdio

| feature | r |
| - | - |
| ping | ok |
| echo | ok |

Unsupported:

- --protocol-version modern: too new
";
        assert_eq!(markdown(&[section]), expected);
    }

    #[test]
    fn what_is_missing_or_wrong_is_told() {
        let mut section = section();
        section.cells.remove(&("r", "ping"));
        section.cells.insert(("r", "echo"), Outcome::Failed("silence".to_owned()));
        section.eras.push(("legacy", Outcome::Unsupported(" ".to_owned())));
        section.problems.push("it fell over".to_owned());
        assert_eq!(
            section.faults(),
            [
                "a over stdio: --protocol-version legacy: unsupported, but it does not say why",
                "a over stdio: r ping: no result",
                "a over stdio: r echo: silence",
                "a over stdio: it fell over",
            ]
        );
        assert_eq!(section.tally(), Tally { passed: 2, failed: 4 });
    }
}

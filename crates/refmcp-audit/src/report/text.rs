//! Reports as text for a terminal. The caller decides what a [`Tone`] looks like.

use super::count::{columns, counts};
use super::difference::Difference;
use super::model::{Conclusion, FeatureReport, JudgementReport, Report, broken_groups};
use super::rule::{ExchangeReport, RuleReport};
use super::{by_party, counted, support, times};
use crate::auditor::StepOutcome;
use crate::verdict::RuleOutcome;
use crate::visible::{multi_line, one_line};

/// What a part of a text is, for its colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Names and headings.
    Strong,
    /// What matters less.
    Faint,
    /// What the specification demands and was broken.
    Wrong,
    /// What deserves attention.
    Careful,
    /// What is as it should be.
    Good,
}

/// Columns of a list of ids.
const COLUMNS: usize = 100;

/// Bytes of a message that are shown.
const MAX_MESSAGE: usize = 800;

/// A report as text; `paint` gives a part of it the look of its tone.
///
/// ```
/// # let (report, _) = refmcp_audit::report::Reporter::default().finish(None);
/// let plain = refmcp_audit::report::text(&report, |_, text| text.to_owned());
/// assert_eq!(plain, "Nothing was judged: no rule was kept or broken in what was recorded.\n");
/// ```
pub fn text(report: &Report, paint: impl Fn(Tone, &str) -> String) -> String {
    let mut writer = Writer { paint, out: String::new() };
    for file in &report.recordings {
        writer.line(0, Tone::Faint, &format!("{}: {}", file.title(), file.extent()));
    }
    if let Some(checked) = &report.checked {
        writer.line(0, Tone::Faint, &format!("checked: {}", checked.target));
        checked.lines().iter().for_each(|line| writer.plain(0, line));
    }
    for judgement in &report.judgements {
        writer.judgement(judgement, report.checked.is_some());
    }
    if !writer.out.is_empty() {
        writer.blank();
    }
    writer.line(0, conclusion_tone(report), &report.summary());
    writer.out
}

/// What differs between two reports, as text.
pub fn difference_text(difference: &Difference, paint: impl Fn(Tone, &str) -> String) -> String {
    let mut writer = Writer { paint, out: String::new() };
    for (title, tone, changes) in [
        ("Newly broken", Tone::Wrong, &difference.newly_broken),
        ("Still broken", Tone::Careful, &difference.still_broken),
        ("No longer broken", Tone::Good, &difference.no_longer_broken),
        ("Newly exercised", Tone::Strong, &difference.newly_exercised),
        ("No longer exercised", Tone::Strong, &difference.no_longer_exercised),
    ] {
        if changes.is_empty() {
            continue;
        }
        writer.line(0, tone, &format!("{title}: {}", counted(changes.len() as u64, "rule")));
        for change in changes {
            let head = format!("{} ({}, {})", change.id, change.level, change.party);
            writer.line(2, Tone::Strong, &head);
            writer.plain(4, &format!("{}, before {}", change.outcome, change.before));
            writer.plain(4, &change.text);
            change.what.iter().for_each(|what| writer.plain(4, &format!("- {what}")));
        }
        writer.blank();
    }
    let tone = if difference.has_new_broken_musts() { Tone::Wrong } else { Tone::Strong };
    writer.line(0, tone, &difference.summary());
    writer.out
}

fn conclusion_tone(report: &Report) -> Tone {
    match report.conclusion {
        Conclusion::Broken => Tone::Wrong,
        Conclusion::NothingJudged => Tone::Careful,
        Conclusion::Kept if report.broken().next().is_some() => Tone::Careful,
        Conclusion::Kept => Tone::Good,
    }
}

struct Writer<F> {
    paint: F,
    out: String,
}

impl<F: Fn(Tone, &str) -> String> Writer<F> {
    fn judgement(&mut self, judgement: &JudgementReport, is_checked: bool) {
        self.blank();
        self.line(0, Tone::Strong, &judgement.title());
        if !is_checked {
            self.line(0, Tone::Faint, &format!("recorded by the {}", judgement.recorded_by));
        }
        if !judgement.is_judged() {
            self.blank();
            self.line(2, Tone::Careful, "nothing was judged");
        }
        for (title, rules) in broken_groups(judgement) {
            if let Some(rule) = rules.first() {
                let tone = if rule.breaks_must() { Tone::Wrong } else { Tone::Careful };
                self.blank();
                self.line(0, tone, &format!("{title}: {}", counted(rules.len() as u64, "rule")));
                rules.iter().for_each(|rule| self.rule(rule, tone));
            }
        }
        for (outcome, tone) in [
            (RuleOutcome::Kept, Tone::Good),
            (RuleOutcome::NotVerified, Tone::Careful),
            (RuleOutcome::NotExercised, Tone::Strong),
        ] {
            self.ids(judgement, outcome, tone);
        }
        self.counts(judgement);
        self.features(judgement);
        self.client_steps(judgement);
    }

    /// A broken rule: what it says, and each way in which it was broken.
    fn rule(&mut self, rule: &RuleReport, tone: Tone) {
        self.blank();
        let id = (self.paint)(tone, &rule.id);
        self.push(2, &format!("{id}  {}, {}", rule.level, rule.party));
        self.plain(2, &rule.text);
        self.line(2, Tone::Faint, &rule.link);
        if let Some(excuse) = &rule.excuse {
            self.line(2, Tone::Faint, &format!("it fails nothing: {excuse}"));
        }
        for violation in &rule.violations {
            let times = times(violation);
            self.push(4, &format!("{}{times}", (self.paint)(Tone::Strong, &one_line(&violation.what))));
            self.plain(4, &format!("expected: {}", violation.expected));
            if let Some(evidence) = &violation.evidence {
                self.line(4, Tone::Faint, &format!("at {evidence}"));
                self.message(&evidence.text);
            }
            for (label, part) in violation.exchange.iter().flat_map(ExchangeReport::parts) {
                self.line(4, Tone::Faint, label);
                self.message(part);
            }
        }
        if let Some(others) = rule.others() {
            self.plain(4, &format!("and {others}"));
        }
    }

    fn message(&mut self, text: &str) {
        let shown = text.get(..text.floor_char_boundary(MAX_MESSAGE)).unwrap_or(text);
        for line in multi_line(shown).lines() {
            self.push(6, line);
        }
        if shown.len() < text.len() {
            self.line(
                6,
                Tone::Faint,
                &format!("… {} more bytes; -o json has them", text.len() - shown.len()),
            );
        }
    }

    /// The ids of rules, by party and level.
    fn ids(&mut self, judgement: &JudgementReport, outcome: RuleOutcome, tone: Tone) {
        let rules: Vec<RuleReport> = judgement.with(outcome).cloned().collect();
        for (party, rules) in by_party(&rules) {
            self.blank();
            let outcome = outcome.heading();
            let count = counted(rules.len() as u64, "rule");
            self.line(0, tone, &format!("{outcome} by the {party}: {count}"));
            for count in counts(rules.iter().copied()) {
                let ids = rules.iter().filter(|rule| rule.level == count.level).map(|rule| rule.id.as_str());
                let mut line = format!("{:<7}", count.level.to_string());
                for id in ids {
                    if line.len() + id.len() + 1 > COLUMNS {
                        self.plain(2, &line);
                        line = " ".repeat(7);
                    }
                    line = format!("{line} {id}");
                }
                self.plain(2, &line);
            }
        }
    }

    fn counts(&mut self, judgement: &JudgementReport) {
        self.blank();
        let counts = counts(judgement.rules.iter());
        let columns = columns(&counts);
        // As wide as the heading, with room before it.
        let width = |outcome: &RuleOutcome| outcome.to_string().len().max(5) + 3;
        let cells = |cell: &dyn Fn(RuleOutcome) -> String| {
            columns.iter().map(|it| format!("{:>1$}", cell(*it), width(it))).collect::<String>()
        };
        let head = format!("{:<16}{}", "Rules", cells(&|outcome| outcome.to_string()));
        self.line(0, Tone::Strong, &head);
        for count in counts {
            let name = format!("{} {}", count.party, count.level);
            self.plain(2, &format!("{name:<14}{}", cells(&|outcome| count.of(outcome).to_string())));
        }
    }

    fn features(&mut self, judgement: &JudgementReport) {
        self.blank();
        self.line(0, Tone::Strong, &format!("{:<24}{:<22}server", "Features", "client"));
        let is_seen = |feature: &&FeatureReport| feature.client.is_some() || feature.server.is_some();
        for feature in judgement.features.iter().filter(is_seen) {
            let (client, server) = (support(feature.client), support(feature.server));
            self.plain(2, &format!("{:<22}{client:<22}{server}", feature.feature));
        }
        let unseen = judgement.features.iter().filter(|feature| !is_seen(feature));
        let unseen: Vec<&str> = unseen.map(|feature| feature.feature.as_str()).collect();
        if !unseen.is_empty() {
            self.line(2, Tone::Faint, &format!("not seen: {}", unseen.join(", ")));
        }
    }

    /// What the client did in each situation that it was in.
    fn client_steps(&mut self, judgement: &JudgementReport) {
        let (unreached, reached): (Vec<_>, Vec<_>) =
            judgement.client_steps.iter().partition(|step| step.outcome == StepOutcome::NotReached);
        if reached.is_empty() {
            return;
        }
        self.blank();
        self.line(0, Tone::Strong, "Client support");
        for step in reached {
            let outcome = step.outcome.to_string();
            self.plain(2, &format!("{:<22}{outcome:<14}{}", step.step, step.shows));
        }
        if !unreached.is_empty() {
            let names: Vec<&str> = unreached.iter().map(|step| step.step.as_str()).collect();
            self.line(2, Tone::Faint, &format!("not reached: {}", names.join(", ")));
        }
    }

    fn line(&mut self, indent: usize, tone: Tone, text: &str) {
        let painted = (self.paint)(tone, &one_line(text));
        self.push(indent, &painted);
    }

    fn plain(&mut self, indent: usize, text: &str) {
        self.push(indent, one_line(text).trim_end());
    }

    fn push(&mut self, indent: usize, text: &str) {
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.out.push_str(text);
        self.out.push('\n');
    }

    /// An empty line, but not at the beginning and not twice.
    fn blank(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with("\n\n") {
            self.out.push('\n');
        }
    }
}

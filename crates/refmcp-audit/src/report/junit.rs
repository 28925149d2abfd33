//! Reports as JUnit XML: a suite for each judgement and party, a test case for each rule.
//!
//! A broken rule that the specification demands is a failure. One that it recommends is skipped with what happened as its message,
//! so that it is seen and fails no build; so is a rule that was not exercised or is not judged. A report in which nothing was judged
//! is an error, and never green. What a client supports stands in properties.

use std::fmt::Write;

use super::markup::{escaped, escaped_line};
use super::model::{JudgementReport, Report};
use super::rule::{ExchangeReport, RuleReport};
use super::{by_party, counted};
use crate::verdict::{Role, RuleOutcome};

/// A report as JUnit XML.
pub fn junit(report: &Report) -> String {
    let suites: Vec<Suite<'_>> = report.judgements.iter().flat_map(suites).collect();
    let sum = |count: &dyn Fn(&Suite<'_>) -> usize| suites.iter().map(count).sum::<usize>();
    let unjudged = usize::from(suites.is_empty());
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<testsuites name=\"refmcp {}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
        if report.checked.is_some() { "check" } else { "audit" },
        sum(&|suite| suite.tests()) + unjudged,
        sum(&|suite| suite.failures()),
        sum(&|suite| suite.errors()) + unjudged,
        sum(&|suite| suite.skipped()),
    );
    if suites.is_empty() {
        out.push_str("  <testsuite name=\"audit\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n");
        nothing_judged(&mut out, "audit", &report.summary());
        out.push_str("  </testsuite>\n");
    }
    for suite in &suites {
        suite.write(&mut out);
    }
    out.push_str("</testsuites>\n");
    out
}

/// The rules of one party in one judgement.
struct Suite<'a> {
    title: String,
    party: Role,
    rules: Vec<&'a RuleReport>,
    recording: &'a JudgementReport,
}

fn suites(judgement: &JudgementReport) -> impl Iterator<Item = Suite<'_>> {
    by_party(&judgement.rules).map(|(party, rules)| {
        let title = format!("{party}: {}", judgement.title());
        Suite { title, party, rules, recording: judgement }
    })
}

impl Suite<'_> {
    fn tests(&self) -> usize {
        self.rules.len() + self.errors()
    }

    fn failures(&self) -> usize {
        self.rules.iter().filter(|rule| rule.breaks_must()).count()
    }

    /// One where no rule was kept or broken.
    fn errors(&self) -> usize {
        usize::from(!self.rules.iter().any(|rule| rule.outcome.is_judged()))
    }

    fn skipped(&self) -> usize {
        let kept = self.rules.iter().filter(|rule| rule.outcome == RuleOutcome::Kept).count();
        self.rules.len() - kept - self.failures()
    }

    fn write(&self, out: &mut String) {
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
            escaped_line(&self.title),
            self.tests(),
            self.failures(),
            self.errors(),
            self.skipped(),
        );
        let properties = [
            ("client".to_owned(), self.recording.client.clone()),
            ("server".to_owned(), self.recording.server.clone()),
            ("transport".to_owned(), self.recording.transport.clone()),
            ("revisions".to_owned(), self.recording.revisions.join(" ")),
        ];
        let steps = self.recording.client_steps.iter().filter(|_| self.party == Role::Client);
        let steps = steps.map(|step| (format!("support of {}", step.step), step.outcome.to_string()));
        out.push_str("    <properties>\n");
        for (name, value) in properties.into_iter().chain(steps) {
            let (name, value) = (escaped_line(&name), escaped_line(&value));
            let _ = writeln!(out, "      <property name=\"{name}\" value=\"{value}\"/>");
        }
        out.push_str("    </properties>\n");
        if self.errors() > 0 {
            nothing_judged(out, &self.party.to_string(), "Nothing was judged: no rule was kept or broken.");
        }
        for rule in &self.rules {
            self.case(rule, out);
        }
        out.push_str("  </testsuite>\n");
    }

    fn case(&self, rule: &RuleReport, out: &mut String) {
        let name = escaped_line(&format!("{} {}", rule.id, rule.text));
        let _ = write!(out, "    <testcase classname=\"{}.{}\" name=\"{name}\"", self.party, rule.level);
        let end = match rule.outcome {
            RuleOutcome::Kept => "/>\n".to_owned(),
            RuleOutcome::NotVerified | RuleOutcome::NotExercised | RuleOutcome::NotJudged => {
                let why = rule.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
                let message = escaped_line(&format!("{}{why}", rule.outcome));
                format!("><skipped message=\"{message}\"/></testcase>\n")
            }
            RuleOutcome::Broken => {
                let what: Vec<&str> = rule.violations.iter().map(|violation| &*violation.what).collect();
                let message = escaped_line(&what.join("; "));
                let details = escaped(&details(rule));
                let excuse = rule.excuse.as_ref().map(|why| format!(", {why}")).unwrap_or_default();
                match rule.breaks_must() {
                    true => format!(
                        ">\n      <failure type=\"{}\" message=\"{message}\">{details}</failure>\n    </testcase>\n",
                        rule.level
                    ),
                    false => format!(
                        ">\n      <skipped message=\"broken ({}{excuse}): {message}\"/>\n      <system-out>{details}</system-out>\n    </testcase>\n",
                        rule.level
                    ),
                }
            }
        };
        out.push_str(&end);
    }
}

fn nothing_judged(out: &mut String, class: &str, why: &str) {
    let message = escaped_line(why);
    let _ = writeln!(
        out,
        "    <testcase classname=\"{class}\" name=\"something was judged\"><error message=\"{message}\"/></testcase>"
    );
}

/// What happened, what is expected, and where.
fn details(rule: &RuleReport) -> String {
    let mut text = format!("{}\n{}\n", rule.text, rule.link);
    for violation in &rule.violations {
        let _ = writeln!(text, "\n{} ({})", violation.what, counted(violation.count, "time"));
        let _ = writeln!(text, "expected: {}", violation.expected);
        if let Some(evidence) = &violation.evidence {
            let _ = writeln!(text, "at {evidence}\n{}", evidence.text);
        }
        if !violation.revisions.is_empty() {
            let _ = writeln!(text, "in {}", violation.revisions.join(", "));
        }
        for (label, part) in violation.exchange.iter().flat_map(ExchangeReport::parts) {
            let _ = writeln!(text, "{label}:\n{part}");
        }
    }
    if let Some(others) = rule.others() {
        let _ = writeln!(text, "\nand {others}");
    }
    text
}

//! Reports as Markdown, to be pasted into an issue. What peers wrote stands in code, where it is neither formatting nor a mention.

use std::fmt::Write;

use super::count::{columns, counts};
use super::difference::Difference;
use super::model::{JudgementReport, Report, broken_groups};
use super::rule::{ExchangeReport, RuleReport};
use super::{by_party, counted, support};
use crate::verdict::RuleOutcome;
use crate::visible::{multi_line, one_line};

/// A report as Markdown.
pub fn markdown(report: &Report) -> String {
    let mut out = format!("# {}\n\n**{}**\n", report.title(), report.summary());
    for file in &report.recordings {
        // Writing to a string cannot fail.
        let _ = write!(out, "\n- {}: {}", code(file.title()), file.extent());
    }
    if let Some(checked) = &report.checked {
        let _ = write!(out, "\n- checked: {}", code(&checked.target));
        for line in checked.lines() {
            let _ = write!(out, "\n- {}", inline(&line));
        }
    }
    out.push('\n');
    for judgement in &report.judgements {
        write_judgement(judgement, report.checked.is_some(), &mut out);
    }
    let _ = writeln!(out, "\nWritten by {}.", inline(&report.generator));
    out
}

/// What differs between two reports, as Markdown.
pub fn difference_markdown(difference: &Difference) -> String {
    let mut out = format!("# Comparison of audit reports\n\n**{}**\n", difference.summary());
    for (title, changes) in [
        ("Newly broken", &difference.newly_broken),
        ("Still broken", &difference.still_broken),
        ("No longer broken", &difference.no_longer_broken),
        ("Newly exercised", &difference.newly_exercised),
        ("No longer exercised", &difference.no_longer_exercised),
    ] {
        if changes.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n## {title}\n");
        for change in changes {
            let _ = writeln!(
                out,
                "- **{}** ({}, {}): {} {}, before {}.",
                change.id,
                change.level,
                change.party,
                inline(&change.text),
                change.outcome,
                change.before
            );
            for what in &change.what {
                let _ = writeln!(out, "  - {}", code(what));
            }
        }
    }
    out
}

fn write_judgement(judgement: &JudgementReport, is_checked: bool, out: &mut String) {
    let _ = writeln!(out, "\n## {}", code(&judgement.title()));
    if !is_checked {
        let _ = writeln!(out, "\nRecorded by the {}.", judgement.recorded_by);
    }
    if !judgement.is_judged() {
        out.push_str("\n**Nothing was judged.**\n");
    }
    for (title, rules) in broken_groups(judgement) {
        if !rules.is_empty() {
            let _ = writeln!(out, "\n### {title}");
            rules.iter().for_each(|rule| write_rule(rule, out));
        }
    }
    let counts = counts(judgement.rules.iter());
    let columns = columns(&counts);
    let cells = |cell: &dyn Fn(RuleOutcome) -> String| {
        columns.iter().map(|it| format!(" {} |", cell(*it))).collect::<String>()
    };
    let _ = writeln!(out, "\n### All rules\n\n| party | level |{}", cells(&|outcome| outcome.to_string()));
    let _ = writeln!(out, "|---|---|{}", "---|".repeat(columns.len()));
    for count in counts {
        let cells = cells(&|outcome| count.of(outcome).to_string());
        let _ = writeln!(out, "| {} | {} |{cells}", count.party, count.level);
    }
    for outcome in [RuleOutcome::Kept, RuleOutcome::NotVerified, RuleOutcome::NotExercised] {
        let rules: Vec<RuleReport> = judgement.with(outcome).cloned().collect();
        for (party, rules) in by_party(&rules) {
            let ids: Vec<&str> = rules.iter().map(|rule| rule.id.as_str()).collect();
            let _ = writeln!(
                out,
                "\n<details><summary>{outcome} by the {party}: {}</summary>\n\n{}\n\n</details>",
                ids.len(),
                ids.join(", ")
            );
        }
    }
    out.push_str("\n### Features\n\n| feature | client | server |\n|---|---|---|\n");
    for feature in &judgement.features {
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            inline(&feature.feature),
            support(feature.client),
            support(feature.server)
        );
    }
    if judgement.client_steps.is_empty() {
        return;
    }
    out.push_str("\n### Client support\n\n| step | outcome | a client that supports it |\n|---|---|---|\n");
    for step in &judgement.client_steps {
        let _ = writeln!(out, "| {} | {} | {} |", inline(&step.step), step.outcome, inline(&step.shows));
    }
}

fn write_rule(rule: &RuleReport, out: &mut String) {
    let _ = writeln!(
        out,
        "\n#### [{}]({}) ({}, {})\n\n{}",
        rule.id,
        rule.link,
        rule.level,
        rule.party,
        inline(&rule.text)
    );
    if let Some(excuse) = &rule.excuse {
        let _ = writeln!(out, "\nIt fails nothing: {}.", inline(excuse));
    }
    for violation in &rule.violations {
        let _ = writeln!(out, "\n- {}, {}", code(&violation.what), counted(violation.count, "time"));
        if !violation.revisions.is_empty() {
            let _ = writeln!(out, "- in {}", violation.revisions.join(", "));
        }
        let _ = writeln!(out, "- expected: {}", code(&violation.expected));
        if let Some(evidence) = &violation.evidence {
            let _ = writeln!(out, "- at {}\n\n{}", code(&evidence.to_string()), block(&evidence.text));
        }
        for (label, part) in violation.exchange.iter().flat_map(ExchangeReport::parts) {
            let _ = writeln!(out, "- {label}:\n\n{}", block(part));
        }
    }
    if let Some(others) = rule.others() {
        let _ = writeln!(out, "\nAnd {others}.");
    }
}

/// A text on one line that is no formatting.
fn inline(text: &str) -> String {
    let mut out = String::new();
    for c in one_line(text).chars() {
        if "\\`*_[]<>&#|~!@".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A text on one line as code.
fn code(text: &str) -> String {
    let text = one_line(text);
    let fence = "`".repeat(longest_run(&text) + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{text}{space}{fence}")
}

/// A text of several lines as a block of code.
fn block(text: &str) -> String {
    let text = multi_line(text);
    let fence = "`".repeat(longest_run(&text).max(2) + 1);
    let kind = if text.starts_with(['{', '[']) { "json" } else { "text" };
    format!("{fence}{kind}\n{}\n{fence}", text.trim_end())
}

fn longest_run(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_ends_where_its_text_does() {
        assert_eq!(code("a\nb"), "`a b`");
        assert_eq!(inline("*a* [b](c)\n@d _meta"), "\\*a\\* \\[b\\](c) \\@d \\_meta");
        assert_eq!(code("``` <b> @x"), "```` ``` <b> @x````".replace("@x````", "@x ````"));
        assert_eq!(block("{\"a\":\"```\"}"), "````json\n{\"a\":\"```\"}\n````");
        assert_eq!(block("\u{202e}"), "```text\n<U+202E>\n```");
    }
}

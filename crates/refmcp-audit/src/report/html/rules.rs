//! The rules of a judgement on the page: broken ones whole, the others in tables.

use std::fmt::Write;

use super::super::count::{columns, counts};
use super::super::markup::{escaped, escaped_line};
use super::super::model::{JudgementReport, broken_groups};
use super::super::rule::{ExchangeReport, RuleReport};
use super::super::{counted, times};
use super::{classes, violation_anchor};
use crate::auditor::{StepOutcome, Support};
use crate::verdict::RuleOutcome;

/// Writes the judgement with this number.
pub(super) fn write(number: usize, judgement: &JudgementReport, is_checked: bool, out: &mut String) {
    // Writing to a string cannot fail.
    let _ = writeln!(
        out,
        "<article class=\"judgement\" aria-labelledby=\"judgement-{number}\">\n<h3 id=\"judgement-{number}\">{}</h3>",
        escaped_line(&judgement.title()),
    );
    if !is_checked {
        let _ = writeln!(out, "<p class=\"muted\">Recorded by the {}.</p>", judgement.recorded_by);
    }
    if !judgement.is_judged() {
        out.push_str("<p class=\"conclusion unjudged\">Nothing was judged.</p>\n");
    }
    write_counts(judgement, out);
    for (title, rules) in broken_groups(judgement) {
        if !rules.is_empty() {
            let _ =
                writeln!(out, "<h4 class=\"broken\">{title}: {}</h4>", counted(rules.len() as u64, "rule"));
            rules.iter().for_each(|rule| write_broken(number, rule, out));
        }
    }
    write_features(judgement, out);
    write_client_steps(judgement, out);
    for outcome in RuleOutcome::ALL.into_iter().filter(|outcome| *outcome != RuleOutcome::Broken) {
        write_table(judgement, outcome, out);
    }
    out.push_str("</article>\n");
}

fn write_counts(judgement: &JudgementReport, out: &mut String) {
    out.push_str("<table class=\"counts\"><caption>Rules by party and level</caption><thead><tr>");
    let counts = counts(judgement.rules.iter());
    let columns = columns(&counts);
    let outcomes = columns.iter().map(ToString::to_string);
    for head in ["party".to_owned(), "level".to_owned()].into_iter().chain(outcomes) {
        let _ = write!(out, "<th scope=\"col\">{head}</th>");
    }
    out.push_str("</tr></thead><tbody>\n");
    for count in counts {
        let _ = write!(
            out,
            "<tr class=\"{0} {1}\"><th scope=\"row\">{0}</th><td>{1}</td>",
            count.party, count.level
        );
        for outcome in &columns {
            let is_some = *outcome == RuleOutcome::Broken && count.broken > 0;
            let class = if is_some { " class=\"some\"" } else { "" };
            let _ = write!(out, "<td{class}>{}</td>", count.of(*outcome));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody></table>\n");
}

/// A broken rule with each way in which it was broken.
fn write_broken(number: usize, rule: &RuleReport, out: &mut String) {
    let link = escaped_line(&rule.link);
    let _ = write!(
        out,
        "<section class=\"rule {}\">\n<h5><a href=\"{link}\" rel=\"noreferrer\">{}</a> \
         <span class=\"badge\">{}</span> <span class=\"muted\">broken by the {}, {}</span></h5>\n<p>{}</p>\n",
        classes(rule),
        escaped_line(&rule.id),
        rule.level,
        rule.party,
        counted(rule.broken, "time"),
        escaped(&rule.text)
    );
    if let Some(excuse) = &rule.excuse {
        let _ = writeln!(out, "<p class=\"muted\">It fails nothing: {}.</p>", escaped(excuse));
    }
    out.push_str("<ul class=\"violations\">\n");
    for (at, violation) in rule.violations.iter().enumerate() {
        let _ = write!(
            out,
            "<li id=\"{}\" tabindex=\"-1\"><p class=\"what\">{}{}</p>\n<p>Expected: {}</p>\n",
            violation_anchor(number, rule, at),
            escaped(&violation.what),
            times(violation),
            escaped(&violation.expected)
        );
        if let Some(evidence) = &violation.evidence {
            let _ = writeln!(
                out,
                "<p><a href=\"#event-{}\">The message, at {}</a></p>\n<pre>{}</pre>",
                evidence.event,
                escaped_line(&evidence.to_string()),
                escaped(&evidence.text)
            );
        }
        for (label, part) in violation.exchange.iter().flat_map(ExchangeReport::parts) {
            let _ = writeln!(out, "<p class=\"muted\">{label}</p>\n<pre>{}</pre>", escaped(part));
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ul>\n");
    if let Some(others) = rule.others() {
        let _ = writeln!(out, "<p class=\"muted\">And {others}.</p>");
    }
    out.push_str("</section>\n");
}

fn write_features(judgement: &JudgementReport, out: &mut String) {
    out.push_str("<table class=\"features\"><caption>Features that were seen</caption><thead><tr><th scope=\"col\">feature</th>");
    out.push_str("<th scope=\"col\">client</th><th scope=\"col\">server</th></tr></thead><tbody>\n");
    for feature in &judgement.features {
        let cell = |support: Option<Support>| match support {
            Some(Support::Used) => "<td class=\"used\">used</td>".to_owned(),
            Some(support) => format!("<td>{support}</td>"),
            None => "<td class=\"muted\">not seen</td>".to_owned(),
        };
        let (client, server) = (cell(feature.client), cell(feature.server));
        let name = escaped_line(&feature.feature);
        let _ = writeln!(out, "<tr><th scope=\"row\">{name}</th>{client}{server}</tr>");
    }
    out.push_str("</tbody></table>\n");
}

fn write_client_steps(judgement: &JudgementReport, out: &mut String) {
    if judgement.client_steps.is_empty() {
        return;
    }
    out.push_str(
        "<table class=\"features\"><caption>Client support</caption><thead><tr><th scope=\"col\">step</th>",
    );
    out.push_str("<th scope=\"col\">outcome</th><th scope=\"col\">a client that supports it</th></tr></thead><tbody>\n");
    for step in &judgement.client_steps {
        let class = match step.outcome {
            StepOutcome::Done => "used",
            StepOutcome::NotDeclared | StepOutcome::NotReached => "muted",
            StepOutcome::Declined | StepOutcome::Ignored => "",
        };
        let (name, shows) = (escaped_line(&step.step), escaped_line(&step.shows));
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{name}</th><td class=\"{class}\">{}</td><td>{shows}</td></tr>",
            step.outcome
        );
    }
    out.push_str("</tbody></table>\n");
}

/// The rules of an outcome in a table that can be folded.
fn write_table(judgement: &JudgementReport, outcome: RuleOutcome, out: &mut String) {
    let rules: Vec<&RuleReport> = judgement.with(outcome).collect();
    if rules.is_empty() {
        return;
    }
    let class = outcome.to_string().replace(' ', "-");
    let has_reasons = rules.iter().any(|rule| rule.reason.is_some());
    let last = match outcome {
        RuleOutcome::Kept => "times",
        _ if has_reasons => "why",
        _ => "",
    };
    let title = outcome.heading();
    let open = if outcome == RuleOutcome::Kept { " open" } else { "" };
    let _ = write!(
        out,
        "<details class=\"{class}\"{open}><summary>{title}: {}</summary>\n<table><thead><tr>",
        counted(rules.len() as u64, "rule")
    );
    for head in ["rule", "level", "party", "what it says", last].into_iter().filter(|head| !head.is_empty()) {
        let _ = write!(out, "<th scope=\"col\">{head}</th>");
    }
    out.push_str("</tr></thead><tbody>\n");
    for rule in rules {
        let last = match outcome {
            RuleOutcome::Kept => format!("<td>{}</td>", rule.kept),
            _ if has_reasons => {
                format!("<td>{}</td>", escaped(rule.reason.as_deref().unwrap_or_default()))
            }
            _ => String::new(),
        };
        let _ = writeln!(
            out,
            "<tr class=\"{}\"><th scope=\"row\"><a href=\"{}\" rel=\"noreferrer\">{}</a></th><td>{}</td><td>{}</td><td>{}</td>{last}</tr>",
            classes(rule),
            escaped_line(&rule.link),
            escaped_line(&rule.id),
            rule.level,
            rule.party,
            escaped(&rule.text)
        );
    }
    out.push_str("</tbody></table></details>\n");
}

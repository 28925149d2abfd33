//! Reports as one page of HTML, with the conversation beside the rules.
//!
//! The page is whole without the network and without scripts: a link marks the message of a violation (`:target`), filters are
//! checkboxes that the style sheet reads (`:has`), and a content security policy forbids everything but the style sheet. What peers
//! wrote is only ever text.

mod conversation;
mod rules;

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Excerpt;
use super::counted;
use super::markup::{escaped, escaped_line};
use super::model::{Conclusion, Report};
use super::rule::{EvidenceReport, RuleReport};

const STYLE: &str = include_str!("page.css");

/// What the page may load: nothing.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

/// A report as a page, beside the events of its recordings.
pub fn html(report: &Report, excerpt: &Excerpt) -> String {
    let mut out = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"{}\">\n<title>{}: {}</title>\n<style>\n{STYLE}</style>\n\
         </head>\n<body>\n",
        escaped_line(&report.generator),
        report.title(),
        escaped_line(&titles(report)),
    );
    write_header(report, &mut out);
    let violations = Violations::of(report);
    // A check has each request with its answer beside the rule, and may have what passed too.
    let has_conversation = report.checked.is_none() || excerpt.events > 0;
    let alone = if has_conversation { "" } else { " class=\"alone\"" };
    let _ = writeln!(out, "<main{alone}>");
    out.push_str("<section id=\"rules\" aria-labelledby=\"rules-title\" tabindex=\"0\">\n");
    out.push_str("<h2 id=\"rules-title\">Rules</h2>\n");
    for (number, judgement) in report.judgements.iter().enumerate() {
        rules::write(number, judgement, report.checked.is_some(), &mut out);
    }
    if report.judgements.is_empty() {
        out.push_str("<p>No conversation was recorded.</p>\n");
    }
    out.push_str("</section>\n");
    if has_conversation {
        conversation::write(excerpt, &violations, &mut out);
    }
    let _ = write!(
        out,
        "</main>\n<footer>Written by {}.</footer>\n</body>\n</html>\n",
        escaped_line(&report.generator)
    );
    out
}

fn titles(report: &Report) -> String {
    match &*report.judgements {
        [] => "nothing was judged".to_owned(),
        [one] => one.title(),
        several => counted(several.len() as u64, "pair") + " of clients and servers",
    }
}

fn write_header(report: &Report, out: &mut String) {
    let class = match report.conclusion {
        Conclusion::Broken => "broken",
        Conclusion::NothingJudged => "unjudged",
        Conclusion::Kept if report.broken().next().is_some() => "advice",
        Conclusion::Kept => "kept",
    };
    let _ = write!(
        out,
        "<header>\n<h1>{}</h1>\n<p class=\"conclusion {class}\">{}</p>\n<ul class=\"recordings\">\n",
        report.title(),
        escaped(&report.summary())
    );
    for file in &report.recordings {
        let _ = writeln!(out, "<li><code>{}</code>: {}</li>", escaped_line(file.title()), file.extent());
    }
    if let Some(checked) = &report.checked {
        let _ = writeln!(out, "<li>checked: <code>{}</code></li>", escaped_line(&checked.target));
        for line in checked.lines() {
            let _ = writeln!(out, "<li>{}</li>", escaped_line(&line));
        }
    }
    out.push_str("</ul>\n");
    write_filters(report.checked.is_some(), out);
    out.push_str("</header>\n");
}

/// Checkboxes whose ids the style sheet knows.
fn write_filters(is_checked: bool, out: &mut String) {
    let groups: [(&str, &[(&str, &str)]); 3] = [
        (
            "Outcome",
            &[
                ("show-broken", "broken"),
                ("show-kept", "kept"),
                ("show-not-verified", "not verified"),
                ("show-not-exercised", "not exercised"),
                ("show-not-judged", "not judged"),
            ],
        ),
        (
            "Level",
            &[("show-must", "must"), ("show-should", "should"), ("show-may", "may"), ("show-note", "note")],
        ),
        ("Party", &[("show-client", "client"), ("show-server", "server")]),
    ];
    out.push_str(
        "<div class=\"filters\" role=\"group\" aria-label=\"Which rules and messages are shown\">\n",
    );
    for (legend, boxes) in groups {
        let _ = write!(out, "<fieldset><legend>{legend}</legend>");
        // Only checks have rules that are not verified.
        for (id, label) in boxes.iter().filter(|(id, _)| is_checked || *id != "show-not-verified") {
            let _ = write!(out, "<label><input type=\"checkbox\" id=\"{id}\" checked> {label}</label>");
        }
        out.push_str("</fieldset>\n");
    }
    out.push_str("</div>\n");
}

/// Where violations are in the conversation, by the numbers of events.
struct Violations<'a> {
    by_event: BTreeMap<u64, Vec<Mark<'a>>>,
}

/// A violation at an event.
struct Mark<'a> {
    anchor: String,
    rule: &'a RuleReport,
    evidence: &'a EvidenceReport,
}

impl<'a> Violations<'a> {
    fn of(report: &'a Report) -> Self {
        let mut by_event: BTreeMap<u64, Vec<Mark<'a>>> = BTreeMap::new();
        for (number, judgement) in report.judgements.iter().enumerate() {
            for rule in &judgement.rules {
                for (violation, evidence) in rule
                    .violations
                    .iter()
                    .enumerate()
                    .filter_map(|(at, it)| Some((at, it.evidence.as_ref()?)))
                {
                    let mark = Mark { anchor: violation_anchor(number, rule, violation), rule, evidence };
                    by_event.entry(evidence.event).or_default().push(mark);
                }
            }
        }
        Self { by_event }
    }
}

/// The id of a violation on the page.
fn violation_anchor(judgement: usize, rule: &RuleReport, violation: usize) -> String {
    format!("violation-{judgement}-{}-{}-{violation}", escaped_line(&rule.id), rule.party)
}

/// The classes by which the style sheet filters a rule.
fn classes(rule: &RuleReport) -> String {
    let outcome = rule.outcome.to_string().replace(' ', "-");
    let kind = if rule.breaks_must() { " violation" } else { "" };
    format!("{outcome} {} {}{kind}", rule.level, rule.party)
}

//! `refmcp check`: checks a server by the rules of the specification.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result};
use parking_lot::Mutex;
use refmcp_audit::recording::{Event, EventKind};
use refmcp_audit::report::{Difference, Excerpt, Report};
use refmcp_check::{Baseline, CheckReport, CheckResult, Checker, Compared, EventListener, Options, Outcome};
use refmcp_client::Revision;
use serde_json::Number;

use crate::args::{CheckOptions, ExitReason, ReportFormat, SharedOptions, Target, UsageError};
use crate::command::client::{Person, Servers};
use crate::command::report::{Judged, read_report, write, write_difference};
use crate::record::{Recording, masks};
use crate::ui::progress::Bars;
use crate::ui::redact::{masked, masked_json};
use crate::ui::style::Paint;
use crate::ui::text::{indent, multi_line, one_line};

pub(crate) async fn run(
    target: &Target,
    options: &CheckOptions,
    shared: &SharedOptions,
) -> Result<ExitReason> {
    let bars = Bars::on_stderr();
    let person = Person::new(shared, &bars);
    let known = match options.baseline.as_deref() {
        // An update may be the first.
        Some(file) if options.update_baseline && !file.exists() => Some(Baseline::default()),
        file => file.map(read_baseline).transpose()?,
    };
    // Read before the check takes its time, and before it may be written over.
    let earlier = options.diff.as_deref().map(read_report).transpose()?;
    let servers = Servers::new(shared, &person)?.beside(&bars);
    let mut to_check = servers.to_check(target, options.transport).await?;
    let is_page = |format| format == ReportFormat::Html;
    let wants_page = is_page(options.output) || options.save.iter().any(|saved| is_page(saved.format));
    let excerpt: Arc<Mutex<Excerpt>> = Arc::default();
    let listeners: Vec<EventListener> = Recording::open(&shared.record, false)?
        .listener()
        .into_iter()
        .chain(wants_page.then(|| for_page(excerpt.clone())))
        .collect();
    if !listeners.is_empty() {
        to_check = to_check.observed_by(Arc::new(move |event| listeners.iter().for_each(|it| it(event))));
    }
    let mut settings = Options::default();
    settings.revisions = options.revisions();
    settings.allow_destructive = options.allow_destructive;
    settings.timeout = options.response_timeout;
    settings.start_timeout = shared.timeout;
    settings.jobs = options.jobs.into();
    settings.only.clone_from(&options.only);
    settings.skip.clone_from(&options.skip);
    settings.probes.clone_from(&options.probe);
    let bar = Mutex::new(bars.call("check"));
    let report = Checker::new(to_check, settings)
        .run(|progress| {
            let (done, total) = (Number::from(progress.done), Number::from(progress.total));
            bar.lock().update(&done, Some(&total), Some(progress.last));
        })
        .await;
    drop(bar);
    // A server that was not checked says nothing about what is known of it.
    if let (Some(file), Some(known), true) =
        (&options.baseline, &known, options.update_baseline && report.is_verified())
    {
        let text = known.updated(&report).to_string();
        std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let known = known.filter(|_| !options.update_baseline);
    let compared = known.as_ref().map(|known| known.compare(&report));
    let judged = judged(&report, compared.as_ref(), std::mem::take(&mut *excerpt.lock()))?;
    let paint = Paint::for_stream(&std::io::stdout(), shared.no_color);
    // Each revision that was asked for by name has to be checked.
    let is_whole = options.revisions().is_empty() || report.unsupported.is_empty();
    if let Some(earlier) = earlier {
        let difference = Difference::between(&earlier, &judged.report);
        let ended = write_difference(&difference, &options.save, options.output, paint)?;
        let is_stale = compared.is_some_and(|compared| !compared.stale.is_empty());
        return Ok(match ended {
            ExitReason::Done if is_stale => ExitReason::RulesBroken,
            ExitReason::Done if !is_whole || !report.is_verified() => ExitReason::NothingJudged,
            ended => ended,
        });
    }
    write(&options.save, options.output, paint, |format, paint| match format {
        ReportFormat::Text => {
            Ok(masked(&(text(&report, compared.as_ref(), options.all, paint) + &scores(&judged.report)))
                .into_owned())
        }
        _ => judged.rendered(format, paint),
    })?;
    Ok(match reason(&report, compared.as_ref(), options.update_baseline) {
        ExitReason::Done if !is_whole => ExitReason::NothingJudged,
        reason => reason,
    })
}

fn read_baseline(file: &Path) -> Result<Baseline> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| UsageError::new(format!("cannot read {}: {error}", file.display())))?;
    Ok(Baseline::parse(&text).map_err(|error| UsageError::new(format!("{}: {error}", file.display())))?)
}

/// Only what the specification demands makes a check fail; the rest is told.
fn reason(report: &CheckReport, compared: Option<&Compared<'_>>, updated: bool) -> ExitReason {
    let failed = match compared {
        Some(compared) => compared.new.iter().any(|it| it.breaks_must()) || !compared.stale.is_empty(),
        None => report.broken_musts().next().is_some() && !updated,
    };
    match (failed, report.is_verified()) {
        (true, _) => ExitReason::RulesBroken,
        (false, true) => ExitReason::Done,
        (false, false) => ExitReason::NothingJudged,
    }
}

/// What shows on a page what passed, without secrets.
fn for_page(excerpt: Arc<Mutex<Excerpt>>) -> EventListener {
    let masks = masks();
    Arc::new(move |event: &Event| {
        let mut kind = masks.masked(event.kind.clone());
        if let EventKind::Message { text, .. } | EventKind::Sse { data: text, .. } = &mut kind {
            *text = masked(text).into_owned();
        }
        excerpt.lock().add(&Event { kind, ..event.clone() });
    })
}

/// The report in the shape of audits, without secrets.
fn judged(report: &CheckReport, compared: Option<&Compared<'_>>, excerpt: Excerpt) -> Result<Judged> {
    let json = serde_json::to_value(report.report(compared)).context("cannot write the report as JSON")?;
    let report = serde_json::from_value(masked_json(json)).context("cannot write the report as JSON")?;
    Ok(Judged { report, excerpt })
}

/// The report for people: what is broken with its evidence, then what could not be found out, then the numbers.
fn text(report: &CheckReport, compared: Option<&Compared<'_>>, all: bool, paint: Paint) -> String {
    let mut text = String::new();
    let is_known = |result: &CheckResult| {
        compared.is_some_and(|it| it.known.iter().any(|known| std::ptr::eq(*known, result)))
    };
    let unknown: Vec<&CheckResult> = report.broken().filter(|result| !is_known(result)).collect();
    for (at, result) in unknown.iter().enumerate() {
        if !unknown.iter().take(at).any(|earlier| is_same(earlier, result)) {
            let same = unknown.iter().filter(|other| is_same(other, result));
            text +=
                &violation_text(result, &same.map(|same| same.revision.as_str()).collect::<Vec<_>>(), paint);
        }
    }
    for result in &report.results {
        let shown = match &result.outcome {
            Outcome::Broken(_) => false,
            Outcome::NotVerified(_) => true,
            Outcome::Kept | Outcome::Skipped(_) => all,
        };
        if shown {
            let revision = result.revision.as_str();
            text +=
                &format!("{} {}\n", place(result, &[revision], paint), one_line(&result.outcome.to_string()));
        }
    }
    for (revision, why) in &report.unsupported {
        text += &format!("{} is not checked: {}\n", revision.as_str(), one_line(why));
    }
    for entry in compared.into_iter().flat_map(|compared| &compared.stale) {
        text += &format!(
            "{} the server keeps {entry} by now: take it out of the baseline\n",
            paint.wrong("stale")
        );
    }
    text + &summary(report, compared)
}

/// Whether two findings are the same in different revisions.
fn is_same(one: &CheckResult, other: &CheckResult) -> bool {
    let text = |it: &CheckResult| it.violation().map(|it| (it.what.clone(), it.expected.clone()));
    (one.rule.id, one.probe) == (other.rule.id, other.probe) && text(one) == text(other)
}

fn place(result: &CheckResult, revisions: &[&str], paint: Paint) -> String {
    let place = format!("{} {}", result.probe, revisions.join(" "));
    format!("{} {}", paint.strong(result.rule.id), paint.faint(&place))
}

fn violation_text(result: &CheckResult, revisions: &[&str], paint: Paint) -> String {
    let Some(violation) = result.violation() else { return String::new() };
    let level = result.rule.level.to_string();
    let level = if result.breaks_must() { paint.wrong(&level) } else { paint.careful(&level) };
    let mut text = format!("{} {level}\n", place(result, revisions, paint));
    let lines = [
        ("server", &*violation.what),
        ("change", &*violation.expected),
        ("rule", result.rule.text),
        ("see", &result.rule.link()),
        ("sent", &violation.exchange.request),
        ("answer", &violation.exchange.answer),
        ("repeat", &violation.exchange.repeat),
    ];
    for (label, line) in lines.into_iter().filter(|(_, line)| !line.is_empty()) {
        let line = indent(&multi_line(line.trim_end()), "           ");
        // It is only for people; writing to a text does not fail.
        let _ = writeln!(text, "  {:<8} {}", paint.faint(&format!("{label:<8}")), line.trim_start());
    }
    text + "\n"
}

/// What was found out about the requirements of each revision.
fn scores(report: &Report) -> String {
    let scores = report.checked.iter().flat_map(|checked| &checked.scores);
    scores.map(|(revision, score)| format!("{revision}: {score}\n")).collect()
}

fn summary(report: &CheckReport, compared: Option<&Compared<'_>>) -> String {
    let server = if report.server.is_empty() { &report.target } else { &report.server };
    let revisions: Vec<&str> = report.revisions.iter().map(Revision::as_str).collect();
    let musts = report.broken_musts().count();
    let known = compared.map(|it| format!(", {} of them known", it.known.len())).unwrap_or_default();
    let kept = report.count(|it| *it == Outcome::Kept);
    let skipped = report.count(|it| matches!(it, Outcome::Skipped(_)));
    let unverified = report.count(|it| matches!(it, Outcome::NotVerified(_)));
    let (broken, transport) = (report.broken().count(), report.transport);
    let mut text = format!("{} over {transport}", one_line(server));
    if !revisions.is_empty() {
        text += &format!(", {}", revisions.join(" "));
    }
    text += &format!(
        "\n{kept} kept, {broken} broken ({musts} by must{known}), {skipped} skipped, {unverified} not verified\n"
    );
    if !report.is_verified() {
        text += "nothing could be verified\n";
        if report.wants_authorization {
            text += "a token is sent with --header \"Authorization: Bearer TOKEN\"\n";
        } else if report.transport == "http" {
            text += "a server over HTTP+SSE or WebSocket is checked with --transport sse or websocket\n";
        }
    }
    text
}

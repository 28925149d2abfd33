//! `refmcp report`: which rules the parties of recorded conversations kept and broke.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use anyhow::{Context, Result};
use refmcp_audit::report::{
    self, Conclusion, Difference, Excerpt, Report, Reporter, Tone, difference_markdown, difference_text,
};
use refmcp_audit::verdict::Role;

use crate::args::{ExitReason, ReportFormat, ReportOptions, SavedReport, UsageError};
use crate::store::private;
use crate::ui::output::{print, print_json};
use crate::ui::render::View;
use crate::ui::style::Paint;

/// Longer reports in JSON are not read.
const MAX_REPORT: u64 = 256 << 20;

/// How a report in JSON begins: recordings have other members.
const REPORT_MEMBER: &[u8] = b"\"refmcpReport\"";

pub(crate) fn run(options: &ReportOptions) -> Result<ExitReason> {
    let paint = View::for_stdout(false).paint;
    let files: Vec<&Path> = options.files.iter().map(|file| &**file).collect();
    let judged = judge(&files, options.party)?;
    let Some(earlier) = &options.diff else {
        write(&options.save, options.output, paint, |format, paint| judged.rendered(format, paint))?;
        return Ok(match judged.report.conclusion {
            Conclusion::Broken => ExitReason::RulesBroken,
            Conclusion::Kept => ExitReason::Done,
            Conclusion::NothingJudged => ExitReason::NothingJudged,
        });
    };
    let earlier = judge(&[earlier], options.party)?;
    let difference = Difference::between(&earlier.report, &judged.report);
    write_difference(&difference, &options.save, options.output, paint)
}

/// Writes what differs, and says how the command ends.
pub(crate) fn write_difference(
    difference: &Difference,
    saved: &[SavedReport],
    output: ReportFormat,
    paint: Paint,
) -> Result<ExitReason> {
    write(saved, output, paint, |format, paint| rendered_difference(difference, format, paint))?;
    Ok(match difference.conclusion {
        Conclusion::NothingJudged => ExitReason::NothingJudged,
        _ if difference.has_new_broken_musts() => ExitReason::RulesBroken,
        _ => ExitReason::Done,
    })
}

/// A report, and the events that a page shows beside it.
pub(crate) struct Judged {
    pub(crate) report: Report,
    pub(crate) excerpt: Excerpt,
}

/// Judges recordings together, or reads a report.
fn judge(files: &[&Path], party: Option<Role>) -> Result<Judged> {
    let mut reporter = Reporter::default();
    for file in files {
        let name = file.display().to_string();
        let mut input = open(file).with_context(|| format!("cannot read {name}"))?;
        if !is_report(&mut input).with_context(|| format!("cannot read {name}"))? {
            reporter.read(&name, input).with_context(|| name.clone())?;
            continue;
        }
        if files.len() > 1 {
            let what = format!("{name} is a report: recordings are judged together, and reports are not");
            return Err(UsageError::new(what).into());
        }
        if party.is_some() {
            let what = format!("{name} is a report: --party is for recordings");
            return Err(UsageError::new(what).into());
        }
        return Ok(Judged { report: read(&name, input)?, excerpt: Excerpt::default() });
    }
    let (report, excerpt) = reporter.finish(party);
    Ok(Judged { report, excerpt })
}

/// Reads a report in JSON.
pub(crate) fn read_report(file: &Path) -> Result<Report> {
    let name = file.display().to_string();
    read(&name, open(file).with_context(|| format!("cannot read {name}"))?)
}

fn read(name: &str, input: impl Read) -> Result<Report> {
    let mut json = String::new();
    input.take(MAX_REPORT).read_to_string(&mut json).with_context(|| format!("cannot read {name}"))?;
    Report::from_json(&json).with_context(|| name.to_owned())
}

/// A file, or standard input for `-`.
pub(crate) fn open(file: &Path) -> io::Result<Box<dyn BufRead>> {
    if file == Path::new("-") {
        return Ok(Box::new(io::stdin().lock()));
    }
    Ok(Box::new(BufReader::new(File::open(file)?)))
}

/// Whether this is a report in JSON, by its first member.
fn is_report(input: &mut impl BufRead) -> io::Result<bool> {
    let start = input.fill_buf()?.trim_ascii_start();
    let member = start.strip_prefix(b"{").map(<[u8]>::trim_ascii_start);
    Ok(member.is_some_and(|member| member.starts_with(REPORT_MEMBER)))
}

impl Judged {
    pub(crate) fn rendered(&self, format: ReportFormat, paint: Paint) -> Result<String> {
        let Self { report, excerpt } = self;
        Ok(match format {
            ReportFormat::Text => report::text(report, |tone, text| painted(paint, tone, text)),
            ReportFormat::Json => report.to_json()?,
            ReportFormat::Jsonl => serde_json::to_string(report)? + "\n",
            ReportFormat::Junit => report::junit(report),
            ReportFormat::Sarif => report::sarif(report)?,
            ReportFormat::Html => report::html(report, excerpt),
            ReportFormat::Markdown => report::markdown(report),
        })
    }
}

fn rendered_difference(difference: &Difference, format: ReportFormat, paint: Paint) -> Result<String> {
    Ok(match format {
        ReportFormat::Json => serde_json::to_string_pretty(difference)? + "\n",
        ReportFormat::Jsonl => serde_json::to_string(difference)? + "\n",
        ReportFormat::Markdown => difference_markdown(difference),
        // Other formats have been refused with the arguments.
        _ => difference_text(difference, |tone, text| painted(paint, tone, text)),
    })
}

pub(crate) fn painted(paint: Paint, tone: Tone, text: &str) -> String {
    match tone {
        Tone::Strong => paint.strong(text),
        Tone::Faint => paint.faint(text),
        Tone::Wrong => paint.wrong(text),
        Tone::Careful => paint.careful(text),
        Tone::Good => paint.added(text),
    }
}

/// Writes the files first, so that a reader of standard output finds them.
pub(crate) fn write(
    saved: &[SavedReport],
    output: ReportFormat,
    paint: Paint,
    render: impl Fn(ReportFormat, Paint) -> Result<String>,
) -> Result<()> {
    for saved in saved {
        save(saved, &render)?;
    }
    let text = render(output, paint)?;
    let printed = if output.is_json() { print_json(&text) } else { print(text.as_bytes()) };
    printed.context("cannot write to standard output")
}

/// Writes a report to a file that only the user can read.
pub(crate) fn save(file: &SavedReport, render: impl Fn(ReportFormat, Paint) -> Result<String>) -> Result<()> {
    let text = render(file.format, Paint::PLAIN)?;
    let mut create = OpenOptions::new();
    private(create.write(true).create(true).truncate(true))
        .open(&file.path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write the report to {}", file.path.display()))
}

//! `refmcp replay`: a recording used again, as a client, as a server, or beside another one.
//!
//! | module | what it is |
//! |---|---|
//! | `client` | what the recorded client sent, sent to a server |
//! | `serve` | the recorded server, for clients over every transport |

mod client;
mod serve;

use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use refmcp_audit::replay::{Comparison, Conversations, RecordedConversation, comparison_text, conversations};
use refmcp_audit::verdict::Role;
use refmcp_client::observer::Side;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::args::{ExitError, ExitReason, ReplayOptions, ReplayUse, ReportFormat, SharedOptions, UsageError};
use crate::command::client::exit_error;
use crate::command::report::{open, painted};
use crate::ui::output::{print, print_json};
use crate::ui::redact::{masked, masked_json};
use crate::ui::style::Paint;

pub(crate) async fn run(
    file: &Path,
    using: &ReplayUse,
    options: &ReplayOptions,
    shared: &SharedOptions,
    stopped: &CancellationToken,
) -> Result<ExitReason> {
    let stdin = Path::new("-");
    let reads_twice = matches!(using, ReplayUse::Diff(other) if file == stdin && other == stdin);
    // Standard input is the client's with --stdio.
    if reads_twice || file == stdin && *using == ReplayUse::Stdio {
        return Err(UsageError::new("standard input can be read once").into());
    }
    let recorded = read(file, options.side)?;
    match using {
        ReplayUse::Client(target) => {
            if !recorded.iter().any(|it| it.client_parts().next().is_some()) {
                return Err(nothing(file, "has no message of a client to send"));
            }
            let live = tokio::select! {
                live = client::run(&recorded, target, shared) => live?,
                () = stopped.cancelled() => return Err(exit_error::interrupted()),
            };
            let comparison = Comparison::between(&recorded, &live, &options.ignore);
            show(&comparison, &file.display().to_string(), &target.to_string(), options, shared)
        }
        ReplayUse::Diff(other) => {
            let after = read(other, options.side)?;
            let comparison = Comparison::between(&recorded, &after, &options.ignore);
            show(&comparison, &file.display().to_string(), &other.display().to_string(), options, shared)
        }
        ReplayUse::Stdio | ReplayUse::Serve(..) => {
            let mock = serve::mock(file, &recorded)?;
            match using {
                ReplayUse::Serve(host, port) => {
                    serve::listen(mock, (host, *port), options, &shared.record, stopped).await?;
                }
                _ => serve::stdio(&mock, &shared.record, stopped).await?,
            }
            Ok(ExitReason::Done)
        }
    }
}

/// Reads a recording, or what one side recorded of it. One in which no message passed is an error.
fn read(file: &Path, side: Option<Side>) -> Result<Conversations> {
    let name = file.display();
    let input = open(file).with_context(|| format!("cannot read {name}"))?;
    let mut recorded = conversations(input).with_context(|| name.to_string())?;
    recorded.retain(|conversation| side.is_none_or(|side| conversation.side == side));
    if recorded.iter().all(|conversation: &RecordedConversation| conversation.parts.is_empty()) {
        return Err(nothing(file, "has no messages of a connection whose line `opened` it has"));
    }
    Ok(recorded)
}

fn nothing(file: &Path, what: &str) -> anyhow::Error {
    ExitError::new(ExitReason::NothingJudged, format!("{} {what}", file.display())).into()
}

/// Writes what differs.
fn show(
    comparison: &Comparison,
    before: &str,
    after: &str,
    options: &ReplayOptions,
    shared: &SharedOptions,
) -> Result<ExitReason> {
    let written = if options.output.is_json() {
        let conclusion = if comparison.is_same() { "same" } else { "different" };
        let side = |name: &str, messages: usize| json!({ "name": name, "messages": messages });
        let document = masked_json(json!({
            "conclusion": conclusion,
            "before": side(before, comparison.before),
            "after": side(after, comparison.after),
            "sameRequests": comparison.same,
            "differences": comparison.differences,
        }));
        let text = match options.output {
            ReportFormat::Json => serde_json::to_string_pretty(&document)?,
            _ => document.to_string(),
        };
        print_json(&(text + "\n"))
    } else {
        let paint = Paint::for_stream(&io::stdout(), shared.no_color);
        let text = comparison_text(comparison, before, after, |tone, text| painted(paint, tone, text));
        print(masked(&text).as_bytes())
    };
    written.context("cannot write to standard output")?;
    Ok(if comparison.is_same() { ExitReason::Done } else { ExitReason::Different })
}

/// Whether a server of the recording said anything.
fn has_answers(recorded: &[RecordedConversation]) -> bool {
    recorded.iter().flat_map(|it| &it.parts).any(|part| part.from == Role::Server)
}

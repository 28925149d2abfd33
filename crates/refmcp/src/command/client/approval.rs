//! Whether a tool may be called: by what was decided before, or by whoever is there.

use anyhow::Result;
use refmcp_client::model::{JsonObject, Tool};

use super::session::Session;
use crate::args::{ExitError, ExitReason, UsageError, join_words};
use crate::arguments::{ArgumentInput, ValueSource, parse_arguments};
use crate::store::StateFolder;
use crate::store::trust::{Trust, Verdict};
use crate::ui::ask::{Approval, approve, is_asked_about};

/// The arguments that somebody has agreed to.
pub(crate) async fn approved(session: &Session, tool: &Tool, arguments: JsonObject) -> Result<JsonObject> {
    let trust = StateFolder::from_env().and_then(|folder| Trust::load(&folder)).unwrap_or_else(|fault| {
        tracing::warn!("nothing is known of what was decided before: {fault:#}");
        Trust::default()
    });
    match trust.tool(session.name.key(), &tool.name) {
        Verdict::Disabled => {
            let options = format!("--tool {}", join_words(std::slice::from_ref(&tool.name)));
            let how = session.name.command_line("refmcp trust revoke", &options);
            return Err(
                UsageError::new(format!("{} was disabled here; to use it again: {how}", tool.name)).into()
            );
        }
        Verdict::Allowed => return Ok(arguments),
        Verdict::Unknown | Verdict::Changed => {}
    }
    if !is_asked_about(tool, session.shared.yes) || !session.person.is_there() {
        return Ok(arguments);
    }
    let (server, tool) = (session.name.to_string(), tool.clone());
    let answer = session.person.ask(move |terminal| {
        let check = |arguments: &JsonObject| fits(&tool, arguments);
        approve(terminal, &server, &tool, arguments, &check)
    });
    match answer.await {
        Some(Ok(Approval::Run(arguments))) => Ok(arguments),
        Some(Err(fault)) => Err(fault.into()),
        _ => Err(ExitError::new(ExitReason::Failed, "it was not called").into()),
    }
}

/// Whether arguments that were changed by hand still fit.
fn fits(tool: &Tool, arguments: &JsonObject) -> Result<(), String> {
    let words = ArgumentInput {
        words: Vec::new(),
        json: Some(serde_json::Value::Object(arguments.clone()).to_string()),
    };
    let parsed = parse_arguments(&words, &tool.input_schema, &mut ValueSource::new(&mut std::io::empty()));
    parsed.finish(&tool.input_schema).map(drop).map_err(|errors| errors.to_string())
}

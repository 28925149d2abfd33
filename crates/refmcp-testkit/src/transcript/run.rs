//! Holding a conversation.

use std::fmt::Write;

use refmcp_proto::revision::Revision;
use serde_json::{Value, json};

use super::parse::{Action, Conversation, File, Step};
use super::placeholders::Context;
use super::{Endpoint, Settings, Start, diff};
use crate::messages::initialize_params;

/// One conversation under one revision, as it went.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) conversation: usize,
    pub(super) revision: Revision,
    /// What each step brought; shorter than the conversation when it could not go on.
    pub(super) steps: Vec<Brought>,
    /// Why it could not begin or go on.
    broken: Option<String>,
}

/// What one step brought.
#[derive(Debug, Default)]
pub(super) struct Brought {
    /// The messages, as lines would have them.
    pub(super) messages: Vec<Value>,
    /// How they differ from what was expected.
    pub(super) difference: Option<String>,
    /// What else was not as it should be, and no update can mend.
    wrong: Vec<String>,
    /// Whether the step was done at all under this revision.
    pub(super) done: bool,
}

pub(super) fn run(file: &File, server_info: &Value, start: Start<'_>) -> Vec<Run> {
    let mut runs = Vec::new();
    for (number, conversation) in file.conversations.iter().enumerate() {
        for revision in conversation.revisions.revisions() {
            let mut run = Run { conversation: number, revision, steps: Vec::new(), broken: None };
            let context = Context {
                revision,
                capabilities: conversation.capabilities.clone(),
                server_info: server_info.clone(),
                kept: Default::default(),
            };
            if let Err(why) = hold(conversation, context, &conversation.settings, start, &mut run) {
                run.broken = Some(why);
            }
            runs.push(run);
        }
    }
    runs
}

fn hold(
    conversation: &Conversation,
    mut context: Context,
    settings: &Settings,
    start: Start<'_>,
    run: &mut Run,
) -> Result<(), String> {
    let among = conversation.revisions.revisions();
    let mut endpoint = start(settings, context.revision)?;
    for step in &conversation.steps {
        if !step.only.contains(context.revision) {
            run.steps.push(Brought::default());
            continue;
        }
        act(&step.action, &context, &mut *endpoint)?;
        run.steps.push(brought(step, &mut context, &mut *endpoint, &among)?);
    }
    Ok(())
}

fn act(action: &Action, context: &Context, endpoint: &mut dyn Endpoint) -> Result<(), String> {
    match action {
        Action::Open => open(context, endpoint)?,
        Action::Send(line) => endpoint.send(&context.sent(line)?),
        Action::SendExactly(text) => endpoint.send(&context.fill_text(text)),
        Action::Wait(time) => endpoint.advance(*time),
        Action::Do(order) => endpoint.act(&context.fill_text(order))?,
    }
    Ok(())
}

/// The handshake, where the revision has one.
fn open(context: &Context, endpoint: &mut dyn Endpoint) -> Result<(), String> {
    if context.is_stateless() {
        return Ok(());
    }
    let params = initialize_params("transcript", context.revision.as_str(), context.capabilities.clone());
    let initialize = json!({ "jsonrpc": "2.0", "id": "open", "method": "initialize", "params": params });
    endpoint.send(&initialize.to_string());
    let answers = messages(endpoint)?;
    let agreed =
        answers.first().and_then(|answer| answer.pointer("/result/protocolVersion")).and_then(Value::as_str);
    if answers.len() != 1 || agreed != Some(context.revision.as_str()) {
        return Err(format!("the handshake failed: {}", Value::from(answers)));
    }
    endpoint.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string());
    Ok(())
}

fn brought(
    step: &Step,
    context: &mut Context,
    endpoint: &mut dyn Endpoint,
    among: &[Revision],
) -> Result<Brought, String> {
    let actual = messages(endpoint)?;
    let holding = step.expected.iter().filter(|expected| expected.only.contains(context.revision));
    let expected: Vec<&Value> = holding.filter_map(|expected| expected.message.as_ref()).collect();
    let mut same = expected.len() == actual.len();
    for (expected, actual) in expected.iter().zip(&actual) {
        same &= context.matches(expected, actual);
    }
    let difference = (!same).then(|| {
        let expected = expected.iter().map(|expected| context.expand((*expected).clone()));
        diff::of_messages(&expected.collect::<Vec<_>>(), &actual)
    });
    let general = actual
        .iter()
        .enumerate()
        .map(|(at, actual)| context.generalize(expected.get(at).copied(), actual, among));
    let messages = general.collect();
    let mut wrong = endpoint.faults();
    let events = endpoint.events();
    for (only, event) in &step.events {
        if only.contains(context.revision) && !events.contains(event) {
            wrong.push(format!("there was no \"{event}\", only {events:?}"));
        }
    }
    Ok(Brought { messages, difference, wrong, done: true })
}

/// What has come, without the member that is the same in all of it.
fn messages(endpoint: &mut dyn Endpoint) -> Result<Vec<Value>, String> {
    let mut messages = Vec::new();
    for text in endpoint.receive() {
        if text.contains('\n') {
            return Err(format!("a message with a line break: {text:?}"));
        }
        let mut message = serde_json::from_str(&text).map_err(|error| format!("{error} in {text:?}"))?;
        match &mut message {
            Value::Array(items) => items.iter_mut().for_each(drop_version),
            single => drop_version(single),
        }
        messages.push(message);
    }
    Ok(messages)
}

fn drop_version(message: &mut Value) {
    if let Some(members) = message.as_object_mut()
        && members.get("jsonrpc") == Some(&json!("2.0"))
    {
        members.remove("jsonrpc");
    }
}

impl Run {
    /// What went wrong, for a person.
    pub(super) fn problem(&self, file: &File, name: &str) -> Option<String> {
        self.told(file, name, |brought| brought.difference.iter().chain(&brought.wrong).cloned().collect())
    }

    /// What went wrong and is no matter of what the transcript expects.
    pub(super) fn beyond_update(&self, file: &File, name: &str) -> Option<String> {
        self.told(file, name, |brought| brought.wrong.clone())
    }

    fn told(&self, file: &File, name: &str, wrong: impl Fn(&Brought) -> Vec<String>) -> Option<String> {
        let conversation = file.conversations.get(self.conversation)?;
        let mut text = String::new();
        let mut tell = |step: Option<&Step>, what: &str| {
            let line = step.map_or(0, |step| step.lines.start);
            let shown = file.lines.get(line).map_or("", String::as_str);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{name}:{}: \"{}\" under {}\n  {shown}\n{what}",
                line + 1,
                conversation.title,
                self.revision
            );
        };
        for (step, brought) in conversation.steps.iter().zip(&self.steps) {
            wrong(brought).iter().for_each(|what| tell(Some(step), what));
        }
        if let Some(why) = &self.broken {
            tell(conversation.steps.get(self.steps.len()), why);
        }
        (!text.is_empty()).then_some(text)
    }
}

//! Tools that ask the client: one thing, several, in rounds, without end.

use std::collections::BTreeMap;

use refmcp_proto::engine::{Dispatch, HandlerOutcome, InputOutcome, KeyedInputRequest};
use refmcp_proto::model::{
    BooleanSchema, Choices, CreateMessageParams, ElicitFormParams, ElicitUrlParams, FormSchema, InputRequest,
    LogLevel, MultiChoiceSchema, NumberSchema, SamplingMessage, SingleChoiceSchema, StringSchema,
    TaskMetadata, Tool,
};
use serde_json::{Value, json};

use super::tools::text;
use super::{Step, ask, log, progress};

/// What calling a tool that asks does; `None` when there is no such tool.
pub(super) fn call(name: &str, call: &Dispatch) -> Option<Vec<Step>> {
    let fixed = |questions: Vec<KeyedInputRequest>| Some(vec![unless_answered(call, questions)]);
    match name {
        "ask" => fixed(vec![name_question("name")]),
        "ask_many" => fixed(vec![
            name_question("name"),
            question("opinion", sampling()),
            question("roots", InputRequest::Roots),
        ]),
        "ask_model" => fixed(vec![question("opinion", sampling())]),
        "ask_model_with_tools" => {
            let params =
                CreateMessageParams { tools: Some(vec![Tool::new("t", "A tool.")]), ..plain_sampling() };
            fixed(vec![question("opinion", params)])
        }
        "ask_roots" => fixed(vec![question("roots", InputRequest::Roots)]),
        "ask_url" => {
            fixed(vec![question("visit", ElicitUrlParams::new("Please pay.", "https://example.com/pay"))])
        }
        "ask_form" => {
            fixed(vec![question("form", ElicitFormParams::new("Everything?", every_plain_field()))])
        }
        "ask_several_of" => {
            let form = FormSchema::new().optional("colours", MultiChoiceSchema::new(colours()));
            fixed(vec![question("form", ElicitFormParams::new("Which?", form))])
        }
        "ask_by_task" => {
            let mut question = name_question("name");
            question.request.set_task(&TaskMetadata::default().ttl(60_000_u64));
            fixed(vec![question, self::question("opinion", sampling_by_task())])
        }
        "ask_twice" => Some(vec![ask_twice(call)]),
        "ask_again" => Some(vec![ask_again(call)]),
        "ask_forever" => Some(vec![ask(vec![name_question(&format!("round {}", call.round))])]),
        "ask_once" => Some(vec![ask_once(call)]),
        "ask_with_notes" => Some(vec![
            progress(1.0, "before the question"),
            log(LogLevel::Info, "before the question"),
            unless_answered(call, vec![name_question("name")]),
        ])
        .map(|mut steps| {
            if call.round > 0 {
                let after = [progress(2.0, "after it"), log(LogLevel::Info, "after it")];
                steps.splice(2..2, after);
            }
            steps
        }),
        _ => None,
    }
}

/// The questions that have no answer yet; once all have, a result that shows the answers.
pub(super) fn open_questions(
    call: &Dispatch,
    questions: Vec<KeyedInputRequest>,
) -> Result<String, Vec<KeyedInputRequest>> {
    let open: Vec<KeyedInputRequest> =
        questions.into_iter().filter(|question| !call.replay.responses.contains_key(&question.key)).collect();
    if open.is_empty() { Ok(shown(&call.replay.responses)) } else { Err(open) }
}

pub(super) fn name_question(key: &str) -> KeyedInputRequest {
    let form = FormSchema::new().required("name", StringSchema::new());
    question(key, ElicitFormParams::new(format!("Your name ({key})?"), form))
}

fn unless_answered(call: &Dispatch, questions: Vec<KeyedInputRequest>) -> Step {
    match open_questions(call, questions) {
        Ok(answers) => text(&answers),
        Err(open) => ask(open),
    }
}

fn ask_twice(call: &Dispatch) -> Step {
    match open_questions(call, vec![name_question("first")]) {
        Ok(_) => unless_answered(call, vec![name_question("second")]),
        Err(open) => ask(open),
    }
}

/// Asks under the same key until the answer is `accept`.
fn ask_again(call: &Dispatch) -> Step {
    match call.replay.responses.get("name") {
        Some(InputOutcome::Response(answer)) if answer["action"] == "accept" => {
            text(&shown(&call.replay.responses))
        }
        _ => ask(vec![name_question("name")]),
    }
}

/// Does something costly before it asks, and only once.
fn ask_once(call: &Dispatch) -> Step {
    let made = json!(format!("made in round {}", call.round));
    let made = call.replay.once.get("made").cloned().unwrap_or(made);
    match open_questions(call, vec![name_question("first")])
        .and_then(|_| open_questions(call, vec![name_question("second")]))
    {
        Ok(answers) => text(&format!("{made} {answers}")),
        Err(questions) => {
            let once = BTreeMap::from([("made".to_owned(), made)]);
            Step::End(HandlerOutcome::InputRequired { requests: questions, used: None, once })
        }
    }
}

fn shown(answers: &BTreeMap<String, InputOutcome>) -> String {
    let shown = answers.iter().map(|(key, answer)| match answer {
        InputOutcome::Response(value) => format!("{key}: {}", short(value)),
        InputOutcome::Error(error) => format!("{key}: refused, {error}"),
        InputOutcome::TimedOut => format!("{key}: timed out"),
    });
    shown.collect::<Vec<_>>().join("; ")
}

/// The part of an answer that differs from others.
fn short(value: &Value) -> String {
    let parts = ["/content/name", "/content/text", "/roots/0/uri", "/action"];
    parts.iter().find_map(|part| value.pointer(part)).unwrap_or(value).to_string()
}

fn question(key: &str, request: impl Into<InputRequest>) -> KeyedInputRequest {
    KeyedInputRequest { key: key.to_owned(), request: request.into() }
}

fn plain_sampling() -> CreateMessageParams {
    CreateMessageParams::new(vec![SamplingMessage::user("What do you think?")], 10)
}

fn sampling_by_task() -> InputRequest {
    let mut request = sampling();
    request.set_task(&TaskMetadata::default());
    request
}

fn sampling() -> InputRequest {
    plain_sampling().into()
}

fn colours() -> Choices {
    Choices::titled([("r", "Red"), ("g", "Green")])
}

/// A form with every field that each revision with forms has, and with what only the newer ones know of them.
fn every_plain_field() -> FormSchema {
    FormSchema {
        schema: Some("https://json-schema.org/draft/2020-12/schema".to_owned()),
        ..FormSchema::new()
            .required("name", StringSchema::new().with_default("Ann"))
            .optional("age", NumberSchema::integer().minimum(0).with_default(30))
            .optional("agree", BooleanSchema::new().with_default(true))
            .optional("colour", SingleChoiceSchema::new(colours()).with_default("r"))
    }
}

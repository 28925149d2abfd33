//! Tools whose calls become tasks.

use std::time::Duration;

use refmcp_server::model::{BooleanSchema, FormSchema, StringSchema, TaskSupport};
use refmcp_server::{Call, CallError, ElicitOutcome, NoArguments, RpcError, Tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::sleep;

/// How long the work of a task takes that does nothing in particular.
const WORK: Duration = Duration::from_millis(500);
/// The code of the error of `protocol_error_job`.
const ERROR_CODE: i64 = -32000;
/// Seconds that `slow_compute` takes at the most.
const MAX_SECONDS: f64 = 600.0;

pub(super) fn tools() -> Vec<Tool> {
    let tools = [
        Tool::new("greet", "Greets at once; never a task", greet).title("Task: none").inline(),
        Tool::new("slow_compute", "Takes some seconds", slow_compute)
            .title("Task: slow")
            .task(TaskSupport::Optional),
        Tool::new("failing_job", "Runs as a task only, and ends with a result that tells of an error", fail)
            .title("Task: failing")
            .task(TaskSupport::Required),
        Tool::new("protocol_error_job", "Ends with a JSON-RPC error", protocol_error)
            .title("Task: protocol error")
            .task(TaskSupport::Optional),
        Tool::new("confirm_delete", "Asks before it deletes; there is nothing that it could delete", confirm)
            .title("Task: confirmation")
            .task(TaskSupport::Optional),
        Tool::new("multi_input", "Asks two things at once", multi_input)
            .title("Task: several inputs")
            .task(TaskSupport::Optional),
        Tool::new("test_tool_with_task", "Asks for a name, and greets by a task that begins then", with_task)
            .title("Task: after input")
            .task(TaskSupport::Required)
            .starts_task_itself(),
    ];
    tools.into_iter().map(|tool| tool.read_only().annotate(|hints| hints.open_world(false))).collect()
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Name {
    /// Whom to greet
    #[serde(default = "stranger")]
    name: String,
}

fn stranger() -> String {
    "stranger".to_owned()
}

async fn greet(_: Call, Name { name }: Name) -> Result<String, CallError> {
    Ok(format!("Hello, {name}!"))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Compute {
    /// How long it takes, in seconds
    #[serde(default)]
    #[schemars(range(min = 0.0, max = MAX_SECONDS))]
    seconds: f64,
    /// What the result is called
    #[serde(default)]
    label: String,
}

async fn slow_compute(_: Call, Compute { seconds, label }: Compute) -> Result<String, CallError> {
    // Its schema has the same limits.
    sleep(Duration::from_secs_f64(seconds.clamp(0.0, MAX_SECONDS))).await;
    Ok(format!("{label} computed in {seconds} s"))
}

async fn fail(_: Call, _: NoArguments) -> Result<String, CallError> {
    sleep(WORK).await;
    Err(CallError::new("the job failed on purpose"))
}

async fn protocol_error(_: Call, _: NoArguments) -> Result<String, CallError> {
    sleep(WORK).await;
    Err(RpcError::new(ERROR_CODE, "the job ends with an error on purpose").into())
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct File {
    /// Which file it is about
    #[serde(default)]
    filename: String,
}

async fn confirm(call: Call, File { filename }: File) -> Result<String, CallError> {
    let form =
        FormSchema::new().required("confirm", BooleanSchema::new().description("Whether to delete it"));
    let answer = call.elicit("confirm", format!("Delete {filename}?"), form)?;
    Ok(match answer {
        ElicitOutcome::Accepted(values) if values.get("confirm") == Some(&Value::Bool(true)) => {
            format!("{filename} would be deleted now")
        }
        _ => format!("{filename} stays"),
    })
}

async fn multi_input(call: Call, _: NoArguments) -> Result<String, CallError> {
    // The official suite fills in both fields in either response.
    let name =
        FormSchema::new().required("name", StringSchema::new()).optional("confirm", BooleanSchema::new());
    let sure =
        FormSchema::new().required("confirm", BooleanSchema::new()).optional("name", StringSchema::new());
    let (name, sure) =
        (call.elicit("name", "What is your name?", name), call.elicit("confirm", "Is that your name?", sure));
    let (name, sure) = (accepted(name?, "name"), accepted(sure?, "confirm"));
    let name = name.as_ref().and_then(Value::as_str).filter(|_| sure == Some(Value::Bool(true)));
    Ok(format!("Hello, {}!", name.unwrap_or("stranger")))
}

async fn with_task(call: Call, _: NoArguments) -> Result<String, CallError> {
    let name = ask(&call, "user_name", "What is your name?")?;
    call.start_task()?;
    sleep(WORK).await;
    Ok(format!("Hello, {name}!"))
}

/// The value of a field of a form that was accepted.
fn accepted(outcome: ElicitOutcome, field: &str) -> Option<Value> {
    match outcome {
        ElicitOutcome::Accepted(mut values) => values.remove(field),
        ElicitOutcome::Declined | ElicitOutcome::Cancelled => None,
    }
}

/// Asks for a text, under the key of its field: `name` of `user_name` too.
fn ask(call: &Call, key: &str, question: &str) -> Result<String, CallError> {
    let field = key.strip_prefix("user_").unwrap_or(key);
    let form = FormSchema::new().required(field, StringSchema::new());
    Ok(match call.elicit(key, question, form)? {
        ElicitOutcome::Accepted(values) => {
            values.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
        }
        ElicitOutcome::Declined | ElicitOutcome::Cancelled => stranger(),
    })
}

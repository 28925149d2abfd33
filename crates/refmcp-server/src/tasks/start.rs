//! Whether the call of a tool becomes a task, by the kind of tasks that its client has, and how it does.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::OsRng;
use chacha20poly1305::aead::rand_core::RngCore;
use refmcp_proto::engine::{CallFailure, CallId, DetachedCall, HandlerOutcome, TaskState, TaskTimes};
use refmcp_proto::jsonrpc::{RpcError, code, read_member};
use refmcp_proto::model::{
    JsonObject, ServerCapabilities, ServerResult, TASKS_EXTENSION, TaskMetadata, TaskRequests, TaskSupport,
    TaskToolRequests, TasksCapability,
};
use refmcp_proto::revision::Tasks;
use serde::Deserialize;
use serde_json::Value;

use super::running::run;
use super::store::{TaskStore, unavailable};
use crate::backplane::CreateTaskOutcome;
use crate::call::Call;
use crate::catalog::Tool;
use crate::error::CallError;
use crate::replica_lease::ReplicaLease;
use crate::server::Server;

/// Random bytes of an id.
const ID: usize = 18;

/// How the call of a tool begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TaskStart {
    /// Its response has the result, or its handler decides.
    None,
    /// As a task, whose requestor wants it kept for so long.
    AtOnce(Option<Duration>),
}

/// Declares tasks of both kinds. Those of the protocol itself are listed, since a server has one client; where it has several
/// that cannot be told apart, [`undeclare_list`] takes that back.
pub(crate) fn declare(capabilities: &mut ServerCapabilities) {
    let empty = || Some(JsonObject::new());
    let tools = Some(TaskToolRequests { call: empty(), ..Default::default() });
    let requests = Some(TaskRequests { tools, ..Default::default() });
    capabilities.tasks =
        Some(TasksCapability { list: empty(), cancel: empty(), requests, ..Default::default() });
    let extensions = capabilities.extensions.get_or_insert_default();
    extensions.insert(TASKS_EXTENSION.to_owned(), Value::Object(JsonObject::new()));
}

/// Takes back that tasks are listed.
pub fn undeclare_list(capabilities: &mut ServerCapabilities) {
    if let Some(tasks) = &mut capabilities.tasks {
        tasks.list = None;
    }
}

/// Whether the server has declared tasks.
fn is_declared(server: &Server) -> bool {
    server.config().capabilities.tasks.is_some()
}

/// Decides how this call of a tool begins.
pub(crate) fn decide(call: &Call, tool: &Tool) -> Result<TaskStart, CallError> {
    if call.id() == CallId::DETACHED {
        return Ok(TaskStart::None);
    }
    let support = tool.task_support();
    match call.peer().rules().tasks {
        _ if !is_declared(call.server()) => Ok(TaskStart::None),
        Tasks::Unknown => Ok(TaskStart::None),
        Tasks::Experimental => {
            let requested = requested(call)?;
            let name = &tool.definition.name;
            let refuse = |what: String| Err(RpcError::new(code::METHOD_NOT_FOUND, what).into());
            match (support, requested) {
                (TaskSupport::Required, None) => {
                    refuse(format!("{name} runs as a task only; call it with params.task"))
                }
                (TaskSupport::Required | TaskSupport::Optional, Some(task)) => {
                    Ok(TaskStart::AtOnce(task.ttl.map(Duration::from_millis)))
                }
                (_, Some(_)) => refuse(format!("{name} does not run as a task; call it without params.task")),
                (_, None) => Ok(TaskStart::None),
            }
        }
        Tasks::Extension if *support == TaskSupport::Forbidden => Ok(TaskStart::None),
        Tasks::Extension if call.peer().capabilities.takes_tasks() => {
            Ok(if tool.starts_task_itself { TaskStart::None } else { TaskStart::AtOnce(None) })
        }
        Tasks::Extension if *support == TaskSupport::Required => Err(CallFailure::undeclared_tasks().into()),
        Tasks::Extension => Ok(TaskStart::None),
    }
}

/// Whether a handler that starts its task itself would begin one now.
pub(crate) fn can_start(call: &Call) -> bool {
    call.id() != CallId::DETACHED
        && is_declared(call.server())
        && call.peer().rules().tasks == Tasks::Extension
        && call.peer().capabilities.takes_tasks()
}

/// The member `task` of the parameters. Most requests have none, and need not be read to see that.
fn requested(call: &Call) -> Result<Option<TaskMetadata>, RpcError> {
    #[derive(Deserialize)]
    struct Params {
        task: Option<TaskMetadata>,
    }
    if !call.params().contains("\"task\"") {
        return Ok(None);
    }
    let params: Params = read_member("params", call.params()).map_err(RpcError::invalid_params)?;
    Ok(params.task)
}

/// Makes a call a task that begins with these values, and runs it.
pub(crate) async fn create(
    call: &Call,
    once: BTreeMap<String, Value>,
    ttl: Option<Duration>,
) -> Result<HandlerOutcome, CallError> {
    let server = call.server();
    let options = server.settings().tasks;
    let ttl = ttl.unwrap_or(options.ttl).min(options.max_ttl);
    let detached = DetachedCall::new(call.dispatch(), once);
    let owner = call.principal().map(Arc::from);
    let times = TaskTimes { ttl: Some(ttl), poll_interval: options.poll_interval };
    let runner =
        server.value::<ReplicaLease>().announce(server).await.map_err(|error| unavailable(&error))?;
    let mut state = TaskState::new(server.now(), random_text::<ID>(), owner, &detached, times);
    state.run_at(runner);
    let created = TaskStore::of(server).create(&state, &detached, owner_key(call)).await;
    match created.map_err(|error| unavailable(&error))? {
        CreateTaskOutcome::Created => {}
        // Two ids are never alike; if they were, the call could be made again.
        CreateTaskOutcome::Taken | CreateTaskOutcome::Full => {
            let error = "no more tasks are kept now; wait until some have expired and try again";
            return Err(RpcError::internal(error).into());
        }
    }
    // What is kept of the request is what its handler can ask for, and not the buffer that it came in.
    call.connection().headers.detach();
    tracing::debug!(task = %short(state.id()), method = call.method().name(), "a task was created");
    let task = Box::new(state.task());
    tokio::spawn(run(call.connection_session().clone(), call.dispatch().context.clone(), state.id().clone()));
    Ok(HandlerOutcome::Done(Box::new(ServerResult::CreateTask(task))))
}

/// The beginning of an id, for logs: where clients cannot be told apart, the whole is a secret.
pub(super) fn short(id: &str) -> &str {
    id.get(..6).unwrap_or(id)
}

/// A text of so many random bytes.
pub(crate) fn random_text<const N: usize>() -> Arc<str> {
    let mut bytes = [0; N];
    OsRng.fill_bytes(&mut bytes);
    URL_SAFE_NO_PAD.encode(bytes).into()
}

/// Whose limits a task counts against, and in whose list it is: those of the principal, or of the address.
pub(crate) fn owner_key(call: &Call) -> Arc<str> {
    if let Some(principal) = call.principal() {
        return format!("principal {principal}").into();
    }
    match call.connection().headers.client_address() {
        Some(IpAddr::V4(address)) => format!("address {address}").into(),
        Some(IpAddr::V6(address)) => format!("network {}", network(address)).into(),
        None => "connection".into(),
    }
}

/// The network of an address, whose addresses a client may have all.
fn network(address: Ipv6Addr) -> Ipv6Addr {
    let [one, two, three, four, ..] = address.segments();
    Ipv6Addr::new(one, two, three, four, 0, 0, 0, 0)
}

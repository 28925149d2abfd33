//! `tasks/get`, `tasks/cancel`, `tasks/update`, and `tasks/result` and `tasks/list` of 2025-11-25.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::{CallFailure, HandlerOutcome, InputOutcome, KeyedInputRequest, TaskState};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{
    CustomResult, ElicitParams, EmptyResult, InputRequest, JsonObject, ListTasksResult, ResultMeta,
    ServerResult, TaskParams, UpdateTaskParams, keys,
};
use refmcp_proto::revision::Tasks;
use serde_json::{Map, Value};
use tokio::time::timeout;

use super::{PreparedCall, pagination, params};
use crate::call::Call;
use crate::error::CallError;
use crate::server_request::check_response;
use crate::tasks::{
    InputAskers, StoredTask, TaskStore, owner_key, related_task, resume_task, unavailable, unknown_task,
    withdraw_when_needless,
};

/// How long a `tasks/result` waits until it looks whether it has to ask in place of another.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Whether the tasks of a call's client are those of the extension, which each request has to declare.
fn is_extension(call: &Call) -> Result<bool, CallError> {
    let extension = call.peer().rules().tasks == Tasks::Extension;
    if extension && !call.peer().capabilities.takes_tasks() {
        return Err(CallFailure::undeclared_tasks().into());
    }
    Ok(extension)
}

/// The same where a client that has moved on from 2025-11-25, and declares no more than it did then, goes on with the tasks
/// that it has from there.
fn uses_extension(call: &Call) -> Result<bool, CallError> {
    if call.peer().capabilities.tasks.is_some() {
        Ok(call.peer().rules().tasks == Tasks::Extension)
    } else {
        is_extension(call)
    }
}

/// A task of the client, of the kind that it may ask for.
async fn find(call: &Call, id: &str) -> Result<StoredTask, CallError> {
    let task = TaskStore::of(call.server()).find(id, call.principal()).await?;
    if task.state.tasks() == Tasks::Extension {
        is_extension(call)?;
    }
    Ok(task)
}

pub(super) fn get(call: &Call) -> Result<PreparedCall, CallError> {
    let extension = uses_extension(call)?;
    let TaskParams { task_id, .. } = params(call)?;
    let call = call.clone();
    Ok(PreparedCall::inline(async move {
        let state = find(&call, &task_id).await?.state;
        let task = if extension { state.task() } else { state.without_outcome() };
        Ok(ServerResult::GetTask(Box::new(task)))
    }))
}

pub(super) fn cancel(call: &Call) -> Result<PreparedCall, CallError> {
    let extension = uses_extension(call)?;
    let TaskParams { task_id, .. } = params(call)?;
    let call = call.clone();
    Ok(PreparedCall::inline(async move {
        let (server, store) = (call.server(), TaskStore::of(call.server()));
        find(&call, &task_id).await?;
        let changed = store
            .change(&task_id, |state| state.cancel(server.now(), "cancelled by the client").then_some(()))
            .await;
        let (cancelled, state) =
            changed.map_err(|error| unavailable(&error))?.ok_or_else(|| unknown_task(&task_id))?;
        if extension {
            return Ok(EmptyResult::default().into());
        }
        match cancelled {
            Some(()) => Ok(ServerResult::GetTask(Box::new(state.without_outcome()))),
            None => {
                let what = format!("the task is {} already and cannot be cancelled", state.status().as_str());
                Err(RpcError::invalid_params(what).into())
            }
        }
    }))
}

pub(super) fn update(call: &Call) -> Result<PreparedCall, CallError> {
    is_extension(call)?;
    let UpdateTaskParams { task_id, input_responses, .. } = params(call)?;
    let call = call.clone();
    Ok(PreparedCall::inline(async move {
        let task = TaskStore::of(call.server()).find(&task_id, call.principal()).await?;
        for (key, request) in task.state.open_requests() {
            if let Some(response) = input_responses.get(key) {
                check_response(request, response.clone())
                    .map_err(|why| RpcError::invalid_params(format!("inputResponses.{key}: {why}")))?;
            }
        }
        let responses =
            input_responses.into_iter().map(|(key, response)| (key, InputOutcome::Response(response)));
        respond(&call, task.state.id(), responses.collect()).await?;
        Ok(EmptyResult::default().into())
    }))
}

/// Gives responses to a task, which runs again with the last one.
async fn respond(
    call: &Call,
    id: &Arc<str>,
    responses: BTreeMap<String, InputOutcome>,
) -> Result<(), RpcError> {
    let (session, context) = (call.connection_session().clone(), call.dispatch().context.clone());
    let (server, id) = (call.server().clone(), id.clone());
    // A client that leaves drops this call: a task that was given its input must still run.
    let responding = tokio::spawn(async move {
        let changed = TaskStore::of(&server).respond(&id, responses).await;
        if changed.map_err(|error| unavailable(&error))? == Some(true) {
            resume_task(session, context, id);
        }
        Ok(())
    });
    responding.await.unwrap_or_else(|_| Err(RpcError::internal("the server stops")))
}

/// Waits until a task is over, and asks the client meanwhile for what it needs.
pub(super) fn result(call: &Call) -> Result<PreparedCall, CallError> {
    let TaskParams { task_id, .. } = params(call)?;
    let call = call.clone();
    Ok(PreparedCall::waiting(async move {
        let (server, store) = (call.server(), TaskStore::of(call.server()));
        let mut task = store.find(&task_id, call.principal()).await?;
        let id = task.state.id().clone();
        let responses = &call.dispatch().replay.responses;
        if !responses.is_empty() {
            respond(&call, &id, responses.clone()).await?;
            task = store.find(&task_id, call.principal()).await?;
        }
        let askers = server.value::<InputAskers>();
        loop {
            if let Some(outcome) = task.state.outcome() {
                return Ok(HandlerOutcome::Done(Box::new(with_related_task(&id, outcome?))));
            }
            let requests = requests(&task.state);
            let waited = if requests.is_empty() {
                store.changed(&task).await
            } else if askers.claim(&id, &call) {
                withdraw_when_needless(&call, task);
                let (used, once) = (Some(BTreeSet::new()), BTreeMap::new());
                return Ok(HandlerOutcome::InputRequired { requests, used, once });
            } else {
                timeout(ASK_AGAIN_AFTER, store.changed(&task)).await.unwrap_or(Ok(()))
            };
            waited.map_err(|error| unavailable(&error))?;
            task = store.find(&task_id, call.principal()).await?;
        }
    }))
}

/// What a task needs, as requests that say which task they belong to.
fn requests(state: &TaskState) -> Vec<KeyedInputRequest> {
    let related = |meta: &mut Option<JsonObject>| {
        meta.get_or_insert_default().insert(keys::RELATED_TASK.to_owned(), related_task(state.id()));
    };
    let request = |(key, request): (&str, &InputRequest)| {
        let mut request = request.clone();
        match &mut request {
            InputRequest::Elicit(ElicitParams::Form(params)) => related(&mut params.meta),
            InputRequest::Elicit(ElicitParams::Url(params)) => related(&mut params.meta),
            InputRequest::Sample(params) => related(&mut params.meta),
            InputRequest::Roots => {}
        }
        KeyedInputRequest { key: key.to_owned(), request }
    };
    state.open_requests().map(request).collect()
}

/// The result of a task's request, which says whose it is.
fn with_related_task(id: &str, mut result: JsonObject) -> ServerResult {
    let mut extra = match result.remove("_meta") {
        Some(Value::Object(meta)) => meta,
        _ => Map::new(),
    };
    extra.insert(keys::RELATED_TASK.to_owned(), related_task(id));
    let meta = Some(ResultMeta { extra, ..ResultMeta::default() });
    CustomResult { meta, ..CustomResult::new(result) }.into()
}

/// A page of the tasks of the requestor, in the order in which they were created.
pub(super) fn list(call: &Call) -> Result<PreparedCall, CallError> {
    let after = pagination::start(call)?;
    let call = call.clone();
    Ok(PreparedCall::inline(async move {
        let size = call.server().settings().page_size;
        let listed = TaskStore::of(call.server()).page(&owner_key(&call), after, size).await;
        let (tasks, last) = listed.map_err(|error| unavailable(&error))?;
        let own = tasks.iter().filter(|state| state.owner() == call.principal());
        let next_cursor = last.map(|last| pagination::cursor(&call, last));
        let tasks = own.map(TaskState::without_outcome).collect();
        Ok(ListTasksResult { next_cursor, ..ListTasksResult::new(tasks) }.into())
    }))
}

//! Which `tasks/result` asks the client for what a task needs (2025-11-25). A client may call it several times for one task,
//! and is asked once in each of its sessions.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::engine::CallId;
use refmcp_transport::EngineHandle;
use tokio::time::{sleep, timeout};

use super::store::{StoredTask, TaskStore};
use crate::call::Call;

/// How often it is looked whether a call still asks.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// When it is told again that it need not.
const AGAIN: Duration = Duration::from_millis(100);

/// The calls that ask, by their tasks.
#[derive(Debug, Default)]
pub(crate) struct InputAskers(Mutex<Claims>);

#[derive(Debug, Default)]
struct Claims {
    by_task: HashMap<Arc<str>, (EngineHandle, CallId)>,
    /// From how many on those are looked for whose calls have ended.
    sweep_at: usize,
}

impl InputAskers {
    /// Whether this call asks for the task: it does already, none in flight does, or that one belongs to another session,
    /// which the client may have left, and this call has only begun.
    pub(crate) fn claim(&self, task: &Arc<str>, call: &Call) -> bool {
        let mut claims = self.0.lock();
        let is_new = call.dispatch().replay.responses.is_empty();
        let is_other_asking = claims.by_task.get(task).is_some_and(|(handle, number)| {
            let is_same_session = call.handle().is_same(handle);
            let is_this = is_same_session && *number == call.id();
            !is_this && (is_same_session || !is_new) && is_in_flight(handle, *number)
        });
        if !is_other_asking {
            if claims.by_task.len() >= claims.sweep_at {
                claims.by_task.retain(|_, (handle, number)| is_in_flight(handle, *number));
                claims.sweep_at = 64.max(claims.by_task.len() * 2);
            }
            claims.by_task.insert(task.clone(), (call.handle().clone(), call.id()));
        }
        !is_other_asking
    }
}

fn is_in_flight(handle: &EngineHandle, call: CallId) -> bool {
    handle.inspect(|engine| engine.is_in_flight(call)) == Some(true)
}

/// Has a call that asks for a task run again, as soon as the task needs none of that any more: it is over, or has got the
/// responses another way.
pub(crate) fn withdraw_when_needless(call: &Call, mut task: StoredTask) {
    let (call, id) = (call.clone(), task.state.id().clone());
    let asked: Vec<String> = task.state.open_requests().map(|(key, _)| key.to_owned()).collect();
    let round = call.dispatch().round;
    tokio::spawn(async move {
        let store = TaskStore::of(call.server());
        loop {
            if call.handle().inspect(|engine| engine.round_of(call.id())) != Some(Some(round)) {
                return;
            }
            drop(timeout(LOOK_INTERVAL, store.changed(&task)).await);
            match store.read(&id).await {
                Ok(Some(found))
                    if found.state.open_requests().any(|(key, _)| asked.iter().any(|known| known == key)) =>
                {
                    task = found;
                    continue;
                }
                // The engine may hear only after this what it is to ask: it is told until the round is over.
                Ok(_) => call.handle().withdraw_input_of_round(call.id(), round).await,
                Err(error) => {
                    let error = &error as &dyn std::error::Error;
                    tracing::debug!(error, "a task cannot be read");
                }
            }
            sleep(AGAIN).await;
        }
    });
}

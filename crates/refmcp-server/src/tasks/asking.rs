//! Which `tasks/result` asks the client for what a task needs (2025-11-25). A client may call it several times for one task,
//! and is asked once.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use refmcp_proto::engine::CallId;
use refmcp_transport::EngineHandle;

use crate::call::Call;

/// The calls that ask, by their tasks.
#[derive(Debug, Default)]
pub(crate) struct Asking(Mutex<HashMap<Arc<str>, (EngineHandle, CallId)>>);

impl Asking {
    /// Whether this call asks for the task: it does already, or none in flight does.
    pub(crate) fn claim(&self, task: &Arc<str>, call: &Call) -> bool {
        let mut asking = self.0.lock();
        let is_other_asking = asking.get(task).is_some_and(|(handle, number)| {
            let is_this = *number == call.id() && call.handle().is_same(handle);
            !is_this && handle.inspect(|engine| engine.is_in_flight(*number)) == Some(true)
        });
        if !is_other_asking {
            asking.retain(|_, (handle, number)| {
                handle.inspect(|engine| engine.is_in_flight(*number)) == Some(true)
            });
            asking.insert(task.clone(), (call.handle().clone(), call.id()));
        }
        !is_other_asking
    }
}

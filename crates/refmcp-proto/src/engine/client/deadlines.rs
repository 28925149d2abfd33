//! Deadlines of calls: until when a server may be silent about one, how long it may take in all, and when its task is due.

use std::time::Duration;

use super::ClientEngine;
use super::calls::Call;
use super::io::CallError;
use crate::engine::CallId;
use crate::time::Timestamp;

/// The idle time that is left after the last server request has a response.
const GRACE_AFTER_INPUT: Duration = Duration::from_secs(10);

impl Call {
    /// When it next needs something to be done.
    fn due(&self) -> Timestamp {
        self.task.as_ref().map_or(self.idle_by, |task| task.due()).min(self.total_by)
    }
}

impl ClientEngine {
    /// The server has shown progress of a call: its idle timeout begins again.
    pub(super) fn restart_idle_timeout(&mut self, now: Timestamp, id: CallId) {
        if let Some(call) = self.calls.get_mut(&id) {
            call.idle_by = now + call.options.idle;
        }
    }

    /// Sees to it that a call is looked at when it is due.
    pub(super) fn wake_for(&mut self, id: CallId) {
        if let Some(at) = self.calls.get(&id).map(Call::due) {
            self.wake_at(at);
        }
    }

    /// Ends the calls whose time is over, and does what is due for tasks.
    pub(super) fn tick_calls(&mut self, now: Timestamp) {
        // An open request of the server is the host's time: it stops the idle timeout, not the total one.
        let asking = !self.server_requests.is_empty();
        let mut next = None;
        let (mut late, mut tasks) = (Vec::new(), Vec::new());
        for (id, call) in &mut self.calls {
            if call.endless && call.exchange.is_some() {
                continue;
            }
            if asking {
                call.idle_by = call.idle_by.max(now + call.options.idle.min(GRACE_AFTER_INPUT));
            }
            let due = call.due();
            // Each request about a task has a timeout of its own.
            if call.task.is_some() && due <= now && call.total_by > now {
                tasks.push(*id);
                continue;
            }
            if due <= now {
                late.push((*id, now - call.started));
            } else {
                next = Some(next.map_or(due, |next: Timestamp| next.min(due)));
            }
        }
        if let Some(next) = next {
            self.wake_at(next);
        }
        for (id, after) in late {
            let after_millis = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
            self.stop(now, id, "no answer in time", CallError::TimedOut { after_millis });
        }
        for id in tasks {
            self.tick_task(now, id);
            self.wake_for(id);
        }
    }
}

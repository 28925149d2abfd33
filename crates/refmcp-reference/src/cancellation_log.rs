//! The log of cancelled tool calls: when each was cancelled, and when work on it stopped.
//!
//! A session keeps its own log. Requests without a session go to the server's, if they have a tag to be found by.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use refmcp_server::{Call, Timestamp};

/// Most entries that one log keeps.
const MAX_ENTRIES: usize = 1000;
/// Most characters of a tag.
pub(crate) const MAX_TAG_CHARACTERS: u64 = 100;

/// The log of a session, or of all requests without one.
#[derive(Default)]
pub(crate) struct CancellationLog(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    next: u64,
    running: BTreeMap<u64, (About, Call)>,
    stopped: VecDeque<Cancelled>,
}

/// Which work it is.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) tool: &'static str,
    pub(crate) request_id: String,
    pub(crate) tag: Option<String>,
    principal: Option<String>,
}

/// Work that was cancelled.
#[derive(Debug, Clone)]
pub(crate) struct Cancelled {
    pub(crate) about: About,
    pub(crate) cancelled_at: Timestamp,
    pub(crate) stopped_at: Option<Timestamp>,
}

/// A tool call that works; dropped when the work stops.
pub(crate) struct RunningWork(Option<(Arc<CancellationLog>, u64)>);

impl RunningWork {
    /// Logs that a tool begins to work.
    pub(crate) fn start(call: &Call, tool: &'static str, tag: Option<String>) -> Self {
        let Some(log) = log_of(call, tag.as_deref()) else { return Self(None) };
        let request_id = call.request_id().to_string();
        let about = About { tool, request_id, tag, principal: call.principal().map(str::to_owned) };
        let mut entries = log.0.lock();
        let number = entries.next;
        entries.next += 1;
        entries.running.insert(number, (about, call.clone()));
        drop(entries);
        Self(Some((log, number)))
    }
}

impl Drop for RunningWork {
    fn drop(&mut self) {
        let Some((log, number)) = self.0.take() else { return };
        let mut entries = log.0.lock();
        let Some((about, call)) = entries.running.remove(&number) else { return };
        if let Some(cancelled_at) = call.cancelled_at() {
            if entries.stopped.len() == MAX_ENTRIES {
                entries.stopped.pop_front();
            }
            let stopped_at = Some(call.server().now());
            entries.stopped.push_back(Cancelled { about, cancelled_at, stopped_at });
        }
        // The call may be the last to hold the session, and so this log: not while it is locked.
        drop(entries);
    }
}

/// The work that was cancelled, as far as this caller may know; `None` when it has neither a session nor a tag.
pub(crate) fn cancelled(call: &Call, tag: Option<&str>) -> Option<Vec<Cancelled>> {
    let log = log_of(call, tag)?;
    let entries = log.0.lock();
    let running = entries.running.values().filter_map(|(about, work)| {
        let cancelled_at = work.cancelled_at()?;
        Some(Cancelled { about: about.clone(), cancelled_at, stopped_at: None })
    });
    let all = entries.stopped.iter().cloned().chain(running);
    let visible = all.filter(|work| {
        work.about.principal.as_deref() == call.principal()
            && (tag.is_none() || work.about.tag.as_deref() == tag)
    });
    Some(visible.collect())
}

fn log_of(call: &Call, tag: Option<&str>) -> Option<Arc<CancellationLog>> {
    match call.session() {
        Some(session) => Some(session.value()),
        None => tag.map(|_| call.server().value()),
    }
}

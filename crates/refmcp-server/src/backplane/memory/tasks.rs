//! The tasks of one process: by id, by owner, and in the order in which they expire.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use refmcp_transport::{MemoryAccount, MemoryBudget, MemoryReservation};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::Instant;

use super::{hear, later};
use crate::backplane::{
    BackplaneSettings, CreateTaskOutcome, NewTask, TaskEntry, TaskRecord, UpdateTaskOutcome,
};

/// Bytes that a task costs besides its state and its call.
const TASK: usize = 512;

/// Bytes that a run of its handler costs besides its call.
const RUN: usize = 4 << 10;

/// All tasks.
pub(super) struct Tasks {
    settings: Arc<BackplaneSettings>,
    memory: MemoryBudget,
    total: MemoryAccount,
    by_id: HashMap<Arc<str>, Task>,
    by_owner: HashMap<Arc<str>, OwnerTasks>,
    by_expiry: BTreeSet<(Instant, Arc<str>)>,
    last_position: u64,
}

struct Task {
    position: u64,
    owner: Arc<str>,
    version: u64,
    state: Bytes,
    call: Option<Bytes>,
    expires: Option<Instant>,
    /// Made when a change is waited for.
    changed: Option<Arc<Notify>>,
    reservation: MemoryReservation,
}

/// The tasks of an owner.
#[derive(Default)]
struct OwnerTasks {
    ids: BTreeMap<u64, Arc<str>>,
    bytes: usize,
}

impl Tasks {
    pub(super) fn new(settings: Arc<BackplaneSettings>, memory: &MemoryBudget) -> Self {
        Self {
            memory: memory.clone(),
            total: memory.account_with_limit(settings.total_task_bytes),
            settings,
            by_id: HashMap::new(),
            by_owner: HashMap::new(),
            by_expiry: BTreeSet::new(),
            last_position: 0,
        }
    }

    /// How many there are, and their bytes.
    pub(super) fn kept(&self) -> (usize, usize) {
        (self.by_id.len(), self.total.held())
    }

    pub(super) fn create(&mut self, task: NewTask, now: Instant) -> CreateTaskOutcome {
        self.sweep(now);
        if self.by_id.contains_key(&task.id) {
            return CreateTaskOutcome::Taken;
        }
        let cost = cost(&task.state, Some(&task.call));
        let owned = self.by_owner.get(&task.owner);
        let (count, bytes) = owned.map_or((0, 0), |owned| (owned.ids.len(), owned.bytes));
        let free = self.settings.tasks.saturating_sub(self.by_id.len());
        let is_full =
            count >= free.min(self.settings.owner_tasks) || bytes.saturating_add(cost) > self.owner_bytes();
        let mut reservation = self.total.reservation();
        if is_full || reservation.try_grow(cost).is_err() {
            return CreateTaskOutcome::Full;
        }
        self.last_position += 1;
        let position = self.last_position;
        let owned = self.by_owner.entry(task.owner.clone()).or_default();
        owned.bytes += cost;
        owned.ids.insert(position, task.id.clone());
        let expires = task.ttl.map(|ttl| later(now, ttl));
        self.by_expiry.extend(expires.map(|expires| (expires, task.id.clone())));
        let NewTask { id, owner, state, call, .. } = task;
        let call = Some(call);
        let kept = Task { position, owner, version: 1, state, call, expires, changed: None, reservation };
        self.by_id.insert(id, kept);
        CreateTaskOutcome::Created
    }

    /// How many bytes one owner may keep: as many as are free, so that several that keep all they can leave some for others.
    fn owner_bytes(&self) -> usize {
        let of_tasks = self.settings.total_task_bytes.saturating_sub(self.total.held());
        let of_all = self.memory.limit().saturating_sub(self.memory.held());
        of_tasks.min(of_all).min(self.settings.owner_task_bytes)
    }

    pub(super) fn record(&mut self, id: &str, now: Instant) -> Option<TaskRecord> {
        self.sweep(now);
        self.by_id.get(id).map(Task::record)
    }

    pub(super) fn call(&mut self, id: &str, now: Instant) -> Option<Bytes> {
        self.sweep(now);
        self.by_id.get(id)?.call.clone()
    }

    pub(super) fn update(
        &mut self,
        id: &str,
        version: u64,
        state: Bytes,
        call: Option<Bytes>,
        now: Instant,
    ) -> UpdateTaskOutcome {
        self.sweep(now);
        let most = self.owner_bytes();
        let Some(task) = self.by_id.get_mut(id) else { return UpdateTaskOutcome::Unknown };
        if task.version != version {
            return UpdateTaskOutcome::Conflict(task.record());
        }
        let call = match call {
            None => task.call.clone(),
            Some(call) => (!call.is_empty()).then_some(call),
        };
        let before = task.reservation.bytes();
        let cost = cost(&state, call.as_ref());
        let Some(owned) = self.by_owner.get_mut(&task.owner) else { return UpdateTaskOutcome::Unknown };
        let bytes = owned.bytes.saturating_sub(before).saturating_add(cost);
        if bytes > most && cost > before {
            return UpdateTaskOutcome::Full;
        }
        if cost > before {
            if task.reservation.try_grow(cost - before).is_err() {
                return UpdateTaskOutcome::Full;
            }
        } else {
            task.reservation.shrink(before - cost);
        }
        owned.bytes = bytes;
        task.version += 1;
        (task.state, task.call) = (state, call);
        if let Some(changed) = task.changed.take() {
            changed.notify_waiters();
        }
        UpdateTaskOutcome::Updated(task.version)
    }

    /// What wakes when a task changes, and when it expires; `None` where it has another version, or is gone.
    pub(super) fn next_change(
        &mut self,
        id: &str,
        version: u64,
        now: Instant,
    ) -> Option<(OwnedNotified, Option<Instant>)> {
        self.sweep(now);
        let task = self.by_id.get_mut(id).filter(|task| task.version == version)?;
        Some((hear(task.changed.get_or_insert_default()), task.expires))
    }

    pub(super) fn of_owner(&mut self, owner: &str, after: u64, most: usize, now: Instant) -> Vec<TaskEntry> {
        self.sweep(now);
        let Some(owned) = self.by_owner.get(owner) else { return Vec::new() };
        let ids = owned.ids.range(after.saturating_add(1)..).take(most);
        let entry = |(position, id): (&u64, &Arc<str>)| {
            Some(TaskEntry { position: *position, state: self.by_id.get(id)?.state.clone() })
        };
        ids.filter_map(entry).collect()
    }

    /// Forgets the tasks whose ttl is over.
    pub(super) fn sweep(&mut self, now: Instant) {
        while let Some((expires, id)) = self.by_expiry.first().cloned() {
            if now < expires {
                break;
            }
            self.by_expiry.pop_first();
            let Some(task) = self.by_id.remove(&id) else { continue };
            if let Some(owned) = self.by_owner.get_mut(&task.owner) {
                owned.ids.remove(&task.position);
                owned.bytes = owned.bytes.saturating_sub(task.reservation.bytes());
                if owned.ids.is_empty() {
                    self.by_owner.remove(&task.owner);
                }
            }
            if let Some(changed) = task.changed {
                changed.notify_waiters();
            }
        }
        if self.by_id.is_empty() {
            // After a flood even the empty tables would stay large.
            self.by_id.shrink_to_fit();
            self.by_owner.shrink_to_fit();
        }
    }
}

/// The bytes that a task costs. Its call is held here, by the run of its handler, and once more as the handler's arguments.
fn cost(state: &Bytes, call: Option<&Bytes>) -> usize {
    TASK + state.len() + call.map_or(0, |call| RUN + 3 * call.len())
}

impl Task {
    fn record(&self) -> TaskRecord {
        TaskRecord { state: self.state.clone(), version: self.version }
    }
}

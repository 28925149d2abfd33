//! Tasks as data: how far each has come, what it needs, and what it came to. Both kinds of tasks are kept alike; they differ in
//! what a requestor is told, and in a result that says `isError`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{DetachedCall, DetachedOutcome, InputOutcome};
use crate::jsonrpc::RpcError;
use crate::model::{InputRequest, JsonObject, Task, TaskStatus};
use crate::revision::{Revision, Tasks};
use crate::time::Timestamp;

/// Bytes of a status message that are kept.
const MAX_MESSAGE: usize = 1024;

/// A task without its call: what `tasks/get` needs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskState {
    id: Arc<str>,
    owner: Option<Arc<str>>,
    revision: Revision,
    created: u64,
    updated: u64,
    ttl: Option<u64>,
    poll_interval: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    stage: Stage,
    /// The process that runs its handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    runner: Option<Arc<str>>,
    /// The keys that requests have had so far.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    shown_keys: BTreeSet<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Stage {
    Working,
    /// Open requests by the keys that the client sees.
    InputRequired(BTreeMap<String, OpenRequest>),
    Completed {
        result: Box<RawValue>,
        /// A tool has told of an error: such a task has failed in 2025-11-25, and is completed later.
        is_error: bool,
    },
    Failed(RpcError),
    Cancelled,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct OpenRequest {
    /// The handler's key.
    key: String,
    request: InputRequest,
}

/// How long a task is kept, and how often to ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskTimes {
    /// From its creation; `None` is for ever.
    pub ttl: Option<Duration>,
    /// Between two requests for its status.
    pub poll_interval: Duration,
}

impl TaskState {
    /// A task that begins with this call, under an id that cannot be guessed.
    pub fn new(
        now: Timestamp,
        id: Arc<str>,
        owner: Option<Arc<str>>,
        call: &DetachedCall,
        times: TaskTimes,
    ) -> Self {
        Self::of_revision(now, id, owner, call.peer().revision, times)
    }

    /// A task without a detached call: one that a client runs.
    pub(super) fn of_revision(
        now: Timestamp,
        id: Arc<str>,
        owner: Option<Arc<str>>,
        revision: Revision,
        times: TaskTimes,
    ) -> Self {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Self {
            id,
            owner,
            revision,
            created: now.as_millis(),
            updated: now.as_millis(),
            ttl: times.ttl.map(millis),
            poll_interval: millis(times.poll_interval).max(1),
            message: None,
            stage: Stage::Working,
            runner: None,
            shown_keys: BTreeSet::new(),
        }
    }

    /// Its id.
    pub fn id(&self) -> &Arc<str> {
        &self.id
    }

    /// The principal that it belongs to, if one was known.
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// The process that runs its handler, while one does.
    pub fn runner(&self) -> Option<&str> {
        self.runner.as_deref()
    }

    /// Says that this process runs its handler, unless it waits or is over.
    pub fn run_at(&mut self, runner: Arc<str>) {
        self.runner = matches!(self.stage, Stage::Working).then_some(runner);
    }

    /// How far it has come.
    pub fn status(&self) -> TaskStatus {
        match &self.stage {
            Stage::Working => TaskStatus::Working,
            Stage::InputRequired(_) => TaskStatus::InputRequired,
            Stage::Completed { is_error: true, .. } if self.fails_by_result() => TaskStatus::Failed,
            Stage::Completed { .. } => TaskStatus::Completed,
            Stage::Failed(_) => TaskStatus::Failed,
            Stage::Cancelled => TaskStatus::Cancelled,
        }
    }

    /// Whether nothing more happens to it.
    pub fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Completed { .. } | Stage::Failed(_) | Stage::Cancelled)
    }

    /// When it may be forgotten.
    pub fn expires(&self) -> Option<Timestamp> {
        Some(Timestamp::from_millis(self.created) + Duration::from_millis(self.ttl?))
    }

    /// For how much longer it is kept; `None` is for ever.
    pub fn remaining(&self, now: Timestamp) -> Option<Duration> {
        Some(self.expires()? - now)
    }

    /// What its requestor is told.
    pub fn task(&self) -> Task {
        let mut task = self.without_outcome();
        match &self.stage {
            Stage::InputRequired(open) => {
                let requests = open.iter().map(|(key, open)| (key.clone(), open.request.clone()));
                task.input_requests = Some(requests.collect());
            }
            Stage::Completed { result, .. } => task.result = Some(read(result)),
            Stage::Failed(error) => task.error = Some(error.clone()),
            Stage::Working | Stage::Cancelled => {}
        }
        task
    }

    /// The same without input requests and outcome, which tasks of 2025-11-25 are not told with.
    pub fn without_outcome(&self) -> Task {
        Task {
            task_id: self.id.to_string(),
            status: self.status(),
            status_message: self.message.clone(),
            created_at: Timestamp::from_millis(self.created).to_rfc3339(),
            last_updated_at: Timestamp::from_millis(self.updated).to_rfc3339(),
            ttl_ms: self.ttl,
            poll_interval_ms: Some(self.poll_interval),
            input_requests: None,
            result: None,
            error: None,
            result_type: None,
            meta: None,
            extra: JsonObject::new(),
        }
    }

    /// What its request came to, once it is over; a cancelled one has no result.
    pub fn outcome(&self) -> Option<Result<JsonObject, RpcError>> {
        match &self.stage {
            Stage::Completed { result, .. } => Some(Ok(read(result))),
            Stage::Failed(error) => Some(Err(error.clone())),
            Stage::Cancelled => Some(Err(RpcError::internal("the task was cancelled and has no result"))),
            Stage::Working | Stage::InputRequired(_) => None,
        }
    }

    /// The bytes of its outcome, about; none before its end.
    pub(super) fn outcome_bytes(&self) -> usize {
        match &self.stage {
            Stage::Completed { result, .. } => result.get().len(),
            Stage::Failed(error) => {
                error.message.len() + error.data.as_ref().map_or(0, |data| data.to_string().len())
            }
            Stage::Working | Stage::InputRequired(_) | Stage::Cancelled => 0,
        }
    }

    /// The requests that it needs responses to, by the keys that the client sees. A key means one request for as long as the
    /// task exists.
    pub fn open_requests(&self) -> impl Iterator<Item = (&str, &InputRequest)> {
        let open = match &self.stage {
            Stage::InputRequired(open) => Some(open),
            _ => None,
        };
        open.into_iter().flatten().map(|(key, open)| (key.as_str(), &open.request))
    }

    /// Takes what a run of its handler came to; `false` when it is over already.
    pub fn finish(&mut self, now: Timestamp, outcome: DetachedOutcome) -> bool {
        if self.is_over() {
            return false;
        }
        self.updated = now.as_millis();
        self.runner = None;
        self.stage = match outcome {
            DetachedOutcome::InputRequired(requests) => {
                let open = requests.into_iter().map(|(key, request)| self.open(key, request));
                Stage::InputRequired(open.collect())
            }
            DetachedOutcome::Failed(error) => {
                self.set_text(Some(&error.message));
                Stage::Failed(error)
            }
            DetachedOutcome::Done(result) => {
                let is_error = result.get("isError") == Some(&Value::Bool(true));
                self.set_text(error_text(&result).filter(|_| is_error));
                match serde_json::value::to_raw_value(&result) {
                    Ok(result) => Stage::Completed { result, is_error },
                    Err(error) => {
                        Stage::Failed(RpcError::internal(format!("the result is not JSON: {error}")))
                    }
                }
            }
        };
        true
    }

    /// Takes responses to its input requests; those to other keys are ignored. Gives whether the handler is to run again;
    /// `None` where nothing has changed.
    pub fn respond(
        &mut self,
        now: Timestamp,
        call: &mut DetachedCall,
        responses: impl IntoIterator<Item = (String, InputOutcome)>,
    ) -> Option<bool> {
        let Stage::InputRequired(open) = &mut self.stage else { return None };
        let mut changed = false;
        for (key, outcome) in responses {
            if let Some(request) = open.remove(&key) {
                changed |= call.respond(&request.key, outcome);
            }
        }
        if !changed {
            return None;
        }
        self.updated = now.as_millis();
        let is_ready = open.is_empty();
        if is_ready {
            self.stage = Stage::Working;
        }
        Some(is_ready)
    }

    /// Cancels it; `false` when it is over already.
    pub fn cancel(&mut self, now: Timestamp, why: &str) -> bool {
        if self.is_over() {
            return false;
        }
        self.updated = now.as_millis();
        self.set_text(Some(why));
        (self.runner, self.stage) = (None, Stage::Cancelled);
        true
    }

    /// Says that its work has stopped without an outcome, unless it is over.
    pub fn fail(&mut self, now: Timestamp, error: RpcError) {
        if !self.is_over() {
            self.updated = now.as_millis();
            self.set_text(Some(&error.message));
            (self.runner, self.stage) = (None, Stage::Failed(error));
        }
    }

    /// Says what it is doing; `false` where that is known, or it is over.
    pub fn set_message(&mut self, now: Timestamp, message: &str) -> bool {
        let message = shortened(message);
        if self.is_over() || self.message.as_deref() == Some(message) {
            return false;
        }
        self.updated = now.as_millis();
        self.message = Some(message.to_owned());
        true
    }

    fn set_text(&mut self, text: Option<&str>) {
        self.message = text.map(|text| shortened(text).to_owned());
    }

    /// A request under a key that none had before.
    fn open(&mut self, key: String, request: InputRequest) -> (String, OpenRequest) {
        let mut shown = key.clone();
        let mut count = 1;
        while !self.shown_keys.insert(shown.clone()) {
            count += 1;
            shown = format!("{key}-{count}");
        }
        (shown, OpenRequest { key, request })
    }

    /// The kind of tasks that it is of.
    pub fn tasks(&self) -> Tasks {
        self.revision.rules().tasks
    }

    fn fails_by_result(&self) -> bool {
        self.tasks() == Tasks::Experimental
    }
}

/// The text of a tool result that tells of an error.
fn error_text(result: &Value) -> Option<&str> {
    result.pointer("/content/0/text")?.as_str()
}

/// As much of a status message as is kept, on either side.
pub(crate) fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_MESSAGE)).unwrap_or(text)
}

/// Results are objects.
fn read(result: &RawValue) -> JsonObject {
    serde_json::from_str(result.get()).unwrap_or_default()
}

//! Tasks: requests that go on after their first response, and whose outcome is asked for later.
//!
//! There are two kinds: the experimental tasks of 2025-11-25, which the requestor asks for and both sides have, and the
//! extension of 2026-07-28, by which a server decides that a call becomes one. The model has the shape of the extension; what
//! only the older kind has is said to be so.

use std::mem::take;

use crate::model::{InputResponses, JsonObject, NotificationMeta, RequestMeta};

/// The identifier of the extension.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

open_enum! {
    /// How far a task has come.
    pub enum TaskStatus {
        /// Its work goes on.
        Working = "working",
        /// It waits for input of the requestor.
        InputRequired = "input_required",
        /// It has a result.
        Completed = "completed",
        /// It has an error in place of a result.
        Failed = "failed",
        /// It was cancelled.
        Cancelled = "cancelled",
    }
}

impl TaskStatus {
    /// Whether nothing follows this status.
    pub fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

json_object! {
    /// A task as its requestor sees it: the response that creates one, and that of `tasks/get`.
    ///
    /// In 2025-11-25 it has neither input requests nor an outcome, its lifetime is `ttl`, and the response that creates one has
    /// it in the member `task`. Reading takes both shapes.
    pub struct Task {
        ..task,
        ..result
    } without Default

    /// A task as 2025-11-25 writes it: without an outcome, and with other names for two members.
    pub struct ExperimentalTask {
        /// Its id.
        task_id: String,
        /// How far it has come.
        status: TaskStatus,
        /// What it is doing, or why it ended, for people.
        status_message?: String,
        /// When it was created, as ISO 8601.
        created_at: String,
        /// When it last changed, as ISO 8601.
        last_updated_at: String,
        /// For how many milliseconds it is kept from its creation; `None` is for ever.
        ttl: Option<u64>,
        /// How many milliseconds to wait between two requests for its status.
        poll_interval?: u64,
        ..result
    } without Default

    /// Parameters of `notifications/tasks`, and of `notifications/tasks/status` in 2025-11-25.
    pub struct TaskNotificationParams {
        ..task,
        _meta: NotificationMeta,
    } without Default

    /// The response to a request that becomes a task, in 2025-11-25.
    pub struct CreateTaskResult {
        /// The task.
        task: Task,
        ..result
    } without Default

    /// A page of the tasks of a requestor (2025-11-25).
    pub struct ListTasksResult {
        /// The tasks.
        tasks: Vec<Task>,
        /// Where the next page starts; absent on the last page.
        next_cursor?: String,
        ..result,
        /// A page, the last one until `next_cursor` is set.
        fn new,
    }

    /// Parameters of `tasks/get` and `tasks/cancel`, and of `tasks/result` in 2025-11-25.
    pub struct TaskParams {
        /// The task.
        task_id: String,
        _meta: RequestMeta,
        /// Names a task.
        fn new,
    }

    /// Parameters of `tasks/update`.
    pub struct UpdateTaskParams {
        /// The task.
        task_id: String,
        /// Responses, by the keys of the task's input requests.
        input_responses: InputResponses,
        _meta: RequestMeta,
        /// Responds to input requests of a task.
        fn new,
    }

    /// The member `task` of a request that is to become a task (2025-11-25).
    pub struct TaskMetadata {
        /// For how many milliseconds the task is to be kept.
        ttl?: u64,
    }

    /// What a message belongs to that is part of a task: the value of a key in `_meta` (2025-11-25).
    pub struct RelatedTask {
        /// The task.
        task_id: String,
        /// Names a task.
        fn new,
    }

    /// What a party has of tasks (2025-11-25).
    pub struct TasksCapability {
        /// It answers `tasks/list`.
        list?: JsonObject,
        /// It answers `tasks/cancel`.
        cancel?: JsonObject,
        /// The requests that can become tasks.
        requests?: TaskRequests,
    }

    /// The requests that can become tasks (2025-11-25), by family.
    pub struct TaskRequests {
        /// Of a server: `tools/call`.
        tools?: TaskToolRequests,
        /// Of a client: `sampling/createMessage`.
        sampling?: TaskSamplingRequests,
        /// Of a client: `elicitation/create`.
        elicitation?: TaskElicitationRequests,
    }

    /// The requests about tools that can become tasks.
    pub struct TaskToolRequests {
        /// `tools/call`.
        call?: JsonObject,
    }

    /// The requests of sampling that can become tasks.
    pub struct TaskSamplingRequests {
        /// `sampling/createMessage`.
        create_message?: JsonObject,
    }

    /// The requests of elicitation that can become tasks.
    pub struct TaskElicitationRequests {
        /// `elicitation/create`.
        create?: JsonObject,
    }

    /// How a tool is run (2025-11-25).
    pub struct ToolExecution {
        /// Whether calls of the tool become tasks.
        task_support?: TaskSupport,
    }
}

open_enum! {
    /// Whether calls of a tool become tasks.
    pub enum TaskSupport {
        /// They never do.
        Forbidden = "forbidden",
        /// They do where the client wants it.
        Optional = "optional",
        /// They always do.
        Required = "required",
    }
}

impl ExperimentalTask {
    /// What 2025-11-25 has of a task, whose texts are taken over.
    pub fn take_from(task: &mut Task) -> Self {
        Self {
            task_id: take(&mut task.task_id),
            status: task.status.clone(),
            status_message: task.status_message.take(),
            created_at: take(&mut task.created_at),
            last_updated_at: take(&mut task.last_updated_at),
            ttl: task.ttl_ms,
            poll_interval: task.poll_interval_ms,
            result_type: None,
            meta: task.meta.take(),
            extra: take(&mut task.extra),
        }
    }
}

impl TaskNotificationParams {
    /// Says what this task looks like now.
    pub fn of(task: Task) -> Self {
        Self {
            task_id: task.task_id,
            status: task.status,
            status_message: task.status_message,
            created_at: task.created_at,
            last_updated_at: task.last_updated_at,
            ttl_ms: task.ttl_ms,
            poll_interval_ms: task.poll_interval_ms,
            input_requests: task.input_requests,
            result: task.result,
            error: task.error,
            meta: None,
            extra: task.extra,
        }
    }

    /// The task that it speaks of.
    pub fn into_task(self) -> Task {
        Task {
            task_id: self.task_id,
            status: self.status,
            status_message: self.status_message,
            created_at: self.created_at,
            last_updated_at: self.last_updated_at,
            ttl_ms: self.ttl_ms,
            poll_interval_ms: self.poll_interval_ms,
            input_requests: self.input_requests,
            result: self.result,
            error: self.error,
            result_type: None,
            meta: None,
            extra: self.extra,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn both_shapes_of_a_task_are_read() {
        let base = json!({ "taskId": "t", "status": "working", "createdAt": "c", "lastUpdatedAt": "u" });
        let with = |members: Value| {
            let mut task = base.clone();
            for (name, value) in members.as_object().unwrap() {
                task[name] = value.clone();
            }
            serde_json::from_value::<Task>(task).unwrap()
        };
        let newest = with(json!({ "ttlMs": 1000, "pollIntervalMs": 50 }));
        assert_eq!(newest, with(json!({ "ttl": 1000, "pollInterval": 50 })));
        assert_eq!((newest.ttl_ms, newest.poll_interval_ms), (Some(1000), Some(50)));
        // An unlimited lifetime is written, not left out.
        let unlimited = serde_json::to_value(with(json!({ "ttlMs": null }))).unwrap();
        assert_eq!(unlimited.get("ttlMs"), Some(&Value::Null));
        assert_eq!(with(json!({ "status": "paused" })).status, TaskStatus::Other("paused".into()));
    }

    #[test]
    fn a_notification_has_the_members_of_the_task() {
        let json = json!({
            "taskId": "t", "status": "failed", "createdAt": "c", "lastUpdatedAt": "u", "ttlMs": null,
            "error": { "code": -32603, "message": "m" }, "more": 1
        });
        let task: Task = serde_json::from_value(json.clone()).unwrap();
        let params = TaskNotificationParams::of(task.clone());
        assert_eq!(serde_json::to_value(&params).unwrap(), json);
        assert_eq!(params.into_task(), task);
    }
}

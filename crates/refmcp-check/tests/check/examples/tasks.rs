//! Tasks.

use serde_json::json;

use super::{Example, SESSIONS, STATELESS, error, pipe, result, succeed};
use crate::altered::{Asked, Change, Reply};

pub(super) fn examples() -> Vec<Example> {
    vec![
        pipe("unknown-task", &["TASK-10", "TSK-37"], SESSIONS, succeeds!("tasks/get", |_| true)),
        pipe("unknown-task", &["TSK-37"], SESSIONS, succeeds!("tasks/result", |_| true)),
        pipe("unknown-task", &["TSK-37"], SESSIONS, succeeds!("tasks/cancel", |_| true)),
        pipe("unknown-task", &["XTASK-10", "TSK-37"], STATELESS, succeeds!("tasks/get", |_| true)),
        pipe("task-required", &["TSK-05"], SESSIONS, succeeds!("tools/call", |asked| !is_task(asked))),
        pipe("task-forbidden", &["TSK-06"], SESSIONS, succeeds!("tools/call", is_task)),
        pipe(
            "task-unlisted",
            &["TSK-07"],
            SESSIONS,
            Change::instead(|asked| {
                let task = json!({ "task": { "taskId": "t", "status": "working", "ttl": null } });
                (asked.method() == "tools/list" && is_task(asked))
                    .then(|| Reply::new(200, &[result(asked, &task)]))
            }),
        ),
        pipe(
            "task-named-twice",
            &["TSK-24"],
            SESSIONS,
            Change::instead(|asked| {
                let meta = &asked.message["params"]["_meta"]["io.modelcontextprotocol/related-task"];
                (asked.method() == "tasks/get" && meta.is_object())
                    .then(|| Reply::new(200, &[error(asked, -32602)]))
            }),
        ),
    ]
}

fn is_task(asked: &Asked) -> bool {
    asked.message["params"]["task"].is_object()
}

//! Rules about tasks as an extension.

use refmcp_audit::recording::{Direction, EventKind};
use refmcp_proto::revision::Revision;
use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::exchange::{client, server};
use crate::script::{Example, Script};

fn declared() -> Value {
    json!({"elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}})
}

fn task(status: &str, more: Value) -> Value {
    let now = "2026-07-28T10:00:00Z";
    let mut task = json!({
        "taskId": "t", "status": status, "createdAt": now, "lastUpdatedAt": now, "ttlMs": 60000,
        "pollIntervalMs": 1000,
    });
    if status == "failed" {
        task["statusMessage"] = json!("it broke");
    }
    task.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    task
}

fn working() -> Value {
    task("working", json!({}))
}

fn called(capabilities: Value) -> Script {
    Script::new("stdio").asks_alone(1, "tools/call", json!({"name": "a", "arguments": {}}), capabilities)
}

/// A call becomes the task `t`.
fn created() -> Script {
    called(declared()).answers_as(1, "task", working())
}

impl Script {
    fn wants_task(self, id: u64) -> Self {
        self.after(2000).asks_alone(id, "tasks/get", json!({"taskId": "t"}), declared())
    }

    fn shows_task(self, id: u64, task: Value) -> Self {
        self.wants_task(id).completes(id, task)
    }

    fn updates_task(self, id: u64, responses: Value) -> Self {
        let params = json!({"taskId": "t", "inputResponses": responses});
        self.asks_alone(id, "tasks/update", params, declared())
    }
}

fn form(message: &str) -> Value {
    let params = json!({
        "mode": "form", "message": message, "requestedSchema": {"type": "object", "properties": {}},
    });
    json!({"method": "elicitation/create", "params": params})
}

fn needs(key: &str, message: &str) -> Value {
    task("input_required", json!({"inputRequests": { key: form(message) }}))
}

fn accepted() -> Value {
    json!({"action": "accept", "content": {}})
}

/// A request for a task over HTTP with this `Mcp-Name`.
fn over_http(name: &str) -> Script {
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", Revision::LATEST.as_str()),
        ("mcp-method", "tasks/get"),
        ("mcp-name", name),
    ];
    let headers = headers.into_iter().filter(|(_, value)| !value.is_empty());
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let (method, target) = ("POST".to_owned(), "/mcp".to_owned());
    Script::new("http")
        .on_stream(1)
        .then(EventKind::Request { direction: Direction::Received, method, target, headers })
        .asks_alone(1, "tasks/get", json!({"taskId": "t"}), declared())
}

/// A subscription to a task, and a notification.
fn notified(acknowledged: Value, task: Value) -> Script {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": 5});
    let mut task = task;
    task["_meta"] = meta.clone();
    let wanted = json!({"notifications": {"taskIds": ["t"]}});
    Script::new("stdio")
        .asks_alone(5, "subscriptions/listen", wanted, declared())
        .notifies(
            "notifications/subscriptions/acknowledged",
            json!({"notifications": {"taskIds": acknowledged}, "_meta": meta}),
        )
        .notifies("notifications/tasks", task)
}

fn client_examples() -> Vec<Example> {
    let asked = || created().shows_task(2, needs("k", "?"));
    let updated = |responses| asked().updates_task(3, responses).completes(3, json!({}));
    vec![
        client(
            &rule::TSK_15,
            created().shows_task(2, working()).shows_task(3, working()),
            vec![created().shows_task(2, working()).asks_alone(
                3,
                "tasks/get",
                json!({"taskId": "t"}),
                declared(),
            )],
        ),
        client(
            &rule::TSK_49,
            updated(json!({"k": accepted()})),
            vec![updated(json!({"k": accepted()})).updates_task(4, json!({"k": accepted()}))],
        ),
        client(&rule::TSK_50, updated(json!({"k": accepted()})), vec![updated(json!({"j": accepted()}))]),
        client(&rule::TSK_55, over_http("t"), vec![over_http("u"), over_http("")]),
    ]
}

fn server_examples() -> Vec<Example> {
    let shown = |task: Value| created().shows_task(2, task);
    let acknowledged = |method: &str, result: Value| {
        let params = json!({"taskId": "t", "inputResponses": {}});
        created().asks_alone(2, method, params, declared()).completes(2, result)
    };
    let completed = |result: Value| task("completed", json!({"result": result}));
    let plain = json!({"content": []});
    let failed = json!({"content": [], "isError": true});
    let error = json!({"error": {"code": -32603, "message": "x"}});
    let undeclared = || Script::new("stdio").asks_alone(1, "tasks/get", json!({"taskId": "t"}), json!({}));
    let declares = |capabilities| Script::new("stdio").discovered(capabilities);
    let extensions = json!({"io.modelcontextprotocol/tasks": {}});
    vec![
        server(
            &rule::TSK_10,
            created(),
            vec![
                created()
                    .asks_alone(2, "tools/call", json!({"name": "a", "arguments": {}}), declared())
                    .answers_as(2, "task", working()),
            ],
        ),
        server(
            &rule::TSK_12,
            shown(completed(plain.clone())).shows_task(3, completed(plain.clone())),
            vec![shown(completed(plain.clone())).shows_task(3, working())],
        ),
        server(
            &rule::TSK_13,
            created(),
            vec![called(declared()).answers_as(1, "task", {
                let mut task = working();
                task.as_object_mut().unwrap().remove("ttlMs");
                task
            })],
        ),
        server(&rule::TSK_39, created(), vec![called(json!({})).answers_as(1, "task", working())]),
        server(
            &rule::TSK_43,
            shown(working()),
            vec![created().wants_task(2).answers_as(2, "task", working())],
        ),
        server(&rule::TSK_44, shown(working()), vec![created().wants_task(2).refuses(2, -32602)]),
        server(
            &rule::TSK_46,
            shown(completed(plain.clone())),
            vec![
                shown(task("completed", json!({}))),
                shown(task("input_required", json!({}))),
                shown(task("failed", json!({}))),
            ],
        ),
        server(
            &rule::TSK_47,
            shown(completed(failed.clone())),
            vec![shown(task("failed", json!({"result": failed})))],
        ),
        server(
            &rule::TSK_48,
            shown(needs("k", "?")).shows_task(3, needs("k", "?")),
            vec![shown(needs("k", "?")).shows_task(3, needs("k", "!"))],
        ),
        server(
            &rule::TSK_51,
            acknowledged("tasks/cancel", json!({})),
            vec![acknowledged("tasks/cancel", working()), acknowledged("tasks/update", working())],
        ),
        server(
            &rule::TSK_54,
            undeclared().refuses_with(
                1,
                -32021,
                json!({"requiredCapabilities": {"extensions": extensions.clone()}}),
            ),
            vec![undeclared().completes(1, working())],
        ),
        server(
            &rule::TSK_56,
            notified(json!(["t"]), task("failed", error)),
            vec![notified(json!(["u"]), working()), notified(json!(["t"]), task("completed", json!({})))],
        ),
        server(
            &rule::TSK_61,
            declares(json!({"tools": {}, "extensions": extensions})),
            vec![
                declares(json!({"tools": {}, "tasks": {}})),
                Script::new("stdio")
                    .asks_alone(1, "tasks/result", json!({"taskId": "t"}), declared())
                    .completes(1, plain),
            ],
        ),
    ]
}

pub(crate) fn examples() -> Vec<Example> {
    [client_examples(), server_examples()].into_iter().flatten().collect()
}

//! Rules about tasks as the experimental feature.

use refmcp_audit::recording::{Direction, EventKind};
use refmcp_audit::verdict::Role;
use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::exchange::{client, server};
use crate::script::{Example, Script};

const RELATED: &str = "io.modelcontextprotocol/related-task";

fn session() -> Script {
    session_over("stdio", json!({}))
}

/// A session whose server runs calls of tools as tasks, and lists a tool of each kind.
fn session_over(transport: &str, extensions: Value) -> Script {
    let capabilities =
        json!({"tools": {}, "tasks": {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}});
    let client = json!({
        "elicitation": {}, "sampling": {}, "extensions": extensions,
        "tasks": {"requests": {"elicitation": {"create": {}}}},
    });
    let tool = |name: &str, support: &str| json!({"name": name, "inputSchema": {"type": "object"}, "execution": {"taskSupport": support}});
    let tools =
        json!({"tools": [tool("may", "optional"), tool("must", "required"), tool("not", "forbidden")]});
    Script::session(transport, "2025-11-25", client, capabilities)
        .asks(1, "tools/list", json!({}))
        .answers(1, tools)
}

fn call(name: &str, task: bool) -> Value {
    let mut params = json!({"name": name, "arguments": {}});
    if task {
        params["task"] = json!({});
    }
    params
}

fn task(id: &str, status: &str) -> Value {
    let now = "2025-11-25T10:00:00Z";
    let mut task = json!({
        "taskId": id, "status": status, "createdAt": now, "lastUpdatedAt": now, "ttl": 60000, "pollInterval": 1000,
    });
    if status == "failed" {
        task["statusMessage"] = json!("it broke");
    }
    task
}

fn without(mut task: Value, member: &str) -> Value {
    task.as_object_mut().unwrap().remove(member);
    task
}

/// A call becomes the task `t`.
fn created() -> Script {
    created_as(task("t", "working"))
}

fn created_as(task: Value) -> Script {
    session().asks(2, "tools/call", call("may", true)).answers(2, json!({"task": task}))
}

impl Script {
    /// tasks/get after a while.
    fn gets(self, id: u64, status: &str) -> Self {
        self.after(2000).asks(id, "tasks/get", json!({"taskId": "t"})).answers(id, task("t", status))
    }

    /// tasks/result with a result of the tool.
    fn ends(self, id: u64, mut result: Value) -> Self {
        result["_meta"] = json!({ RELATED: {"taskId": "t"} });
        self.asks(id, "tasks/result", json!({"taskId": "t"})).answers(id, result)
    }

    fn lists_tasks(self, id: u64, result: Value) -> Self {
        self.after(2000).asks(id, "tasks/list", json!({})).answers(id, result)
    }

    fn cancels(self, id: u64) -> Self {
        self.asks(id, "tasks/cancel", json!({"taskId": "t"}))
    }
}

fn done() -> Value {
    json!({"content": []})
}

/// tasks/get on this kind of HTTP response.
fn over_http(content_type: &str) -> Script {
    let head = |direction, headers: &[(&str, &str)]| {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        match direction {
            Direction::Received => EventKind::Request {
                direction,
                method: "POST".to_owned(),
                target: "/mcp".to_owned(),
                headers,
            },
            Direction::Sent => EventKind::Response { direction, status: 200, headers },
        }
    };
    let request = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2025-11-25"),
    ];
    session_over("http", json!({}))
        .on_stream(7)
        .then(head(Direction::Received, &request))
        .asks(7, "tasks/get", json!({"taskId": "t"}))
        .then(head(Direction::Sent, &[("content-type", content_type)]))
        .answers(7, task("t", "working"))
        .then(EventKind::Ended { direction: Direction::Sent })
}

/// A request for input on the stream of tasks/result.
fn side_request(meta: Value) -> Script {
    let form =
        json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}, "_meta": meta});
    session_over("http", json!({})).on_stream(7).asks(7, "tasks/result", json!({"taskId": "t"})).server_asks(
        100,
        "elicitation/create",
        form,
    )
}

/// A request of a task, and its response.
fn side_response(meta: Value) -> Script {
    let form = json!({
        "message": "?", "requestedSchema": {"type": "object", "properties": {}},
        "_meta": { RELATED: {"taskId": "t"} },
    });
    created()
        .server_asks(100, "elicitation/create", form)
        .client_answers(100, json!({"action": "decline", "_meta": meta}))
}

fn requestor_examples() -> Vec<Example> {
    let plain = |task: bool| {
        let params = if task { call("a", true) } else { call("a", false) };
        Script::session("stdio", "2025-11-25", json!({}), json!({"tools": {}})).asks(2, "tools/call", params)
    };
    let asks_user = |task: Value, client: Value| {
        let mut form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
        form["task"] = task;
        Script::session("stdio", "2025-11-25", client, json!({})).server_asks(100, "elicitation/create", form)
    };
    let declared = json!({"elicitation": {}, "tasks": {"requests": {"elicitation": {"create": {}}}}});
    let hurried = created()
        .gets(3, "working")
        .asks(4, "tasks/get", json!({"taskId": "t"}))
        .answers(4, task("t", "working"));
    let waiting = || created().gets(3, "input_required");
    let related = json!({ RELATED: {"taskId": "t"} });
    vec![
        client(&rule::TSK_02, created(), vec![plain(true)]),
        server(
            &rule::TSK_02,
            asks_user(json!({}), declared),
            vec![asks_user(json!({}), json!({"elicitation": {}}))],
        ),
        client(&rule::TSK_03, created(), vec![session().asks(2, "tools/call", call("not", true))]),
        client(
            &rule::TSK_04,
            session().asks(2, "tools/call", call("must", true)),
            vec![session().asks(2, "tools/call", call("must", false))],
        ),
        client(&rule::TSK_15, created().gets(3, "working").gets(4, "working"), vec![hurried]),
        client(
            &rule::TSK_20,
            waiting().ends(4, done()),
            vec![waiting().gets(4, "input_required").gets(5, "input_required").gets(6, "input_required")],
        ),
        client(
            &rule::TSK_22,
            side_response(related.clone()),
            vec![side_response(json!({})), side_response(json!({ RELATED: {"taskId": "u"} }))],
        ),
        client(
            &rule::TSK_23,
            created().gets(3, "working"),
            vec![created().asks(3, "tasks/get", json!({"taskId": "t", "_meta": related}))],
        ),
        server(
            &rule::TSK_23,
            created().notifies("notifications/tasks/status", task("t", "working")),
            vec![created().notifies("notifications/tasks/status", {
                let mut task = task("t", "working");
                task["_meta"] = related;
                task
            })],
        ),
    ]
}

fn creation_examples() -> Vec<Example> {
    let extension = |result: Value| {
        session_over("stdio", json!({"io.modelcontextprotocol/tasks": {}}))
            .asks(2, "tools/call", call("may", false))
            .answers(2, result)
    };
    let flat = json!({"content": [], "resultType": "task", "taskId": "t", "status": "working"});
    vec![
        server(
            &rule::TSK_01,
            created(),
            vec![
                session()
                    .asks(2, "tools/call", call("may", false))
                    .answers(2, json!({"content": [], "task": task("t", "working")})),
            ],
        ),
        server(
            &rule::TSK_09,
            created(),
            vec![session().asks(2, "tools/call", call("may", true)).answers(2, done())],
        ),
        server(
            &rule::TSK_10,
            created(),
            vec![
                created()
                    .asks(3, "tools/call", call("may", true))
                    .answers(3, json!({"task": task("t", "working")})),
                created_as({
                    let mut task = task("t", "working");
                    task["taskId"] = json!(7);
                    task
                }),
            ],
        ),
        server(&rule::TSK_11, created(), vec![created_as(task("t", "completed"))]),
        server(
            &rule::TSK_13,
            created(),
            vec![
                created_as(without(task("t", "working"), "createdAt")),
                created_as(without(task("t", "working"), "lastUpdatedAt")),
                created_as(without(task("t", "working"), "ttl")),
            ],
        ),
        server(&rule::TSK_62, extension(done()), vec![extension(flat)]),
    ]
}

/// A session whose client runs elicitation and sampling as tasks.
fn able_client() -> Script {
    let declared = json!({
        "elicitation": {}, "sampling": {},
        "tasks": {
            "list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}, "sampling": {"createMessage": {}}}
        },
    });
    Script::session("stdio", "2025-11-25", declared, json!({"tools": {}}))
}

fn form(task: bool) -> Value {
    let mut form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
    if task {
        form["task"] = json!({});
    }
    form
}

/// An elicitation becomes a task of the client.
fn client_created() -> Script {
    client_created_as(task("t", "working"))
}

fn client_created_as(task: Value) -> Script {
    able_client()
        .server_asks(100, "elicitation/create", form(true))
        .client_answers(100, json!({"task": task}))
}

impl Script {
    /// tasks/get of the server after a while.
    fn server_gets(self, id: u64, status: &str) -> Self {
        self.after(2000)
            .server_asks(id, "tasks/get", json!({"taskId": "t"}))
            .client_answers(id, task("t", status))
    }

    /// tasks/result of the server.
    fn client_ends(self, id: u64, mut result: Value) -> Self {
        result["_meta"] = json!({ RELATED: {"taskId": "t"} });
        self.server_asks(id, "tasks/result", json!({"taskId": "t"})).client_answers(id, result)
    }

    fn server_cancels(self, id: u64) -> Self {
        self.server_asks(id, "tasks/cancel", json!({"taskId": "t"}))
    }

    fn client_refuses(self, id: u64, code: i64) -> Self {
        let error = json!({"code": code, "message": "refused"});
        self.client(json!({"jsonrpc": "2.0", "id": id, "error": error}))
    }
}

/// Tasks that the client runs, and the server asks for.
fn client_task_examples() -> Vec<Example> {
    let accepted = || json!({"action": "accept", "content": {}});
    let ended = || client_created().server_gets(101, "completed");
    let cancelled =
        |status: &str| client_created().server_cancels(101).client_answers(101, task("t", status));
    let listed = |tasks: Value| {
        client_created()
            .server_gets(101, "working")
            .after(2000)
            .server_asks(102, "tasks/list", json!({}))
            .client_answers(102, json!({"tasks": tasks}))
            .server_gets(103, "working")
    };
    let paged = |next: Value| {
        able_client()
            .server_asks(100, "tasks/list", json!({}))
            .client_answers(100, json!({"tasks": [], "nextCursor": next}))
    };
    let sampled = |result: Value| {
        let params = json!({"messages": [], "maxTokens": 1, "task": {}});
        able_client()
            .server_asks(100, "sampling/createMessage", params)
            .client_answers(100, json!({"task": task("t", "working")}))
            .server_gets(101, "completed")
            .client_ends(102, result)
    };
    let message = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "x"}, "stopReason": "endTurn"});
    let undeclared = |answer: Value| {
        Script::session("stdio", "2025-11-25", json!({"elicitation": {}}), json!({}))
            .server_asks(100, "elicitation/create", form(true))
            .provoked_by(&rule::TSK_02, Role::Server)
            .client_answers(100, answer)
    };
    let waiting = || client_created().server_gets(101, "input_required");
    let related = |id: &str| json!({ RELATED: {"taskId": id} });
    let confused = |told: &str| {
        client_created()
            .after(2000)
            .server_asks(101, "tasks/get", json!({"taskId": "t", "_meta": related("u")}))
            .provoked_by(&rule::TSK_23, Role::Server)
            .client_answers(101, task(told, "working"))
    };
    let hurried = client_created()
        .server_gets(101, "working")
        .server_asks(102, "tasks/get", json!({"taskId": "t"}))
        .client_answers(102, task("t", "working"));
    vec![
        client(
            &rule::TSK_01,
            client_created(),
            vec![
                able_client()
                    .server_asks(100, "elicitation/create", form(false))
                    .client_answers(100, json!({"action": "accept", "task": task("t", "working")})),
            ],
        ),
        client(
            &rule::TSK_07,
            undeclared(accepted()),
            vec![undeclared(json!({"task": task("t", "working")}))],
        ),
        client(
            &rule::TSK_09,
            client_created(),
            vec![
                able_client()
                    .server_asks(100, "elicitation/create", form(true))
                    .client_answers(100, json!({"action": "decline"})),
            ],
        ),
        client(
            &rule::TSK_10,
            client_created(),
            vec![
                client_created()
                    .server_asks(101, "elicitation/create", form(true))
                    .client_answers(101, json!({"task": task("t", "working")})),
            ],
        ),
        client(&rule::TSK_11, client_created(), vec![client_created_as(task("t", "completed"))]),
        client(
            &rule::TSK_12,
            ended().server_gets(102, "completed"),
            vec![ended().server_gets(102, "working"), client_created().server_gets(101, "paused")],
        ),
        client(
            &rule::TSK_13,
            client_created(),
            vec![client_created_as(without(task("t", "working"), "ttl"))],
        ),
        server(
            &rule::TSK_15,
            client_created().server_gets(101, "working").server_gets(102, "working"),
            vec![hurried],
        ),
        client(
            &rule::TSK_17,
            client_created().client_ends(101, accepted()).server_gets(102, "completed"),
            vec![client_created().client_ends(101, accepted()).server_gets(102, "working")],
        ),
        client(
            &rule::TSK_18,
            ended().client_ends(102, accepted()).client_ends(103, accepted()),
            vec![
                ended().client_ends(102, accepted()).client_ends(103, json!({"action": "decline"})),
                ended().client_ends(102, json!({"task": {}})),
                sampled(json!({"role": "assistant"})),
            ],
        ),
        client(&rule::TSK_18, sampled(message), vec![]),
        client(
            &rule::TSK_19,
            ended().client_ends(102, accepted()),
            vec![
                ended()
                    .server_asks(102, "tasks/result", json!({"taskId": "t"}))
                    .client_answers(102, accepted()),
            ],
        ),
        server(
            &rule::TSK_20,
            waiting().client_ends(102, accepted()),
            vec![
                waiting()
                    .server_gets(102, "input_required")
                    .server_gets(103, "input_required")
                    .server_gets(104, "input_required"),
            ],
        ),
        server(
            &rule::TSK_23,
            client_created().server_gets(101, "working"),
            vec![client_created().server_asks(
                101,
                "tasks/get",
                json!({"taskId": "t", "_meta": related("t")}),
            )],
        ),
        client(
            &rule::TSK_23,
            client_created().client_notifies("notifications/tasks/status", task("t", "working")),
            vec![client_created().client_notifies("notifications/tasks/status", {
                let mut task = task("t", "working");
                task["_meta"] = related("t");
                task
            })],
        ),
        client(&rule::TSK_24, confused("t"), vec![confused("u")]),
        client(
            &rule::TSK_27,
            ended().server_cancels(102).client_refuses(102, -32602),
            vec![
                ended().server_cancels(102).client_refuses(102, -32603),
                ended().server_cancels(102).client_answers(102, task("t", "cancelled")),
            ],
        ),
        client(
            &rule::TSK_28,
            cancelled("cancelled").server_gets(102, "cancelled"),
            vec![cancelled("working"), cancelled("cancelled").server_gets(102, "completed")],
        ),
        client(&rule::TSK_31, listed(json!([task("t", "working")])), vec![paged(json!(7))]),
        client(&rule::TSK_32, listed(json!([task("t", "working")])), vec![listed(json!([]))]),
        client(
            &rule::TSK_38,
            client_created().server_gets(101, "failed"),
            vec![
                client_created()
                    .server_asks(101, "tasks/get", json!({"taskId": "t"}))
                    .client_answers(101, without(task("t", "failed"), "statusMessage")),
            ],
        ),
        server(
            &rule::LIFE_08,
            client_created().server_cancels(101),
            vec![
                Script::session("stdio", "2025-11-25", json!({"elicitation": {}}), json!({})).server_asks(
                    100,
                    "tasks/get",
                    json!({"taskId": "t"}),
                ),
                Script::session("stdio", "2025-11-25", json!({"tasks": {}}), json!({})).server_asks(
                    100,
                    "tasks/list",
                    json!({}),
                ),
            ],
        ),
        server(
            &rule::CANC_03,
            client_created().server_cancels(101),
            vec![client_created().notifies("notifications/cancelled", json!({"requestId": 100}))],
        ),
    ]
}

fn life_examples() -> Vec<Example> {
    let ended = || created().gets(3, "completed");
    let cancelled = |status: &str| created().cancels(3).answers(3, task("t", status));
    let listed = |result: Value| created().gets(3, "working").lists_tasks(4, result).gets(5, "working");
    let failed = json!({"content": [], "isError": true});
    vec![
        server(
            &rule::TSK_12,
            ended().gets(4, "completed"),
            vec![ended().gets(4, "working"), ended().gets(4, "failed"), created().gets(3, "paused")],
        ),
        server(
            &rule::TSK_17,
            created().ends(3, done()).gets(4, "completed"),
            vec![created().ends(3, done()).gets(4, "working")],
        ),
        server(
            &rule::TSK_18,
            ended().ends(4, done()).ends(5, done()),
            vec![
                ended().ends(4, done()).ends(5, json!({"content": [{"type": "text", "text": "x"}]})),
                ended().ends(4, json!({"task": {}})),
            ],
        ),
        server(
            &rule::TSK_19,
            ended().ends(4, done()),
            vec![ended().asks(4, "tasks/result", json!({"taskId": "t"})).answers(4, done())],
        ),
        server(
            &rule::TSK_21,
            side_request(json!({ RELATED: {"taskId": "t"} })),
            vec![side_request(json!({})), side_request(json!({ RELATED: {"taskId": "u"} }))],
        ),
        server(
            &rule::TSK_25,
            over_http("application/json"),
            vec![over_http("text/event-stream").provoked_by(&rule::HTTP_09, Role::Server)],
        ),
        server(
            &rule::TSK_27,
            ended().cancels(4).refuses(4, -32602),
            vec![
                ended().cancels(4).refuses(4, -32000),
                ended().cancels(4).answers(4, task("t", "completed")),
            ],
        ),
        server(
            &rule::TSK_28,
            cancelled("cancelled").gets(4, "cancelled"),
            vec![cancelled("working"), cancelled("cancelled").gets(4, "completed")],
        ),
        server(
            &rule::TSK_31,
            listed(json!({"tasks": [task("t", "working")]})),
            vec![session().lists_tasks(2, json!({"tasks": [], "nextCursor": null}))],
        ),
        server(
            &rule::TSK_32,
            listed(json!({"tasks": [task("t", "working")]})),
            vec![listed(json!({"tasks": []}))],
        ),
        server(
            &rule::TSK_38,
            created().gets(3, "failed"),
            vec![
                created()
                    .asks(3, "tasks/get", json!({"taskId": "t"}))
                    .answers(3, without(task("t", "failed"), "statusMessage")),
            ],
        ),
        server(
            &rule::TASK_13,
            created().gets(3, "failed").ends(4, failed.clone()),
            vec![ended().ends(4, failed.clone()), created().ends(3, failed).gets(4, "completed")],
        ),
    ]
}

pub(crate) fn examples() -> Vec<Example> {
    [requestor_examples(), creation_examples(), life_examples(), client_task_examples()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn an_answer_from_before_the_end_breaks_nothing() {
    let judged = created()
        .asks(3, "tasks/get", json!({"taskId": "t"}))
        .asks(4, "tasks/get", json!({"taskId": "u"}))
        .notifies("notifications/tasks/status", task("t", "completed"))
        .answers(3, task("t", "working"))
        .judge();
    assert_eq!(judged.broken().count(), 0, "{:?}", judged.broken().collect::<Vec<_>>());
}

#[test]
fn a_task_that_was_told_of_or_has_ended_may_be_asked_for_at_once() {
    let told = created().gets(3, "working").notifies("notifications/tasks/status", task("t", "working"));
    let ended = created().gets(3, "completed");
    for (script, status) in [(told, "working"), (ended, "completed")] {
        let judged =
            script.asks(4, "tasks/get", json!({"taskId": "t"})).answers(4, task("t", status)).judge();
        assert_eq!(judged.broken().count(), 0, "{:?}", judged.broken().collect::<Vec<_>>());
    }
}

//! Rules about ping, progress and cancellation.

use refmcp_audit::recording::Side;
use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::script::{
    Example, SESSIONS, Script, client, notification, request, result, server, stateless_request,
    stateless_result,
};

pub(crate) fn examples() -> Vec<Example> {
    let mut examples = Vec::new();
    for revision in SESSIONS {
        examples.extend(pings(revision));
        examples.extend(progress(revision));
        examples.extend(cancellation(revision));
    }
    examples.extend(tasks());
    examples.extend(stateless_progress());
    examples.extend(stateless_cancellation());
    examples
}

fn session(side: Side, revision: &str) -> Script {
    let client = json!({"sampling": {}, "roots": {}});
    Script::recorded_by(side, "stdio").opens(revision, client, json!({"tools": {}}))
}

fn call(id: i64, token: Value) -> Value {
    request(id, "tools/call", json!({"name": "t", "arguments": {}, "_meta": {"progressToken": token}}))
}

fn sample(id: i64, token: Value) -> Value {
    let messages = json!([{"role": "user", "content": {"type": "text", "text": "?"}}]);
    request(
        id,
        "sampling/createMessage",
        json!({"messages": messages, "maxTokens": 9, "_meta": {"progressToken": token}}),
    )
}

fn called(id: i64) -> Value {
    result(id, json!({"content": []}))
}

fn sampled(id: i64) -> Value {
    let content = json!({"type": "text", "text": "!"});
    result(id, json!({"role": "assistant", "content": content, "model": "m"}))
}

fn progressed(token: Value, progress: Value) -> Value {
    notification("notifications/progress", json!({"progressToken": token, "progress": progress}))
}

fn cancel(id: impl Into<Value>) -> Value {
    notification("notifications/cancelled", json!({"requestId": id.into()}))
}

fn pings(revision: &str) -> Vec<Example> {
    let ping = || request(1, "ping", json!({}));
    let session = || session(Side::Server, revision);
    let no = json!({"code": -32601, "message": "no"});
    let fails = json!({"jsonrpc": "2.0", "id": 1, "error": no});
    vec![
        server(
            &rule::PING_01,
            session().client(ping()).server(result(1, json!({}))),
            vec![
                session().client(ping()).server(result(1, json!({"pong": true}))),
                session().client(ping()).server(fails.clone()),
                session().client(ping()).after(10_000),
            ],
        ),
        client(
            &rule::PING_01,
            session().server(ping()).client(result(1, json!({}))),
            vec![
                session().server(ping()).client(result(1, json!({"ok": 1}))),
                session().server(ping()).client(fails),
                session().server(ping()).after(10_000),
            ],
        ),
        // It may have been under way when the connection ended.
        client(&rule::LIFE_02, session().server(ping()), vec![]),
    ]
}

fn progress(revision: &str) -> Vec<Example> {
    let session = || session(Side::Server, revision);
    let calls = |token: Value| session().client(call(1, token));
    let grows = |script: Script, numbers: &[f64]| {
        numbers.iter().fold(script, |script, number| script.server(progressed(json!("t"), json!(number))))
    };
    let right = grows(calls(json!("t")), &[0.5, 1.0, 7.0]).server(called(1));
    let samples = || session().server(sample(1, json!(7)));
    vec![
        server(
            &rule::PROG_01,
            right.clone(),
            vec![
                calls(json!("t")).server(progressed(json!("other"), json!(1))).server(called(1)),
                calls(json!(1)).server(progressed(json!("1"), json!(1))).server(called(1)),
                calls(json!("t"))
                    .server(notification("notifications/progress", json!({"progress": 1})))
                    .server(called(1)),
                calls(json!("t"))
                    .server(notification("progress", json!({"progressToken": "t", "progress": 1})))
                    .server(called(1)),
            ],
        ),
        client(
            &rule::PROG_01,
            right.clone(),
            vec![
                calls(json!({})).server(called(1)),
                calls(json!(1.5)).server(called(1)),
                calls(json!("t")).client(call(2, json!("t"))).server(called(1)).server(called(2)),
                samples().client(progressed(json!(8), json!(1))).client(sampled(1)),
                session().client(notification("$/progress", json!({}))),
            ],
        ),
        server(
            &rule::PROG_02,
            right.clone(),
            vec![
                grows(calls(json!("t")), &[1.0, 1.0]).server(called(1)),
                grows(calls(json!("t")), &[2.0, 1.0]).server(called(1)),
                calls(json!("t")).server(called(1)).server(progressed(json!("t"), json!(1))),
                calls(json!("t")).server(progressed(json!("t"), json!("half"))).server(called(1)),
            ],
        ),
        client(
            &rule::PROG_02,
            samples().client(progressed(json!(7), json!(1))).client(sampled(1)),
            vec![samples().client(sampled(1)).client(progressed(json!(7), json!(1)))],
        ),
        // Where two requests have one token, it is not known which of them makes progress.
        server(
            &rule::PROG_02,
            calls(json!("t"))
                .client(call(2, json!("t")))
                .server(called(1))
                .server(progressed(json!("t"), json!(2)))
                .server(progressed(json!("t"), json!(1)))
                .server(called(2))
                .provoked_by(&rule::PROG_01, refmcp_audit::verdict::Role::Client),
            vec![],
        ),
        // A token is free again once its request has a response.
        client(
            &rule::PROG_01,
            right.client(call(2, json!("t"))).server(progressed(json!("t"), json!(0))).server(called(2)),
            vec![],
        ),
    ]
}

fn cancellation(revision: &str) -> Vec<Example> {
    let calls = |side| session(side, revision).client(call(1, json!(1)));
    let samples = |side| session(side, revision).server(sample(1, json!(1)));
    vec![
        client(
            &rule::CANC_01,
            calls(Side::Server).client(cancel(1)),
            vec![
                calls(Side::Server).client(cancel(2)).server(called(1)),
                calls(Side::Server).client(cancel("1")).server(called(1)),
                session(Side::Server, revision)
                    .server(sample(9, json!(1)))
                    .client(cancel(9))
                    .client(sampled(9)),
                calls(Side::Server)
                    .client(notification("notifications/cancelled", json!({})))
                    .server(called(1)),
                calls(Side::Server)
                    .client(notification("$/cancelRequest", json!({"id": 1})))
                    .server(called(1)),
                calls(Side::Server)
                    .client(notification("cancelled", json!({"requestId": 1})))
                    .server(called(1)),
                calls(Side::Client).server(called(1)).client(cancel(1)),
                calls(Side::Server).server(called(1)).after(5_000).client(cancel(1)),
            ],
        ),
        // The response may have been under way.
        client(&rule::LIFE_02, calls(Side::Server).server(called(1)).client(cancel(1)), vec![]),
        server(
            &rule::CANC_01,
            samples(Side::Server).server(cancel(1)),
            vec![
                samples(Side::Server).server(cancel(5)).client(sampled(1)),
                calls(Side::Client).server(cancel(1)).server(called(1)),
            ],
        ),
        server(
            &rule::CANC_02,
            calls(Side::Server).client(cancel(1)),
            vec![
                calls(Side::Server).client(cancel(1)).server(called(1)),
                calls(Side::Client).client(cancel(1)).after(5_000).server(called(1)),
            ],
        ),
        client(
            &rule::CANC_02,
            samples(Side::Server).server(cancel(1)),
            vec![samples(Side::Client).server(cancel(1)).client(sampled(1))],
        ),
        server(&rule::RPC_22, calls(Side::Client).client(cancel(1)).server(called(1)), vec![]),
    ]
}

/// Requests that go on as tasks.
fn tasks() -> Vec<Example> {
    let tasks = json!({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}});
    let session = || Script::session("stdio", "2025-11-25", json!({}), json!({"tools": {}, "tasks": tasks}));
    let task = |status: &str| {
        json!({
            "taskId": "k", "status": status, "ttl": null,
            "createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": "2025-11-25T00:00:00Z",
        })
    };
    let params = json!({"name": "t", "arguments": {}, "task": {}, "_meta": {"progressToken": 1}});
    let running = || {
        session()
            .client(request(1, "tools/call", params.clone()))
            .server(result(1, json!({"task": task("working")})))
    };
    let by_polling = running()
        .client(request(2, "tasks/get", json!({"taskId": "k"})))
        .server(result(2, task("completed")));
    let by_status = running().server(notification("notifications/tasks/status", task("completed")));
    let progress = |script: Script| script.server(progressed(json!(1), json!(1)));
    let cancels = running()
        .client(request(2, "tasks/cancel", json!({"taskId": "k"})))
        .server(result(2, task("cancelled")));
    vec![
        server(&rule::PROG_03, progress(running()), vec![progress(by_polling), progress(by_status)]),
        client(&rule::CANC_03, cancels, vec![running().client(cancel(1))]),
    ]
}

fn stateless_progress() -> Vec<Example> {
    let discovered =
        |transport: &str| Script::without_session(transport, json!({"tools": {"listChanged": true}}));
    let params = |token: Value| json!({"name": "t", "arguments": {}, "_meta": {"progressToken": token}});
    let calls = |transport: &str| {
        discovered(transport).on_stream(1).client(stateless_request(1, "tools/call", params(json!("t"))))
    };
    let called = || stateless_result(1, json!({"content": []}));
    let progress = |number: i64| progressed(json!("t"), json!(number));
    let listen = |meta: Value| {
        let params = json!({"notifications": {"toolsListChanged": true}, "_meta": meta});
        discovered("stdio")
            .client(stateless_request(1, "subscriptions/listen", params))
            .server(acknowledged())
    };
    let mut examples = vec![server(
        &rule::PROG_04,
        calls("stdio").server(progress(1)).server(called()),
        vec![listen(json!({"progressToken": "t"})).server(progress(1))],
    )];
    for transport in ["stdio", "http"] {
        examples.extend([
            server(
                &rule::PROG_01,
                calls(transport).server(progress(1)).server(called()),
                vec![calls(transport).server(progressed(json!("x"), json!(1))).server(called())],
            ),
            server(
                &rule::PROG_02,
                calls(transport).server(progress(1)).server(progress(2)).server(called()),
                vec![
                    calls(transport).server(progress(1)).server(progress(1)).server(called()),
                    calls(transport).server(called()).server(progress(1)),
                ],
            ),
        ]);
    }
    examples
}

fn acknowledged() -> Value {
    let meta = json!({"io.modelcontextprotocol/subscriptionId": 1});
    notification(
        "notifications/subscriptions/acknowledged",
        json!({"notifications": {"toolsListChanged": true}, "_meta": meta}),
    )
}

fn stateless_cancellation() -> Vec<Example> {
    let calls = |transport: &str| {
        Script::without_session(transport, json!({"tools": {"listChanged": true}}))
            .on_stream(1)
            .client(stateless_request(1, "tools/call", json!({"name": "t", "arguments": {}})))
    };
    let called = || stateless_result(1, json!({"content": []}));
    let listen = || {
        let params = json!({"notifications": {"toolsListChanged": true}});
        Script::without_session("stdio", json!({"tools": {"listChanged": true}}))
            .client(stateless_request(1, "subscriptions/listen", params))
            .server(acknowledged())
    };
    vec![
        client(
            &rule::CANC_04,
            calls("stdio").client(cancel(1)),
            vec![
                calls("stdio").client(cancel(2)).server(called()),
                calls("stdio").client(notification("notifications/cancelled", json!({}))).server(called()),
                calls("stdio").client(notification("$/cancelRequest", json!({"id": 1}))).server(called()),
            ],
        ),
        client(&rule::CANC_04, calls("http").left(), vec![]),
        client(
            &rule::STATE_17,
            calls("http").left(),
            vec![calls("http").on_stream(2).client(cancel(1)).on_stream(1).server(called())],
        ),
        client(
            &rule::CANC_04,
            calls("http+sse").on_stream(2).client(cancel(1)),
            vec![calls("http+sse").on_stream(2).client(cancel(7)).on_stream(0).server(called())],
        ),
        server(
            &rule::CANC_02,
            calls("stdio").client(cancel(1)),
            vec![calls("stdio").client(cancel(1)).server(called())],
        ),
        server(
            &rule::CANC_05,
            listen().server(cancel(1)),
            vec![
                calls("stdio").server(cancel(1)).server(called()),
                calls("stdio").server(cancel(7)).server(called()),
            ],
        ),
    ]
}

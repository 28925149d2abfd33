//! Calls that have become tasks, of both kinds.

use super::*;
use crate::engine::client::config::TaskHandling;
use crate::model::TaskMetadata;

const WORKING: &str = "working";

fn able(config: &mut ClientConfig) {
    config.capabilities = serde_json::from_value(json!({
        "elicitation": { "form": {} }, "extensions": { "io.modelcontextprotocol/tasks": {} }
    }))
    .unwrap();
}

impl Rig {
    /// A session with a server whose tools become tasks.
    fn experimental() -> Self {
        let mut rig = Self::new(|config| {
            able(config);
            config.version_policy = VersionPolicy::Legacy;
        });
        rig.seen();
        let mut opened = initialized("2025-11-25");
        opened["capabilities"] =
            json!({ "tasks": { "cancel": {}, "requests": { "tools": { "call": {} } } } });
        rig.hear(json!({ "id": 1, "result": opened }));
        rig
    }

    /// A server of the extension.
    fn extension() -> Self {
        let mut rig = Self::new(able);
        rig.seen();
        let extensions = json!({ "io.modelcontextprotocol/tasks": {} });
        rig.hear(json!({ "id": 1, "result": {
            "supportedVersions": ["2026-07-28"], "capabilities": { "extensions": extensions }
        } }));
        rig
    }

    /// Calls a tool, which becomes the task `t`; the call.
    fn task(&mut self, more: Value) -> u64 {
        let mut options = CallOptions::default();
        options.task.requested = Some(TaskMetadata::default());
        let call = self.call("tools/call", r#"{"name":"slow"}"#, options);
        self.seen();
        let is_extension = self.engine.server().unwrap().revision == Revision::V2026_07_28;
        let task = if is_extension { of(WORKING, more) } else { json!({ "task": of(WORKING, more) }) };
        let mut result = task;
        if is_extension {
            result["resultType"] = json!("task");
        }
        assert_eq!(
            self.hear(json!({ "id": call, "result": result })),
            [Seen::Task(call, WORKING.to_owned())]
        );
        call
    }

    /// Waits until the status is asked for, which is the only message then; the id of the request.
    fn polled(&mut self, millis: u64) -> u64 {
        assert_eq!(self.pass(millis - 1), [], "too early");
        let seen = self.pass(1);
        let [Seen::Sent(message)] = &seen[..] else { panic!("{seen:?}") };
        assert_eq!(message["method"], "tasks/get");
        assert_eq!(message["params"]["taskId"], "t");
        message["id"].as_u64().unwrap()
    }

    fn answer(&mut self, id: u64, result: Value) -> Vec<Seen> {
        let mut message = json!({ "id": id });
        message["result"] = result;
        self.hear(message)
    }
}

/// The task `t` with this status, and more members.
fn of(status: &str, more: Value) -> Value {
    let mut task = json!({
        "taskId": "t", "status": status, "createdAt": "c", "lastUpdatedAt": "u",
        "ttlMs": null, "pollIntervalMs": 2000
    });
    let (Value::Object(members), Value::Object(more)) = (&mut task, more) else { unreachable!() };
    members.extend(more);
    task
}

fn question() -> Value {
    json!({ "mode": "form", "message": "?", "requestedSchema": { "type": "object", "properties": {} } })
}

#[test]
fn a_task_of_the_extension_is_followed_to_its_result() {
    let mut rig = Rig::extension();
    let call = rig.task(json!({}));
    let poll = rig.polled(2000);
    assert_eq!(
        rig.answer(poll, of(WORKING, json!({ "statusMessage": "half" }))),
        [Seen::Task(call, WORKING.to_owned())]
    );
    let poll = rig.polled(2000);
    assert_eq!(rig.answer(poll, of(WORKING, json!({ "statusMessage": "half", "pollIntervalMs": 500 }))), []);
    let poll = rig.polled(500);
    let seen = rig.answer(poll, of("completed", json!({ "result": { "content": [], "n": 1.50 } })));
    let outcome = json!({ "content": [], "n": 1.50 });
    assert_eq!(seen, [Seen::Task(call, "completed".to_owned()), Seen::Done(call, Ok(outcome))]);
    assert_eq!((rig.pass(60_000), rig.engine.in_flight()), (vec![], 0));
}

#[test]
fn input_of_a_task_is_asked_for_once_and_sent_by_an_update() {
    let mut rig = Rig::extension();
    let call = rig.task(json!({}));
    let poll = rig.polled(2000);
    let requests =
        json!({ "inputRequests": { "k": { "method": "elicitation/create", "params": question() } } });
    let seen = rig.answer(poll, of("input_required", requests.clone()));
    let asked =
        [Seen::Task(call, "input_required".to_owned()), Seen::Asked(1, "elicitation/create".to_owned())];
    assert_eq!(seen, asked);
    let poll = rig.polled(2000);
    assert_eq!(rig.answer(poll, of("input_required", requests.clone())), [], "it is asked once");
    rig.engine.respond(rig.now, ServerRequestId(1), Ok(json!({ "action": "accept" })));
    let seen = rig.seen();
    let update = sent(&seen);
    assert_eq!(update["method"], "tasks/update");
    assert_eq!(update["params"]["inputResponses"], json!({ "k": { "action": "accept" } }));
    rig.answer(update["id"].as_u64().unwrap(), json!({ "resultType": "complete" }));
    let poll = rig.polled(2000);
    assert_eq!(rig.answer(poll, of("input_required", requests)), [], "the update is not seen yet");
    let poll = rig.polled(2000);
    let error = json!({ "error": { "code": -32603, "message": "no" } });
    let seen = rig.answer(poll, of("failed", error));
    assert!(matches!(&seen[1], Seen::Done(it, Err(why)) if *it == call && why.contains("no")), "{seen:?}");
}

/// The input requests with these keys.
fn asking(keys: &[&str]) -> Value {
    let request = json!({ "method": "elicitation/create", "params": question() });
    let requests: serde_json::Map<_, _> =
        keys.iter().map(|key| ((*key).to_owned(), request.clone())).collect();
    of("input_required", json!({ "inputRequests": requests }))
}

fn accepted() -> Value {
    json!({ "action": "accept" })
}

#[test]
fn input_that_is_given_while_an_update_is_open_is_sent_after_it() {
    let mut rig = Rig::extension();
    rig.task(json!({}));
    let poll = rig.polled(2000);
    rig.answer(poll, asking(&["k1"]));
    rig.engine.respond(rig.now, ServerRequestId(1), Ok(accepted()));
    let update = sent(&rig.seen())["id"].as_u64().unwrap();
    let poll = rig.polled(2000);
    rig.answer(poll, asking(&["k1", "k2"]));
    rig.engine.respond(rig.now, ServerRequestId(2), Ok(accepted()));
    assert_eq!(rig.seen(), [], "one update at a time");
    let seen = rig.answer(update, json!({ "resultType": "complete" }));
    assert_eq!(sent(&seen)["params"]["inputResponses"], json!({ "k2": accepted() }));
}

#[test]
fn input_that_another_has_given_is_not_asked_for_further() {
    let mut rig = Rig::extension();
    rig.task(json!({}));
    let poll = rig.polled(2000);
    rig.answer(poll, asking(&["k1"]));
    let poll = rig.polled(2000);
    let seen = rig.answer(poll, asking(&["k2"]));
    let asked = [Seen::Withdrawn(1), Seen::Asked(2, "elicitation/create".to_owned())];
    assert_eq!(seen, asked);
    rig.engine.respond(rig.now, ServerRequestId(2), Ok(accepted()));
    assert_eq!(sent(&rig.seen())["params"]["inputResponses"], json!({ "k2": accepted() }));
}

#[test]
fn refused_input_cancels_the_task() {
    let mut rig = Rig::extension();
    let call = rig.task(json!({}));
    let poll = rig.polled(2000);
    let requests =
        json!({ "inputRequests": { "k": { "method": "elicitation/create", "params": question() } } });
    rig.answer(poll, of("input_required", requests));
    let error = crate::jsonrpc::RpcError::internal("not now");
    rig.engine.respond(rig.now, ServerRequestId(1), Err(error));
    let seen = rig.seen();
    assert_eq!(sent(&seen)["method"], "tasks/cancel");
    assert!(matches!(seen.last(), Some(Seen::Done(it, Err(why))) if *it == call && why.contains("not now")));
}

#[test]
fn a_task_of_2025_11_25_is_asked_for_and_its_result_waited_for() {
    let mut rig = Rig::experimental();
    let mut options = CallOptions { progress: true, ..CallOptions::default() };
    options.task.requested = Some(TaskMetadata::default().ttl(60_000_u64));
    let call = rig.call("tools/call", r#"{"name":"slow"}"#, options);
    let params = sent(&rig.seen())["params"].clone();
    assert_eq!((&params["task"], &params["name"]), (&json!({ "ttl": 60_000 }), &json!("slow")));
    let task = |status: &str| {
        json!({
            "taskId": "t", "status": status, "createdAt": "c", "lastUpdatedAt": "u", "ttl": 60_000,
            "pollInterval": 1000
        })
    };
    rig.answer(call, json!({ "task": task(WORKING) }));
    // Progress goes on under the token of the request.
    let params = json!({ "progressToken": call, "progress": 1 });
    let seen = rig.hear(json!({ "method": "notifications/progress", "params": params }));
    assert_eq!(seen, [Seen::Heard(Some(call), "notifications/progress".to_owned())]);
    let poll = rig.polled(1000);
    let seen = rig.answer(poll, task("input_required"));
    let outcome = sent(&seen)["id"].as_u64().unwrap();
    assert_eq!(sent(&seen)["method"], "tasks/result");
    // The request of the server and its response say which task they belong to.
    let related = json!({ "io.modelcontextprotocol/related-task": { "taskId": "t" } });
    let mut params = question();
    params["_meta"] = related.clone();
    let seen = rig.hear(json!({ "id": "q", "method": "elicitation/create", "params": params }));
    assert_eq!(seen, [Seen::Asked(1, "elicitation/create".to_owned())]);
    rig.engine.respond(rig.now, ServerRequestId(1), Ok(json!({ "action": "decline" })));
    let seen = rig.seen();
    assert_eq!(sent(&seen)["result"], json!({ "action": "decline", "_meta": related }));
    let notified = json!({ "method": "notifications/tasks/status", "params": task(WORKING) });
    assert_eq!(rig.hear(notified)[0], Seen::Task(call, WORKING.to_owned()));
    let poll = rig.polled(1000);
    assert_eq!(rig.answer(poll, task("completed")), [Seen::Task(call, "completed".to_owned())]);
    let result = json!({ "content": [], "_meta": related });
    let seen = rig.answer(outcome, result.clone());
    assert_eq!(seen, [Seen::Done(call, Ok(result))]);
}

#[test]
fn cancelling_a_call_cancels_its_task() {
    for mut rig in [Rig::experimental(), Rig::extension()] {
        let call = rig.task(json!({}));
        rig.engine.cancel(rig.now, CallId(call), "enough");
        let seen = rig.seen();
        assert_eq!(sent(&seen)["method"], "tasks/cancel");
        assert_eq!(seen[1..], [Seen::Done(call, Err("cancelled".to_owned()))]);
        assert_eq!(rig.pass(60_000), []);
    }
}

#[test]
fn a_task_that_is_followed_again_is_left_alone() {
    let mut rig = Rig::extension();
    let follower = rig.engine.follow_task(rig.now, "t", None, CallOptions::default());
    let poll = sent(&rig.seen())["id"].as_u64().unwrap();
    assert_eq!(rig.answer(poll, of(WORKING, json!({}))), [Seen::Task(follower.0, WORKING.to_owned())]);
    rig.engine.cancel(rig.now, follower, "enough");
    assert_eq!(rig.seen(), [Seen::Done(follower.0, Err("cancelled".to_owned()))]);

    let follower = rig.engine.follow_task(rig.now, "t", None, CallOptions::default());
    let poll = sent(&rig.seen())["id"].as_u64().unwrap();
    let error = json!({ "code": -32602, "message": "no such task" });
    let seen = rig.hear(json!({ "id": poll, "error": error }));
    let [Seen::Done(it, Err(why))] = &seen[..] else { panic!("{seen:?}") };
    assert!(*it == follower.0 && why.contains("knows no task t"), "{why}");
}

#[test]
fn no_server_has_its_tasks_asked_for_all_the_time_or_never() {
    for (named, millis) in [(0, 100), (1, 100), (u64::MAX, 300_000)] {
        let mut rig = Rig::extension();
        rig.task(json!({ "pollIntervalMs": named }));
        rig.polled(millis);
    }
}

#[test]
fn requests_for_a_status_may_fail_for_a_while() {
    let mut rig = Rig::extension();
    let call = rig.task(json!({}));
    let mut wait = 2000;
    for failures in 1..=5 {
        let poll = rig.polled(wait);
        rig.engine.ended(rig.now, ExchangeId(poll), TransportError::Broken("gone".into()));
        assert_eq!(rig.seen(), [], "{failures}");
        wait = 2000 << failures;
    }
    let poll = rig.polled(wait);
    rig.engine.ended(rig.now, ExchangeId(poll), TransportError::Broken("gone".into()));
    let seen = rig.seen();
    assert!(matches!(seen.last(), Some(Seen::Done(it, Err(_))) if *it == call), "{seen:?}");

    // A server that cannot tell now can tell later.
    let mut rig = Rig::extension();
    let call = rig.task(json!({}));
    let poll = rig.polled(2000);
    assert_eq!(rig.hear(json!({ "id": poll, "error": { "code": -32603, "message": "later" } })), []);
    let poll = rig.polled(4000);
    let seen = rig.answer(poll, of("completed", json!({ "result": {} })));
    assert!(matches!(seen.last(), Some(Seen::Done(it, Ok(_))) if *it == call), "{seen:?}");
}

#[test]
fn a_task_ends_with_its_lifetime_or_the_total_timeout() {
    let mut rig = Rig::extension();
    let call = rig.task(json!({ "ttlMs": 1500 }));
    let seen = rig.pass(1500);
    let why = "the task t did not end in the time for which the server keeps it";
    assert_eq!(seen, [Seen::Done(call, Err(why.to_owned()))]);

    // The server may extend it.
    let mut rig = Rig::extension();
    let call = rig.task(json!({ "ttlMs": 3000 }));
    let poll = rig.polled(2000);
    assert_eq!(rig.answer(poll, of(WORKING, json!({ "ttlMs": 60_000 }))), []);
    let poll = rig.polled(2000);
    let seen = rig.answer(poll, of("completed", json!({ "result": {} })));
    assert!(matches!(seen.last(), Some(Seen::Done(it, Ok(_))) if *it == call), "{seen:?}");

    let mut rig = Rig::extension();
    let options = CallOptions { total: Duration::from_millis(1500), ..CallOptions::default() };
    let call = rig.call("tools/call", "{}", options);
    rig.seen();
    let mut created = of(WORKING, json!({}));
    created["resultType"] = json!("task");
    rig.answer(call, created);
    let seen = rig.pass(1500);
    assert_eq!(sent(&seen)["method"], "tasks/cancel");
    assert_eq!(seen[1..], [Seen::Done(call, Err("no answer within 1.5 s".to_owned()))]);
}

#[test]
fn what_makes_no_sense_of_a_task_is_the_servers_fault() {
    let completed = of("completed", json!({}));
    let mut other = of(WORKING, json!({}));
    other["taskId"] = json!("u");
    for (result, rule) in [
        (of("paused", json!({})), "TSK-13"),
        (other, "TSK-13"),
        (json!({}), "TSK-13"),
        (completed, "XTASK-05"),
    ] {
        let mut rig = Rig::extension();
        rig.task(json!({}));
        let poll = rig.polled(2000);
        let seen = rig.answer(poll, result);
        assert!(seen.contains(&Seen::Noted(rule)), "{seen:?}");
        assert!(
            matches!(seen.last(), Some(Seen::Done(_, Err(why))) if why.contains("the server broke the protocol")),
            "{seen:?}"
        );
    }
    // Nor is a task what was not offered to be taken, or what other methods come to.
    for (mut rig, method) in
        [(Rig::stateless(TransportKind::Pipe), "tools/call"), (Rig::extension(), "prompts/get")]
    {
        let call = rig.call(method, "{}", CallOptions::default());
        rig.seen();
        let mut created = of(WORKING, json!({}));
        created["resultType"] = json!("task");
        let seen = rig.answer(call, created);
        assert_eq!(seen[0], Seen::Noted("RPC-13"));
    }
}

#[test]
fn a_long_status_message_is_shortened() {
    let mut rig = Rig::extension();
    let call = rig.task(json!({}));
    let poll = rig.polled(2000);
    let long = "é".repeat(100_000);
    let seen = rig.answer(poll, of("cancelled", json!({ "statusMessage": long })));
    let [Seen::Task(..), Seen::Done(done, Err(error))] = &seen[..] else { panic!("{seen:?}") };
    assert_eq!(*done, call);
    assert!(error.len() < 2000 && error.contains('é'), "{}", error.len());
}

#[test]
fn the_keys_of_a_task_are_limited() {
    let mut rig = Rig::extension();
    let call = rig.task(json!({ "pollIntervalMs": 100 }));
    for round in 0..16 {
        let poll = rig.polled(100);
        let mut request = serde_json::Map::new();
        request.insert(format!("k{round}"), json!({ "method": "elicitation/create", "params": question() }));
        let more = json!({ "inputRequests": request, "pollIntervalMs": 100 });
        let seen = rig.answer(poll, of("input_required", more));
        assert!(seen.iter().any(|seen| matches!(seen, Seen::Asked(..))), "{round}: {seen:?}");
    }
    let poll = rig.polled(100);
    let requests = json!({ "last": { "method": "elicitation/create", "params": question() } });
    let seen = rig.answer(poll, of("input_required", json!({ "inputRequests": requests })));
    assert!(matches!(seen.last(), Some(Seen::Done(it, Err(why))) if *it == call && why.contains("16 times")));
}

#[test]
fn a_task_outlives_its_session() {
    let mut rig = Rig::experimental();
    let call = rig.task(json!({ "pollIntervalMs": 1000 }));
    let poll = rig.polled(1000);
    rig.engine.ended(rig.now, ExchangeId(poll), TransportError::SessionLost);
    let seen = rig.seen();
    assert_eq!(sent(&seen)["method"], "initialize");
    let mut opened = initialized("2025-11-25");
    opened["capabilities"] = json!({ "tasks": { "requests": { "tools": { "call": {} } } } });
    let id = sent(&seen)["id"].as_u64().unwrap();
    rig.answer(id, opened);
    let poll = rig.polled(1000);
    assert_eq!(
        rig.answer(poll, of("cancelled", json!({ "statusMessage": "why" }))),
        [
            Seen::Task(call, "cancelled".to_owned()),
            Seen::Done(call, Err("the task was cancelled: why".to_owned()))
        ]
    );
}

#[test]
fn a_caller_can_take_the_task_itself() {
    let mut rig = Rig::extension();
    let task = TaskHandling { is_manual: true, ..TaskHandling::default() };
    let call = rig.call("tools/call", "{}", CallOptions { task, ..CallOptions::default() });
    rig.seen();
    let mut created = of(WORKING, json!({}));
    created["resultType"] = json!("task");
    let seen = rig.answer(call, created.clone());
    assert_eq!(seen, [Seen::Done(call, Ok(created))]);
    assert_eq!(rig.pass(60_000), []);
}

#[test]
fn a_server_without_tasks_is_asked_for_none() {
    let mut rig = Rig::session();
    let mut options = CallOptions::default();
    options.task.requested = Some(TaskMetadata::default());
    let call = rig.call("tools/call", "{}", options);
    assert_eq!(sent(&rig.seen())["params"], json!({}));
    assert_eq!(rig.answer(call, json!({ "content": [] })), [Seen::Done(call, Ok(json!({ "content": [] })))]);
}

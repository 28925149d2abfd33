//! Conversations of a client, without a server and with time as an argument.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::model::{ClientCapabilities, Implementation, JsonObject};
use crate::revision::Revision;

const START: Timestamp = Timestamp::from_millis(1_000_000);

struct Rig {
    engine: ClientEngine,
    now: Timestamp,
}

/// What a test looks at.
#[derive(Debug, PartialEq)]
enum Seen {
    Sent(Value),
    Abandoned(u64),
    Opened(Revision),
    Closed(String),
    Done(u64, Result<Value, String>),
    Asked(u64, String),
    Withdrawn(u64),
    Heard(Option<u64>, String),
    Noted(&'static str),
}

impl Rig {
    fn new(change: impl FnOnce(&mut ClientConfig)) -> Self {
        let mut config = ClientConfig::new(Implementation::new("c", "1"));
        config.capabilities = serde_json::from_value::<ClientCapabilities>(
            json!({ "roots": {}, "sampling": {}, "elicitation": { "form": {} } }),
        )
        .unwrap();
        change(&mut config);
        let mut rig = Self { engine: ClientEngine::new(Arc::new(config)), now: START };
        rig.engine.open(rig.now);
        rig
    }

    fn seen(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        while let Some(output) = self.engine.poll() {
            seen.push(match output {
                ClientOutput::Send(message) => Seen::Sent(serde_json::from_slice(&message.json).unwrap()),
                ClientOutput::Abandon(exchange) => Seen::Abandoned(exchange.0),
                ClientOutput::Opened(server) => Seen::Opened(server.revision),
                ClientOutput::Closed(why) => Seen::Closed(why.to_string()),
                ClientOutput::Done(call, outcome) => Seen::Done(
                    call.0,
                    match outcome {
                        Ok(Answered::Result(text)) => Ok(serde_json::from_str(&text).unwrap()),
                        Ok(Answered::InputRequired(result)) => Ok(serde_json::to_value(result).unwrap()),
                        Err(error) => Err(error.to_string()),
                    },
                ),
                ClientOutput::Ask(ask) => Seen::Asked(ask.question.0, ask.request.method().to_owned()),
                ClientOutput::Withdrawn(question) => Seen::Withdrawn(question.0),
                ClientOutput::Heard(call, heard) => {
                    Seen::Heard(call.map(|call| call.0), heard.method().to_owned())
                }
                ClientOutput::Note(finding) => Seen::Noted(finding.rule),
            });
        }
        seen
    }

    fn hear(&mut self, mut message: Value) -> Vec<Seen> {
        message["jsonrpc"] = json!("2.0");
        self.engine.receive(self.now, None, message.to_string().as_bytes());
        self.seen()
    }

    fn pass(&mut self, millis: u64) -> Vec<Seen> {
        self.now = self.now + Duration::from_millis(millis);
        if self.engine.deadline().is_some_and(|deadline| deadline <= self.now) {
            self.engine.tick(self.now);
        }
        self.seen()
    }

    fn call(&mut self, method: &str, params: &str, options: CallOptions) -> u64 {
        self.engine.call(self.now, method.into(), None, params.into(), options).0
    }

    /// A conversation that a session was opened for.
    fn session() -> Self {
        let mut rig = Self::new(|config| config.era = Era::Legacy);
        rig.seen();
        let seen = rig.hear(json!({ "id": 1, "result": initialized("2025-11-25") }));
        assert!(seen.contains(&Seen::Opened(Revision::V2025_11_25)), "{seen:?}");
        rig
    }

    /// A conversation without a session.
    fn stateless(way: Way) -> Self {
        let mut rig = Self::new(|config| config.way = way);
        rig.seen();
        let seen = rig
            .hear(json!({ "id": 1, "result": { "supportedVersions": ["2026-07-28"], "capabilities": {} } }));
        assert_eq!(seen, [Seen::Opened(Revision::V2026_07_28)]);
        rig
    }
}

fn initialized(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "serverInfo": { "name": "s", "version": "1" } })
}

fn sent(seen: &[Seen]) -> &Value {
    let found = seen.iter().find_map(|seen| match seen {
        Seen::Sent(message) => Some(message),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("nothing sent: {seen:?}"))
}

#[test]
fn extensions_are_told_where_there_is_a_place_for_them() {
    let extended = |era| {
        let mut rig = Rig::new(|config| {
            config.era = era;
            config.capabilities.extensions = json!({ "com.example/x": {} }).as_object().cloned();
        });
        sent(&rig.seen()).clone()
    };
    let discover = extended(Era::Modern);
    let told = &discover["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(told["extensions"], json!({ "com.example/x": {} }));
    for revision in Revision::ALL.into_iter().filter(|it| !it.rules().extensions) {
        let initialize = extended(Era::Exactly(revision));
        let told = &initialize["params"]["capabilities"];
        assert_eq!(told.get("extensions"), None, "{revision:?}");
        assert!(told["roots"].is_object(), "{told}");
    }
}

#[test]
fn a_silent_server_is_asked_for_a_session() {
    let mut rig = Rig::new(|_| {});
    assert_eq!(sent(&rig.seen())["method"], "server/discover");
    assert_eq!(rig.pass(4_999), []);
    let seen = rig.pass(1);
    assert_eq!(seen[0], Seen::Abandoned(1));
    assert_eq!(sent(&seen)["method"], "initialize");
    assert_eq!(sent(&seen)["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(
        rig.hear(json!({ "id": 1, "error": { "code": -32601, "message": "late" } })),
        [],
        "the late answer to the first question changes nothing"
    );
    let seen = rig.hear(json!({ "id": 2, "result": initialized("2024-11-05") }));
    assert_eq!(sent(&seen)["method"], "notifications/initialized");
    assert_eq!(seen[1], Seen::Opened(Revision::V2024_11_05));
}

#[test]
fn a_slow_server_has_time_where_nothing_else_can_be_tried_and_an_end_where_it_can() {
    let mut rig = Rig::new(|config| config.era = Era::Modern);
    rig.seen();
    assert_eq!(rig.pass(20_000), []);
    let needs_none = |id| json!({ "id": id, "error": { "code": -32022, "message": "no", "data": { "supported": ["2026-07-28", "2025-11-25"] } } });
    let mut rig = Rig::new(|_| {});
    rig.seen();
    rig.pass(5_000);
    assert!((2..5).all(|id| matches!(rig.hear(needs_none(id))[..], [Seen::Sent(_)])));
    assert!(matches!(rig.hear(needs_none(5))[..], [Seen::Closed(_)]));
}

#[test]
fn calls_made_before_the_opening_wait_for_it() {
    let mut rig = Rig::new(|config| config.era = Era::Legacy);
    rig.seen();
    let call = rig.call("tools/list", "{}", CallOptions::default());
    assert_eq!(rig.seen(), []);
    let seen = rig.hear(json!({ "id": 1, "result": initialized("2025-06-18") }));
    assert_eq!(
        seen.iter().filter(|seen| matches!(seen, Seen::Sent(message) if message["id"] == call)).count(),
        1
    );
    assert_eq!(
        rig.hear(json!({ "id": call, "result": { "tools": [] } })),
        [Seen::Done(call, Ok(json!({ "tools": [] })))]
    );
    assert_eq!(rig.engine.in_flight(), 0);
}

#[test]
fn an_opening_that_fails_ends_whatever_waits() {
    let mut rig = Rig::new(|config| config.era = Era::Exactly(Revision::V2025_06_18));
    rig.seen();
    let call = rig.call("tools/list", "{}", CallOptions::default());
    let seen = rig.hear(json!({ "id": 1, "result": initialized("2099-01-01") }));
    let why = "no common revision: we speak 2025-06-18, the server 2099-01-01";
    let not_open = format!("the conversation is not open: {why}");
    assert_eq!(seen, [Seen::Done(call, Err(not_open.clone())), Seen::Closed(why.to_owned())]);
    let late = rig.call("ping", "{}", CallOptions::default());
    assert_eq!(rig.seen(), [Seen::Done(late, Err(not_open))]);
}

#[test]
fn progress_extends_a_call_up_to_its_total() {
    let mut rig = Rig::session();
    let options = CallOptions {
        idle: Duration::from_secs(1),
        total: Duration::from_secs(3),
        progress: true,
        ..CallOptions::default()
    };
    let call = rig.call("tools/call", "{}", options);
    assert_eq!(sent(&rig.seen())["params"]["_meta"]["progressToken"], call);
    for step in 1..=3 {
        assert_eq!(rig.pass(900), [], "{step}");
        let params = json!({ "progressToken": call, "progress": step });
        let seen = rig.hear(json!({ "method": "notifications/progress", "params": params }));
        assert_eq!(seen, [Seen::Heard(Some(call), "notifications/progress".into())]);
    }
    let params = json!({ "progressToken": call, "progress": 3 });
    assert_eq!(
        rig.hear(json!({ "method": "notifications/progress", "params": params })),
        [Seen::Noted("PROG-02")]
    );
    let seen = rig.pass(300);
    assert_eq!(sent(&seen)["method"], "notifications/cancelled");
    assert_eq!(sent(&seen)["params"]["requestId"], call);
    assert_eq!(seen[1..], [Seen::Abandoned(call), Seen::Done(call, Err("no answer within 3 s".to_owned()))]);
    assert_eq!(rig.hear(json!({ "id": call, "result": {} })), [], "what comes too late is nobody's");
}

#[test]
fn a_cancelled_call_is_called_off_as_its_revision_wants() {
    for (mut rig, by_message) in
        [(Rig::session(), true), (Rig::stateless(Way::Pipe), true), (Rig::stateless(Way::Exchanges), false)]
    {
        let call = rig.call("tools/call", "{}", CallOptions::default());
        rig.seen();
        rig.engine.cancel(CallId(call), "enough");
        let seen = rig.seen();
        let message =
            seen.iter().any(|seen| matches!(seen, Seen::Sent(it) if it["params"]["reason"] == "enough"));
        assert_eq!(message, by_message);
        assert!(seen.ends_with(&[Seen::Abandoned(call), Seen::Done(call, Err("cancelled".to_owned()))]));
    }
}

#[test]
fn questions_of_the_server_are_the_hosts() {
    let mut rig = Rig::session();
    assert_eq!(sent(&rig.hear(json!({ "id": "p", "method": "ping" })))["result"], json!({}));
    assert_eq!(
        rig.hear(json!({ "id": "r", "method": "roots/list" })),
        [Seen::Asked(1, "roots/list".to_owned())]
    );
    let seen = rig.hear(json!({ "id": "r", "method": "roots/list" }));
    assert_eq!(sent(&seen)["error"]["code"], -32600, "the same id twice");
    rig.engine.answer(rig.now, QuestionId(1), Ok(json!({ "roots": [] })));
    assert_eq!(sent(&rig.seen())["result"], json!({ "roots": [] }));
    for (method, params, code) in [
        (
            "elicitation/create",
            json!({ "mode": "url", "message": "m", "url": "https://a", "elicitationId": "1" }),
            -32601,
        ),
        ("elicitation/create", json!({ "message": 1 }), -32602),
        ("tasks/list", json!({}), -32601),
    ] {
        let seen = rig.hear(json!({ "id": 9, "method": method, "params": params }));
        assert_eq!(sent(&seen)["error"]["code"], code, "{method}");
    }
}

#[test]
fn a_question_that_is_called_off_is_answered_no_more() {
    let mut rig = Rig::session();
    rig.hear(json!({ "id": 5, "method": "roots/list" }));
    let seen = rig.hear(json!({ "method": "notifications/cancelled", "params": { "requestId": 5 } }));
    assert_eq!(seen, [Seen::Withdrawn(1)]);
    rig.engine.answer(rig.now, QuestionId(1), Ok(json!({})));
    assert_eq!(rig.seen(), []);
}

#[test]
fn an_open_question_stops_the_clock_but_not_the_total() {
    let mut rig = Rig::session();
    let options = CallOptions {
        idle: Duration::from_secs(1),
        total: Duration::from_secs(60),
        ..CallOptions::default()
    };
    let call = rig.call("tools/call", "{}", options);
    rig.seen();
    rig.hear(json!({ "id": 5, "method": "roots/list" }));
    for _ in 0..59 {
        assert_eq!(rig.pass(1_000), []);
    }
    let seen = rig.pass(1_000);
    assert!(seen.contains(&Seen::Done(call, Err("no answer within 60 s".to_owned()))), "{seen:?}");
}

#[test]
fn a_call_that_needs_input_is_repeated_with_it() {
    let mut rig = Rig::stateless(Way::Exchanges);
    let call = rig.call("tools/call", r#"{"name":"t"}"#, CallOptions::default());
    rig.seen();
    let asked = json!({
        "resultType": "input_required", "requestState": "état\n",
        "inputRequests": { "a": { "method": "roots/list" }, "b": { "method": "roots/list", "params": {} } },
    });
    let seen = rig.hear(json!({ "id": call, "result": asked }));
    assert_eq!(seen, [Seen::Asked(1, "roots/list".to_owned()), Seen::Asked(2, "roots/list".to_owned())]);
    rig.engine.answer(rig.now, QuestionId(2), Ok(json!({ "roots": [2] })));
    assert_eq!(rig.seen(), [], "nothing goes before all is there");
    rig.engine.answer(rig.now, QuestionId(1), Ok(json!({ "roots": [1] })));
    let seen = rig.seen();
    let repeated = sent(&seen);
    assert_ne!(repeated["id"], call);
    assert_eq!(repeated["params"]["name"], "t");
    assert_eq!(repeated["params"]["requestState"], "état\n");
    assert_eq!(repeated["params"]["inputResponses"], json!({ "a": { "roots": [1] }, "b": { "roots": [2] } }));
    let second = repeated["id"].clone();
    let again = json!({ "resultType": "input_required", "requestState": "two" });
    let seen = rig.hear(json!({ "id": second, "result": again }));
    assert_eq!(sent(&seen)["params"].get("inputResponses"), None, "only what was asked for last");
    let third = sent(&seen)["id"].clone();
    assert_eq!(
        rig.hear(json!({ "id": third, "result": { "content": [] } })),
        [Seen::Done(call, Ok(json!({ "content": [] })))]
    );
    assert!(rig.engine.later_rounds.is_empty());
}

#[test]
fn rounds_have_an_end() {
    let mut rig = Rig::stateless(Way::Pipe);
    let call = rig.call("tools/call", "{}", CallOptions::default());
    let mut id = json!(call);
    rig.seen();
    for _ in 0..16 {
        let asked = json!({ "resultType": "input_required", "requestState": "s" });
        id = sent(&rig.hear(json!({ "id": id, "result": asked })))["id"].clone();
    }
    let asked = json!({ "resultType": "input_required", "requestState": "s" });
    let seen = rig.hear(json!({ "id": id, "result": asked }));
    assert!(matches!(&seen[..], [Seen::Done(_, Err(why))] if why.contains("16 times")), "{seen:?}");
}

#[test]
fn input_that_makes_no_sense_ends_the_call() {
    for (asked, why) in [
        (json!({}), "does not say which"),
        (json!({ "inputRequests": { "a": { "method": "tools/call" } } }), "tools/call"),
        (
            json!({ "inputRequests": { "a": { "method": "elicitation/create", "params": { "mode": "url", "message": "m", "url": "https://a" } } } }),
            "which we did not offer",
        ),
    ] {
        let mut rig = Rig::stateless(Way::Pipe);
        let call = rig.call("tools/call", "{}", CallOptions::default());
        rig.seen();
        let mut result = asked;
        result["resultType"] = json!("input_required");
        let seen = rig.hear(json!({ "id": call, "result": result }));
        assert!(matches!(&seen[..], [Seen::Done(_, Err(it))] if it.contains(why)), "{seen:?}");
    }
}

#[test]
fn whoever_wants_to_brings_the_input_by_hand() {
    let mut rig = Rig::stateless(Way::Pipe);
    let call = rig.call("tools/call", "{}", CallOptions { input: Input::Manual, ..CallOptions::default() });
    rig.seen();
    let asked = json!({ "resultType": "input_required", "requestState": "s" });
    assert_eq!(rig.hear(json!({ "id": call, "result": asked })), [Seen::Done(call, Ok(asked))]);
}

#[test]
fn a_lost_session_is_opened_once_more_and_nothing_is_repeated() {
    let mut rig = Rig::session();
    let (one, two) = (
        rig.call("tools/call", "{}", CallOptions::default()),
        rig.call("ping", "{}", CallOptions::default()),
    );
    rig.seen();
    rig.engine.ended(rig.now, Exchange(two), WireError::SessionLost);
    let seen = rig.seen();
    let lost = "the server no longer knows the session".to_owned();
    assert_eq!(seen[..2], [Seen::Done(one, Err(lost.clone())), Seen::Done(two, Err(lost.clone()))]);
    assert_eq!(sent(&seen)["method"], "initialize");
    let id = sent(&seen)["id"].clone();
    let waiting = rig.call("tools/list", "{}", CallOptions::default());
    let seen = rig.hear(json!({ "id": id, "result": initialized("2025-11-25") }));
    assert!(matches!(seen.last(), Some(Seen::Sent(message)) if message["id"] == waiting), "{seen:?}");
    rig.engine.ended(rig.now, Exchange(one), WireError::SessionLost);
    assert_eq!(rig.seen(), [], "what was sent before says nothing about the new session");
    rig.engine.ended(rig.now, Exchange(waiting), WireError::SessionLost);
    assert_eq!(
        rig.seen(),
        [Seen::Done(waiting, Err(lost.clone())), Seen::Closed(lost)],
        "a session that is lost before anything came of it is not opened again"
    );
}

#[test]
fn what_came_for_one_exchange_ends_its_call_only() {
    let mut rig = Rig::session();
    let (one, two) = (
        rig.call("tools/call", "{}", CallOptions::default()),
        rig.call("ping", "{}", CallOptions::default()),
    );
    rig.seen();
    rig.engine.receive(rig.now, Some(Exchange(one)), b"<html>");
    let seen = rig.seen();
    assert!(matches!(&seen[..], [Seen::Noted(_), Seen::Done(it, Err(_))] if *it == one), "{seen:?}");
    rig.engine.closed(WireError::Broken("gone".into()));
    let seen = rig.seen();
    assert!(matches!(&seen[..], [Seen::Done(it, Err(_)), Seen::Closed(_)] if *it == two), "{seen:?}");
    assert_eq!(rig.hear(json!({ "id": two, "result": {} })), []);
    for never in [json!(99), json!("1"), json!(-1)] {
        rig.hear(json!({ "id": never, "result": {} }));
    }
    let broken: Vec<_> = rig.engine.findings().iter().map(|(finding, count)| (finding.rule, count)).collect();
    assert_eq!(broken, [("RPC-01", 1), ("RPC-05", 3)]);
}

#[test]
fn requests_that_a_revision_does_not_have_are_not_sent() {
    let mut rig = Rig::stateless(Way::Pipe);
    let call = rig.call("ping", "{}", CallOptions::default());
    assert_eq!(rig.seen(), [Seen::Done(call, Err("ping does not exist in revision 2026-07-28".to_owned()))]);
    rig.call("ping", "{}", CallOptions { unchecked: true, ..CallOptions::default() });
    assert_eq!(sent(&rig.seen())["method"], "ping");
}

#[test]
fn listening_has_no_deadline_and_ends_when_the_server_says_so() {
    let mut rig = Rig::stateless(Way::Pipe);
    let call = rig.call(
        "subscriptions/listen",
        r#"{"notifications":{"toolsListChanged":true}}"#,
        CallOptions::default(),
    );
    rig.seen();
    assert_eq!(rig.pass(86_400_000), []);
    let meta = json!({ "io.modelcontextprotocol/subscriptionId": call });
    let changed = json!({ "method": "notifications/tools/list_changed", "params": { "_meta": meta } });
    assert_eq!(rig.hear(changed), [Seen::Heard(Some(call), "notifications/tools/list_changed".into())]);
    let over = json!({ "method": "notifications/cancelled", "params": { "requestId": call } });
    assert_eq!(rig.hear(over), [Seen::Done(call, Ok(json!({})))]);
}

#[test]
fn noise_is_noted_once_and_harms_nobody() {
    let mut rig = Rig::session();
    let call = rig.call("ping", "{}", CallOptions::default());
    rig.seen();
    let mut seen = Vec::new();
    for noise in
        ["Server ready", "", "[]", "{\"jsonrpc\":\"2.0\"}", "{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{}}"]
    {
        rig.engine.receive(rig.now, None, noise.as_bytes());
        seen.extend(rig.seen());
    }
    assert_eq!(seen, [Seen::Noted("RPC-01")]);
    assert_eq!(rig.hear(json!({ "id": call, "result": {} })), [Seen::Done(call, Ok(json!({})))]);
}

#[test]
fn roots_that_change_are_told_only_where_somebody_can_hear_it() {
    let mut rig = Rig::session();
    rig.engine.notify("notifications/roots/list_changed", None::<&JsonObject>);
    assert_eq!(sent(&rig.seen())["method"], "notifications/roots/list_changed");
    let mut rig = Rig::stateless(Way::Exchanges);
    rig.engine.notify("notifications/roots/list_changed", None::<&JsonObject>);
    assert_eq!(rig.seen(), []);
}

#[test]
fn a_server_of_the_newest_revision_makes_no_requests() {
    let mut rig = Rig::stateless(Way::Pipe);
    let seen = rig.hear(json!({ "id": 1, "method": "roots/list" }));
    assert_eq!(sent(&seen)["error"]["code"], -32600);
    assert_eq!(seen[0], Seen::Noted("RPC-15"));
}

#[test]
fn results_of_a_type_that_nobody_knows_are_none() {
    let mut rig = Rig::stateless(Way::Pipe);
    for (result, good) in [
        (json!({ "resultType": "complete", "content": [] }), true),
        (json!({ "content": [{ "type": "text", "text": "input_required" }] }), true),
        (json!({ "structuredContent": { "resultType": "other" } }), true),
        (json!({ "resultType": "later" }), false),
    ] {
        let call = rig.call("tools/call", "{}", CallOptions::default());
        rig.seen();
        let seen = rig.hear(json!({ "id": call, "result": result }));
        assert!(matches!(&seen[..], [Seen::Done(_, outcome)] if outcome.is_ok() == good), "{seen:?}");
    }
}

//! Two endpoints on one backplane, as behind a load balancer that sends every request to the other one: clients see one
//! server.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use refmcp_http::Options;
use refmcp_proto::engine::Change;
use refmcp_proto::frame::SseItem;
use refmcp_server::backplane::{Backplane, BackplaneSettings, MemoryBackplane, SessionId};
use refmcp_testkit::paused::real_pause;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::support::faulty_backplane::FaultyBackplane;
use crate::support::http1::Reply;
use crate::support::{LATEST_SESSION, STATELESS, Site, initialize_params, request, text_of};
use crate::websocket;

pub(crate) const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LATEST_SESSION];
/// Longer than anything here takes, even on a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(60);

/// Two replicas, which take turns.
pub(crate) struct Replicas {
    pub(crate) backplane: Arc<MemoryBackplane>,
    /// What may go wrong between each replica and the backplane.
    pub(crate) faults: [Arc<FaultyBackplane>; 2],
    pub(crate) sites: [Site; 2],
    turn: Cell<usize>,
}

impl Replicas {
    pub(crate) async fn open() -> Self {
        Self::open_with(BackplaneSettings::default(), &Options::default()).await
    }

    pub(crate) async fn open_with(settings: BackplaneSettings, options: &Options) -> Self {
        let backplane = Arc::new(MemoryBackplane::new(settings));
        let faults = [(); 2].map(|()| FaultyBackplane::new(backplane.clone()));
        let open = |number: usize| Site::replica(faults[number].clone(), options.clone());
        let sites = [open(0).await, open(1).await];
        Self { backplane, faults, sites, turn: Cell::new(0) }
    }

    /// Lets this replica serve next.
    pub(crate) fn turn_to(&self, number: usize) {
        self.turn.set(number);
    }

    /// The replica whose turn it is.
    fn next(&self) -> &Site {
        self.turn.set(1 - self.turn.get());
        &self.sites[1 - self.turn.get()]
    }

    /// The replica that has served last, and the other one.
    fn last_and_other(&self) -> (&Site, &Site) {
        (&self.sites[1 - self.turn.get()], &self.sites[self.turn.get()])
    }

    async fn until_ended(&self, count: usize) {
        for _ in 0..5000 {
            if self.sites.iter().map(Site::ended).sum::<usize>() >= count {
                return;
            }
            real_pause().await;
        }
        panic!("fewer than {count} calls have ended");
    }
}

/// A client whose requests go to the replicas in turn.
pub(crate) struct Client<'a> {
    pub(crate) replicas: &'a Replicas,
    pub(crate) session: String,
    revision: &'static str,
}

impl<'a> Client<'a> {
    /// A client that goes on with its session.
    pub(crate) fn resumed(replicas: &'a Replicas, session: String, revision: &'static str) -> Self {
        Self { replicas, session, revision }
    }

    /// Posts to this replica.
    pub(crate) async fn post_to(&self, number: usize, body: &Value) -> Reply {
        self.replicas.turn_to(number);
        self.post(body).await
    }

    pub(crate) fn id(&self) -> SessionId {
        SessionId::new(self.session.as_str())
    }

    pub(crate) async fn open(replicas: &'a Replicas, revision: &'static str) -> Self {
        let reply = replicas.next().post(&[], &request("initialize", initialize_params(revision))).await;
        let session = reply.header("mcp-session-id").unwrap().to_owned();
        assert_eq!(reply.json().await["result"]["protocolVersion"], revision);
        let client = Self { replicas, session, revision };
        assert_eq!(client.post(&notification("notifications/initialized", json!({}))).await.status, 202);
        client
    }

    pub(crate) fn headers(&self) -> Vec<(&str, &str)> {
        vec![("Mcp-Session-Id", &self.session), ("MCP-Protocol-Version", self.revision)]
    }

    pub(crate) async fn post(&self, body: &Value) -> Reply {
        self.replicas.next().post(&self.headers(), body).await
    }

    pub(crate) async fn call(&self, id: u64, tool: &str, arguments: Value) -> Reply {
        let params = json!({ "name": tool, "arguments": arguments, "_meta": { "progressToken": id } });
        self.post(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })).await
    }

    /// Sends a request; gives its result.
    pub(crate) async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.post(&request(method, params)).await.answer().await;
        answer.get("result").unwrap_or_else(|| panic!("{method}: {answer}")).clone()
    }

    pub(crate) async fn get(&self, after: Option<&str>) -> Reply {
        let mut headers = self.headers();
        headers.extend(after.map(|id| ("Last-Event-ID", id)));
        self.replicas.next().send("GET", "/mcp", &headers, b"").await
    }

    pub(crate) async fn delete(&self) -> u16 {
        self.replicas.next().send("DELETE", "/mcp", &self.headers(), b"").await.status
    }

    pub(crate) async fn echo(&self, text: &str) {
        let answer = self.call(1, "echo", json!({ "message": text })).await.answer().await;
        assert_eq!(text_of(&answer), text);
    }
}

pub(crate) fn notification(method: &str, params: impl Into<Value>) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params.into() })
}

pub(crate) fn cancel(id: u64) -> Value {
    notification("notifications/cancelled", json!({ "requestId": id }))
}

/// The response to an elicitation.
pub(crate) fn accept(question: &Value) -> Value {
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let result = json!({ "action": "accept", "content": { "confirm": true } });
    json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })
}

pub(crate) async fn next_event(stream: &mut Reply) -> Value {
    timeout(SOON, stream.event()).await.expect("an event in time").expect("an event").1
}

#[tokio::test]
async fn a_session_is_served_by_every_replica() {
    let replicas = Replicas::open().await;
    for revision in SESSIONS {
        let client = Client::open(&replicas, revision).await;
        for turn in 0..6 {
            client.echo(&turn.to_string()).await;
        }
        let answer = client.call(7, "slow", json!({ "ms": 400 })).await.answer().await;
        assert_eq!(text_of(&answer), "slow", "{revision}");
        for site in &replicas.sites {
            let wrong = site.post(&[("Mcp-Session-Id", "unknown")], &request("ping", json!({}))).await;
            assert_eq!(wrong.status, 404);
        }
        assert_eq!(client.delete().await, 204);
        for _ in 0..2 {
            assert_eq!(client.post(&request("ping", json!({}))).await.status, 404, "{revision}");
        }
        assert_eq!(client.delete().await, 404);
    }
}

#[tokio::test]
async fn what_is_set_at_one_replica_holds_at_the_other() {
    let replicas = Replicas::open().await;
    for revision in SESSIONS {
        let client = Client::open(&replicas, revision).await;
        for (level, logged) in [("emergency", false), ("debug", true), ("emergency", false)] {
            client.result("logging/setLevel", json!({ "level": level })).await;
            for _ in 0..2 {
                let mut stream = client.call(9, "whisper", json!({ "secret": "s" })).await;
                let first = next_event(&mut stream).await;
                assert_eq!(first["method"] == "notifications/message", logged, "{revision} {level}: {first}");
                assert_eq!(client.post(&cancel(9)).await.status, 202);
                timeout(SOON, stream.events()).await.expect("the end of a cancelled call");
                replicas.next();
            }
        }
    }
}

#[tokio::test]
async fn an_answer_reaches_the_replica_that_asks() {
    let replicas = Replicas::open().await;
    for revision in ["2025-06-18", LATEST_SESSION] {
        let client = Client::open(&replicas, revision).await;
        let mut ids = Vec::new();
        for turn in 0..4 {
            let mut stream = client.call(5, "ask", json!({})).await;
            let question = next_event(&mut stream).await;
            ids.push(question["id"].clone());
            if turn % 2 == 1 {
                // The response goes to the replica that asks.
                replicas.next();
            }
            assert_eq!(client.post(&accept(&question)).await.status, 202);
            assert_eq!(client.post(&accept(&question)).await.status, 202, "the second is ignored");
            let answer = timeout(SOON, stream.events()).await.unwrap().pop().unwrap().1;
            assert_eq!(text_of(&answer), "sure: true", "{revision}");
            if turn % 2 == 0 {
                replicas.next();
            }
        }
        ids.sort_by_key(Value::as_i64);
        ids.dedup();
        assert_eq!(ids.len(), 4, "no two replicas make the same id: {ids:?}");
        client.echo("on").await;
    }
}

#[tokio::test]
async fn a_call_is_cancelled_at_the_other_replica() {
    let replicas = Replicas::open().await;
    let mut ended = 0;
    for revision in SESSIONS {
        let client = Client::open(&replicas, revision).await;
        let mut stream = client.call(7, "steps", json!({ "n": 100_000, "ms": 5 })).await;
        let mut other = client.call(8, "steps", json!({ "n": 100_000, "ms": 5 })).await;
        next_event(&mut stream).await;
        next_event(&mut other).await;
        for (id, stream) in [(7, stream), (8, other)] {
            replicas.next();
            assert_eq!(client.post(&cancel(id)).await.status, 202);
            let rest = timeout(SOON, stream.events()).await.expect("the end of a cancelled call");
            assert!(rest.iter().all(|(_, message)| message.get("id").is_none()), "{rest:?}");
        }
        ended += 2;
        replicas.until_ended(ended).await;
        if revision >= "2025-06-18" {
            let mut stream = client.call(9, "ask", json!({})).await;
            let question = next_event(&mut stream).await;
            assert_eq!(client.post(&cancel(9)).await.status, 202);
            let rest = timeout(SOON, stream.events()).await.expect("the end of a call that waited");
            assert!(rest.iter().all(|(_, message)| message.get("result").is_none()), "{rest:?}");
            assert_eq!(client.post(&accept(&question)).await.status, 202, "a late answer does no harm");
        }
        client.echo("on").await;
    }
}

#[tokio::test]
async fn a_stream_is_resumed_at_the_other_replica() {
    let replicas = Replicas::open().await;
    for revision in ["2025-03-26", "2025-06-18", LATEST_SESSION] {
        let client = Client::open(&replicas, revision).await;
        let mut stream = client.call(3, "steps", json!({ "n": 6, "ms": 20 })).await;
        let (mut progress, mut last) = (Vec::new(), None);
        let answer = loop {
            let Some((id, message)) = timeout(SOON, stream.event()).await.unwrap() else {
                panic!("{revision}: the stream ended")
            };
            last = id.or(last);
            if message.get("id").is_some() {
                break message;
            }
            progress.push(message["params"]["progress"].as_u64().unwrap());
            drop(stream);
            stream = client.get(last.as_deref()).await;
            assert_eq!(stream.status, 200, "{revision}: {last:?}");
        };
        assert_eq!((progress, text_of(&answer)), ((1..=6).collect(), "6 steps "), "{revision}");
    }
}

/// Checks that a stream has exactly these notifications next.
async fn hears(client: &Client<'_>, stream: &mut Reply, expected: &[&str]) {
    for expected in expected {
        assert_eq!(next_event(stream).await["method"], *expected, "{}", client.revision);
    }
    // A change that is announced after them at each replica comes next.
    for site in &client.replicas.sites {
        site.server.changed(&Change::Resources);
        let next = next_event(stream).await;
        assert_eq!(next["method"], "notifications/resources/list_changed", "{}: {next}", client.revision);
    }
}

#[tokio::test]
async fn changes_reach_a_session_once_from_every_replica() {
    let replicas = Replicas::open().await;
    for revision in SESSIONS {
        let client = Client::open(&replicas, revision).await;
        client.echo("both know the session").await;
        let mut stream = client.get(None).await;
        assert_eq!(stream.status, 200);
        for _ in 0..2 {
            replicas.next().server.changed(&Change::Tools);
            hears(&client, &mut stream, &["notifications/tools/list_changed"]).await;
        }
        let update = || replicas.next().server.resource_updated("note:///a");
        update();
        hears(&client, &mut stream, &[]).await;
        client.result("resources/subscribe", json!({ "uri": "note:///a" })).await;
        for _ in 0..2 {
            update();
            hears(&client, &mut stream, &["notifications/resources/updated"]).await;
        }
        replicas.next();
        client.result("resources/unsubscribe", json!({ "uri": "note:///a" })).await;
        for _ in 0..2 {
            update();
            hears(&client, &mut stream, &[]).await;
        }
        assert_eq!(client.delete().await, 204);
        timeout(SOON, stream.events()).await.expect("the end of the session's stream");
    }
}

#[tokio::test]
async fn changes_reach_a_websocket_once_from_every_replica() {
    let replicas = Replicas::open().await;
    let mut socket = websocket::open(&replicas.sites[0], "/mcp").await;
    websocket::say(&mut socket, &request("ping", json!({}))).await;
    websocket::hear(&mut socket).await;
    for site in replicas.sites.iter().rev() {
        site.server.changed(&Change::Tools);
        let heard = websocket::hear(&mut socket).await;
        assert_eq!(heard["method"], "notifications/tools/list_changed", "{heard}");
    }
    replicas.sites[1].server.changed(&Change::Resources);
    let heard = websocket::hear(&mut socket).await;
    assert_eq!(heard["method"], "notifications/resources/list_changed", "{heard}");
}

#[tokio::test]
async fn a_change_that_cannot_be_published_is_published_later() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    client.echo("both know the session").await;
    replicas.turn_to(0);
    let mut stream = client.get(None).await;
    replicas.faults[1].fail("bump", 2);
    replicas.sites[1].server.changed(&Change::Tools);
    replicas.faults[1].until_called("bump", 3).await;
    assert_eq!(next_event(&mut stream).await["method"], "notifications/tools/list_changed");
}

#[tokio::test]
async fn a_session_that_ends_at_one_replica_ends_at_the_other() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    let mut stream = client.call(7, "steps", json!({ "n": 100_000, "ms": 5 })).await;
    next_event(&mut stream).await;
    let (last, other) = replicas.last_and_other();
    let (last, other) = (last.address, other.address);
    assert_ne!(last, other);
    assert_eq!(client.delete().await, 204);
    timeout(SOON, stream.events()).await.expect("the end of the call's stream");
    replicas.until_ended(1).await;
    for site in &replicas.sites {
        site.until_metric("refmcp_sessions{transport=\"streamable\"}", 0.0).await;
    }
}

#[tokio::test]
async fn http_sse_posts_go_to_any_replica() {
    let replicas = Replicas::open().await;
    let mut stream = replicas.next().send("GET", "/sse", &[], b"").await;
    let Some(SseItem::Event(event)) = stream.item().await else { panic!("no event") };
    let post = async |message: Value| {
        let reply = replicas.next().send("POST", &event.data, &[], message.to_string().as_bytes()).await;
        assert_eq!(reply.status, 202);
    };
    post(request("initialize", initialize_params("2024-11-05"))).await;
    let answer = next_event(&mut stream).await;
    assert_eq!(answer["result"]["protocolVersion"], "2024-11-05", "{answer}");
    post(notification("notifications/initialized", json!({}))).await;
    for turn in 0..4 {
        let params = json!({ "name": "echo", "arguments": { "message": turn.to_string() } });
        post(request("tools/call", params)).await;
        assert_eq!(text_of(&next_event(&mut stream).await), turn.to_string());
    }
    for turn in 0..2 {
        let arguments = json!({ "n": 100_000, "ms": 5 });
        let params = json!({ "name": "steps", "arguments": arguments, "_meta": { "progressToken": 1 } });
        post(json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })).await;
        assert_eq!(next_event(&mut stream).await["method"], "notifications/progress");
        post(cancel(7)).await;
        replicas.until_ended(turn + 1).await;
        replicas.next();
    }
    replicas.next().server.changed(&Change::Tools);
    let mut changes = 0;
    post(request("ping", json!({}))).await;
    loop {
        let message = next_event(&mut stream).await;
        changes += usize::from(message["method"] == "notifications/tools/list_changed");
        if message.get("result").is_some() && changes > 0 {
            break;
        }
        if changes == 0 && message.get("result").is_some() {
            real_pause().await;
            post(request("ping", json!({}))).await;
        }
    }
    assert_eq!(changes, 1);
    drop(stream);
    for site in &replicas.sites {
        site.until_metric("refmcp_sessions{transport=\"http+sse\"}", 0.0).await;
    }
}

/// Whichever replica gets it: also one that has not served the session before.
#[tokio::test]
async fn a_version_header_without_sessions_is_judged_by_the_session_it_is_sent_to() {
    let replicas = Replicas::open().await;
    let [first, second] = &replicas.sites;
    let opened = first.post(&[], &request("initialize", initialize_params(LATEST_SESSION))).await;
    let stateless = ("MCP-Protocol-Version", STATELESS);
    let headers = [("Mcp-Session-Id", opened.header("mcp-session-id").unwrap()), stateless];
    let changed = notification("notifications/roots/list_changed", json!({}));
    for site in [second, first] {
        let refused = site.post(&headers, &changed).await;
        assert_eq!(refused.status, 400);
        let why = refused.json().await["error"]["message"].as_str().unwrap().to_owned();
        assert!(why.contains("this session agreed on 2025-11-25"), "{why}");
    }
    // HTTP+SSE is older than the header.
    let mut stream = first.send("GET", "/sse", &[], b"").await;
    let Some(SseItem::Event(event)) = stream.item().await else { panic!("no event") };
    let ping = request("ping", json!({})).to_string();
    assert_eq!(second.send("POST", &event.data, &[stateless], ping.as_bytes()).await.status, 202);
    assert_eq!(next_event(&mut stream).await["result"], json!({}));
}

#[tokio::test]
async fn a_request_state_is_good_once_at_all_replicas() {
    let replicas = Replicas::open().await;
    let capabilities = json!({ "elicitation": {} });
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    let mut params = json!({ "name": "ask", "arguments": {}, "_meta": meta });
    let ask = async |params: &Value| {
        replicas.next().stateless("tools/call", params.clone(), &[]).await.json().await
    };
    let asked = ask(&params).await;
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answer = json!({ "action": "accept", "content": { "confirm": true } });
    params["inputResponses"] = json!({ key: answer });
    params["requestState"] = asked["result"]["requestState"].clone();
    assert_eq!(text_of(&ask(&params).await), "sure: true");
    for _ in 0..2 {
        let refused = ask(&params).await;
        assert_eq!(refused["error"]["message"], "requestState is not valid", "{refused}");
    }
}

#[tokio::test]
async fn facts_are_written_when_they_change() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    let id = SessionId::new(client.session.as_str());
    let version = async || replicas.backplane.session(&id).await.unwrap().unwrap().version;
    client.echo("both know the session").await;
    let before = version().await;
    for turn in 0..10 {
        client.echo(&turn.to_string()).await;
        client.result("tools/list", json!({})).await;
    }
    assert_eq!(version().await, before);
    for (level, changes) in [("error", 1), ("error", 1), ("debug", 2)] {
        client.result("logging/setLevel", json!({ "level": level })).await;
        assert_eq!(version().await, before + changes, "{level}");
    }
}

#[tokio::test]
async fn facts_that_are_too_large_are_refused() {
    let replicas = Replicas::open().await;
    let mut params = initialize_params(LATEST_SESSION);
    params["clientInfo"]["description"] = "x".repeat(100_000).into();
    let refused = replicas.next().post(&[], &request("initialize", params)).await;
    assert_eq!(refused.header("mcp-session-id"), None);
    let error = refused.json().await["error"]["message"].take();
    assert!(error.as_str().unwrap().contains("params.clientInfo"), "{error}");

    let client = Client::open(&replicas, LATEST_SESSION).await;
    let long = json!({ "uri": format!("note:///{}", "x".repeat(100_000)) });
    let refused = client.post(&request("resources/subscribe", long)).await.answer().await;
    let error = refused["error"]["message"].as_str().unwrap();
    assert!(error.contains("subscriptions") && error.contains("are kept"), "{error}");
    client.echo("on").await;
}

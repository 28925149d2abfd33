//! Replicas whose way to the backplane is slow or breaks, and what several of them do at the same time.

use std::time::Duration;

use refmcp_http::Options;
use refmcp_proto::engine::Change;
use refmcp_proto::frame::SseItem;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_server::backplane::{Backplane, BackplaneSettings};
use refmcp_testkit::paused::{PausedTime, real_pause};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::replicas::{Client, Replicas, SOON, accept, cancel, next_event, notification};
use crate::support::http1::Reply;
use crate::support::{BOTH_KINDS, LATEST_SESSION, initialize_params, request, text_of};

/// The facts of a session as the backplane has them.
async fn facts(client: &Client<'_>) -> Value {
    let record = client.replicas.backplane.session(&client.id()).await.unwrap().unwrap();
    serde_json::from_slice::<Value>(&record.facts).unwrap()["facts"].take()
}

fn set_level(level: &str) -> Value {
    request("logging/setLevel", json!({ "level": level }))
}

fn ping() -> Value {
    request("ping", json!({}))
}

/// A POST whose body comes later than its head.
struct LateBody {
    socket: TcpStream,
    body: String,
}

impl LateBody {
    async fn begin(client: &Client<'_>, number: usize, body: &Value) -> Self {
        let (address, body) = (client.replicas.sites[number].address, body.to_string());
        let mut head = format!("POST /mcp HTTP/1.1\r\nHost: {address}\r\nAccept: {BOTH_KINDS}\r\n");
        for (name, value) in client.headers() {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Type: application/json\r\nContent-Length: {}\r\n\r\n", body.len());
        let mut socket = TcpStream::connect(address).await.unwrap();
        socket.write_all(head.as_bytes()).await.unwrap();
        Self { socket, body }
    }

    async fn finish(mut self) -> Reply {
        self.socket.write_all(self.body.as_bytes()).await.unwrap();
        Reply::read(self.socket, Vec::new()).await.unwrap()
    }
}

#[tokio::test]
async fn changes_at_the_same_time_are_all_kept() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    client.echo("both know the session").await;
    client.echo("both know the session").await;
    let error = &replicas.faults[0];
    let seen = error.called("session");
    let later = LateBody::begin(&client, 0, &set_level("error")).await;
    error.until_called("session", seen + 1).await;

    error.hold("update_session");
    let (saves, debug) = (error.called("update_session"), set_level("debug"));
    let headers = client.headers();
    let first = client.replicas.sites[0].post(&headers, &debug);
    let others = async {
        error.until_called("update_session", saves + 1).await;
        // The other replica changes something, and this one hears of it.
        let seen = error.called("session");
        let subscribe = request("resources/subscribe", json!({ "uri": "note:///a" }));
        assert_eq!(client.post_to(1, &subscribe).await.status, 200);
        error.until_called("session", seen + 1).await;
        let (later, ()) = tokio::join!(later.finish(), async {
            real_pause().await;
            error.release("update_session");
        });
        later.status
    };
    let (first, later) = timeout(SOON, async { tokio::join!(first, others) }).await.unwrap();
    assert_eq!((first.status, later), (200, 200));
    let facts = facts(&client).await;
    assert_eq!((&facts["logLevel"], &facts["subscriptions"]), (&json!("error"), &json!(["note:///a"])));
    replicas.turn_to(0);
    let mut stream = client.get(None).await;
    replicas.sites[0].server.resource_updated("note:///a");
    assert_eq!(next_event(&mut stream).await["method"], "notifications/resources/updated");
}

#[tokio::test]
async fn what_could_not_be_saved_is_saved_later() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    replicas.faults[0].fail("update_session", 2);
    let refused = client.post_to(0, &set_level("debug")).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")));
    assert_eq!(client.post_to(0, &ping()).await.status, 200, "another request is not told");
    for _ in 0..5000 {
        if facts(&client).await["logLevel"] == "debug" {
            return;
        }
        real_pause().await;
    }
    panic!("the level was not saved");
}

#[tokio::test]
async fn what_others_have_changed_is_taken_over_although_saving_fails() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    client.echo("both know the session").await;
    client.echo("both know the session").await;
    let error = &replicas.faults[0];
    error.hold("update_session");
    let (headers, saves) = (client.headers(), error.called("update_session"));
    let subscribe = request("resources/subscribe", json!({ "uri": "note:///a" }));
    let subscribed = replicas.sites[0].post(&headers, &subscribe);
    let others = async {
        error.until_called("update_session", saves + 1).await;
        assert_eq!(client.post_to(1, &set_level("emergency")).await.status, 200);
        // The version is not the latest; what is saved on top of that one does not arrive.
        error.fail_after("update_session", 1, 1);
        error.release("update_session");
    };
    let (subscribed, ()) = timeout(SOON, async { tokio::join!(subscribed, others) }).await.unwrap();
    assert_eq!(subscribed.status, 503);
    error.until_called("update_session", saves + 3).await;
    for _ in 0..5000 {
        if facts(&client).await["subscriptions"] == json!(["note:///a"]) {
            break;
        }
        real_pause().await;
    }
    replicas.turn_to(0);
    let mut stream = client.call(9, "whisper", json!({ "secret": "s" })).await;
    let first = next_event(&mut stream).await;
    assert_eq!(first["method"], "notifications/progress", "no log message of a lower level: {first}");
    assert_eq!(facts(&client).await["logLevel"], "emergency");
}

#[tokio::test]
async fn an_answer_is_not_lost_when_the_log_is_slow() {
    let options = Options { stream_bytes: 20_000, ..Options::default() };
    for method in ["append", "open_stream"] {
        let replicas = Replicas::open_with(BackplaneSettings::default(), &options).await;
        let client = Client::open(&replicas, LATEST_SESSION).await;
        let error = &replicas.faults[0];
        error.hold(method);
        replicas.turn_to(0);
        let called = client.call(9, "steps", json!({ "n": 30, "ms": 0, "note": "x".repeat(5000) }));
        let release = async {
            error.until_called(method, 1).await;
            replicas.sites[0].until_ended(1).await;
            error.release(method);
        };
        let read = async { called.await.events().await };
        let (events, ()) = timeout(SOON, async { tokio::join!(read, release) }).await.expect("an answer");
        let events: Vec<Value> = events.into_iter().map(|(_, event)| event).collect();
        assert!(events.len() < 30, "notifications that do not fit are dropped: {}", events.len());
        assert!(text_of(events.last().unwrap()).starts_with("30 steps"), "{method}: {}", events.len());
        if method == "append" {
            assert_eq!(events[0]["params"]["progress"], 1.0, "what is being written is not dropped");
        }
    }
}

#[tokio::test]
async fn no_request_is_told_of_what_another_one_could_not_share() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    let error = &replicas.faults[0];
    replicas.turn_to(0);
    let mut stream = client.call(9, "ask", json!({})).await;
    next_event(&mut stream).await;
    error.fail("deliver_response", 1);
    let withdrawn = error.called("deliver_response");
    assert_eq!(client.post_to(1, &cancel(9)).await.status, 202);
    // The request to the client is withdrawn, which fails.
    error.until_called("deliver_response", withdrawn + 1).await;
    assert_eq!(client.post_to(0, &ping()).await.status, 200);

    error.fail("cancel", 1);
    assert_eq!(client.post_to(0, &cancel(10)).await.status, 503, "its own request is");
    assert_eq!(client.post_to(0, &cancel(10)).await.status, 202);
}

#[tokio::test]
async fn an_answer_does_not_overtake_its_expectation() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    replicas.faults[0].hold("expect_response");
    replicas.turn_to(0);
    let asked = async {
        let mut stream = client.call(9, "ask", json!({})).await;
        let question = next_event(&mut stream).await;
        assert_eq!(client.post_to(1, &accept(&question)).await.status, 202);
        stream.events().await.pop().unwrap().1
    };
    let release = async {
        replicas.faults[0].until_called("expect_response", 1).await;
        for _ in 0..10 {
            real_pause().await;
        }
        replicas.faults[0].release("expect_response");
    };
    let (answer, ()) = timeout(SOON, async { tokio::join!(asked, release) }).await.unwrap();
    assert_eq!(text_of(&answer), "sure: true");
}

#[tokio::test]
async fn a_call_that_has_ended_leaves_no_stream() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    let error = &replicas.faults[0];
    for (number, method) in ["open_stream", "writer_stopped", "forget"].into_iter().enumerate() {
        let id = 20 + number as u64;
        let forgotten = error.called("forget");
        error.fail(method, 1);
        replicas.turn_to(0);
        let answer = client.call(id, "slow", json!({ "ms": 20 })).await.answer().await;
        assert_eq!(text_of(&answer), "slow", "{method}");
        error.until_called("forget", forgotten + 1).await;
        let mut running = 1;
        for _ in 0..1000 {
            // Cancelling what does not run tells how much did.
            if error.called("forget") > forgotten + usize::from(method == "forget") {
                let request = RequestId::Integer(i64::try_from(id).unwrap());
                running = replicas.backplane.cancel(&client.id(), &request).await.unwrap();
                break;
            }
            real_pause().await;
        }
        assert_eq!(running, 0, "{method}");
    }
}

#[tokio::test]
async fn a_deleted_session_has_ended_when_that_is_answered() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    let error = &replicas.faults[0];
    error.fail("close_session", 1);
    replicas.turn_to(0);
    assert_eq!(client.delete().await, 503);
    assert_eq!(client.post_to(0, &ping()).await.status, 200, "it goes on");
    error.hold("close_session");
    replicas.turn_to(0);
    let held = async {
        error.until_called("close_session", 2).await;
        for _ in 0..10 {
            real_pause().await;
        }
        let is_open = replicas.backplane.session(&client.id()).await.unwrap().is_some();
        error.release("close_session");
        is_open
    };
    let deleted = async { (client.delete().await, replicas.backplane.session(&client.id()).await.unwrap()) };
    let (deleted, was_open) = timeout(SOON, async { tokio::join!(deleted, held) }).await.unwrap();
    assert_eq!((deleted, was_open), ((204, None), true));
    assert_eq!(client.post_to(1, &ping()).await.status, 404);
}

#[tokio::test]
async fn a_replica_that_stops_leaves_readers_of_others_alone() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    replicas.turn_to(0);
    let first = client.get(None).await;
    replicas.turn_to(1);
    let mut second = client.get(None).await;
    timeout(SOON, first.events()).await.expect("the end of the first reader");
    replicas.sites[0].stop.cancel();
    for _ in 0..20 {
        real_pause().await;
    }
    replicas.sites[1].server.changed(&Change::Tools);
    assert_eq!(next_event(&mut second).await["method"], "notifications/tools/list_changed");
    replicas.sites[1].stop.cancel();
    timeout(SOON, second.events()).await.expect("the end of the second reader");
}

#[tokio::test]
async fn a_session_in_use_elsewhere_is_not_closed() {
    let options = Options { initialize_within: Duration::from_secs(20), ..Options::default() };
    let replicas = Replicas::open_with(BackplaneSettings::default(), &options).await;
    let time = PausedTime::start();
    let reply = replicas.sites[0].post(&[], &request("initialize", initialize_params(LATEST_SESSION))).await;
    let session = reply.header("mcp-session-id").unwrap().to_owned();
    let headers = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", LATEST_SESSION)];
    for _ in 0..5 {
        time.advance(Duration::from_secs(8)).await;
        assert_eq!(replicas.sites[1].post(&headers, &ping()).await.status, 200);
    }
    let ready = notification("notifications/initialized", json!({}));
    assert_eq!(replicas.sites[0].post(&headers, &ready).await.status, 202);
}

#[tokio::test]
async fn an_answer_that_does_not_fit_is_an_error() {
    let settings = BackplaneSettings { stream_bytes: 20_000, ..BackplaneSettings::default() };
    let replicas = Replicas::open_with(settings, &Options::default()).await;
    let mut stream = replicas.sites[0].send("GET", "/sse", &[], b"").await;
    let Some(SseItem::Event(event)) = stream.item().await else { panic!("no event") };
    let post = async |number: usize, message: Value| {
        let body = message.to_string();
        assert_eq!(replicas.sites[number].send("POST", &event.data, &[], body.as_bytes()).await.status, 202);
    };
    post(0, request("initialize", initialize_params("2024-11-05"))).await;
    next_event(&mut stream).await;
    post(1, notification("notifications/initialized", json!({}))).await;
    for number in 0..2 {
        let arguments = json!({ "message": "x".repeat(30_000) });
        let mut call = request("tools/call", json!({ "name": "echo", "arguments": arguments }));
        call["id"] = json!("long");
        post(number, call).await;
        let answer = next_event(&mut stream).await;
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&json!("long"), &json!(-32603)), "{answer}");
        let why = answer["error"]["message"].as_str().unwrap();
        assert!(why.contains("no room in the log"), "{why}");
    }
}

#[tokio::test]
async fn a_request_to_the_client_that_does_not_fit_fails() {
    let settings = BackplaneSettings { stream_bytes: 20_000, ..BackplaneSettings::default() };
    let replicas = Replicas::open_with(settings, &Options::default()).await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    let stream = client.call(9, "whisper", json!({ "secret": "x".repeat(30_000) })).await;
    let answer = timeout(SOON, stream.events()).await.expect("an answer").pop().unwrap().1;
    assert!(answer.to_string().contains("no room in the log"), "{answer}");
}

#[tokio::test]
async fn a_request_whose_response_cannot_be_expected_is_not_sent() {
    let settings = BackplaneSettings { pending_requests: 1, ..BackplaneSettings::default() };
    let replicas = Replicas::open_with(settings, &Options::default()).await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    let mut first = client.call(8, "ask", json!({})).await;
    let question = next_event(&mut first).await;
    let second = client.call(9, "ask", json!({})).await;
    let events = timeout(SOON, second.events()).await.expect("an answer");
    let events: Vec<Value> = events.into_iter().map(|(_, event)| event).collect();
    assert!(events.last().unwrap().to_string().contains("too many requests to the client"), "{events:?}");
    assert_eq!(events.len(), 1, "no response to it would be known: {events:?}");
    assert_eq!(client.post(&accept(&question)).await.status, 202);
    assert_eq!(text_of(&timeout(SOON, first.events()).await.unwrap().pop().unwrap().1), "sure: true");
}

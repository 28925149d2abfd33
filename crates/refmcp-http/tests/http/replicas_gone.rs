//! Calls whose replica goes away: another one goes on with those that wait for input, and ends the others with an error.

use std::time::Duration;

use refmcp_server::backplane::Backplane;
use refmcp_testkit::paused::{PausedTime, real_pause};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::replicas::{Client, Replicas, SOON, accept, cancel};
use crate::support::http1::Reply;
use crate::support::{LATEST_SESSION, text_of};

/// What a replica does with the backplane for a call that it runs.
const RUNNING: [&str; 5] = ["append", "claim", "forget", "park", "renew_replica"];

/// Starts a call at the first replica; gives its question, and the id of the event.
async fn ask(client: &Client<'_>, id: u64) -> (Reply, Value, String) {
    client.replicas.turn_to(0);
    let mut stream = client.call(id, "ask", json!({})).await;
    let (event, question) = timeout(SOON, stream.event()).await.unwrap().expect("a question");
    (stream, question, event.expect("an event with an id"))
}

/// All that follows an event, read at the second replica.
async fn rest(client: &Client<'_>, after: &str) -> Vec<Value> {
    client.replicas.turn_to(1);
    let stream = client.get(Some(after)).await;
    assert_eq!(stream.status, 200);
    let events = timeout(SOON, stream.events()).await.expect("the end of the stream");
    events.into_iter().map(|(_, message)| message).collect()
}

/// Stops the first replica, whose client reads a stream there.
async fn stop_first(replicas: &mut Replicas, stream: Reply) {
    drop(stream);
    let site = &mut replicas.sites[0];
    site.stop.cancel();
    timeout(SOON, &mut site.served).await.expect("the end of the replica").unwrap();
}

#[tokio::test]
async fn a_call_that_waits_for_input_outlives_its_replica() {
    for revision in ["2025-06-18", LATEST_SESSION] {
        let mut replicas = Replicas::open().await;
        let (session, stream, question, event);
        {
            let client = Client::open(&replicas, revision).await;
            (stream, question, event) = ask(&client, 5).await;
            session = client.session.clone();
        }
        stop_first(&mut replicas, stream).await;
        let client = Client::resumed(&replicas, session, revision);
        assert_eq!(client.post_to(1, &accept(&question)).await.status, 202);
        let messages = rest(&client, &event).await;
        let [answer] = &messages[..] else { panic!("{revision}: {messages:?}") };
        assert_eq!((&answer["id"], text_of(answer)), (&json!(5), "sure: true"), "{revision}");
        replicas.turn_to(1);
        assert_eq!(client.post(&accept(&question)).await.status, 202, "a second answer is ignored");
        replicas.turn_to(1);
        client.echo("on").await;
    }
}

#[tokio::test]
async fn a_reader_that_resumes_first_gets_the_result_too() {
    let mut replicas = Replicas::open().await;
    let (session, stream, question, event);
    {
        let client = Client::open(&replicas, LATEST_SESSION).await;
        (stream, question, event) = ask(&client, 5).await;
        session = client.session.clone();
    }
    stop_first(&mut replicas, stream).await;
    let client = Client::resumed(&replicas, session, LATEST_SESSION);
    let read = rest(&client, &event);
    let answer = async {
        real_pause().await;
        assert_eq!(client.replicas.sites[1].post(&client.headers(), &accept(&question)).await.status, 202);
    };
    let (messages, ()) = tokio::join!(read, answer);
    let [answer] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(text_of(answer), "sure: true");
}

#[tokio::test]
async fn a_replica_that_comes_back_writes_nothing() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    client.echo("both know the session").await;
    let (stream, question, event) = ask(&client, 5).await;
    // The first replica stops in the middle of things.
    for method in ["claim", "append"] {
        replicas.faults[0].hold(method);
    }
    assert_eq!(client.post_to(1, &accept(&question)).await.status, 202);
    drop(stream);
    let messages = rest(&client, &event).await;
    let [answer] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(text_of(answer), "sure: true");
    // It was woken by the answer, and goes on only now.
    replicas.faults[0].until_called("claim", 1).await;
    for method in ["claim", "append"] {
        replicas.faults[0].release(method);
    }
    for _ in 0..20 {
        real_pause().await;
    }
    let again = rest(&client, &event).await;
    assert_eq!(again, messages, "the result is there once");
    for number in 0..2 {
        replicas.turn_to(number);
        client.echo("on").await;
        let served = replicas.sites[number].metric("refmcp_requests_in_flight").await;
        assert!(served <= 1.0, "only the one that asks for the metrics: {served}");
    }
}

#[tokio::test]
async fn a_call_that_was_cancelled_does_not_go_on() {
    let mut replicas = Replicas::open().await;
    let (session, stream, question);
    {
        let client = Client::open(&replicas, LATEST_SESSION).await;
        (stream, question, _) = ask(&client, 5).await;
        session = client.session.clone();
    }
    stop_first(&mut replicas, stream).await;
    let client = Client::resumed(&replicas, session, LATEST_SESSION);
    assert_eq!(client.post_to(1, &cancel(5)).await.status, 202);
    assert_eq!(client.post_to(1, &accept(&question)).await.status, 202);
    let error = &replicas.faults[1];
    error.until_called("claim", 1).await;
    replicas.turn_to(1);
    client.echo("on").await;
    let keys = replicas.backplane.parked_keys(&client.id()).await.unwrap();
    assert_eq!(keys.len(), 1, "it was not claimed, and is there until it expires");
    assert_eq!(error.called("append"), 0, "it has sent nothing");
}

/// Starts a call at the first replica that takes steps without end; gives its stream and the id of the first event.
async fn take_steps(client: &Client<'_>, id: u64) -> (Reply, String) {
    client.replicas.turn_to(0);
    let mut stream = client.call(id, "steps", json!({ "n": 1_000_000, "ms": 20, "note": "" })).await;
    let (event, _) = timeout(SOON, stream.event()).await.unwrap().expect("a step");
    (stream, event.expect("an event with an id"))
}

/// All that follows an event, read at the second replica after so many seconds.
async fn rest_after(client: &Client<'_>, after: &str, seconds: u64, paused: &PausedTime) -> Vec<Value> {
    client.replicas.turn_to(1);
    let stream = client.get(Some(after)).await;
    for _ in 0..seconds {
        paused.advance(Duration::from_secs(1)).await;
    }
    stream.events().await.into_iter().map(|(_, message)| message).collect()
}

#[tokio::test]
async fn a_call_that_ran_at_a_replica_that_is_gone_ends_with_an_error() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    client.echo("both know the session").await;
    let (stream, event) = take_steps(&client, 5).await;
    let first = &replicas.faults[0];
    first.until_called("park", 1).await;
    RUNNING.iter().for_each(|method| first.hold(method));
    drop(stream);
    let paused = PausedTime::start();
    let messages = rest_after(&client, &event, 16, &paused).await;
    let error = messages.last().unwrap();
    let text = error["error"]["message"].as_str().unwrap_or_else(|| panic!("{error}"));
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(5), &json!(-32603)));
    assert!(text.contains("the process that ran the call has stopped"), "{text}");
    assert_eq!(messages.iter().filter(|message| message.get("id").is_some()).count(), 1);
    drop(paused);
    // The first replica was only slow: it can add nothing.
    RUNNING.iter().for_each(|method| first.release(method));
    for _ in 0..20 {
        real_pause().await;
    }
    assert_eq!(rest(&client, &event).await, messages);
    client.echo("on").await;
}

#[tokio::test]
async fn a_call_whose_replica_is_there_is_left_alone() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    client.echo("both know the session").await;
    client.replicas.turn_to(0);
    let mut stream = client.call(5, "steps", json!({ "n": 30, "ms": 900, "note": "" })).await;
    let (event, _) = stream.event().await.expect("a step");
    drop(stream);
    replicas.faults[0].until_called("park", 1).await;
    let paused = PausedTime::start();
    let messages = rest_after(&client, &event.unwrap(), 40, &paused).await;
    assert_eq!(text_of(messages.last().unwrap()), "30 steps ", "{messages:?}");
    drop(paused);
    let keys = replicas.backplane.parked_keys(&client.id()).await.unwrap();
    assert_eq!(keys, [], "nothing is left of it");
}

#[tokio::test]
async fn a_call_that_waits_and_runs_again_is_known_by_the_run_that_it_is_in() {
    let replicas = Replicas::open().await;
    let client = Client::open(&replicas, LATEST_SESSION).await;
    let (stream, question, event) = ask(&client, 5).await;
    for _ in 0..5000 {
        let keys = replicas.backplane.parked_keys(&client.id()).await.unwrap();
        if keys.iter().all(|key| !key.starts_with("run/")) {
            break;
        }
        real_pause().await;
    }
    let keys = replicas.backplane.parked_keys(&client.id()).await.unwrap();
    assert_eq!(keys.len(), 1, "it waits, and does not run: {keys:?}");
    assert_eq!(client.post_to(0, &accept(&question)).await.status, 202);
    drop(stream);
    let messages = rest(&client, &event).await;
    assert_eq!(text_of(&messages[0]), "sure: true");
    for _ in 0..5000 {
        if replicas.backplane.parked_keys(&client.id()).await.unwrap().is_empty() {
            return;
        }
        real_pause().await;
    }
    panic!("something is left of the call");
}

//! Calls that wait for input while their replica goes away: another one goes on with them.

use refmcp_server::backplane::Backplane;
use refmcp_testkit::paused::real_pause;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::replicas::{Client, Replicas, SOON, accept, cancel};
use crate::support::http1::Reply;
use crate::support::{LATEST_SESSION, text_of};

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

//! A process or Redis is killed, stopped, or away for a while.

use std::fs;

use serde_json::json;

use crate::support::{Server, program, signal, wait_for};
use crate::{Client, Replicas, accept, next_message, rest};

/// The other process goes on with a call that waits for input when the one that asked is killed.
#[test]
fn a_call_that_waits_outlives_its_process() {
    let mut replicas = Replicas::start();
    for _ in 0..2 {
        let (session, id, question);
        {
            let client = Client::open(&replicas);
            let mut stream = client.call_at(0, 5, "ask_user", &json!({ "form": "confirm" }));
            (id, question) = next_message(&mut stream);
            session = client.session.clone();
        }
        replicas.servers[0].signal("KILL");
        replicas.servers[0].exit();
        let client = Client { replicas: &replicas, session };
        assert_eq!(client.post_to(1, &accept(&question)).status, 202);
        let answer = rest(client.resume_at(1, &id)).pop().expect("an answer");
        assert_eq!(answer["result"]["structuredContent"]["action"], "accept", "{answer}");
        assert_eq!(answer["id"], 5);
        client.works_at(1);
        // The next one is asked by a new process.
        replicas.servers[0] = Replicas::server(&replicas.redis);
        replicas.wait_until_ready(0, true);
    }
}

/// A process that is stopped for a while, and whose call another one has gone on with, sends nothing twice.
#[test]
fn a_stopped_process_finds_its_call_taken() {
    let replicas = Replicas::start();
    let client = Client::open(&replicas);
    let mut stream = client.call_at(0, 5, "ask_user", &json!({ "form": "confirm" }));
    let (id, question) = next_message(&mut stream);
    replicas.servers[0].signal("STOP");
    assert_eq!(client.post_to(1, &accept(&question)).status, 202);
    let answers = rest(client.resume_at(1, &id));
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(answers[0]["result"]["structuredContent"]["action"], "accept", "{answers:?}");
    replicas.servers[0].signal("CONT");
    client.works_at(0);
    let again = rest(client.resume_at(0, &id));
    assert_eq!(again, answers, "the result is there once");
}

#[test]
fn redis_is_killed_and_comes_back() {
    let mut replicas = Replicas::start();
    let (session, id, question);
    {
        let client = Client::open(&replicas);
        client.works();
        let mut stream = client.call_at(0, 5, "ask_user", &json!({ "form": "confirm" }));
        (id, question) = next_message(&mut stream);
        session = client.session.clone();
    }
    replicas.redis.kill();
    for number in 0..2 {
        let why = replicas.wait_until_ready(number, false);
        assert!(why.contains("backplane"), "{why}");
        let client = Client { replicas: &replicas, session: session.clone() };
        let refused = client.call_at(number, 6, "sum", &json!({ "a": 1, "b": 2 }));
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.head);
        let params = json!({ "name": "sum", "arguments": { "a": 1, "b": 2 } });
        let answer = replicas.post_stateless(number, "tools/call", "sum", params).json();
        assert_eq!(answer["result"]["structuredContent"]["total"], 3, "it needs no session: {answer}");
    }
    replicas.redis.run();
    for number in 0..2 {
        replicas.wait_until_ready(number, true);
    }
    let client = Client { replicas: &replicas, session };
    client.works();
    assert_eq!(client.post_to(1, &accept(&question)).status, 202);
    let answer = rest(client.resume_at(1, &id)).pop().expect("an answer");
    assert_eq!(answer["result"]["structuredContent"]["action"], "accept", "{answer}");
}

/// A Redis that takes everything and answers nothing is away, too: nothing hangs.
#[test]
fn redis_is_stopped_and_goes_on() {
    let replicas = Replicas::start();
    let client = Client::open(&replicas);
    client.works();
    signal("STOP", replicas.redis.process_id());
    for number in 0..2 {
        let refused = client.call_at(number, 6, "sum", &json!({ "a": 1, "b": 2 }));
        assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.head);
        replicas.wait_until_ready(number, false);
        let params = json!({ "name": "sum", "arguments": { "a": 1, "b": 2 } });
        let answer = replicas.post_stateless(number, "tools/call", "sum", params).json();
        assert_eq!(answer["result"]["structuredContent"]["total"], 3, "it needs no session: {answer}");
    }
    signal("CONT", replicas.redis.process_id());
    for number in 0..2 {
        replicas.wait_until_ready(number, true);
    }
    client.works();
}

/// What a killed process has sent can be resumed at the other one, which ends the call, and the session goes on there.
#[test]
fn a_call_of_a_killed_process_ends_with_an_error() {
    let mut replicas = Replicas::start();
    let (session, first, second, progress);
    {
        let client = Client::open(&replicas);
        let mut stream = client.call_at(0, 3, "long_task", &json!({ "steps": 1000, "step_ms": 20 }));
        (first, _) = next_message(&mut stream);
        (second, progress) = next_message(&mut stream);
        session = client.session.clone();
    }
    replicas.servers[0].signal("KILL");
    replicas.servers[0].exit();
    let client = Client { replicas: &replicas, session };
    let mut resumed = client.resume_at(1, &first);
    assert_eq!(next_message(&mut resumed), (second, progress));
    client.works_at(1);
    let messages = rest(resumed);
    let responses: Vec<_> = messages.iter().filter(|message| message.get("id").is_some()).collect();
    let [error] = responses[..] else { panic!("{messages:?}") };
    assert_eq!((&error["id"], &error["error"]["code"]), (&json!(3), &json!(-32603)), "{error}");
    assert!(error["error"]["message"].as_str().unwrap().contains("has stopped"), "{error}");
    assert_eq!(client.delete_at(1), 204);
}

#[test]
fn a_process_that_stops_leaves_the_session_to_the_other() {
    let mut replicas = Replicas::start();
    let session = Client::open(&replicas).session;
    replicas.servers[1].signal("TERM");
    assert_eq!(replicas.servers[1].exit().code(), Some(0));
    let client = Client { replicas: &replicas, session };
    client.works_at(0);
}

#[test]
fn wrong_options_say_what_to_do_and_no_secret() {
    let replicas = Replicas::start();
    let folder = replicas.redis.folder();
    let (good, bad) = (folder.join("state.key"), folder.join("bad.key"));
    fs::write(&bad, "c2hvcnQ=\n").unwrap();
    let (good, bad) = (good.to_str().unwrap(), bad.to_str().unwrap());
    let address = replicas.redis.address("");
    for (options, says) in [
        (vec!["--backplane", "redis://:SECRET@127.0.0.1:1"], "--state-key-file"),
        (vec!["--backplane", "redis://:SECRET@127.0.0.1:1", "--state-key-file", good], "127.0.0.1:1"),
        (vec!["--backplane", "http://:SECRET@127.0.0.1", "--state-key-file", good], "scheme"),
        (vec!["--backplane", &address, "--state-key-file", bad], "openssl rand -base64 32"),
        (vec!["--backplane", &address, "--state-key-file", "/nowhere"], "/nowhere"),
        (
            vec!["--backplane", &address, "--state-key-file", good, "--backplane-prefix", "a b"],
            "--backplane-prefix",
        ),
        (vec!["--backplane-volatile"], "--backplane"),
        (vec!["--backplane", &address, "--state-key-file", good, "--audit"], "--audit"),
        (vec!["--backplane", &address, "--state-key-file", good, "--tour"], "--tour"),
    ] {
        let mut serve = program(&["serve", "--port", "0"]);
        let output = serve.args(&options).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{options:?}");
        assert!(errors.contains(says), "{options:?}: {errors}");
        assert!(!errors.contains("SECRET"), "{options:?}: {errors}");
    }
}

#[test]
fn another_key_is_noticed() {
    let replicas = Replicas::start();
    let key = replicas.redis.folder().join("other.key");
    fs::write(&key, "OTg3NjU0MzIxMDk4NzY1NDMyMTA5ODc2NTQzMjEwOTg=\n").unwrap();
    let log = tempfile::NamedTempFile::new().unwrap();
    let options = ["--backplane", &replicas.redis.address(""), "--state-key-file", key.to_str().unwrap()];
    let _server = Server::start_logging(&options, log.reopen().unwrap());
    wait_for("a warning", || {
        let text = fs::read_to_string(log.path()).unwrap();
        text.contains("give all replicas the same options and keys").then_some(())
    });
}

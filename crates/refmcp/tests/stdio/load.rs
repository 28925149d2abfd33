//! Much at once: many calls, large results, slow readers, slow tools.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Client, Process, Version, program, text_of, wait_until};

const SESSION: Version = Version::Session("2025-06-18");

/// Memory that a peer may cost that sends and never reads.
const BOUND: f64 = 200.0;

#[test]
fn a_peer_that_never_reads_costs_bounded_memory() {
    const CALLS: u64 = 5000;
    let version = Version::Stateless;
    let mut process = Process::spawn_unread(program(&["stdio"]));
    let calls: String =
        (0..CALLS).map(|id| version.call(id, "big_result", &json!({ "bytes": 65_536 })) + "\n").collect();
    process.send(calls);
    // It has taken in what it takes once its memory stands still.
    let (mut before, mut calm, start) = (0.0, 0, Instant::now());
    while calm < 5 && start.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(100));
        let now = process.memory("VmRSS");
        calm = if now <= before { calm + 1 } else { 0 };
        before = now;
    }
    process.start_reading();
    let mut client = Client::with(version, process);
    let mut answered = BTreeSet::new();
    for _ in 0..CALLS {
        let answer = client.next();
        assert!(answered.insert(answer["id"].as_u64()), "twice: {}", answer["id"]);
        let full = text_of(&answer).len() == 65_536;
        assert!(full || answer["error"]["message"].to_string().contains("too many"), "{}", answer["error"]);
    }
    assert_eq!(answered.len() as u64, CALLS);
    client.hears_nothing("every answer once");
    let highest = client.process.memory("VmHWM");
    assert!(highest < BOUND, "{highest} MiB at the most");
}

#[test]
fn a_slow_tool_delays_no_other_call() {
    for version in [SESSION, Version::Stateless] {
        let mut client = Client::start(version, &["--grace", "0"]);
        client.process.send_line(version.call("slow", "slow", &json!({ "ms": 600_000 })));
        // Each is answered before the slow one, which would outlast any patience.
        for _ in 0..100 {
            client.is_served();
        }
        client.hears_nothing("the slow one is still under way");
        client.notify("notifications/cancelled", &json!({ "requestId": "slow" }));
        client.is_served();
    }
}

#[test]
fn large_answers_never_mix() {
    const CALLS: u64 = 200;
    let mut client = Client::start(SESSION, &[]);
    for id in 0..CALLS {
        client.process.send_line(SESSION.call(id, "big_result", &json!({ "bytes": 65_536 })));
    }
    let mut answered = BTreeSet::new();
    for _ in 0..CALLS {
        let answer = client.next();
        assert_eq!(text_of(&answer).len(), 65_536);
        assert!(answered.insert(answer["id"].as_u64()), "{}", answer["id"]);
    }
    assert_eq!(answered, (0..CALLS).map(Some).collect());
    client.hears_nothing("every answer once");
}

#[test]
fn cancelled_calls_are_never_answered() {
    for version in [SESSION, Version::Stateless] {
        // Were a call left, the server would wait for it longer than this test does.
        let mut client = Client::start(version, &["--grace", "600"]);
        let arguments = json!({ "steps": 10_000, "step_ms": 20, "tag": "many" });
        for id in 0..100 {
            client.process.send_line(version.call(id, "long_task", &arguments));
        }
        client.is_served();
        for id in 0..100 {
            client.notify("notifications/cancelled", &json!({ "requestId": id }));
        }
        client.hears_nothing("all were cancelled");
        wait_until("the end of all of them", || {
            let seen = client.call("cancellations", &json!({ "tag": "many" }));
            seen.to_string().matches("\"many\"").count() >= 100
        });
        client.process.close_input();
        let exit = client.process.exit();
        assert!(exit.lines.is_empty(), "nothing was left: {exit:?}");
    }
}

#[test]
fn more_calls_than_are_served_at_once_are_refused() {
    let mut client = Client::start(SESSION, &["--grace", "0.1"]);
    for id in 0..1100 {
        client.process.send_line(SESSION.call(id, "slow", &json!({ "ms": 600_000 })));
    }
    let refused: Vec<Value> = (0..76).map(|_| client.next()).collect();
    for answer in &refused {
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        assert!(answer["id"].as_u64() >= Some(1024), "{answer}");
    }
    client.notify("notifications/cancelled", &json!({ "requestId": 0 }));
    client.hears_nothing("there is room again");
}

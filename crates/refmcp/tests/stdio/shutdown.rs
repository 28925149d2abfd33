//! The end of the server: of its input, by a signal, by an output that is not read.

use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Client, Exit, Process, Version, program, text_of, wait_until};

const SESSION: Version = Version::Session("2025-06-18");

fn ended_well(exit: &Exit) {
    assert_eq!(exit.status.code(), Some(0), "{exit:?}");
    assert_eq!(exit.errors, "", "{exit:?}");
}

fn messages(exit: &Exit) -> Vec<Value> {
    exit.lines.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[test]
fn calls_in_flight_are_answered_when_the_input_ends() {
    for version in [SESSION, Version::Stateless] {
        let mut client = Client::start(version, &[]);
        for id in 0..20 {
            client.process.send_line(version.call(id, "slow", &json!({ "ms": 200 })));
        }
        // The last line has no end.
        client.process.send(version.call("last", "echo", &json!({ "message": "x" })));
        client.process.close_input();
        let exit = client.process.exit();
        ended_well(&exit);
        let mut ids: Vec<String> = messages(&exit).iter().map(|message| message["id"].to_string()).collect();
        ids.sort();
        let mut expected: Vec<String> =
            (0..20).map(|id| id.to_string()).chain(["\"last\"".to_owned()]).collect();
        expected.sort();
        assert_eq!(ids, expected);
    }
}

#[test]
fn a_call_of_minutes_is_given_up_after_the_grace() {
    let version = SESSION;
    let mut client = Client::start(version, &["--grace", "0.5"]);
    client.process.send_line(version.call(7, "slow", &json!({ "ms": 600_000 })));
    client.is_served();
    client.process.close_input();
    let exit = client.process.exit();
    ended_well(&exit);
    assert!(exit.took >= Duration::from_millis(300), "{:?}", exit.took);
    assert!(exit.lines.is_empty(), "{exit:?}");
}

#[test]
fn questions_are_given_up_when_the_input_ends() {
    // The grace is for calls that run. A request to a client that left is not waited for.
    let mut client = Client::start(SESSION, &["--grace", "600"]);
    client.process.send_line(SESSION.call(7, "ask_user", &json!({ "form": "confirm" })));
    client.notification("elicitation/create");
    client.process.close_input();
    let exit = client.process.exit();
    ended_well(&exit);
    let messages = messages(&exit);
    let answer = messages.iter().find(|message| message["id"] == 7).expect("the call is answered");
    assert!(answer["error"].is_object(), "{answer}");
}

#[test]
fn signals_end_it_after_the_calls_in_flight() {
    for signal in ["TERM", "INT"] {
        let mut client = Client::start(SESSION, &[]);
        client.process.send_line(SESSION.call(7, "slow", &json!({ "ms": 300 })));
        client.is_served();
        client.process.signal(signal);
        let exit = client.process.exit();
        ended_well(&exit);
        let messages = messages(&exit);
        assert_eq!(messages.len(), 1, "{exit:?}");
        assert_eq!(text_of(&messages[0]), "slept for 300 ms");
    }
}

#[test]
fn signals_end_it_although_a_call_takes_minutes() {
    for signal in ["TERM", "INT"] {
        let mut client = Client::start(SESSION, &["--grace", "0.3"]);
        client.process.send_line(SESSION.call(7, "slow", &json!({ "ms": 600_000 })));
        client.is_served();
        client.process.signal(signal);
        let exit = client.process.exit();
        ended_well(&exit);
    }
}

#[test]
fn listeners_are_told_that_it_ends() {
    let mut client = Client::start(Version::Stateless, &[]);
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    for id in ["a", "b"] {
        client.process.send_line(Version::Stateless.request(id, "subscriptions/listen", &wanted));
        client.notification("notifications/subscriptions/acknowledged");
    }
    client.process.signal("TERM");
    let exit = client.process.exit();
    ended_well(&exit);
    let messages = messages(&exit);
    for id in ["a", "b"] {
        let cancelled = messages.iter().position(|message| {
            message["method"] == "notifications/cancelled" && message["params"]["requestId"] == id
        });
        let result = messages.iter().position(|message| message["id"] == id && message["result"].is_object());
        assert!(cancelled.is_some() && cancelled < result, "{messages:?}");
    }
}

/// A pipe without a reader is a client that left.
#[test]
fn closed_output_is_no_error() {
    for args in [&["stdio"][..], &["--log", "info", "stdio"]] {
        let mut process = Process::spawn_unread(program(args));
        process.close_output();
        process.send_line(Client::initialize("2025-06-18"));
        let exit = process.exit();
        assert_eq!(exit.status.code(), Some(0), "{exit:?}");
        let ugly = ["panicked", "Broken pipe", "rror"];
        assert!(ugly.iter().all(|word| !exit.errors.contains(word)), "{exit:?}");
        assert!(args.len() > 1 || exit.errors.is_empty(), "{exit:?}");
    }
}

/// Sends calls until more has been made than a pipe holds, and reads nothing.
fn with_full_output(grace: &str) -> Process {
    let process = Process::spawn_unread(program(&["--log", "info", "stdio", "--grace", grace]));
    for id in 0..50 {
        process.send_line(Version::Stateless.call(id, "big_result", &json!({ "bytes": 100_000 })));
    }
    wait_until("eight calls in the log", || process.errors().matches("big_result").count() >= 8);
    process
}

#[test]
fn full_output_does_not_hold_back_a_signal() {
    let process = with_full_output("0.3");
    process.signal("TERM");
    let exit = process.exit();
    assert_eq!(exit.status.code(), Some(0), "{exit:?}");
}

#[test]
fn full_output_is_read_after_the_input_has_ended() {
    let mut process = with_full_output("60");
    process.close_input();
    process.start_reading();
    let exit = process.exit();
    assert_eq!(exit.status.code(), Some(0), "{exit:?}");
    assert_eq!(messages(&exit).len(), 50, "every call is answered");
}

//! Requests that are still running: their ids are taken, and they can be cancelled.

use serde_json::json;

use crate::support::{Client, text_of};
use crate::table::VERSIONS;

#[test]
fn a_second_request_of_the_same_id_is_refused() {
    for version in VERSIONS {
        let mut client = Client::start(version, &[]);
        client.process.send_line(version.call(7, "slow", &json!({ "ms": 150 })));
        client.process.send_line(version.call(7, "echo", &json!({ "message": "second" })));
        let second = client.next();
        assert_eq!(second["error"]["code"], -32600, "{second}");
        assert!(second["error"]["message"].to_string().contains("in flight"), "{second}");
        assert_eq!(second["id"], 7);
        let first = client.answer_to(&json!(7));
        assert_eq!(text_of(&first), "slept for 150 ms");
        client.process.send_line(version.call(7, "echo", &json!({ "message": "third" })));
        assert_eq!(text_of(&client.answer_to(&json!(7))), "third", "the id is free again");
        client.hears_nothing("each is answered once");
    }
}

#[test]
fn the_number_and_the_text_are_two_ids() {
    for version in VERSIONS {
        let mut client = Client::start(version, &[]);
        client.process.send_line(version.call(7, "slow", &json!({ "ms": 600_000 })));
        client.process.send_line(version.call("7", "slow", &json!({ "ms": 50 })));
        client.notify("notifications/cancelled", &json!({ "requestId": 7 }));
        let answer = client.next();
        assert_eq!(answer["id"], "7", "{answer}");
        client.hears_nothing("the number was cancelled");
    }
}

#[test]
fn a_cancelled_request_is_not_answered_and_frees_its_id() {
    for version in VERSIONS {
        let mut client = Client::start(version, &[]);
        client.process.send_line(version.call(7, "slow", &json!({ "ms": 600_000 })));
        client.notify("notifications/cancelled", &json!({ "requestId": 7 }));
        client.notify("notifications/cancelled", &json!({ "requestId": 7 }));
        client.process.send_line(version.call(7, "echo", &json!({ "message": "again" })));
        assert_eq!(text_of(&client.next()), "again");
        client.hears_nothing("one answer");
    }
}

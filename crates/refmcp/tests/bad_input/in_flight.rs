//! Requests that are still running: their ids are taken, and they can be cancelled. Over streamable HTTP each request has a
//! response of its own: the tests `resumption` and `cancellation` of `refmcp-http`.

use serde_json::json;

use crate::peer::{Peer, Site, Transport, WAYS, Way};
use crate::support::text_of;

/// The ways on which all responses come over one connection.
fn shared() -> impl Iterator<Item = Way> {
    WAYS.into_iter().filter(|way| way.transport != Transport::StreamableHttp)
}

fn cancel(peer: &mut Peer) {
    peer.send(br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#);
}

#[test]
fn a_second_request_of_the_same_id_is_refused() {
    let site = Site::start(&[]);
    for way in shared() {
        let mut peer = Peer::open(&site, way);
        peer.send(way.version.call(7, "slow", &json!({ "ms": 150 })).as_bytes());
        peer.send(way.version.call(7, "echo", &json!({ "message": "second" })).as_bytes());
        let second = peer.message();
        assert_eq!(second["error"]["code"], -32600, "{second}");
        assert!(second["error"]["message"].to_string().contains("in flight"), "{second}");
        assert_eq!(second["id"], 7);
        let first = peer.answer_to(&json!(7));
        assert_eq!(text_of(&first), "slept for 150 ms");
        peer.send(way.version.call(7, "echo", &json!({ "message": "third" })).as_bytes());
        assert_eq!(text_of(&peer.answer_to(&json!(7))), "third", "the id is free again");
        peer.hears_nothing("each is answered once");
    }
}

#[test]
fn the_number_and_the_text_are_two_ids() {
    let site = Site::start(&[]);
    for way in shared() {
        let mut peer = Peer::open(&site, way);
        peer.send(way.version.call(7, "slow", &json!({ "ms": 600_000 })).as_bytes());
        peer.send(way.version.call("7", "slow", &json!({ "ms": 50 })).as_bytes());
        cancel(&mut peer);
        let answer = peer.message();
        assert_eq!(answer["id"], "7", "{answer}");
        peer.hears_nothing("the number was cancelled");
    }
}

#[test]
fn a_cancelled_request_is_not_answered_and_frees_its_id() {
    let site = Site::start(&[]);
    for way in shared() {
        let mut peer = Peer::open(&site, way);
        peer.send(way.version.call(7, "slow", &json!({ "ms": 600_000 })).as_bytes());
        cancel(&mut peer);
        cancel(&mut peer);
        peer.send(way.version.call(7, "echo", &json!({ "message": "again" })).as_bytes());
        assert_eq!(text_of(&peer.message()), "again");
        peer.hears_nothing("one answer");
    }
}

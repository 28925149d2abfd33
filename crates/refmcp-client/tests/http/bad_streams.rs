//! SSE streams that are invalid, endless or cut off.

use std::sync::Arc;
use std::time::Duration;

use refmcp_client::transport::Transport;
use refmcp_proto::engine::client::{ExchangeId, TransportError};
use refmcp_testkit::paused::PausedTime;

use crate::messages::{ALONE, SESSIONS, connect_to, connect_with, event, progress, request, result};
use crate::raw_server::{Peer, Server, in_time};
use crate::recording_sink::{RecordingSink, SinkEvent};

const LIMIT: usize = 10_000;

async fn streaming(server: &Server) -> (Arc<dyn Transport>, RecordingSink, Peer) {
    let (transport, sink) = connect_with(server, |settings| settings.max_message_size = LIMIT).await;
    transport.clone().send(request(1, "tools/call", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.stream().await;
    (transport, sink, peer)
}

#[tokio::test]
async fn line_ends_of_every_kind_cut_at_every_byte() {
    for end in ["\n", "\r", "\r\n"] {
        let server = Server::start().await;
        let (_transport, mut sink, mut peer) = streaming(&server).await;
        let text = format!(
            ": hi{end}{end}id: 1{end}data: {}{end}{end}\ndata:{}{end}\revent: message{end}data: {}{end}{end}",
            progress(1),
            progress(2),
            result(1)
        );
        for byte in text.chars() {
            peer.chunk(&byte.to_string()).await;
        }
        for wanted in [progress(1), progress(2), result(1)] {
            assert_eq!(sink.message().await, (Some(1), wanted), "{end:?}");
        }
    }
}

#[tokio::test]
async fn a_line_without_end_is_cut_off() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server).await;
    peer.write("fffffff\r\ndata: ").await;
    peer.write_for_ever(&[b'x'; 1000]).await;
    let (_, why) = sink.ended().await;
    assert!(matches!(&why, TransportError::Misbehaved(why) if why.contains("10000 bytes")), "{why:?}");
}

#[tokio::test]
async fn an_event_without_end_is_cut_off() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server).await;
    peer.write("fffffff\r\n").await;
    peer.write_for_ever(b"data: x\n").await;
    let (_, why) = sink.ended().await;
    assert!(matches!(&why, TransportError::Misbehaved(_)), "{why:?}");
}

#[tokio::test]
async fn an_event_that_breaks_off_is_no_message() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server).await;
    peer.chunk(&format!("data: {}\n", result(1))).await;
    peer.end().await;
    assert_eq!(sink.ended().await, (1, TransportError::Broken("the stream ended".to_owned())));
}

#[tokio::test]
async fn ids_with_nul_are_none_and_ids_may_change() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server).await;
    peer.chunk("retry: 10\n\n").await;
    peer.chunk(&event("a-1", &progress(1))).await;
    peer.chunk(&event("b-9", &progress(2))).await;
    peer.chunk(&event("c\0d", &progress(3))).await;
    peer.end().await;
    for number in 1..=3 {
        assert_eq!(sink.message().await, (Some(1), progress(number)));
    }
    let seen = peer.request().await;
    assert_eq!(seen.header("last-event-id"), Some("b-9"));
}

#[tokio::test]
async fn an_id_that_no_header_can_hold_is_no_way_back() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server).await;
    peer.chunk(&event("a\u{1}b", &progress(1))).await;
    peer.end().await;
    assert_eq!(sink.message().await, (Some(1), progress(1)));
    assert!(matches!(sink.ended().await, (1, TransportError::Broken(_))));
}

#[tokio::test]
async fn times_to_wait_are_kept_within_reason() {
    // Values that are no numbers are ignored, and delays are bounded on both sides.
    for said in ["0", "-5", "soon"] {
        let server = Server::start().await;
        let (_transport, _sink, mut peer) = streaming(&server).await;
        let time = PausedTime::start();
        peer.chunk("id: 1\nretry: 10\ndata:\n\n").await;
        peer.chunk(&format!("retry: {said}\n\n")).await;
        peer.end().await;
        time.advance(Duration::from_millis(9)).await;
        assert!(peer.is_left_alone(&time).await, "{said}: not before the shortest pause is over");
        time.advance(Duration::from_millis(2)).await;
        assert_eq!(peer.request().await.header("last-event-id"), Some("1"), "{said}");
    }
    let server = Server::start().await;
    let (transport, mut sink, mut peer) = streaming(&server).await;
    let time = PausedTime::start();
    peer.chunk("id: 1\nretry: 1000000000000000000\ndata:\n\n").await;
    peer.end().await;
    time.advance(Duration::from_secs(59)).await;
    assert!(peer.is_left_alone(&time).await);
    time.advance(Duration::from_secs(2)).await;
    assert_eq!(peer.request().await.header("last-event-id"), Some("1"), "a minute is the longest");
    peer.stream().await;
    peer.end().await;
    time.settle().await;
    drop(time);
    // It waits again, and can be told not to.
    transport.abandon(ExchangeId(1));
    transport.clone().send(request(2, "ping", SESSIONS));
    peer.request().await;
    peer.json(&result(2)).await;
    assert_eq!(sink.message().await.0, Some(2));
}

#[tokio::test]
async fn endless_comments_do_no_harm_and_end_with_the_request() {
    let server = Server::start().await;
    let (transport, mut sink, mut peer) = streaming(&server).await;
    for _ in 0..1000 {
        peer.chunk(": still here\n").await;
    }
    assert!(sink.is_empty());
    transport.abandon(ExchangeId(1));
    peer.write_for_ever(b"e\r\n: still there\n\r\n").await;
    assert!(sink.is_empty());
}

#[tokio::test]
async fn answers_to_something_else_are_handed_on_and_waited_past() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server).await;
    peer.chunk(&format!("data: {}\n\n", result(99))).await;
    assert_eq!(sink.message().await, (Some(1), result(99)));
    peer.chunk(&format!("data: {}\n\n", result(1))).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn data_after_the_answer_is_ignored_input() {
    for more in [result(1), progress(1), "nonsense".to_owned()] {
        let server = Server::start().await;
        let (_transport, mut sink, mut peer) = streaming(&server).await;
        peer.chunk(&format!("data: {}\n\ndata: {more}\n\n", result(1))).await;
        assert_eq!(sink.message().await, (Some(1), result(1)));
        assert!(
            matches!(sink.next().await, SinkEvent::IgnoredInput(what) if what.contains("after the final answer"))
        );
        peer.gone().await;
        assert!(sink.is_empty());
    }
}

#[tokio::test]
async fn a_stream_that_is_kept_open_after_the_answer_is_left() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server).await;
    peer.chunk(&format!("data: {}\n\n", result(1))).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
    peer.gone().await;
}

#[tokio::test]
async fn nonsense_is_handed_on_for_others_to_judge() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server).await;
    peer.chunk("data: {\"jsonrpc\":\n\n").await;
    assert_eq!(sink.message().await, (Some(1), "{\"jsonrpc\":".to_owned()));
    peer.end().await;
    assert!(matches!(sink.ended().await, (1, TransportError::Broken(_))));
}

#[tokio::test]
async fn a_server_that_closes_at_once_is_left_after_a_while() {
    let server = Server::start().await;
    let (_transport, mut sink, mut peer) = streaming(&server).await;
    let time = PausedTime::start();
    peer.chunk("id: 1\nretry: 20\ndata:\n\n").await;
    peer.end().await;
    for pause in [20, 40, 80, 160, 320] {
        time.advance(Duration::from_millis(pause - 1)).await;
        assert!(peer.is_left_alone(&time).await, "{pause}");
        time.advance(Duration::from_millis(2)).await;
        assert_eq!(peer.request().await.header("last-event-id"), Some("1"));
        peer.respond(200, "Content-Type: text/event-stream\r\n", "").await;
    }
    let (_, why) = sink.ended().await;
    assert!(matches!(&why, TransportError::Broken(why) if why.contains("5 attempts")), "{why:?}");
}

#[tokio::test]
async fn a_stream_without_ids_cannot_be_taken_up() {
    for revision in [SESSIONS, ALONE] {
        let server = Server::start().await;
        let (transport, mut sink) = connect_to(&server).await;
        transport.clone().send(request(1, "tools/call", revision));
        let (mut peer, _) = server.request().await;
        peer.stream().await;
        peer.chunk(&format!("data: {}\n\n", progress(1))).await;
        drop(peer);
        assert_eq!(sink.message().await, (Some(1), progress(1)));
        let (_, why) = in_time("the end", sink.ended()).await;
        assert!(matches!(why, TransportError::Broken(_)), "{why:?}");
    }
}

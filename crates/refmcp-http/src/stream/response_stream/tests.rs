//! The order of messages, their limits, and what becomes of them when the log is slow or unavailable.

mod schedules;

use std::time::Duration;

use refmcp_proto::jsonrpc::RequestId;
use refmcp_server::backplane::{
    BackplaneSettings, MemoryBackplane, NewSession, OpenStreamOutcome, ReadFrom, SessionId, StreamReader,
};
use refmcp_server::transport::MemoryBudget;

use super::*;
use crate::stream::message::Gate;

fn stream_of(exchange: ExchangeId, max_bytes: usize) -> Arc<ResponseStream> {
    ResponseStream::new(exchange, max_bytes, &MemoryBudget::new(1 << 20).account())
}

fn notification(text: &str) -> Message {
    Message { json: text.to_owned().into(), kind: MessageKind::Notification, post_key: None, gate: None }
}

fn answer(text: &str) -> Message {
    let kind = MessageKind::Response { error: None };
    Message { json: text.to_owned().into(), kind, post_key: None, gate: None }
}

fn text(next: Next) -> String {
    match next {
        Next::Message(message) => String::from_utf8(message.json.to_vec()).unwrap(),
        other => format!("{other:?}"),
    }
}

impl Reader {
    /// Waits for the next message, or for the end.
    async fn next(&self) -> Next {
        self.readable().await;
        self.try_next()
    }
}

#[tokio::test]
async fn an_answer_is_taken_only_if_it_is_the_first_message() {
    let stream = stream_of(ExchangeId(1), 100);
    assert!(stream.try_first_response().is_none());
    stream.push(answer("a"));
    assert_eq!(stream.first_response().await.unwrap().json, "a");
    let stream = stream_of(ExchangeId(1), 100);
    stream.push(notification("n"));
    stream.push(answer("a"));
    assert!(stream.first_response().await.is_none());
    let reader = stream.attach();
    assert_eq!(text(reader.next().await), "n");
    assert_eq!(text(reader.next().await), "a");
    assert_eq!(text(reader.next().await), "End");
}

#[tokio::test]
async fn the_latest_reader_replaces_the_one_before() {
    let stream = stream_of(GET_STREAM, 100);
    let first = stream.attach();
    stream.push(notification("n"));
    let second = stream.attach();
    assert_eq!(text(first.try_next()), "Lost");
    assert_eq!(text(second.try_next()), "n");
    assert_eq!(text(second.try_next()), "Wait");
}

#[tokio::test]
async fn a_reader_that_is_too_slow_loses_the_stream() {
    let stream = stream_of(GET_STREAM, 10);
    let reader = stream.attach();
    stream.push(notification("123456789"));
    stream.push(notification("123456789"));
    assert_eq!(text(reader.next().await), "Lost");
}

#[tokio::test]
async fn messages_are_in_the_log_at_once_and_in_order() {
    let memory: Arc<dyn Backplane> = Arc::new(MemoryBackplane::new(BackplaneSettings {
        stream_bytes: 1000,
        ..BackplaneSettings::default()
    }));
    let session = SessionId::new("s");
    memory.create_session(&session, NewSession::default(), Duration::from_secs(9)).await.unwrap();
    let opened = memory.open_stream(&session, Some(RequestId::from(1)), WriterEpoch(0)).await.unwrap();
    let OpenStreamOutcome::Opened(number) = opened else { panic!("{opened:?}") };
    let key = StreamKey::new(session.clone(), number);
    let (backplane, writer, driver) = (memory.clone(), WriterEpoch(0), WeakSessionDriver::default());
    let log = SessionLog { backplane, session, writer, driver };
    let stream = stream_of(ExchangeId(1), 10_000);
    stream.push(notification("1"));
    stream.attach_log(log, number, 0);
    assert_eq!(stream.log_number().await, Some(number));
    stream.push(notification("2"));
    stream.push(answer(&format!(r#"{{"id":"a","result":"{}"}}"#, "x".repeat(2000))));
    let mut reading = StreamReader::begin(memory, key, ReadFrom::After(0)).await.unwrap().unwrap();
    let backplane::ReadOutcome::Events(events) = reading.next().await.unwrap() else { panic!("no events") };
    let texts: Vec<_> = events.iter().map(|event| String::from_utf8_lossy(&event.bytes)).collect();
    assert_eq!(texts[..2], ["1", "2"]);
    assert!(
        texts[2].contains(r#""id":"a""#) && texts[2].contains("-32603"),
        "an answer without room is an error: {}",
        texts[2]
    );
    assert_eq!(reading.next().await.unwrap(), backplane::ReadOutcome::End);
}

#[tokio::test]
async fn a_stream_that_ended_without_an_answer_ends_in_the_log_too() {
    let memory: Arc<dyn Backplane> = Arc::new(MemoryBackplane::default());
    let session = SessionId::new("s");
    memory.create_session(&session, NewSession::default(), Duration::from_secs(9)).await.unwrap();
    let opened = memory.open_stream(&session, Some(RequestId::from(1)), WriterEpoch(0)).await.unwrap();
    let OpenStreamOutcome::Opened(number) = opened else { panic!("{opened:?}") };
    let (backplane, writer, driver) = (memory.clone(), WriterEpoch(0), WeakSessionDriver::default());
    let stream = stream_of(ExchangeId(1), 10_000);
    stream.push(notification("1"));
    // The request is cancelled while its stream is being opened.
    stream.end();
    stream.attach_log(SessionLog { backplane, session: session.clone(), writer, driver }, number, 0);
    assert_eq!(memory.cancel(&session, &RequestId::from(1)).await.unwrap(), 0, "it still runs");
    assert!(stream.is_over());
}

#[tokio::test]
async fn a_message_waits_for_its_gate() {
    let memory: Arc<dyn Backplane> = Arc::new(MemoryBackplane::default());
    let session = SessionId::new("s");
    memory.create_session(&session, NewSession::default(), Duration::from_secs(9)).await.unwrap();
    let (backplane, writer, driver) = (memory.clone(), WriterEpoch(0), WeakSessionDriver::default());
    let stream = stream_of(GET_STREAM, 10_000);
    let log = SessionLog { backplane, session: session.clone(), writer, driver };
    stream.attach_log(log, StreamNumber::GET, 0);
    let (closed, gate) = Gate::new();
    stream.push(Message { gate: Some(gate), ..notification("1") });
    stream.push(notification("2"));
    let key = StreamKey::get_stream(session);
    let mut reading = StreamReader::begin(memory, key, ReadFrom::After(0)).await.unwrap().unwrap();
    assert_eq!(reading.try_next().await.unwrap(), backplane::ReadOutcome::Nothing);
    drop(closed);
    let mut texts = Vec::new();
    while texts.len() < 2 {
        let backplane::ReadOutcome::Events(events) = reading.next().await.unwrap() else { panic!() };
        texts.extend(events.into_iter().map(|event| event.bytes));
    }
    assert_eq!(texts, ["1", "2"]);
}

#[tokio::test]
async fn without_memory_notifications_are_dropped_and_a_response_becomes_an_error() {
    let budget = MemoryBudget::new(1000);
    let other = budget.account().reserve(500).unwrap();
    let stream = ResponseStream::new(ExchangeId(1), 10_000, &budget.account());
    let reader = stream.attach();
    stream.push(notification(&"n".repeat(240)));
    stream.push(notification(&"n".repeat(240)));
    stream.push(answer(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{}"}}"#, "r".repeat(600))));
    assert_eq!(text(reader.try_next()), "Lost", "its reader has a gap, and the stream breaks");
    let response = stream.state.lock().pop().unwrap();
    let error: serde_json::Value = serde_json::from_slice(&response.json).unwrap();
    assert_eq!((&error["id"], &error["error"]["code"]), (&7.into(), &(-32603).into()));
    assert!(error["error"]["message"].as_str().unwrap().contains("too many bytes are held"), "{error}");
    drop((other, response, reader, stream));
    assert_eq!(budget.held(), 0);
}

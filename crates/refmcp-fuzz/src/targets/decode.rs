//! The JSON-RPC decoder and encoder: what is accepted encodes to a message that decodes to the same.

use refmcp_proto::jsonrpc::encode::{self, ResponseId};
use refmcp_proto::jsonrpc::{Incoming, Limits, Message, Notification, Params, Request, Response, decode};
use serde_json::value::RawValue;

/// The bytes are a message, after one byte that says how small the limits are.
pub fn run(bytes: &[u8]) {
    let Some((small, bytes)) = bytes.split_first() else { return };
    let limits = match small % 4 {
        0 => Limits::default(),
        1 => Limits { depth: 3, ..Limits::default() },
        2 => Limits { name_bytes: 8, batch: 2, ..Limits::default() },
        _ => Limits { max_message_size: 64, ..Limits::default() },
    };
    let incoming = match decode(bytes, &limits) {
        Ok(incoming) => incoming,
        Err(error) => {
            assert!(error.error.message.len() < 1000, "an error repeats its input: {}", error.error.message);
            return;
        }
    };
    assert!(bytes.len() <= limits.max_message_size);
    match incoming {
        Incoming::One(message) => again(message),
        Incoming::Batch(messages) => {
            assert!((1..=limits.batch).contains(&messages.len()));
            messages.into_iter().flatten().for_each(again);
        }
    }
}

fn again(message: Message<'_>) {
    let mut json = Vec::new();
    let written = match &message {
        Message::Request(Request { id, method, params }) => {
            encode::request(&mut json, id, method, &raw(params.text.unwrap_or("{}")))
        }
        Message::Notification(Notification { method, params }) => {
            encode::notification(&mut json, method, params.text.map(raw).as_ref())
        }
        Message::Response(Response { id, result, .. }) => match (id, result) {
            (Some(id), Ok(result)) => encode::result(&mut json, id, &raw(result)),
            (Some(id), Err(error)) => encode::error(&mut json, ResponseId::Id(id), error),
            (None, Err(error)) => encode::error(&mut json, ResponseId::Null, error),
            (None, Ok(_)) => panic!("a result without an id was accepted"),
        },
    };
    written.expect("what was decoded can be encoded");
    // Texts of errors grow by their escapes; everything else is as long as before.
    let limits = Limits { max_message_size: usize::MAX, name_bytes: usize::MAX, ..Limits::default() };
    match decode(&json, &limits) {
        Ok(Incoming::One(same)) => assert_eq!(same, as_written(message)),
        other => panic!("{} became {other:?}", String::from_utf8_lossy(&json)),
    }
}

/// What is lost on purpose: members beside those of the protocol, and that a request had no parameters.
fn as_written(message: Message<'_>) -> Message<'_> {
    match message {
        Message::Request(request) => {
            let text = request.params.text.or(Some("{}"));
            Message::Request(Request { params: Params { text, ..in_place(request.params) }, ..request })
        }
        Message::Notification(notification) => {
            let params = in_place(notification.params);
            Message::Notification(Notification { params, ..notification })
        }
        Message::Response(response) => Message::Response(Response { misplaced_meta: false, ..response }),
    }
}

fn in_place(params: Params<'_>) -> Params<'_> {
    Params { misplaced_meta: false, misplaced_version: false, ..params }
}

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap_or_else(|error| panic!("not JSON, {error}: {text}"))
}

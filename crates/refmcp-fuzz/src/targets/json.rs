//! The JSON scanner of the decoder beside `serde_json`: both accept the same texts and read the same values.
//!
//! Differences that are meant:
//! - A key that an object has twice, nesting beyond the limit, and numbers of more than 1024 characters are refused by the
//!   scanner and not by `serde_json`, as acceptable JSON that is no acceptable message.
//! - A number beyond the range of `f64` is JSON to the scanner; `serde_json` has no value for it.

use std::collections::BTreeSet;
use std::fmt;

use refmcp_proto::jsonrpc::{DecodeError, Incoming, Limits, Message, Params, code, decode};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// The limit of nesting here, below that of `serde_json`.
const DEPTH: usize = 100;

/// The bytes are a message.
pub fn run(bytes: &[u8]) {
    let limits = Limits { depth: DEPTH, ..Limits::default() };
    let decoded = decode(bytes, &limits);
    let strict = serde_json::from_slice::<Strict>(bytes);
    match (&decoded, strict.map_err(|error| error.to_string())) {
        (Err(error), Ok(_)) => {
            assert_ne!(error.error.code, code::PARSE_ERROR, "serde_json accepts: {}", error.error.message);
            assert!(!is_refused_json(error) || !error.error.message.contains("duplicate"), "{error}");
        }
        (Err(error), Err(why)) => {
            // A message that is wrong for another reason must at least be JSON.
            let accepted = error.error.code != code::PARSE_ERROR && !is_refused_json(error);
            assert!(!accepted || is_beyond_serde(&why), "serde_json refuses, {why}; {error}");
        }
        (Ok(_), Err(why)) => assert!(is_beyond_serde(&why), "serde_json refuses: {why}"),
        (Ok(incoming), Ok(_)) => {
            let value: Value = serde_json::from_slice(bytes).expect("it was read before");
            match incoming {
                Incoming::One(message) => check(message, &value),
                Incoming::Batch(messages) => {
                    let values = value.as_array().expect("a batch is an array");
                    assert_eq!(messages.len(), values.len());
                    for (message, value) in messages.iter().zip(values) {
                        if let Ok(message) = message {
                            check(message, value);
                        }
                    }
                }
            }
        }
    }
}

/// JSON that the scanner refuses on purpose.
fn is_refused_json(error: &DecodeError) -> bool {
    let reasons = ["duplicate key", "nesting deeper", "too many digits", "longer than"];
    error.error.code == code::INVALID_REQUEST
        && reasons.iter().any(|reason| error.error.message.contains(reason))
}

/// What only `serde_json` refuses.
fn is_beyond_serde(why: &str) -> bool {
    why.contains("number out of range")
}

fn check(message: &Message<'_>, value: &Value) {
    match message {
        Message::Request(request) => {
            assert_eq!(value["method"], *request.method);
            same("id", Some(&request.id.to_string()), value);
            check_params(&request.params, value);
        }
        Message::Notification(notification) => {
            assert_eq!(value["method"], *notification.method);
            check_params(&notification.params, value);
        }
        Message::Response(response) => match &response.result {
            Ok(text) => {
                same("result", Some(text), value);
                let result = &value["result"];
                same("resultType", response.members.result_type, result);
                assert_eq!(response.members.content, result.get("content").is_some());
                assert_eq!(response.members.structured_content, result.get("structuredContent").is_some());
            }
            Err(error) => {
                assert_eq!(value["error"]["code"], error.code);
                assert_eq!(value["error"]["message"], *error.message);
            }
        },
    }
}

fn check_params(params: &Params<'_>, value: &Value) {
    same("params", params.text, value);
    let all = &value["params"];
    same("_meta", params.meta.text, all);
    same("name", params.name, all);
    same("uri", params.uri, all);
    same("arguments", params.arguments, all);
    same("inputResponses", params.input_responses, all);
    same("requestState", params.request_state, all);
    assert_eq!(params.misplaced_meta, value.get("_meta").is_some());
    let token = all.get("_meta").and_then(|meta| meta.get("progressToken")).filter(|token| !token.is_null());
    assert_eq!(params.meta.progress_token.map(read), token.cloned());
    for (part, span) in [(params.name, params.spans().name), (params.arguments, params.spans().arguments)] {
        assert_eq!(part, span.and_then(|span| params.text?.get(span)));
    }
}

/// The text of a member is its value.
fn same(member: &str, text: Option<&str>, of: &Value) {
    // Display writes an id as JSON, except for escapes of its own.
    if member == "id" {
        if let (Some(text), Some(Value::Number(number))) = (text, of.get("id")) {
            assert_eq!(text.parse::<f64>().ok(), number.as_f64());
        }
        return;
    }
    assert_eq!(text.map(read), of.get(member).cloned(), "{member}");
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("a member is no JSON, {error}: {text}"))
}

/// Any JSON in which no object has a key twice.
struct Strict;

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Strict, A::Error> {
        while items.next_element::<Strict>()?.is_some() {}
        Ok(Strict)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Strict, A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = members.next_key::<String>()? {
            if !keys.insert(key) {
                return Err(A::Error::custom("a key twice"));
            }
            members.next_value::<Strict>()?;
        }
        Ok(Strict)
    }
}

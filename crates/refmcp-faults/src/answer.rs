//! Answers that go wrong.

use serde_json::{Map, Value, json};

use crate::{Fault, Output};

/// What is sent in the place of an answer. Several faults are done one after the other.
pub(crate) fn outputs(faults: &[Fault], answer: &[u8]) -> Vec<Output> {
    let mut before = Vec::new();
    let mut answers = vec![answer.to_owned()];
    let mut delivery: fn(Vec<u8>) -> Output = Output::Message;
    let mut after = None;
    for fault in faults {
        match fault {
            Fault::NoAnswer => answers.clear(),
            Fault::AnswerTwice => answers = answers.iter().chain(&answers).cloned().collect(),
            Fault::WrongId => change(&mut answers, wrong_id),
            Fault::ResultAndError => change(&mut answers, result_and_error),
            Fault::OtherShape => change(&mut answers, other_shape),
            Fault::MalformedJson => answers.iter_mut().for_each(|answer| answer.truncate(answer.len() / 2)),
            Fault::Oversized(bytes) => {
                answers = answers.iter().map(|answer| padded(answer, *bytes)).collect();
            }
            Fault::Noise => before.push(Output::Message(NOISE.to_owned())),
            Fault::UnknownRequest => before.push(Output::Message(UNKNOWN_REQUEST.to_owned())),
            // Only WebSocket has codes: elsewhere the answer behind it is sent.
            Fault::Close(code) => before.push(Output::Close(*code)),
            Fault::CutAfterByte(bytes) => after = Some(*bytes),
            Fault::AnswerAfter(_)
            | Fault::Slow(_)
            | Fault::CutAfterEvent(_)
            | Fault::Status { .. }
            | Fault::ContentType(_)
            | Fault::Header(..)
            | Fault::NoHeader(_)
            | Fault::WrongEndpoint(_)
            | Fault::ExpireSession => {}
        }
    }
    if let Some(bytes) = after {
        answers.iter_mut().for_each(|answer| answer.truncate(bytes));
        delivery = Output::Part;
    }
    let deliver = |answer| {
        faults
            .iter()
            .find_map(|fault| match fault {
                Fault::AnswerAfter(delay) => Some(Output::Later(*delay, Vec::clone(&answer))),
                Fault::Slow(rate) => Some(Output::Slowly(*rate, Vec::clone(&answer))),
                _ => None,
            })
            .unwrap_or_else(|| delivery(answer))
    };
    before.extend(answers.into_iter().map(deliver));
    before.extend(after.map(|_| Output::Cut));
    before
}

/// A line that is no message.
const NOISE: &[u8] = b"this line is no message";

/// The id of the request below.
pub(crate) const UNKNOWN_REQUEST_ID: &str = "refmcp-fault";

/// A request of the server with a method that no revision has.
const UNKNOWN_REQUEST: &[u8] = br#"{"jsonrpc":"2.0","id":"refmcp-fault","method":"refmcp/unknown"}"#;

/// Changes answers that are JSON objects; others stay.
fn change(answers: &mut [Vec<u8>], change: fn(&mut Map<String, Value>)) {
    for answer in answers {
        if let Ok(Value::Object(mut object)) = serde_json::from_slice(answer) {
            change(&mut object);
            *answer = Value::Object(object).to_string().into_bytes();
        }
    }
}

/// An id that the client has not used: of a number its neighbour far away, of a string another one.
fn wrong_id(answer: &mut Map<String, Value>) {
    let other = match answer.get("id") {
        Some(Value::Number(number)) => json!(number.as_i64().unwrap_or_default().wrapping_add(1_000_000)),
        Some(Value::String(id)) => json!(format!("{id}-other")),
        _ => json!(1_000_000),
    };
    answer.insert("id".to_owned(), other);
}

fn result_and_error(answer: &mut Map<String, Value>) {
    answer.entry("result").or_insert_with(|| json!({}));
    answer.entry("error").or_insert_with(|| json!({"code": -32603, "message": "a result and an error"}));
}

/// The shape of the other lifecycle: results say their type where there are no sessions, and do not where there are.
fn other_shape(answer: &mut Map<String, Value>) {
    if let Some(Value::Object(result)) = answer.get_mut("result")
        && result.remove("resultType").is_none()
    {
        result.insert("resultType".to_owned(), json!("complete"));
    }
}

/// The same message with white space in front of its end, up to this many bytes.
fn padded(answer: &[u8], bytes: usize) -> Vec<u8> {
    let mut padded = answer.to_owned();
    let end = padded.pop();
    padded.resize(padded.len().max(bytes.saturating_sub(1)), b' ');
    padded.extend(end);
    padded
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const ANSWER: &[u8] = br#"{"jsonrpc":"2.0","id":7,"result":{"content":[]}}"#;

    fn sent(faults: &[Fault]) -> Vec<String> {
        let text = |output: Output| match output {
            Output::Message(bytes) | Output::Part(bytes) => String::from_utf8(bytes).unwrap(),
            other => format!("{other:?}"),
        };
        outputs(faults, ANSWER).into_iter().map(text).collect()
    }

    fn json(faults: &[Fault]) -> Value {
        serde_json::from_str(&sent(faults)[0]).unwrap()
    }

    #[test]
    fn answers_go_wrong_in_one_way() {
        let answer = String::from_utf8(ANSWER.to_owned()).unwrap();
        assert!(sent(&[Fault::NoAnswer]).is_empty());
        assert_eq!(sent(&[Fault::AnswerTwice]), [answer.clone(), answer.clone()]);
        assert_eq!(json(&[Fault::WrongId])["id"], 1_000_007);
        let both = json(&[Fault::ResultAndError]);
        assert!(both["result"].is_object() && both["error"]["code"].is_i64());
        assert_eq!(json(&[Fault::OtherShape])["result"]["resultType"], "complete");
        assert!(serde_json::from_str::<Value>(&sent(&[Fault::MalformedJson])[0]).is_err());
        let large = sent(&[Fault::Oversized(1000)]).remove(0);
        assert_eq!((large.len(), json(&[Fault::Oversized(1000)])["id"].clone()), (1000, json!(7)));
        assert_eq!(sent(&[Fault::Noise])[1], answer);
        assert!(sent(&[Fault::UnknownRequest])[0].contains("refmcp/unknown"));
    }

    #[test]
    fn answers_are_cut_delayed_and_slowed() {
        assert_eq!(
            outputs(&[Fault::CutAfterByte(10)], ANSWER),
            [Output::Part(ANSWER[..10].to_owned()), Output::Cut]
        );
        let second = Duration::from_secs(1);
        assert_eq!(
            outputs(&[Fault::AnswerAfter(second)], ANSWER),
            [Output::Later(second, ANSWER.to_owned())]
        );
        assert_eq!(outputs(&[Fault::Close(1005)], ANSWER)[0], Output::Close(1005));
        assert_eq!(outputs(&[Fault::Slow(5)], ANSWER), [Output::Slowly(5, ANSWER.to_owned())]);
    }

    #[test]
    fn several_faults_of_one_answer_are_all_done() {
        let sent = sent(&[Fault::WrongId, Fault::AnswerTwice, Fault::Noise]);
        assert_eq!(sent.len(), 3);
        assert!(sent[1].contains("1000007") && sent[1] == sent[2]);
    }
}

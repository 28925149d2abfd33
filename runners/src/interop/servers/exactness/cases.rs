//! The cases: what is done to a stream, and in words what came of it.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::stream::{Event, Session, Stream, is_response};

/// A call whose progress is counted: the tool's name, and its arguments for so many steps of so many milliseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counting {
    pub(super) tool: &'static str,
    pub(super) arguments: fn(u64, u64) -> Value,
}

/// What is done; what came of it in words.
type Run = fn(&str, Counting) -> Result<String>;

pub(super) const CASES: [(&str, Run); 8] = [
    ("not interrupted", uninterrupted),
    ("resumed while running", |url, counting| interrupted(url, counting, Duration::ZERO)),
    ("finished while away", |url, counting| interrupted(url, counting, Duration::from_secs(3))),
    ("finished stream resumed", finished),
    ("stalled reader", stalled),
    ("same id twice at a time", duplicate),
    ("unknown event id", |url, counting| foreign(url, counting, Foreign::Unknown)),
    ("event id of another session", |url, counting| foreign(url, counting, Foreign::OtherSession)),
];

/// What a case says where all came as it should.
pub(super) const EXACT: &str = "exact";

/// Steps of a call, and the length of each in milliseconds.
const STEPS: u64 = 8;
const STEP_MS: u64 = 200;
/// Messages that are read before the connection is closed.
const READ: usize = 2;
/// Steps of a call whose reader stalls: more than buffers hold.
const MANY: u64 = 3000;
const STALL: Duration = Duration::from_secs(4);
/// How long nothing may come.
const PATIENCE: Duration = Duration::from_secs(5);

const CALL: u64 = 7;

fn call(id: u64, counting: Counting, steps: u64, step_ms: u64) -> Value {
    let params = json!({
        "name": counting.tool, "arguments": (counting.arguments)(steps, step_ms),
        "_meta": { "progressToken": id },
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

fn uninterrupted(url: &str, counting: Counting) -> Result<String> {
    let session = Session::open(url)?;
    let events = session.post(&call(CALL, counting, STEPS, STEP_MS))?.rest(PATIENCE);
    Ok(account(1, STEPS, &events))
}

/// The connection is closed after some messages, and the stream resumed after a while.
fn interrupted(url: &str, counting: Counting, away: Duration) -> Result<String> {
    let session = Session::open(url)?;
    let stream = session.post(&call(CALL, counting, STEPS, STEP_MS))?;
    let mut events = stream.take(READ);
    drop(stream);
    let Some(last) = last_id(&events) else { return Ok(NO_IDS.to_owned()) };
    thread::sleep(away);
    let resumed = session.resume(&last)?;
    if resumed.status != 200 {
        return Ok(refusal(&resumed));
    }
    events.extend(resumed.rest(PATIENCE));
    Ok(account(1, STEPS, &events))
}

/// A stream that was read to its end is resumed behind its first messages.
fn finished(url: &str, counting: Counting) -> Result<String> {
    let session = Session::open(url)?;
    let events = session.post(&call(CALL, counting, STEPS, 1))?.rest(PATIENCE);
    let with_messages: Vec<Event> =
        events.iter().filter(|event| !event.message.is_null()).take(READ).cloned().collect();
    let Some(last) = last_id(&with_messages) else { return Ok(NO_IDS.to_owned()) };
    let resumed = session.resume(&last)?;
    Ok(match resumed.status {
        200 => account(READ as u64 + 1, STEPS, &resumed.rest(PATIENCE)),
        _ => refusal(&resumed),
    })
}

/// Nothing is read for a while, so that all buffers are full.
fn stalled(url: &str, counting: Counting) -> Result<String> {
    let session = Session::open(url)?;
    let stream = session.post_late(&call(CALL, counting, MANY, 0), STALL)?;
    Ok(account(1, MANY, &stream.rest(PATIENCE)))
}

/// Two calls with the same id run at the same time.
fn duplicate(url: &str, counting: Counting) -> Result<String> {
    let session = Session::open(url)?;
    let message = call(CALL, counting, STEPS, STEP_MS);
    let first = session.post(&message)?;
    first.take(1);
    let second = session.post(&message)?;
    let seen = |stream: &Stream, events: &[Event]| {
        let answers: Vec<&Value> =
            events.iter().map(|event| &event.message).filter(|message| is_response(message)).collect();
        match answers.as_slice() {
            [] if stream.status >= 400 => refusal(stream),
            [] => "no response".to_owned(),
            [answer] if answer.get("error").is_some() => format!("error {}", answer["error"]["code"]),
            [_] => "its response".to_owned(),
            more => format!("{} responses", more.len()),
        }
    };
    let of_second = second.rest(PATIENCE);
    let of_first = first.rest(PATIENCE);
    Ok(format!("first: {}; second: {}", seen(&first, &of_first), seen(&second, &of_second)))
}

/// Whose event id it is.
#[derive(Debug, Clone, Copy)]
enum Foreign {
    Unknown,
    OtherSession,
}

/// A stream is resumed behind an event that is none of its session.
fn foreign(url: &str, counting: Counting, whose: Foreign) -> Result<String> {
    let (session, other) = (Session::open(url)?, Session::open(url)?);
    let events = other.post(&call(CALL, counting, STEPS, 1))?.rest(PATIENCE);
    let first = events.iter().find_map(|event| event.id.clone());
    let Some(of_other) = first else { return Ok(NO_IDS.to_owned()) };
    let id = match whose {
        Foreign::Unknown => "refmcp-no-such-event".to_owned(),
        Foreign::OtherSession => of_other,
    };
    let resumed = session.resume(&id)?;
    if resumed.status != 200 {
        return Ok(refusal(&resumed));
    }
    let messages = resumed.rest(Duration::from_secs(2)).iter().filter(|it| !it.message.is_null()).count();
    Ok(match messages {
        0 => "a stream without messages".to_owned(),
        count => format!("{count} messages of the other session"),
    })
}

/// How a request was answered that did not open a stream.
fn refusal(stream: &Stream) -> String {
    match stream.status {
        0 => "no answer within 10 seconds".to_owned(),
        status => format!("refused with status {status}"),
    }
}

const NO_IDS: &str = "no event ids";

fn last_id(events: &[Event]) -> Option<String> {
    events.iter().rev().find_map(|event| event.id.clone())
}

/// What is missing or repeated of the progress from a step to another, and of the response.
fn account(from: u64, to: u64, events: &[Event]) -> String {
    let progress = events.iter().filter_map(|event| event.message.pointer("/params/progress")?.as_f64());
    let seen: Vec<f64> = progress.collect();
    let count = |step: u64| seen.iter().filter(|it| (**it - step as f64).abs() < 0.5).count();
    let missing = (from..=to).filter(|step| count(*step) == 0).count();
    let repeated = (1..=to).filter(|step| count(*step) > 1).count();
    let early = (1..from).filter(|step| count(*step) > 0).count();
    let disordered = !seen.is_sorted();
    let responses = events.iter().filter(|event| is_response(&event.message)).count();
    let all = to - from + 1;
    let faults = [
        (missing > 0).then(|| format!("{missing} of {all} notifications missing")),
        (repeated > 0).then(|| format!("{repeated} of {all} notifications repeated")),
        (early > 0).then(|| format!("{early} notifications again that were received before")),
        disordered.then(|| "out of order".to_owned()),
        match responses {
            0 => Some("no response".to_owned()),
            1 => None,
            more => Some(format!("{more} responses")),
        },
    ];
    let faults: Vec<String> = faults.into_iter().flatten().collect();
    if faults.is_empty() { EXACT.to_owned() } else { faults.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(number: u64) -> Event {
        Event { id: None, message: json!({ "method": "n", "params": { "progress": number } }) }
    }

    fn response() -> Event {
        Event { id: None, message: json!({ "id": CALL, "result": {} }) }
    }

    #[test]
    fn what_is_missing_and_repeated_is_counted() {
        assert_eq!(account(1, 2, &[step(1), step(2), response()]), EXACT);
        assert_eq!(account(1, 3, &[step(1), step(3)]), "1 of 3 notifications missing, no response");
        assert_eq!(
            account(1, 2, &[step(1), step(2), step(2), step(1), response(), response()]),
            "2 of 2 notifications repeated, out of order, 2 responses"
        );
        assert_eq!(
            account(2, 2, &[step(1), step(2), response()]),
            "1 notifications again that were received before"
        );
    }
}

//! Recordings: what crossed connections, one event a line, as JSON.
//!
//! A recording is written by a [`Recorder`], which is an [`Observer`](refmcp_transport::observer::Observer) of a server, a client
//! or a relay, and read by [`read`]. Every line has `at` (milliseconds since the Unix epoch), `event` and `connection`; HTTP
//! requests and what answers them have the same `stream`.
//!
//! | `event` | more members | meaning |
//! |---|---|---|
//! | `opened` | `side`, `transport`, `peer` | a connection is opened; `side` is that of the recording process |
//! | `message` | `direction`, `message`, `event_id` | a message or a batch, as it was sent; the id of its SSE event |
//! | `invalid` | `direction`, `why`, `text` or `base64` | what should have been a message and is none |
//! | `head` | `direction`, `method` and `target` or `status`, `headers` | the head of an HTTP request or response |
//! | `sse` | `direction`, `name`, `event_id`, `retry`, `text` | an SSE event without a message, and its data |
//! | `ended` | `direction` | the body of an HTTP response has ended as it should, or its reader has left: then it is `received` by a server |
//! | `refused` | `status`, `reason`, `why` | a server refuses an HTTP request |
//! | `failed` | `why` | an HTTP request of a client failed, or its response ended too early |
//! | `finding` | `rule`, `what`, `expected` | the recording process found a broken rule |
//! | `stderr` | `text` or `base64` | a child process wrote to its standard error |
//! | `closed` | `why` | the connection has ended |

mod event;
mod line;
mod recorder;

use std::io::BufRead;

pub use event::{Event, EventKind, Header};
pub use recorder::{EventSink, Masks, Recorder};
pub use refmcp_transport::observer::{Direction, Side};

use line::RecordLine;

/// A line of a recording that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("cannot read the recording: {0}")]
    Io(#[from] std::io::Error),
    /// A line is no event.
    #[error("line {line} of the recording is no event: {why}")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The last line has no end: the process that wrote it was killed, or still writes.
    #[error("line {line} of the recording is cut off")]
    CutOff {
        /// The number of the line, from 1.
        line: usize,
    },
}

/// Longer lines are no events: a message may have this many bytes, and as much again for what is written about it.
const MAX_LINE: u64 = 64 << 20;

/// Reads the events of a recording one after the other; empty lines are passed over. Nothing follows an error.
pub fn read<R: BufRead>(recording: R) -> Events<R> {
    Events { recording, line: 0, failed: false }
}

/// The events of a recording, from [`read`].
#[derive(Debug)]
pub struct Events<R> {
    recording: R,
    line: usize,
    failed: bool,
}

impl<R> Events<R> {
    /// The number of the line that was read last, from 1.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl<R: BufRead> Iterator for Events<R> {
    type Item = Result<Event, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let read = self.read_event().transpose();
        self.failed = matches!(read, Some(Err(_)));
        read
    }
}

impl<R: BufRead> Events<R> {
    fn read_event(&mut self) -> Result<Option<Event>, ReadError> {
        let mut text = Vec::new();
        loop {
            text.clear();
            self.line += 1;
            let read = std::io::Read::take(&mut self.recording, MAX_LINE).read_until(b'\n', &mut text)?;
            let line = self.line;
            let wrong = |why: String| ReadError::Line { line, why };
            match read {
                0 => return Ok(None),
                _ if text.trim_ascii().is_empty() => {}
                _ if read as u64 == MAX_LINE => {
                    return Err(wrong(format!("it is longer than {MAX_LINE} bytes")));
                }
                _ => {
                    let event = match serde_json::from_slice::<RecordLine>(&text) {
                        Ok(event) => event,
                        Err(error) if error.is_eof() && !text.ends_with(b"\n") => {
                            return Err(ReadError::CutOff { line });
                        }
                        Err(error) => return Err(wrong(error.to_string())),
                    };
                    return event.into_event().map(Some).map_err(wrong);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_round_trip_byte_by_byte() {
        let lines = concat!(
            r#"{"at":1,"event":"opened","connection":3,"side":"client","transport":"http","peer":"weather"}"#,
            "\n",
            r#"{"at":2,"event":"head","connection":3,"revision":"2025-06-18","stream":1,"direction":"sent","method":"POST","target":"/mcp","headers":{"accept":"text/event-stream"}}"#,
            "\n",
            r#"{"at":3,"event":"message","connection":3,"stream":1,"event_id":"a","direction":"received","message":{ "jsonrpc":"2.0","id":1.0e2,"id":7}}"#,
            "\n",
            r#"{"at":4,"event":"invalid","connection":3,"direction":"received","why":"no JSON","base64":"/w=="}"#,
            "\n",
            r#"{"at":5,"event":"sse","connection":3,"stream":1,"event_id":"b","direction":"received","retry":100}"#,
            "\n",
            r#"{"at":6,"event":"sse","connection":3,"stream":0,"direction":"received","name":"endpoint","text":"/messages"}"#,
            "\n",
            r#"{"at":6,"event":"refused","connection":3,"status":404,"reason":"session","why":"it has ended"}"#,
            "\n",
            r#"{"at":7,"event":"closed","connection":3,"why":"finished"}"#,
            "\n",
        );
        let mut written = String::new();
        for event in read(lines.as_bytes()) {
            written += &event.unwrap().to_line();
        }
        assert_eq!(written, lines);
    }

    #[test]
    fn a_line_that_is_no_event_is_named() {
        let error = |text: &str| read(text.as_bytes()).find_map(Result::err).unwrap().to_string();
        assert!(error("\n{\"at\":x}").contains("line 2"));
        let unknown = error(r#"{"at":1,"event":"sung","connection":1}"#);
        assert!(unknown.contains("`sung`"), "{unknown}");
        let missing = error(r#"{"at":1,"event":"message","connection":1,"message":{}}"#);
        assert!(missing.contains("`direction`"), "{missing}");
    }

    #[test]
    fn a_line_without_its_end_is_told_apart() {
        let whole = r#"{"at":1,"event":"closed","connection":1,"why":""}"#;
        let text = format!("{whole}\n\n{whole}\n{{\"at\":2,\"eve");
        let mut events = read(text.as_bytes());
        assert!(events.next().unwrap().is_ok());
        assert_eq!((events.next().unwrap().is_ok(), events.line()), (true, 3));
        let error = events.next().unwrap().unwrap_err();
        assert!(matches!(error, ReadError::CutOff { line: 4 }), "{error}");
        // A last line that is whole needs no line break.
        assert!(read(whole.as_bytes()).all(|event| event.is_ok()));
    }

    #[test]
    fn nothing_follows_a_line_that_is_no_event() {
        assert_eq!(read(&b"x\ny\n"[..]).count(), 1);
    }
}

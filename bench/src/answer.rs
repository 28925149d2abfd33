//! Reading answers: JSON or server-sent events, whole or in chunks; and frames.

use std::borrow::Cow;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The status of what belongs to an answer that has begun before.
pub const EVENT: u16 = 0;

/// What came back.
#[derive(Debug)]
pub struct Answer<'a> {
    pub status: u16,
    pub session: Option<&'a str>,
    /// The body; of a stream, the last message.
    pub json: Cow<'a, [u8]>,
}

impl Answer<'_> {
    /// Fails unless this is the answer of `echo` to the request of this id.
    pub fn expect_echo(&self, id: u64, message: &str) -> Result<()> {
        #[derive(Deserialize)]
        struct Called<'a> {
            id: u64,
            #[serde(borrow)]
            result: Outcome<'a>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Outcome<'a> {
            #[serde(borrow)]
            content: [Text<'a>; 1],
            #[serde(default)]
            is_error: bool,
        }
        #[derive(Deserialize)]
        struct Text<'a> {
            text: Cow<'a, str>,
        }
        let called: Called = serde_json::from_slice(&self.json).with_context(|| self.shown())?;
        let right = called.id == id && called.result.content[0].text == message && !called.result.is_error;
        ensure!(self.status == 200 && right, "not the echo of {id}: {}", self.shown());
        Ok(())
    }

    /// Fails unless this is the answer to the request of this id, and says that a task is completed.
    pub fn expect_completed(&self, id: u64) -> Result<()> {
        #[derive(Deserialize)]
        struct Asked<'a> {
            id: u64,
            #[serde(borrow)]
            result: Status<'a>,
        }
        #[derive(Deserialize)]
        struct Status<'a> {
            status: &'a str,
        }
        let asked: Asked = serde_json::from_slice(&self.json).with_context(|| self.shown())?;
        let right = asked.id == id && asked.result.status == "completed";
        ensure!(self.status == 200 && right, "not the task of {id}: {}", self.shown());
        Ok(())
    }

    /// The id of the task that the request has become.
    pub fn task_id(&self) -> Result<String> {
        let answer: serde_json::Value = serde_json::from_slice(&self.json).with_context(|| self.shown())?;
        let id = answer.pointer("/result/task/taskId").and_then(serde_json::Value::as_str);
        Ok(id.with_context(|| format!("no task: {}", self.shown()))?.to_owned())
    }

    /// Fails unless the request was served.
    pub fn expect_result(&self) -> Result<()> {
        let served = self.status == 200 && contains(&self.json, br#""result":"#);
        ensure!(served && !contains(&self.json, br#""isError":true"#), "refused: {}", self.shown());
        Ok(())
    }

    pub fn shown(&self) -> String {
        format!("{} {}", self.status, String::from_utf8_lossy(&self.json))
    }
}

/// The first answer in what was read, and its length; `None` if more has to come.
pub fn read(input: &[u8]) -> Result<Option<(usize, Answer<'_>)>> {
    let Some(head) = read_head(input)? else { return Ok(None) };
    let rest = &input[head.length..];
    let (length, body) = match head.body {
        Body::Sized(length) if rest.len() < length => return Ok(None),
        Body::Sized(length) => (length, Cow::Borrowed(&rest[..length])),
        Body::Chunked => match unchunk(rest)? {
            Some((length, body)) => (length, Cow::Owned(body)),
            None => return Ok(None),
        },
    };
    let json = if head.events { last_message(&body).into() } else { body };
    Ok(Some((head.length + length, Answer { status: head.status, session: head.session, json })))
}

/// The next piece of an answer that goes on for long, and its length: its head, or an event.
pub fn read_event(input: &[u8]) -> Result<Option<(usize, Answer<'_>)>> {
    if input.starts_with(b"HTTP/") {
        let head = read_head(input)?;
        return Ok(head.map(|head| {
            (head.length, Answer { status: head.status, session: head.session, json: Cow::Borrowed(&[]) })
        }));
    }
    // An event never spans chunks here, so what stands around a chunk looks like lines without meaning.
    Ok(find(input, b"\n\n").map(|end| {
        let json = last_message(&input[..end]).into();
        (end + 2, Answer { status: EVENT, session: None, json })
    }))
}

struct Head<'a> {
    length: usize,
    status: u16,
    session: Option<&'a str>,
    events: bool,
    body: Body,
}

enum Body {
    Sized(usize),
    Chunked,
}

fn read_head(input: &[u8]) -> Result<Option<Head<'_>>> {
    let Some(end) = find(input, b"\r\n\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&input[..end])?;
    let mut lines = text.split("\r\n");
    let status = lines.next().and_then(|line| line.get(9..12)).context("no status")?.parse()?;
    let mut head = Head { length: end + 4, status, session: None, events: false, body: Body::Sized(0) };
    for line in lines {
        let (name, value) = line.split_once(':').context("an odd header")?;
        let value = value.trim_start();
        if name.eq_ignore_ascii_case("content-length") {
            head.body = Body::Sized(value.parse()?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            head.body = Body::Chunked;
        } else if name.eq_ignore_ascii_case("content-type") {
            head.events = value.starts_with("text/event-stream");
        } else if name.eq_ignore_ascii_case("mcp-session-id") {
            head.session = Some(value);
        }
    }
    Ok(Some(head))
}

/// What the chunks hold, and how long they are with everything around them.
fn unchunk(input: &[u8]) -> Result<Option<(usize, Vec<u8>)>> {
    let (mut at, mut body) = (0, Vec::with_capacity(input.len()));
    loop {
        let Some(line) = find(&input[at..], b"\r\n") else { return Ok(None) };
        let size = usize::from_str_radix(std::str::from_utf8(&input[at..at + line])?, 16)?;
        at += line + 2;
        let Some(chunk) = input.get(at..at + size + 2) else { return Ok(None) };
        body.extend(&chunk[..size]);
        at += size + 2;
        if size == 0 {
            return Ok(Some((at, body)));
        }
    }
}

/// The data of the last event that has some.
fn last_message(events: &[u8]) -> Vec<u8> {
    let lines = events.split(|&byte| byte == b'\n').rev();
    let data = lines.filter_map(|line| line.strip_prefix(b"data:")).map(<[u8]>::trim_ascii);
    data.into_iter().find(|data| !data.is_empty()).unwrap_or_default().to_vec()
}

/// The first text frame in what was read, and its length.
pub fn read_frame(input: &[u8]) -> Result<Option<(usize, Answer<'_>)>> {
    let &[kind, short, ..] = input else { return Ok(None) };
    ensure!(kind == 0x81, "not a text frame: {kind:#x}");
    let (head, size) = match (short, input) {
        (0..126, _) => (2, usize::from(short)),
        (126, &[_, _, high, low, ..]) => (4, usize::from(u16::from_be_bytes([high, low]))),
        (126, _) => return Ok(None),
        _ => anyhow::bail!("a frame longer than we asked for"),
    };
    Ok(input
        .get(head..head + size)
        .map(|json| (head + size, Answer { status: 200, session: None, json: Cow::Borrowed(json) })))
}

pub fn contains(text: &[u8], part: &[u8]) -> bool {
    find(text, part).is_some()
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ECHO: &str = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"hi"}]}}"#;

    fn sized(body: &str) -> Vec<u8> {
        format!("HTTP/1.1 200 OK\r\nMcp-Session-Id: s1\r\nContent-Length: {}\r\n\r\n{body}", body.len())
            .into()
    }

    fn streamed() -> Vec<u8> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
        let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
        let (primer, event) =
            (chunk("id: 0\ndata: \n\n"), chunk(&format!("event: message\ndata: {ECHO}\n\n")));
        format!("{head}{primer}{event}0\r\n\r\n").into()
    }

    #[test]
    fn an_answer_is_read_when_it_is_whole() {
        for bytes in [sized(ECHO), streamed()] {
            for length in 0..bytes.len() {
                assert!(read(&bytes[..length]).unwrap().is_none(), "{length} of {}", bytes.len());
            }
            let followed = [&bytes[..], b"HTTP/1.1"].concat();
            let (length, answer) = read(&followed).unwrap().unwrap();
            assert_eq!(length, bytes.len());
            answer.expect_echo(7, "hi").unwrap();
        }
    }

    #[test]
    fn only_the_right_echo_will_do() {
        let is_right = |body: &str| read(&sized(body)).unwrap().unwrap().1.expect_echo(7, "hi").is_ok();
        assert!(is_right(ECHO));
        assert!(!is_right(&ECHO.replace("hi", "ho")));
        assert!(!is_right(&ECHO.replace("7", "8")));
        assert!(!is_right(&ECHO.replace(r#""content""#, r#""isError":true,"content""#)));
        assert!(!is_right(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"hi"}}"#));
    }

    #[test]
    fn a_stream_is_read_piece_by_piece() {
        let bytes = streamed();
        let (mut at, mut pieces) = (0, Vec::new());
        while let Some((length, piece)) = read_event(&bytes[at..]).unwrap() {
            pieces.push((piece.status, piece.json.len()));
            at += length;
        }
        assert_eq!(pieces, [(200, 0), (EVENT, 0), (EVENT, ECHO.len())]);
    }

    #[test]
    fn frames_are_read_with_both_kinds_of_length() {
        for length in [5_usize, 300] {
            let head = if length < 126 { vec![0x81, 5] } else { vec![0x81, 126, 1, 44] };
            let bytes = [head, vec![b'x'; length]].concat();
            assert!(read_frame(&bytes[..bytes.len() - 1]).unwrap().is_none());
            assert_eq!(read_frame(&bytes).unwrap().unwrap().0, bytes.len());
        }
    }
}

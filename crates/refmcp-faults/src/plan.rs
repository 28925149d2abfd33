//! Plans: which fault happens where, as text.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// What goes wrong, and where: one fault a line or between semicolons, `POSITION: FAULT`. Lines that begin with `#` are comments.
///
/// A position is a request: `tools/call 2` is the second request of this method, `tools/call` the first, `every tools/call`
/// all of them; `request 3` is the third of any method. `stream` is a stream that a client opens with GET, counted apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FaultPlan {
    /// The faults, in the order of the text.
    pub entries: Vec<Entry>,
}

/// A fault and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where.
    pub position: Position,
    /// What.
    pub fault: Fault,
}

/// A request, counted since the server was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Its method; any where it is left out.
    pub method: Option<String>,
    /// Its number among those, from 1; every one where it is left out.
    pub number: Option<u32>,
}

/// What goes wrong with the answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// `no answer`
    NoAnswer,
    /// `answer after 5s`, also in `ms`
    AnswerAfter(Duration),
    /// `answer twice`
    AnswerTwice,
    /// `wrong id`
    WrongId,
    /// `result and error`
    ResultAndError,
    /// `other shape`: results as the other lifecycle has them
    OtherShape,
    /// `malformed json`: half of the answer
    MalformedJson,
    /// `noise`: a line that is no message before the answer
    Noise,
    /// `oversized 20M`: the answer with so many bytes
    Oversized(usize),
    /// `unknown request`: a request of the server before the answer, with a method that does not exist
    UnknownRequest,
    /// `cut after event 2`: the stream ends once the server has sent so many messages since the request
    CutAfterEvent(u32),
    /// `cut after byte 100`: the stream ends in the answer
    CutAfterByte(usize),
    /// `slow 10`: the answer with so many bytes a second
    Slow(u32),
    /// `status 503`, `status 429 retry 2`: over HTTP, instead of the answer
    Status {
        /// The status.
        code: u16,
        /// Seconds for `Retry-After`.
        retry_after: Option<u32>,
    },
    /// `content type text/html`: over HTTP
    ContentType(String),
    /// `header NAME VALUE`: over HTTP, in place of the one that the answer has
    Header(String, String),
    /// `no header NAME`: over HTTP
    NoHeader(String),
    /// `close 1002`: over WebSocket, the connection is closed with this code before the answer
    Close(u16),
    /// `wrong endpoint /nowhere`: over HTTP+SSE, the `endpoint` event of a stream names this URI
    WrongEndpoint(String),
    /// `expire session`: over HTTP, this request and all later ones of its session get 404
    ExpireSession,
}

/// A line of a plan that is not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the fault plan: {why}")]
pub struct PlanError {
    /// The number of the line, from 1.
    pub line: usize,
    /// What is wrong with it, and what is understood.
    pub why: String,
}

/// Every fault as it is written, for messages.
pub(crate) const FAULTS: &str = "no answer, answer after TIME, answer twice, wrong id, result and error, other shape, \
     malformed json, noise, oversized SIZE, unknown request, cut after event N, cut after byte N, slow BYTES, \
     status CODE [retry SECONDS], content type VALUE, header NAME VALUE, no header NAME, close CODE, \
     wrong endpoint URI, expire session";

/// The position of streams that clients open with GET.
pub(crate) const STREAM: &str = "stream";

impl FaultPlan {
    /// Whether a position names this method.
    pub(crate) fn names(&self, method: &str) -> bool {
        self.entries.iter().any(|entry| entry.position.method.as_deref() == Some(method))
    }

    /// The faults of the nth stream.
    pub(crate) fn of_stream(&self, nth: u32) -> impl Iterator<Item = &Fault> {
        let here = move |position: &Position| {
            position.method.as_deref() == Some(STREAM) && position.number.is_none_or(|number| number == nth)
        };
        self.entries.iter().filter(move |entry| here(&entry.position)).map(|entry| &entry.fault)
    }

    /// The faults of a request that is the nth of all and the nth of its method.
    pub(crate) fn at(&self, method: &str, of_all: u32, of_method: u32) -> impl Iterator<Item = &Fault> {
        let here = move |position: &Position| match &position.method {
            Some(named) => named == method && position.number.is_none_or(|number| number == of_method),
            None => position.number.is_none_or(|number| number == of_all),
        };
        self.entries.iter().filter(move |entry| here(&entry.position)).map(|entry| &entry.fault)
    }
}

impl Fault {
    /// Whether it is about the HTTP request and not about messages.
    pub fn is_of_http(&self) -> bool {
        matches!(
            self,
            Self::Status { .. }
                | Self::ContentType(_)
                | Self::Header(..)
                | Self::NoHeader(_)
                | Self::WrongEndpoint(_)
                | Self::ExpireSession
        )
    }
}

impl FromStr for FaultPlan {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let mut entries = Vec::new();
        for (number, line) in text.lines().enumerate().map(|(number, line)| (number + 1, line.trim())) {
            if line.starts_with('#') {
                continue;
            }
            for part in line.split(';').map(str::trim).filter(|part| !part.is_empty()) {
                entries.push(part.parse().map_err(|why| PlanError { line: number, why })?);
            }
        }
        Ok(Self { entries })
    }
}

impl FromStr for Entry {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (position, fault) = text
            .split_once(": ")
            .ok_or_else(|| format!("`{text}` is no POSITION: FAULT, such as `tools/call 2: no answer`"))?;
        let entry = Self { position: position.parse()?, fault: fault.parse()? };
        let is_of_stream = entry.position.method.as_deref() == Some(STREAM);
        match &entry.fault {
            Fault::WrongEndpoint(_) if !is_of_stream => {
                Err(format!("`{text}`: an endpoint is named when a stream opens: `stream: {fault}`"))
            }
            fault if is_of_stream && (!fault.is_of_http() || *fault == Fault::ExpireSession) => Err(format!(
                "`{text}`: a stream has no answer; its faults are status, content type, header, no header, wrong endpoint"
            )),
            _ => Ok(entry),
        }
    }
}

impl FromStr for Position {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let (name, number) = match words[..] {
            ["every", name] => (name, None),
            [name] => (name, Some(1)),
            [name, number] => (name, Some(positive(number)?)),
            _ => {
                return Err(format!("`{text}` is no position: METHOD, METHOD N, every METHOD, or request N"));
            }
        };
        Ok(Self { method: (name != "request").then(|| name.to_owned()), number })
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(match words[..] {
            ["no", "answer"] => Self::NoAnswer,
            ["answer", "after", time] => Self::AnswerAfter(duration(time)?),
            ["answer", "twice"] => Self::AnswerTwice,
            ["wrong", "id"] => Self::WrongId,
            ["result", "and", "error"] => Self::ResultAndError,
            ["other", "shape"] => Self::OtherShape,
            ["malformed", "json" | "JSON"] => Self::MalformedJson,
            ["noise"] => Self::Noise,
            ["oversized", bytes] => Self::Oversized(size(bytes)?),
            ["unknown", "request"] => Self::UnknownRequest,
            ["cut", "after", "event", number] => Self::CutAfterEvent(positive(number)?),
            ["cut", "after", "byte", number] => Self::CutAfterByte(size(number)?),
            ["slow", rate] => Self::Slow(positive(rate)?),
            ["status", code] => Self::Status { code: status(code)?, retry_after: None },
            ["status", code, "retry", seconds] => {
                Self::Status { code: status(code)?, retry_after: Some(number(seconds)?) }
            }
            ["content", "type", ref value @ ..] if !value.is_empty() => Self::ContentType(value.join(" ")),
            ["header", name, ref value @ ..] => Self::Header(name.to_ascii_lowercase(), value.join(" ")),
            ["no", "header", name] => Self::NoHeader(name.to_ascii_lowercase()),
            ["close", code] => Self::Close(close_code(code)?),
            ["wrong", "endpoint", uri] => Self::WrongEndpoint(uri.to_owned()),
            ["expire", "session"] => Self::ExpireSession,
            _ => return Err(format!("`{text}` is no fault; these are: {FAULTS}")),
        })
    }
}

fn number(word: &str) -> Result<u32, String> {
    word.parse().map_err(|_| format!("`{word}` is no number"))
}

fn positive(word: &str) -> Result<u32, String> {
    number(word).and_then(|number| match number {
        0 => Err("positions are counted from 1, and a rate is at least 1".to_owned()),
        number => Ok(number),
    })
}

fn status(word: &str) -> Result<u16, String> {
    let code = word.parse().ok().filter(|code| (200..600).contains(code));
    code.ok_or_else(|| format!("`{word}` is no HTTP status from 200 to 599"))
}

/// Codes that are forbidden on the wire, such as 1005, are faults too.
fn close_code(word: &str) -> Result<u16, String> {
    let code = word.parse().ok().filter(|code| (1000..5000).contains(code));
    code.ok_or_else(|| format!("`{word}` is no code of WebSocket from 1000 to 4999"))
}

/// A number of bytes, with K or M for larger ones. Answers of more than a gigabyte are not made.
fn size(word: &str) -> Result<usize, String> {
    let (digits, unit) = match word.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => word.strip_suffix(['M', 'm']).map_or((word, 1), |digits| (digits, 1 << 20)),
    };
    let bytes = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    bytes
        .filter(|bytes| *bytes <= 1 << 30)
        .ok_or_else(|| format!("`{word}` is no number of bytes, such as 512, 64K or 20M, up to 1024M"))
}

fn duration(word: &str) -> Result<Duration, String> {
    let wrong = || format!("`{word}` is no time, such as 500ms or 5s, up to an hour");
    let millis = match (word.strip_suffix("ms"), word.strip_suffix('s')) {
        (Some(millis), _) => millis.parse::<u64>().ok(),
        (None, Some(seconds)) => seconds.parse::<u64>().ok().and_then(|seconds| seconds.checked_mul(1000)),
        (None, None) => None,
    };
    millis.filter(|millis| *millis <= 3_600_000).map(Duration::from_millis).ok_or_else(wrong)
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.method.as_deref().unwrap_or("request");
        match self.number {
            None => write!(f, "every {name}"),
            Some(number) => write!(f, "{name} {number}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        text.parse::<FaultPlan>().unwrap_err().to_string()
    }

    #[test]
    fn a_plan_is_lines_comments_and_semicolons() {
        let plan: FaultPlan = "# slow network\n\n tools/call 2: answer after 500ms; every ping: no answer\nrequest 7: status 429 retry 2\n"
            .parse()
            .unwrap();
        let shown: Vec<_> =
            plan.entries.iter().map(|entry| (entry.position.to_string(), entry.fault.clone())).collect();
        assert_eq!(
            shown,
            [
                ("tools/call 2".to_owned(), Fault::AnswerAfter(Duration::from_millis(500))),
                ("every ping".to_owned(), Fault::NoAnswer),
                ("request 7".to_owned(), Fault::Status { code: 429, retry_after: Some(2) }),
            ]
        );
    }

    #[test]
    fn every_fault_that_is_listed_is_understood() {
        let written = FAULTS
            .replace("TIME", "5s")
            .replace("SIZE", "20M")
            .replace("BYTES", "10")
            .replace("status CODE", "status 503")
            .replace("CODE", "1002")
            .replace("URI", "/nowhere")
            .replace(" [retry SECONDS]", "")
            .replace("VALUE", "text/html")
            .replace("NAME", "X-Test")
            .replace(" N", " 3");
        for fault in written.split(", ") {
            fault.parse::<Fault>().unwrap();
        }
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        assert!(
            why("ping: no answer\nping: sing").starts_with("line 2 of the fault plan: `sing` is no fault")
        );
        assert!(why("ping no answer").contains("POSITION: FAULT"));
        assert!(why("ping 0: noise").contains("counted from 1"));
        assert!(why("ping 1 2: noise").contains("no position"));
        assert!(why("ping: status 99").contains("200 to 599"));
        assert!(why("ping: close 99").contains("1000 to 4999"));
        assert!(why("ping: wrong endpoint /x").contains("`stream: wrong endpoint /x`"));
        assert!(why("stream: no answer").contains("has no answer"));
        assert!(why("ping: oversized 9999M").contains("1024M"));
        assert!(why("ping: answer after soon").contains("500ms or 5s"));
    }
}

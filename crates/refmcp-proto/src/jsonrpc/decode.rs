//! Bytes to messages: the envelope is read and checked, parameters and results stay text.

use std::borrow::Cow;
use std::ops::Range;

use super::scan::{Scan, ScanError, ScanErrorKind, Scanner};
use super::{RequestId, RpcError, excerpt, without_place};
use crate::model::keys;
use crate::rule::{self, Rule};

/// How large a message may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one message. Also enforced where messages are read: by `LineReader` (stdio), the HTTP endpoint's body
    /// reader, the WebSocket and the `SseDecoder`, so that what is too long is never held in memory.
    pub max_message_size: usize,
    /// Arrays and objects inside each other.
    pub depth: usize,
    /// Bytes of an id, of a method name.
    pub name_bytes: usize,
    /// Messages in one batch.
    pub batch: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_message_size: 4 << 20, depth: 128, name_bytes: 256, batch: 1000 }
    }
}

/// A message as it was read; text is borrowed from the bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Message<'a> {
    /// A request.
    Request(Request<'a>),
    /// A notification.
    Notification(Notification<'a>),
    /// A response.
    Response(Response<'a>),
}

impl Message<'_> {
    /// Where `_meta` belongs in this message, if it stands beside that and so is not read.
    pub fn misplaced_meta(&self) -> Option<&'static str> {
        match self {
            Self::Request(Request { params, .. }) | Self::Notification(Notification { params, .. }) => {
                params.misplaced_meta.then_some("params")
            }
            Self::Response(response) => response.misplaced_meta.then_some("result"),
        }
    }
}

/// A request, its parameters unread.
#[derive(Debug, Clone, PartialEq)]
pub struct Request<'a> {
    /// Its id.
    pub id: RequestId,
    /// The method.
    pub method: Cow<'a, str>,
    /// The parameters.
    pub params: Params<'a>,
}

/// A notification, its parameters unread.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification<'a> {
    /// The method.
    pub method: Cow<'a, str>,
    /// The parameters.
    pub params: Params<'a>,
}

/// A response, its result unread.
#[derive(Debug, Clone, PartialEq)]
pub struct Response<'a> {
    /// The id of the request; an error may come without one when the request could not be read.
    pub id: Option<RequestId>,
    /// The result's JSON text, or the error.
    pub result: Result<&'a str, RpcError>,
    /// The members of the result that the engine needs.
    pub members: ResultMembers<'a>,
    /// Whether a member `_meta` stands beside the result, where the protocol has none.
    pub misplaced_meta: bool,
}

/// Members of a result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ResultMembers<'a> {
    /// The text of the member `resultType`.
    pub result_type: Option<&'a str>,
    /// Whether there is a member `content`.
    pub content: bool,
    /// Whether there is a member `structuredContent`.
    pub structured_content: bool,
}

/// The `_meta` of a message, and the text of the members of it that the protocol defines for requests. A member that is
/// `null` is read as absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Meta<'a> {
    /// The text, whatever it is; `None` when there is no `_meta`.
    pub text: Option<&'a str>,
    /// The protocol version, which only a stateless request names.
    pub protocol_version: Option<&'a str>,
    /// The capabilities of the client.
    pub client_capabilities: Option<&'a str>,
    /// The name and version of the client.
    pub client_info: Option<&'a str>,
    /// The least level of log messages for this request.
    pub log_level: Option<&'a str>,
    /// The token for progress notifications.
    pub progress_token: Option<&'a str>,
}

/// The parameters of a message: an object's JSON text, and the members that the engine and HTTP headers need.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Params<'a> {
    /// The text of the object; `None` when the message has no parameters.
    pub text: Option<&'a str>,
    /// The member `_meta`.
    pub meta: Meta<'a>,
    /// The text of the member `inputResponses`.
    pub input_responses: Option<&'a str>,
    /// The text of the member `requestState`.
    pub request_state: Option<&'a str>,
    /// The text of the member `name`: what is called or got.
    pub name: Option<&'a str>,
    /// The text of the member `uri`: what is read.
    pub uri: Option<&'a str>,
    /// The text of the member `taskId`: the task that is asked for, answered or cancelled.
    pub task_id: Option<&'a str>,
    /// The text of the member `arguments`.
    pub arguments: Option<&'a str>,
    /// Whether a member `_meta` stands beside the parameters, where the protocol has none.
    pub misplaced_meta: bool,
    /// Whether that names a protocol version.
    pub misplaced_version: bool,
}

/// Where members stand in the text of parameters, for parameters that are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParamSpans {
    /// The member `name`.
    pub name: Option<Range<usize>>,
    /// The member `arguments`.
    pub arguments: Option<Range<usize>>,
    /// The member `_meta`.
    pub meta: Option<Range<usize>>,
}

impl<'a> Params<'a> {
    /// Where members stand in the text.
    pub fn spans(&self) -> ParamSpans {
        let span = |part: &str| {
            let start = part.as_ptr().addr().checked_sub(self.text?.as_ptr().addr())?;
            Some(start..start + part.len())
        };
        ParamSpans {
            name: self.name.and_then(span),
            arguments: self.arguments.and_then(span),
            meta: self.meta.text.and_then(span),
        }
    }

    /// Parameters that were read before, from their text.
    pub(crate) fn of_text(text: Option<&'a str>) -> Self {
        let mut params = Self::default();
        let read = text.map_or(Ok(()), |text| params.read(&mut Scanner::new(text, usize::MAX)));
        if read.is_ok() { params } else { Self::default() }
    }
}

/// The content of one frame.
#[expect(clippy::large_enum_variant, reason = "one message is the rule, and it is not worth an allocation")]
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming<'a> {
    /// One message.
    One(Message<'a>),
    /// Several; each may be malformed by itself.
    Batch(Vec<Result<Message<'a>, DecodeError>>),
}

/// Why bytes are no message; always the peer's fault.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{error}")]
pub struct DecodeError {
    /// The error to respond with.
    pub error: RpcError,
    /// The id of the request, where one could be read.
    pub id: Option<RequestId>,
    /// Whether a response is due: a malformed notification or response gets none.
    pub needs_response: bool,
    /// The rule that the peer broke.
    pub rule: &'static Rule,
}

impl DecodeError {
    #[cold]
    fn new(error: RpcError) -> Self {
        Self { error, id: None, needs_response: true, rule: &rule::RPC_01 }
    }

    #[cold]
    fn parse(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(RpcError::parse_error(message))
    }

    #[cold]
    fn invalid(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(RpcError::invalid_request(message))
    }

    /// The error for a message that was dropped unread because of its length.
    pub fn too_long(limit: usize) -> Self {
        Self::invalid(format!("the message is longer than {limit} bytes"))
    }
}

impl From<Box<ScanError>> for DecodeError {
    #[cold]
    fn from(error: Box<ScanError>) -> Self {
        match error.what {
            // This is JSON, but not acceptable.
            ScanErrorKind::DuplicateKey(_) | ScanErrorKind::TooDeep(_) | ScanErrorKind::LongNumber => {
                Self::invalid(error.to_string())
            }
            _ => Self::parse(format!("not JSON: {error}")),
        }
    }
}

/// Reads one frame.
pub fn decode<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Incoming<'a>, DecodeError> {
    if bytes.len() > limits.max_message_size {
        return Err(DecodeError::too_long(limits.max_message_size));
    }
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(DecodeError::parse("not JSON: a byte order mark at byte 0"));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| DecodeError::parse(format!("not UTF-8 at byte {}", error.valid_up_to())))?;
    let mut scanner = Scanner::new(text, limits.depth);
    match scanner.peek() {
        Some(b'{') => {
            let mut envelope = Envelope::default();
            envelope.read(&mut scanner)?;
            scanner.end()?;
            envelope.message(limits).map(Incoming::One)
        }
        Some(b'[') => batch(&mut scanner, limits),
        _ => {
            scanner.value()?;
            scanner.end()?;
            Err(DecodeError::invalid("a message is a JSON object"))
        }
    }
}

fn batch<'a>(scanner: &mut Scanner<'a>, limits: &Limits) -> Result<Incoming<'a>, DecodeError> {
    let mut items: Vec<Result<Envelope<'a>, &'static str>> = Vec::new();
    scanner.array(|scanner| {
        items.push(if scanner.peek() == Some(b'{') {
            let mut envelope = Envelope::default();
            envelope.read(scanner)?;
            Ok(envelope)
        } else {
            scanner.value()?;
            Err("a message is a JSON object")
        });
        Ok(())
    })?;
    scanner.end()?;
    if items.is_empty() {
        return Err(DecodeError::invalid("an empty batch"));
    }
    if items.len() > limits.batch {
        return Err(DecodeError::invalid(format!("a batch of more than {} messages", limits.batch)));
    }
    let messages = items.into_iter().map(|item| match item {
        Ok(envelope) => envelope.message(limits),
        Err(why) => Err(DecodeError::invalid(why)),
    });
    Ok(Incoming::Batch(messages.collect()))
}

/// The members of a JSON-RPC message, as text.
#[derive(Default)]
struct Envelope<'a> {
    version: Option<&'a str>,
    id: Option<&'a str>,
    method: Option<&'a str>,
    /// The parameters, and what stands beside them or beside a result.
    params: Params<'a>,
    result: Option<(&'a str, ResultMembers<'a>)>,
    error: Option<&'a str>,
    /// A key that is one of ours but for its case: some parsers would take it for that.
    look_alike: Option<String>,
}

impl<'a> Envelope<'a> {
    fn read(&mut self, scanner: &mut Scanner<'a>) -> Scan<()> {
        scanner.object(|scanner, key| {
            match key {
                "jsonrpc" => self.version = Some(scanner.value()?),
                "id" => self.id = Some(scanner.value()?),
                "method" => self.method = Some(scanner.value()?),
                "result" => self.result = Some(ResultMembers::read(scanner)?),
                "error" => self.error = Some(scanner.value()?),
                "params" => self.params.read(scanner)?,
                "_meta" => {
                    let mut meta = Meta::default();
                    meta.read(scanner)?;
                    self.params.misplaced_meta = true;
                    self.params.misplaced_version = meta.protocol_version.is_some();
                }
                other => {
                    if is_look_alike(other) {
                        self.look_alike = Some(other.to_owned());
                    }
                    scanner.value()?;
                }
            }
            Ok(())
        })
    }

    fn message(&self, limits: &Limits) -> Result<Message<'a>, DecodeError> {
        let is_request = self.method.is_some() || (self.result.is_none() && self.error.is_none());
        let (id, id_fault) = match self.id.map(|text| read_id(text, limits)) {
            None => (None, None),
            Some(Ok(id)) => (Some(id), None),
            Some(Err(why)) => (None, Some(why)),
        };
        let needs_response = is_request && (self.id.is_some() || self.method.is_none());
        let broken = |rule: &'static Rule, why: String| DecodeError {
            error: RpcError::invalid_request(why),
            id: id.clone(),
            needs_response,
            rule,
        };
        let fail = |why: String| broken(&rule::RPC_01, why);
        if let Some(key) = &self.look_alike {
            return Err(fail(format!("key \"{}\" differs from a known one only in case", excerpt(key))));
        }
        match self.version {
            Some("\"2.0\"") => {}
            Some(_) => return Err(fail("member \"jsonrpc\" is not \"2.0\"".into())),
            None => return Err(fail("member \"jsonrpc\" is missing".into())),
        }
        if self.method.is_some() && (self.result.is_some() || self.error.is_some()) {
            return Err(fail("a message has either a method or an answer, not both".into()));
        }
        // The error for an unreadable request has no id, or a null one.
        let null_error = self.error.is_some() && self.id == Some("null");
        if let Some(why) = id_fault.filter(|_| !null_error) {
            return Err(broken(&rule::RPC_02, why));
        }
        if let Some(method) = self.method {
            let method = read_method(method, limits).map_err(&fail)?;
            if self.params.text.is_some_and(|params| !params.starts_with('{')) {
                return Err(fail("member \"params\" is not an object".into()));
            }
            return Ok(match id {
                Some(id) => Message::Request(Request { id, method, params: self.params }),
                None => Message::Notification(Notification { method, params: self.params }),
            });
        }
        let members = self.result.map(|(_, members)| members).unwrap_or_default();
        let result = match (self.result, self.error) {
            (Some(_), Some(_)) => {
                return Err(broken(&rule::RPC_06, "an answer has both result and error".into()));
            }
            (None, None) => return Err(fail("neither a method nor an answer".into())),
            (Some((result, _)), None) => Ok(result),
            (None, Some(error)) => Err(serde_json::from_str(error).map_err(|error| {
                broken(&rule::RPC_06, format!("member \"error\": {}", without_place(&error)))
            })?),
        };
        if id.is_none() && result.is_ok() {
            return Err(broken(&rule::RPC_05, "an answer without an id".into()));
        }
        let misplaced_meta = self.params.misplaced_meta;
        Ok(Message::Response(Response { id, result, members, misplaced_meta }))
    }
}

impl<'a> Params<'a> {
    fn read(&mut self, scanner: &mut Scanner<'a>) -> Scan<()> {
        let text = scanner.members(|scanner, key| {
            if key == "_meta" {
                return self.meta.read(scanner);
            }
            let text = Some(scanner.value()?);
            match key {
                "inputResponses" => self.input_responses = text,
                "requestState" => self.request_state = text,
                "name" => self.name = text,
                "uri" => self.uri = text,
                "taskId" => self.task_id = text,
                "arguments" => self.arguments = text,
                _ => {}
            }
            Ok(())
        })?;
        self.text = Some(text);
        Ok(())
    }
}

impl<'a> Meta<'a> {
    fn read(&mut self, scanner: &mut Scanner<'a>) -> Scan<()> {
        let text = scanner.members(|scanner, key| {
            let text = Some(scanner.value()?).filter(|text| *text != "null");
            match key {
                keys::PROTOCOL_VERSION => self.protocol_version = text,
                keys::CLIENT_CAPABILITIES => self.client_capabilities = text,
                keys::CLIENT_INFO => self.client_info = text,
                keys::LOG_LEVEL => self.log_level = text,
                keys::PROGRESS_TOKEN => self.progress_token = text,
                _ => {}
            }
            Ok(())
        })?;
        self.text = Some(text);
        Ok(())
    }
}

impl<'a> ResultMembers<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Scan<(&'a str, Self)> {
        let mut members = Self::default();
        let text = scanner.members(|scanner, key| {
            let text = scanner.value()?;
            match key {
                "resultType" => members.result_type = Some(text),
                "content" => members.content = true,
                "structuredContent" => members.structured_content = true,
                _ => {}
            }
            Ok(())
        })?;
        Ok((text, members))
    }
}

fn read_id(text: &str, limits: &Limits) -> Result<RequestId, String> {
    if text.len() > limits.name_bytes {
        return Err(format!("member \"id\" is longer than {} bytes", limits.name_bytes));
    }
    RequestId::from_json(text).ok_or_else(|| "member \"id\" is neither a string nor an integer".to_owned())
}

fn read_method<'a>(text: &'a str, limits: &Limits) -> Result<Cow<'a, str>, String> {
    if text.len() > limits.name_bytes {
        return Err(format!("member \"method\" is longer than {} bytes", limits.name_bytes));
    }
    let inner = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    match inner {
        None => Err("member \"method\" is not a string".to_owned()),
        Some("") => Err("member \"method\" is empty".to_owned()),
        Some(plain) if plain.bytes().all(|byte| byte != b'\\') => Ok(Cow::Borrowed(plain)),
        Some(_) => serde_json::from_str(text).map(Cow::Owned).map_err(|error| error.to_string()),
    }
}

fn is_look_alike(key: &str) -> bool {
    // Upper case first: it folds the long s and the Kelvin sign onto the letters they can pass for.
    let folded: String = key.chars().flat_map(char::to_uppercase).flat_map(char::to_lowercase).collect();
    matches!(folded.as_str(), "jsonrpc" | "id" | "method" | "params" | "result" | "error")
}

#[cfg(test)]
mod tests;

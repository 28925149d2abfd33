//! Streamable HTTP as decisions: what a POST is, by its headers and its message; which status a response has, and when it
//! is an SSE stream; which headers must repeat the message. Headers are values here; transports read and write them.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::engine::message_checks::SESSION_META;
use crate::engine::server::{PeerCache, missing_request_meta, requested_revision};
use crate::engine::{EngineConfig, Policy};
use crate::finding::Finding;
use crate::jsonrpc::{DecodeError, Incoming, Message, Params, RpcError, code, excerpt};
use crate::param_headers::ParamHeader;
use crate::revision::{Lifecycle, Method, Revision, Rules};
use crate::rule::{self, Rule};

/// The media types that a client of POST must accept.
pub const POST_KINDS: [&str; 2] = ["application/json", "text/event-stream"];

/// The headers of a POST that decide what becomes of it.
#[derive(Debug, Clone, Copy)]
pub struct PostHeaders<'a> {
    /// `MCP-Protocol-Version`, or why it cannot be read.
    pub version: Result<Option<&'a str>, &'a str>,
    /// Whether there is an `Mcp-Session-Id`.
    pub session: bool,
    /// `Accept`, for JSON and SSE.
    pub accept: Accept,
}

impl PostHeaders<'_> {
    fn is_stateless(&self) -> bool {
        names_stateless(self.version.ok().flatten())
    }
}

/// What an `Accept` header says about the media types of the response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// It allows them.
    Allowed,
    /// There is no such header, which allows anything (RFC 9110, section 12.5.1), but MCP demands one.
    Absent,
    /// It does not allow all of them.
    Refused,
}

/// What a POST is.
#[derive(Debug, Clone, PartialEq)]
pub enum PostRoute<'a> {
    /// An `initialize`, which opens a session.
    Open,
    /// A request of the session that the headers name.
    Request(ResponseMode),
    /// A notification or a response of that session: accepted.
    Message,
    /// A batch of that session; one that has no request is accepted, or refused as a whole.
    Batch {
        /// Whether one of the messages is a request.
        has_requests: bool,
    },
    /// A request of a revision without sessions, which names this version.
    Stateless(Cow<'a, str>),
    /// A notification or a response of such a revision, which has none: accepted, and received by no engine.
    Ignored,
}

/// When a response becomes an SSE stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseMode {
    /// At once: progress precedes the answer.
    Stream,
    /// With the first message that is not the answer, or after a delay.
    StreamAfterDelay,
    /// With the first message that is not the answer, however long that takes: an error that is found late has its own
    /// status.
    StreamOnMessage,
}

/// Why a POST is refused.
#[derive(Debug, Clone, PartialEq)]
pub enum PostRefusal {
    /// 406: the client does not accept the response.
    NotAcceptable(String),
    /// 400: the message does not fit the session header.
    Session(RpcError),
    /// 400: the version header is unreadable, or names no supported revision.
    Revision(RpcError),
    /// 400: a header that repeats the message is missing or differs.
    Header(Box<Finding>, RpcError),
    /// 400: the message is wrong; what is no message at all has its finding in its fault.
    Message(Option<Box<Finding>>, RpcError),
}

impl PostRefusal {
    /// The rule that the client broke; to name a revision that is not served breaks none. `stateless` is what the version
    /// header says.
    pub fn finding(&self, stateless: bool) -> Option<Finding> {
        let (rule, error, expected) = match self {
            Self::NotAcceptable(why) => {
                let rule = if stateless { AcceptRule::StatelessPost } else { AcceptRule::Post };
                return Some(not_acceptable(why.clone(), rule));
            }
            Self::Revision(error) if error.code == code::UNSUPPORTED_VERSION => return None,
            Self::Revision(error) => {
                (&rule::LIFE_09, error, "send one MCP-Protocol-Version, with the agreed revision")
            }
            Self::Session(error) => (&rule::LIFE_01, error, "send initialize without Mcp-Session-Id"),
            Self::Header(finding, _) => return Some((**finding).clone()),
            Self::Message(finding, _) => return finding.as_deref().cloned(),
        };
        Some(Finding::new(rule, error.message.clone(), expected))
    }

    /// A message that breaks a rule.
    fn message(rule: &'static Rule, error: RpcError, expected: &'static str) -> Self {
        Self::Message(Some(Box::new(Finding::new(rule, error.message.clone(), expected))), error)
    }

    /// A request that does not describe its client as one without a session must.
    fn undescribed(error: RpcError) -> Self {
        let expected = "send protocolVersion and clientCapabilities in params._meta of every request";
        Self::message(&rule::STATE_04, error, expected)
    }
}

/// What a POST is, by its headers and its body. The message itself decides which lifecycle it belongs to; headers alone
/// never do.
///
/// # Errors
/// Why it is refused before an engine receives it.
pub fn route_post<'a>(
    config: &EngineConfig,
    peers: &PeerCache,
    headers: PostHeaders<'_>,
    require_accept: bool,
    body: &Incoming<'a>,
) -> Result<PostRoute<'a>, PostRefusal> {
    if expects_response(body) {
        check_accept(headers.accept, require_accept, &POST_KINDS).map_err(PostRefusal::NotAcceptable)?;
    }
    let message = match body {
        Incoming::One(message) => message,
        Incoming::Batch(_) if headers.is_stateless() && !headers.session => {
            let error = RpcError::invalid_request("batches are not accepted here");
            return Err(PostRefusal::message(&rule::RPC_10, error, "send each message on its own"));
        }
        Incoming::Batch(messages) => {
            let has_requests = messages.iter().flatten().any(is_request);
            return Ok(PostRoute::Batch { has_requests });
        }
    };
    let params = match message {
        Message::Request(request) => Some(&request.params),
        Message::Notification(notification) => Some(&notification.params),
        Message::Response(_) => None,
    };
    let stated = params.map_or(Ok(None), |params| requested_revision(peers, params));
    let stated = stated.map_err(|error| {
        let is_initialize =
            matches!(message, Message::Request(request) if request.method == Method::Initialize.name());
        let is_object = params.and_then(|params| params.meta.text).is_none_or(|text| text.starts_with('{'));
        // A `_meta` that is no object names no revision; the headers tell whether there is a session.
        if !is_object && (headers.session || is_initialize) && !headers.is_stateless() {
            PostRefusal::message(&rule::RPC_01, error, SESSION_META)
        } else {
            PostRefusal::undescribed(error)
        }
    })?;
    if let Some(version) = stated {
        return Ok(if is_request(message) { PostRoute::Stateless(version) } else { PostRoute::Ignored });
    }
    // The body names no revision; the header can still show that it should have.
    match headers.version {
        Ok(Some(named)) => match named.parse::<Revision>() {
            Ok(revision) if revision.lifecycle() == Lifecycle::PerRequest => {
                route_undescribed(headers.session, message, revision)
            }
            Ok(_) => route_in_session(headers.session, message),
            Err(_) => Err(PostRefusal::Revision(unsupported_version(config, named))),
        },
        Ok(None) => route_in_session(headers.session, message),
        // The session knows what the header should say.
        Err(_) if headers.session => route_in_session(true, message),
        Err(why) => Err(PostRefusal::Revision(RpcError::invalid_request(why.to_owned()))),
    }
}

/// A message that names no revision, while its header names one without sessions.
fn route_undescribed<'a>(
    session: bool,
    message: &Message<'a>,
    revision: Revision,
) -> Result<PostRoute<'a>, PostRefusal> {
    match message {
        Message::Request(_) => Err(PostRefusal::undescribed(missing_request_meta())),
        // It was meant for the session: the header is wrong, which the session says.
        _ if session => Ok(PostRoute::Message),
        Message::Notification(_) => Ok(PostRoute::Ignored),
        Message::Response(_) => {
            let why = format!("a response, but servers of {revision} send no requests");
            let expected = "send inputResponses with the repeated request; \
                            or, in a session, its Mcp-Session-Id and its MCP-Protocol-Version";
            Err(PostRefusal::message(&rule::RPC_15, RpcError::invalid_request(why), expected))
        }
    }
}

/// Why a POST is refused whose body is no message. It may have been a request.
pub fn malformed_post(accept: Accept, require_accept: bool, error: &DecodeError) -> PostRefusal {
    match check_accept(accept, require_accept, &POST_KINDS) {
        Err(why) => PostRefusal::NotAcceptable(why),
        Ok(()) => PostRefusal::Message(None, error.error.clone()),
    }
}

fn route_in_session<'a>(session: bool, message: &Message<'a>) -> Result<PostRoute<'a>, PostRefusal> {
    let Message::Request(request) = message else { return Ok(PostRoute::Message) };
    if request.method == Method::Initialize.name() {
        let why = "initialize opens a session; it does not belong into one";
        return if session {
            Err(PostRefusal::Session(RpcError::invalid_request(why)))
        } else {
            Ok(PostRoute::Open)
        };
    }
    Ok(PostRoute::Request(match request.params.meta.progress_token {
        Some(_) => ResponseMode::Stream,
        None => ResponseMode::StreamAfterDelay,
    }))
}

fn is_request(message: &Message<'_>) -> bool {
    matches!(message, Message::Request(_))
}

/// Whether a body has a JSON-RPC response. Notifications and responses have none, so their `Accept` does not matter.
fn expects_response(incoming: &Incoming<'_>) -> bool {
    match incoming {
        Incoming::One(message) => is_request(message),
        // A malformed message in a batch is answered with an error.
        Incoming::Batch(messages) => messages.iter().any(|message| message.as_ref().map_or(true, is_request)),
    }
}

fn unsupported_version(config: &EngineConfig, requested: &str) -> RpcError {
    let supported: Vec<&str> = config.revisions.iter().map(|revision| revision.as_str()).collect();
    RpcError::new(code::UNSUPPORTED_VERSION, "unsupported MCP-Protocol-Version")
        .with_data(json!({ "supported": supported, "requested": excerpt(requested) }))
}

/// Refuses a request whose response the client does not accept; `required` decides whether an `Accept` header must be there.
///
/// # Errors
/// What the header must allow.
pub fn check_accept(accept: Accept, required: bool, kinds: &[&str]) -> Result<(), String> {
    let kinds = || kinds.join(" and ");
    match accept {
        Accept::Absent if required => {
            Err(format!("no Accept header; it must allow {}; {}", kinds(), Policy::LENIENT_SERVES))
        }
        Accept::Refused => Err(format!("Accept must allow {}", kinds())),
        Accept::Allowed | Accept::Absent => Ok(()),
    }
}

/// A request that is served without an `Accept` header.
#[derive(Debug, Clone, Copy)]
pub enum AcceptRule {
    /// A POST of a session.
    Post,
    /// A POST without a session.
    StatelessPost,
    /// The GET of a stream.
    Get,
}

/// The finding about a request that is served without an `Accept` header.
pub fn missing_accept(accept: Accept, rule: AcceptRule) -> Option<Finding> {
    let what = match rule {
        AcceptRule::Post | AcceptRule::StatelessPost => "POST without an Accept header",
        AcceptRule::Get => "GET without an Accept header",
    };
    (accept == Accept::Absent).then(|| not_acceptable(what, rule))
}

/// The finding about a request whose `Accept` header does not allow its response.
pub fn not_acceptable(what: impl Into<Cow<'static, str>>, rule: AcceptRule) -> Finding {
    let (rule, kinds) = match rule {
        AcceptRule::Post => (&rule::HTTP_03, &POST_KINDS[..]),
        AcceptRule::StatelessPost => (&rule::MHTTP_02, &POST_KINDS[..]),
        AcceptRule::Get => (&rule::HTTP_13, &["text/event-stream"][..]),
    };
    Finding::new(rule, what, format!("send Accept: {}", kinds.join(", ")))
}

/// The finding about a request that names no session, or not in a readable way.
pub fn no_session(what: impl Into<Cow<'static, str>>) -> Finding {
    Finding::new(&rule::HTTP_19, what, "send Mcp-Session-Id as the response to initialize has it")
}

/// Why a request of a session is refused for its `MCP-Protocol-Version`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrongVersion {
    /// What is wrong, for people.
    pub why: String,
    /// The rule that was broken, where the revision of the session has one.
    pub finding: Option<Finding>,
}

impl WrongVersion {
    /// The header is not as this revision wants it.
    pub fn new(why: String, agreed: Revision) -> Self {
        let finding = wrong_version(why.clone(), agreed);
        Self { why, finding: finding.is_of(Some(agreed)).then_some(finding) }
    }
}

fn wrong_version(what: impl Into<Cow<'static, str>>, agreed: Revision) -> Finding {
    let expected = format!("send MCP-Protocol-Version: {agreed} with every request after initialize");
    Finding::new(&rule::LIFE_09, what, expected)
}

/// Checks `MCP-Protocol-Version` of a request against the revision of its session. A missing header that is tolerated is a
/// finding.
///
/// # Errors
/// Why the request is refused.
pub fn check_session_version(
    named: Option<&str>,
    rules: &Rules,
    required: bool,
) -> Result<Option<Finding>, WrongVersion> {
    let agreed = rules.revision;
    match named {
        Some(version) if version == agreed.as_str() => Ok(None),
        Some(version) => {
            let version = shown_version(version);
            let why = format!("MCP-Protocol-Version is {version}, but this session agreed on {agreed}");
            Err(WrongVersion::new(why, agreed))
        }
        None if !rules.version_header => Ok(None),
        None if required => {
            let why = format!("no MCP-Protocol-Version header; this session agreed on {agreed}");
            Err(WrongVersion::new(format!("{why}; {}", Policy::LENIENT_SERVES), agreed))
        }
        None => Ok(Some(wrong_version("no MCP-Protocol-Version header", agreed))),
    }
}

/// A version for an error or a log; anything else in its place may be a secret.
fn shown_version(version: &str) -> &str {
    let is_date = version.len() <= 10 && version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-');
    if is_date { version } else { "no date of a revision" }
}

/// Whether `MCP-Protocol-Version` names a revision without sessions, which has neither GET nor DELETE.
pub fn names_stateless(version: Option<&str>) -> bool {
    let revision = version.and_then(|version| version.parse::<Revision>().ok());
    revision.is_some_and(|revision| revision.lifecycle() == Lifecycle::PerRequest)
}

/// The status of a JSON-RPC response of the engine, by its error code. In a session it is 200, since the request was
/// understood; without one, some errors have a status of their own for intermediaries that only see HTTP.
pub fn status_of_response(lifecycle: Lifecycle, error: Option<i64>) -> u16 {
    match (lifecycle, error) {
        (Lifecycle::PerRequest, Some(code::METHOD_NOT_FOUND)) => 404,
        (
            Lifecycle::PerRequest,
            Some(code::HEADER_MISMATCH | code::MISSING_CAPABILITY | code::UNSUPPORTED_VERSION),
        )
        | (_, Some(code::PARSE_ERROR | code::INVALID_REQUEST)) => 400,
        _ => 200,
    }
}

/// Checks the headers of a stateless request against its body: intermediaries read the headers, the server reads the
/// body, and both must mean the same. `header` gives the decoded value of a header, or why it has none; `mirrored` gives the
/// parameters of a tool that headers repeat.
///
/// # Errors
/// The header that is missing or says something else. Neither value is repeated: arguments and URIs may hold secrets.
pub fn check_mirrored<'h>(
    header: impl Fn(&str) -> Result<Option<Cow<'h, str>>, String>,
    mirrored: impl FnOnce(&str) -> Vec<ParamHeader>,
    version: &str,
    method: &str,
    params: &Params<'_>,
) -> Result<(), PostRefusal> {
    let equals = |rule: &'static Rule, name: &str, member: &str, wanted: &str| -> Result<(), PostRefusal> {
        let found = header(name).map_err(|why| mismatch(rule, why))?;
        let found = found.ok_or_else(|| mismatch(rule, format!("no {name} header; it repeats {member}")))?;
        if found == wanted {
            return Ok(());
        }
        Err(mismatch(rule, format!("{name} differs from {member} in the body")))
    };
    equals(&rule::MHTTP_08, "mcp-protocol-version", "the protocolVersion of params._meta", version)?;
    equals(&rule::MHTTP_09, "mcp-method", "method", method)?;
    let known = Method::known(method);
    let (member, named) = match known.as_ref().and_then(Method::name_member) {
        Some("name") => ("params.name", params.name),
        Some("uri") => ("params.uri", params.uri),
        Some("taskId") => ("params.taskId", params.task_id),
        _ => ("", None),
    };
    // The engine refuses malformed parameters.
    let Some(name) = named.and_then(|named| serde_json::from_str::<Cow<'_, str>>(named).ok()) else {
        return Ok(());
    };
    equals(&rule::MHTTP_09, "mcp-name", member, &name)?;
    if known != Some(Method::CallTool) {
        return Ok(());
    }
    let mirrored = mirrored(&name);
    if mirrored.is_empty() {
        return Ok(());
    }
    let arguments: Option<Value> = params.arguments.and_then(|text| serde_json::from_str(text).ok());
    let rule = &rule::MHTTP_13;
    for mirrored in mirrored {
        let argument = mirrored.path.iter().try_fold(arguments.as_ref(), |value, key| Some(value?.get(key)));
        let argument = argument.flatten();
        let name = format!("mcp-param-{}", mirrored.name.to_ascii_lowercase());
        let member = format!("params.arguments.{}", mirrored.path.join("."));
        match argument {
            Some(Value::String(text)) => equals(rule, &name, &member, text)?,
            Some(Value::Bool(yes)) => equals(rule, &name, &member, if *yes { "true" } else { "false" })?,
            // Numbers are compared by value: 42 and 42.0 are equal.
            Some(Value::Number(number)) => {
                let found = header(&name).map_err(|why| mismatch(rule, why))?;
                if found.and_then(|found| found.parse::<f64>().ok()) != number.as_f64() {
                    equals(rule, &name, &member, &number.to_string())?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn mismatch(rule: &'static Rule, what: String) -> PostRefusal {
    let finding = Finding::new(rule, what.clone(), "send in headers what the body says");
    PostRefusal::Header(Box::new(finding), RpcError::new(code::HEADER_MISMATCH, what))
}

#[cfg(test)]
mod tests;

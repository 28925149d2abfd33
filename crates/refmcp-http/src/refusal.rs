//! Refusals: requests that are not served, and the responses to them.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use refmcp_auth::Challenge;
use refmcp_auth::dpop::ProofError;
use refmcp_auth::resource::AccessError;
use refmcp_proto::finding::Finding;
use refmcp_proto::jsonrpc::{RequestId, RpcError, excerpt};
use refmcp_server::backplane::Unavailable;
use refmcp_server::transport::NoMemory;

use crate::access::guard::GuardError;
use crate::request::response;
use crate::routes::EndpointPath;

const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// A request that is not served.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) reason: Reason,
    /// What is wrong, for people.
    pub(crate) why: Cow<'static, str>,
    extras: Box<Extras>,
    /// Whether a token was presented that is not valid, or not sufficient.
    failed_authorization: bool,
    /// The JSON-RPC error that is the body of the response.
    answer: Option<Bytes>,
}

/// What few refusals have, behind one pointer: every connection holds the memory of a refusal.
#[derive(Debug, Default)]
struct Extras {
    headers: HeaderMap,
    /// For the log: the part of the request that was refused, without secrets.
    detail: Option<Box<str>>,
    /// The rule that the client broke, where the specification has one, and what it should send.
    finding: Option<Finding>,
    is_finding_told: bool,
}

macro_rules! reasons {
    ($($variant:ident $name:literal,)*) => {
        /// Why requests are refused; the metrics count each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Reason { $($variant),* }

        impl Reason {
            pub(crate) const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name in metrics and logs.
            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

reasons! {
    Host "host",
    Origin "origin",
    Path "path",
    Method "method",
    ContentType "content_type",
    Accept "accept",
    BodySize "body_size",
    BodyTimeout "body_timeout",
    Session "session",
    Revision "revision",
    EventId "event_id",
    Upgrade "upgrade",
    Rate "rate",
    InFlight "in_flight",
    Sessions "sessions",
    ClientSessions "client_sessions",
    Streams "streams",
    Connections "connections",
    Memory "memory",
    Unread "unread",
    Stopping "stopping",
    Fault "error",
    Credentials "credentials",
    Unauthorized "unauthorized",
    Forbidden "forbidden",
    Issuer "issuer",
    Forwarded "forwarded",
    Message "message",
    Malformed "malformed",
    HeadSize "head_size",
    HeadTimeout "head_timeout",
    Handshake "handshake",
    WebSocket "websocket",
}

/// Something for each reason.
#[derive(Debug)]
pub(crate) struct PerReason<T>([T; Reason::ALL.len()]);

impl<T: Default> Default for PerReason<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| T::default()))
    }
}

impl<T> PerReason<T> {
    pub(crate) fn of(&self, reason: Reason) -> &T {
        &self.0[reason as usize]
    }
}

impl Reason {
    /// Whether the client gets a response; otherwise there is no status.
    pub(crate) fn has_response(self) -> bool {
        !matches!(self, Self::HeadTimeout | Self::Handshake | Self::WebSocket | Self::Unread)
    }
}

impl Refusal {
    #[cold]
    pub(crate) fn new(status: StatusCode, reason: Reason, why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            reason,
            why: why.into(),
            extras: Box::default(),
            failed_authorization: false,
            answer: None,
        }
    }

    /// Says whether an observer has told of the finding.
    pub(crate) fn with_finding_told(mut self, is_told: bool) -> Self {
        self.extras.is_finding_told = is_told;
        self
    }

    /// Whether an observer has told of the finding, so that the log needs no line.
    pub(crate) fn is_finding_told(&self) -> bool {
        self.extras.is_finding_told
    }

    /// Adds the finding that it is made for.
    pub(crate) fn with_finding(mut self, finding: Option<Finding>) -> Self {
        self.extras.finding = finding;
        self
    }

    /// A request that is refused for this finding.
    #[cold]
    pub(crate) fn broken(reason: Reason, finding: Finding) -> Self {
        Self::bad_request(reason, finding.what.clone()).with_finding(Some(finding))
    }

    /// The rule that the client broke.
    pub(crate) fn finding(&self) -> Option<&Finding> {
        self.extras.finding.as_ref()
    }

    /// For the log: the part of the request that was refused.
    pub(crate) fn detail(&self) -> Option<&str> {
        self.extras.detail.as_deref()
    }

    /// A `Host` or `Origin` that is not allowed; the log has its value.
    #[cold]
    pub(crate) fn guard(error: GuardError, headers: &HeaderMap) -> Self {
        let (reason, why, header) = match error {
            GuardError::Host(why) => (Reason::Host, why, header::HOST),
            GuardError::Origin(why) => (Reason::Origin, why, header::ORIGIN),
        };
        let refusal = Self::new(StatusCode::FORBIDDEN, reason, why);
        match headers.get(header) {
            Some(value) => refusal.with_detail(excerpt(&String::from_utf8_lossy(value.as_bytes()))),
            None => refusal,
        }
    }

    #[cold]
    pub(crate) fn bad_request(reason: Reason, why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason, why)
    }

    /// There is nothing at this path.
    #[cold]
    pub(crate) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, Reason::Path, "there is nothing here")
    }

    /// The same refusal, which names the path of the MCP endpoint.
    #[cold]
    pub(crate) fn with_hint(self, path: &EndpointPath) -> Self {
        Self::new(StatusCode::NOT_FOUND, self.reason, format!("there is nothing here; MCP is at {path}"))
    }

    /// 404: the session has ended or never was, so the client opens another.
    #[cold]
    pub(crate) fn unknown_session(why: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, Reason::Session, why)
    }

    /// A message that is refused with this JSON-RPC error before an engine has received it.
    #[cold]
    pub(crate) fn rpc(reason: Reason, id: Option<&RequestId>, error: &RpcError) -> Self {
        let why = excerpt(&error.message);
        Self::answered(StatusCode::BAD_REQUEST, reason, why, response::encode_error(id, error))
    }

    /// A message that is refused with this answer.
    #[cold]
    pub(crate) fn answered(status: StatusCode, reason: Reason, why: String, answer: Bytes) -> Self {
        Self { answer: Some(answer), ..Self::new(status, reason, why) }
    }

    /// A limit of the server is reached.
    #[cold]
    pub(crate) fn unavailable(reason: Reason, why: &'static str, retry_after: u64) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, reason, why).with_header(header::RETRY_AFTER, retry_after)
    }

    /// The client takes nothing of a response.
    #[cold]
    pub(crate) fn unread() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, Reason::Unread, "the client takes nothing of the response")
    }

    /// There is no memory for this request, which was not executed.
    #[cold]
    pub(crate) fn no_memory(error: NoMemory) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Reason::Memory, error.to_string())
            .with_header(header::RETRY_AFTER, 1)
    }

    #[cold]
    pub(crate) fn stopping() -> Self {
        Self::unavailable(Reason::Stopping, "the server stops", 10)
    }

    /// A limit of this client is reached.
    #[cold]
    pub(crate) fn too_many(reason: Reason, why: &'static str, retry_after: u64) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, reason, why).with_header(header::RETRY_AFTER, retry_after)
    }

    /// A method that is not served here.
    #[cold]
    pub(crate) fn method(allowed: &[&str], why: impl Into<Cow<'static, str>>) -> Self {
        let refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, Reason::Method, why);
        refusal.with_header(header::ALLOW, allowed.join(", "))
    }

    /// A fault of the server.
    #[cold]
    pub(crate) fn internal(why: &'static str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Reason::Fault, why)
    }

    /// A request without sufficient authorization: 401 or 403 with `WWW-Authenticate`. The nonce is for the client's
    /// next DPoP proof.
    #[cold]
    pub(crate) fn denied(denied: &AccessError, challenges: &[Challenge], nonce: Option<String>) -> Self {
        let reason = match denied {
            AccessError::Malformed(_) => Reason::Credentials,
            AccessError::InsufficientScope(_) => Reason::Forbidden,
            AccessError::Undecided => Reason::Issuer,
            _ => Reason::Unauthorized,
        };
        let mut refusal = Self::new(denied.status(), reason, denied.to_string())
            .with_header(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        for challenge in challenges {
            refusal = refusal.with_header(header::WWW_AUTHENTICATE, challenge.to_string());
        }
        if let Some(nonce) = nonce {
            refusal = refusal.with_header(DPOP_NONCE, nonce);
        }
        if matches!(denied, AccessError::Undecided) {
            refusal = refusal.with_header(header::RETRY_AFTER, 10);
        }
        // Without a token, or without the server's nonce, a client has only begun to log in.
        let begins = matches!(denied, AccessError::NoCredentials | AccessError::Proof(ProofError::Nonce));
        Self { failed_authorization: !begins, ..refusal }
    }

    /// The credentials of a client were not accepted by an extra route, which has made the response itself.
    #[cold]
    pub(crate) fn client_credentials(status: StatusCode, why: String) -> Self {
        Self { failed_authorization: true, ..Self::new(status, Reason::Unauthorized, why) }
    }

    /// Adds a header to the response; a value that no header can have is left out.
    pub(crate) fn with_header(mut self, name: HeaderName, value: impl TryInto<HeaderValue>) -> Self {
        if let Ok(value) = value.try_into() {
            self.extras.headers.append(name, value);
        }
        self
    }

    /// Closes the connection after the response: the rest of an unread body would be taken for the next request.
    pub(crate) fn and_close(self) -> Self {
        self.with_header(header::CONNECTION, HeaderValue::from_static("close"))
    }

    /// Answers with a JSON-RPC error for this request.
    pub(crate) fn into_rpc_error(self, id: Option<&RequestId>) -> Self {
        let error = RpcError::invalid_request(self.why.clone());
        Self { answer: Some(response::encode_error(id, &error)), ..self }
    }

    /// Adds a detail for the log.
    pub(crate) fn with_detail(mut self, detail: String) -> Self {
        self.extras.detail = Some(detail.into());
        self
    }

    /// Whether an operator should look at it: a token was not accepted, or the server is at fault.
    pub(crate) fn is_warning(&self) -> bool {
        self.failed_authorization || self.reason == Reason::Fault
    }
}

impl Refusal {
    /// The answer to the question whether the server is ready, while it cannot reach the backplane.
    pub(crate) fn no_backplane() -> Self {
        let why = "the backplane cannot be reached: sessions and tasks are refused, requests that need none are served";
        Self::unavailable(Reason::Fault, why, 1)
    }
}

/// The backplane cannot be reached.
impl From<Unavailable> for Refusal {
    #[cold]
    fn from(error: Unavailable) -> Self {
        let why = "the state of this session cannot be reached now";
        Self::unavailable(Reason::Fault, why, 1).with_detail(error.to_string())
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = match self.answer {
            Some(json) => response::json(self.status, json),
            None => (self.status, format!("{}\n", self.why)).into_response(),
        };
        response.headers_mut().extend(self.extras.headers);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_its_own_index() {
        for (place, reason) in Reason::ALL.iter().enumerate() {
            assert_eq!(*reason as usize, place, "{reason:?}");
        }
    }
}

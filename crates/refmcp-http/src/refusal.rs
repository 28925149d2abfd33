//! Turning a request away: with which status, why, and when it may come back.

use std::borrow::Cow;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use refmcp_auth::Challenge;
use refmcp_auth::dpop::ProofError;
use refmcp_auth::resource::AccessError;
use refmcp_proto::jsonrpc::{RequestId, RpcError, excerpt};

use crate::access::guard::GuardError;
use crate::request::response;

const DPOP_NONCE: HeaderName = HeaderName::from_static("dpop-nonce");

/// A request that is not served.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    pub(crate) reason: Reason,
    why: Cow<'static, str>,
    /// Seconds after which it is worth trying again.
    retry_after: Option<u64>,
    /// Whether the connection ends with it.
    close: bool,
    /// The methods that would have been served.
    allow: Option<String>,
    /// What it is about, for the log: a part of the request that is no secret.
    detail: Option<Box<str>>,
    /// Whether a token was shown that is not good here, or not for this.
    failed_authorization: bool,
    /// What somebody is told who is not let in.
    challenged: Option<Box<Challenges>>,
    /// Set when the refusal is an error of JSON-RPC.
    answer: Option<Box<RpcAnswer>>,
}

/// A refusal as an error of JSON-RPC.
#[derive(Debug)]
enum RpcAnswer {
    /// To be written: an answer to this request, if it is known.
    To(Option<RequestId>),
    /// Written already.
    Written(Bytes),
}

/// Why requests are turned away; the metrics count each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Host,
    Origin,
    Path,
    Method,
    ContentType,
    Accept,
    BodySize,
    BodyTimeout,
    Session,
    Revision,
    EventId,
    Upgrade,
    Rate,
    InFlight,
    Sessions,
    Streams,
    Connections,
    Stopping,
    Fault,
    Credentials,
    Unauthorized,
    Forbidden,
    Issuer,
    Forwarded,
    Message,
}

/// What somebody is told who is not let in, in headers.
#[derive(Debug)]
pub(crate) struct Challenges {
    challenges: Vec<HeaderValue>,
    nonce: Option<HeaderValue>,
}

impl Challenges {
    pub(crate) fn new(challenges: &[Challenge], nonce: Option<&str>) -> Self {
        let header = |challenge: &Challenge| HeaderValue::try_from(challenge.to_string()).ok();
        let nonce = nonce.and_then(|nonce| HeaderValue::try_from(nonce).ok());
        Self { challenges: challenges.iter().filter_map(header).collect(), nonce }
    }
}

impl Reason {
    pub(crate) const ALL: [Self; 25] = [
        Self::Host,
        Self::Origin,
        Self::Path,
        Self::Method,
        Self::ContentType,
        Self::Accept,
        Self::BodySize,
        Self::BodyTimeout,
        Self::Session,
        Self::Revision,
        Self::EventId,
        Self::Upgrade,
        Self::Rate,
        Self::InFlight,
        Self::Sessions,
        Self::Streams,
        Self::Connections,
        Self::Stopping,
        Self::Fault,
        Self::Credentials,
        Self::Unauthorized,
        Self::Forbidden,
        Self::Issuer,
        Self::Forwarded,
        Self::Message,
    ];

    /// As the metrics call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Origin => "origin",
            Self::Path => "path",
            Self::Method => "method",
            Self::ContentType => "content_type",
            Self::Accept => "accept",
            Self::BodySize => "body_size",
            Self::BodyTimeout => "body_timeout",
            Self::Session => "session",
            Self::Revision => "revision",
            Self::EventId => "event_id",
            Self::Upgrade => "upgrade",
            Self::Rate => "rate",
            Self::InFlight => "in_flight",
            Self::Sessions => "sessions",
            Self::Streams => "streams",
            Self::Connections => "connections",
            Self::Stopping => "stopping",
            Self::Fault => "fault",
            Self::Credentials => "credentials",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Issuer => "issuer",
            Self::Forwarded => "forwarded",
            Self::Message => "message",
        }
    }
}

impl Refusal {
    #[cold]
    pub(crate) fn new(status: StatusCode, reason: Reason, why: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            reason,
            why: why.into(),
            retry_after: None,
            close: false,
            allow: None,
            detail: None,
            failed_authorization: false,
            challenged: None,
            answer: None,
        }
    }

    /// A name or a page that is none of ours; the log has which.
    #[cold]
    pub(crate) fn foreign(foreign: GuardError, headers: &HeaderMap) -> Self {
        let (reason, why, header) = match foreign {
            GuardError::Host(why) => (Reason::Host, why, header::HOST),
            GuardError::Origin(why) => (Reason::Origin, why, header::ORIGIN),
        };
        let refusal = Self::new(StatusCode::FORBIDDEN, reason, why);
        match headers.get(header) {
            Some(value) => refusal.about(excerpt(&String::from_utf8_lossy(value.as_bytes()))),
            None => refusal,
        }
    }

    /// A name that is none of ours, by which a proxy says that it was called.
    #[cold]
    pub(crate) fn foreign_forwarded_host(foreign: &'static str, host: &str) -> Self {
        Self::new(StatusCode::FORBIDDEN, Reason::Host, foreign).about(excerpt(host))
    }

    /// A request that is wrong in itself.
    #[cold]
    pub(crate) fn bad(reason: Reason, why: impl Into<Cow<'static, str>>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason, why)
    }

    /// A message that is refused with this error of JSON-RPC, before any engine saw it.
    #[cold]
    pub(crate) fn rpc(reason: Reason, id: Option<&RequestId>, error: &RpcError) -> Self {
        Self::answered(StatusCode::BAD_REQUEST, reason, excerpt(&error.message), response::written(id, error))
    }

    /// A message that is refused with this answer.
    #[cold]
    pub(crate) fn answered(status: StatusCode, reason: Reason, why: String, answer: Bytes) -> Self {
        Self { answer: Some(Box::new(RpcAnswer::Written(answer))), ..Self::new(status, reason, why) }
    }

    /// There is no room now, for anybody.
    #[cold]
    pub(crate) fn full(reason: Reason, why: impl Into<Cow<'static, str>>, retry_after: u64) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, reason, why) }
    }

    /// This client asks for too much.
    #[cold]
    pub(crate) fn too_many(reason: Reason, why: impl Into<Cow<'static, str>>, retry_after: u64) -> Self {
        Self { retry_after: Some(retry_after), ..Self::new(StatusCode::TOO_MANY_REQUESTS, reason, why) }
    }

    /// A method that is not served here.
    #[cold]
    pub(crate) fn method(allowed: &[&str], why: impl Into<Cow<'static, str>>) -> Self {
        let refusal = Self::new(StatusCode::METHOD_NOT_ALLOWED, Reason::Method, why);
        Self { allow: Some(allowed.join(", ")), ..refusal }
    }

    /// Something is wrong with us.
    #[cold]
    pub(crate) fn fault(why: &'static str) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, Reason::Fault, why)
    }

    /// Somebody is not let in.
    #[cold]
    pub(crate) fn denied(denied: &AccessError, challenged: Challenges) -> Self {
        let reason = match denied {
            AccessError::Malformed(_) => Reason::Credentials,
            AccessError::InsufficientScope(_) => Reason::Forbidden,
            AccessError::Undecided => Reason::Issuer,
            _ => Reason::Unauthorized,
        };
        let retry_after = matches!(denied, AccessError::Undecided).then_some(10);
        let refusal = Self::new(denied.status(), reason, denied.to_string());
        // Without a token, or without the server's nonce, a client has only just begun to log in.
        let begins = matches!(denied, AccessError::NoCredentials | AccessError::Proof(ProofError::Nonce));
        Self { retry_after, challenged: Some(Box::new(challenged)), failed_authorization: !begins, ..refusal }
    }

    /// The same, at the end of its connection.
    pub(crate) fn and_close(self) -> Self {
        Self { close: true, ..self }
    }

    /// The same, said in JSON-RPC to whoever sent this message.
    pub(crate) fn said_to(self, id: Option<&RequestId>) -> Self {
        Self { answer: Some(Box::new(RpcAnswer::To(id.cloned()))), ..self }
    }

    /// The same with more for the log.
    pub(crate) fn about(self, detail: String) -> Self {
        Self { detail: Some(detail.into()), ..self }
    }

    /// What it is about, for the log.
    pub(crate) fn detail(&self) -> Option<&str> {
        self.detail.as_deref()
    }

    /// Whether an operator should look at it: a token was shown that is not good here or not for this, or something is
    /// wrong with us.
    pub(crate) fn is_warning(&self) -> bool {
        self.failed_authorization || self.reason == Reason::Fault
    }

    /// Whether it is about who calls, or by which name, rather than about what is asked.
    pub(crate) fn is_about_the_caller(&self) -> bool {
        matches!(self.reason, Reason::Host | Reason::Origin)
    }

    /// What is wrong, for a person.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = match self.answer.map(|answer| *answer) {
            Some(RpcAnswer::Written(json)) => response::json(self.status, json),
            Some(RpcAnswer::To(id)) => {
                let error = RpcError::invalid_request(self.why);
                response::json(self.status, response::written(id.as_ref(), &error))
            }
            None => (self.status, format!("{}\n", self.why)).into_response(),
        };
        let headers = response.headers_mut();
        if let Some(challenged) = self.challenged {
            for challenge in challenged.challenges {
                headers.append(header::WWW_AUTHENTICATE, challenge);
            }
            if let Some(nonce) = challenged.nonce {
                headers.insert(DPOP_NONCE, nonce);
            }
            headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(allow) = self.allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
            headers.insert(header::ALLOW, allow);
        }
        if self.status == StatusCode::UPGRADE_REQUIRED {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
        }
        // What is left of a body that nobody is going to read would be taken for the next request.
        if self.close || matches!(self.reason, Reason::BodySize | Reason::BodyTimeout) {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_stand_in_their_own_places() {
        for (place, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place, "{reason:?}");
        }
    }
}

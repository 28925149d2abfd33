//! POST requests of streamable HTTP: sends a message and reads its response, as JSON or from an SSE stream, which it
//! resumes (reconnects) where it breaks.

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, StatusCode};
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId, TransportError};
use refmcp_proto::frame::SseReceived;
use refmcp_proto::jsonrpc::{Incoming, Limits, Message, RequestId, decode};
use refmcp_proto::revision::{Lifecycle, Resumption, Rules};

use super::error_response::{check_encoding, refused, unexpected};
use super::headers::ContentType;
use super::requester::HttpRequester;
use super::tasks::SendOrder;
use crate::http::connection::{BodyError, HttpResponse};
use crate::http::stream::{EventStream, ResumePosition, StreamEnd};

/// Attempts in a row to resume a stream that may bring nothing.
const MAX_FAILED_ATTEMPTS: u32 = 5;

/// Sends a request, and hands on all messages that come for it.
pub(crate) async fn send_request(requester: &HttpRequester, order: SendOrder, message: ClientMessage) {
    order.wait().await;
    let ClientMessage { exchange, kind, json, rules } = message;
    let session = requester.session_of(&kind, rules);
    let posted = PostedRequest { requester, exchange, rules, session, json: json.into() };
    if let Err(why) = posted.run(&kind).await {
        requester.ended(exchange, why);
    }
}

/// Sends a notification or a response; the next goes once this one is acknowledged.
pub(crate) async fn send_unanswered(requester: &HttpRequester, order: SendOrder, message: ClientMessage) {
    let ClientMessage { exchange, kind, json, rules } = message;
    let guard = order.wait().await;
    let session = requester.session_of(&kind, rules);
    let headers = || requester.headers.post(&kind, rules, session.clone());
    let request = requester.post(exchange, &requester.target, json.into(), headers);
    match requester.request(request).await {
        // The connection is free before the next message looks for one.
        Ok(response) if response.status.is_success() && response.body.is_over() => response.body.finish(),
        Ok(response) if response.status.is_success() => {
            drop(guard);
            response.discard().await;
        }
        Ok(response) => {
            requester.ended(exchange, failed(requester, response, session.as_ref()).await);
        }
        Err(why) => requester.ended(exchange, why),
    }
}

/// The error of a refused message. A lost session is forgotten.
async fn failed(
    requester: &HttpRequester,
    response: HttpResponse,
    session: Option<&HeaderValue>,
) -> TransportError {
    let why = refused(response, session).await;
    if let (TransportError::SessionLost, Some(lost)) = (&why, session) {
        requester.leave_session(lost);
    }
    why
}

/// A request under way.
struct PostedRequest<'a> {
    requester: &'a HttpRequester,
    exchange: ExchangeId,
    rules: Option<&'static Rules>,
    session: Option<HeaderValue>,
    json: Bytes,
}

impl PostedRequest<'_> {
    async fn run(&self, kind: &ClientMessageKind) -> Result<(), TransportError> {
        let requester = self.requester;
        let _slot = requester.slot().await;
        let headers = || requester.headers.post(kind, self.rules, self.session.clone());
        let request = requester.post(self.exchange, &requester.target, self.json.clone(), headers);
        // The head of the response may come as late as the answer, for which the engine has a deadline.
        let mut response = requester.request_within(None, request).await?;
        if !response.status.is_success() {
            return Err(failed(requester, response, self.session.as_ref()).await);
        }
        self.check_head(&response.headers)?;
        match ContentType::from_headers(&response.headers) {
            ContentType::Json => {
                let body = response
                    .body
                    .whole(requester.max_message_size)
                    .await
                    .map_err(|error| self.body_error(error))?;
                response.observed.received(&body);
                // Freed before the message is handed on: its receiver may send the next request at once.
                response.body.finish();
                self.handle_body(&body, response.status)
            }
            ContentType::EventStream => self.follow(response).await,
            ContentType::Other => Err(unexpected(response, "JSON or a stream of events").await),
        }
    }

    fn check_head(&self, headers: &HeaderMap) -> Result<(), TransportError> {
        check_encoding(headers)?;
        let alone = self.rules.is_some_and(|rules| rules.lifecycle == Lifecycle::PerRequest);
        if alone { Ok(()) } else { self.requester.join_session(headers, self.session.as_ref()) }
    }

    fn body_error(&self, error: BodyError) -> TransportError {
        match error {
            BodyError::TooLong => too_long(self.requester.max_message_size),
            BodyError::Broken(why) => TransportError::Broken(why),
        }
    }

    fn handle_body(&self, body: &Bytes, status: StatusCode) -> Result<(), TransportError> {
        if body.trim_ascii().is_empty() {
            return Err(TransportError::Misbehaved(format!("status {} with an empty body", status.as_u16())));
        }
        self.requester.sink.message(Some(self.exchange), body);
        if plainly_answers(body, &self.json) || answers(body, &self.json, self.requester.max_message_size) {
            return Ok(());
        }
        Err(TransportError::Misbehaved("the body of the response held no answer to the request".to_owned()))
    }

    /// Reads a stream until the answer has come, over as many connections as it takes.
    async fn follow(&self, response: HttpResponse) -> Result<(), TransportError> {
        let mut position = ResumePosition::new();
        let mut events = EventStream::new(response, self.requester.max_message_size);
        loop {
            let why = loop {
                match events.next().await {
                    Ok(item) => {
                        if let Some(event) = position.advance(item)
                            && self.handle_event(&event)
                        {
                            events.finish(&*self.requester.sink).await;
                            return Ok(());
                        }
                    }
                    Err(StreamEnd::TooLong) => return Err(too_long(self.requester.max_message_size)),
                    Err(StreamEnd::Broken(why)) => break why,
                }
            };
            position.ended();
            let never = self.rules.is_some_and(|rules| rules.resumption == Resumption::Never);
            if never || position.id().is_none() {
                return Err(TransportError::Broken(why));
            }
            events.release();
            events = self.resume(&mut position, &why).await?;
        }
    }

    /// Hands an event on; true if it is the response.
    fn handle_event(&self, event: &SseReceived) -> bool {
        if event.event != "message" {
            self.requester.ignored_event(event);
            return false;
        }
        let json = event.data.as_bytes();
        self.requester.sink.message(Some(self.exchange), json);
        plainly_answers(json, &self.json) || answers(json, &self.json, self.requester.max_message_size)
    }

    /// Asks for the rest of a stream until the server sends it.
    async fn resume(&self, position: &mut ResumePosition, why: &str) -> Result<EventStream, TransportError> {
        let requester = self.requester;
        let mut why = why.to_owned();
        loop {
            if position.failed_attempts() >= MAX_FAILED_ATTEMPTS {
                let given_up =
                    format!("{why}; {MAX_FAILED_ATTEMPTS} attempts to take it up again brought nothing");
                return Err(TransportError::Broken(given_up));
            }
            tokio::time::sleep(position.delay()).await;
            position.attempt();
            let headers = || requester.headers.get(self.rules, self.session.clone(), position.id().cloned());
            let request = requester.get(requester.observed(self.exchange), headers);
            let response = match requester.request(request).await {
                Ok(response) => response,
                Err(TransportError::Broken(error) | TransportError::Unreachable(error)) => {
                    why = error;
                    continue;
                }
                Err(error) => return Err(error),
            };
            if response.status == StatusCode::OK
                && ContentType::from_headers(&response.headers) == ContentType::EventStream
            {
                check_encoding(&response.headers)?;
                position.opened();
                return Ok(EventStream::new(response, requester.max_message_size));
            }
            if response.status.is_success() {
                return Err(unexpected(response, "the rest of a stream of events").await);
            }
            let may_pass =
                response.status.is_server_error() || response.status == StatusCode::TOO_MANY_REQUESTS;
            let error = failed(requester, response, self.session.as_ref()).await;
            match error {
                _ if may_pass => why = error.to_string(),
                TransportError::SessionLost | TransportError::Unauthorized { .. } => return Err(error),
                // The stream was refused, not the request.
                _ => {
                    return Err(TransportError::Broken(format!("{why}, and it cannot be resumed: {error}")));
                }
            }
        }
    }
}

fn too_long(limit: usize) -> TransportError {
    TransportError::Misbehaved(format!("a message is longer than {limit} bytes"))
}

const ENVELOPE: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// True if a message begins as most servers write the answer to this request, which spares decoding it.
fn plainly_answers(message: &[u8], request: &[u8]) -> bool {
    let Some(rest) = request.strip_prefix(ENVELOPE) else { return false };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (id, rest) = rest.split_at_checked(digits).unwrap_or_default();
    if id.is_empty() || rest.first() != Some(&b',') {
        return false;
    }
    let rest = message.strip_prefix(ENVELOPE).and_then(|message| message.strip_prefix(id));
    rest.is_some_and(|rest| rest.starts_with(br#","result":"#) || rest.starts_with(br#","error":"#))
}

/// True if a message answers a request, or is a batch with its response.
fn answers(message: &[u8], request: &[u8], max_message_size: usize) -> bool {
    let limits = Limits { max_message_size, ..Limits::default() };
    let asked = || match decode(request, &Limits { max_message_size: usize::MAX, ..limits }) {
        Ok(Incoming::One(Message::Request(request))) => Some(request.id),
        _ => None,
    };
    let fits = |message: &Message<'_>, asked: Option<&RequestId>| match message {
        // An error without an id says that the request could not be read.
        Message::Response(response) => {
            response.id.is_none() || asked.is_none() || response.id.as_ref() == asked
        }
        _ => false,
    };
    match decode(message, &limits) {
        Ok(Incoming::One(message)) => {
            matches!(message, Message::Response(_)) && fits(&message, asked().as_ref())
        }
        Ok(Incoming::Batch(messages)) => {
            let asked = asked();
            messages.iter().flatten().any(|message| fits(message, asked.as_ref()))
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REQUEST: &[u8] = br#"{"jsonrpc":"2.0","id":7,"method":"ping","params":{}}"#;

    #[test]
    fn plain_answers_are_recognized_by_their_beginning() {
        assert!(plainly_answers(br#"{"jsonrpc":"2.0","id":7,"result":{}}"#, REQUEST));
        assert!(plainly_answers(br#"{"jsonrpc":"2.0","id":7,"error":{}}"#, REQUEST));
        for other in [
            &br#"{"jsonrpc":"2.0","id":77,"result":{}}"#[..],
            br#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
            br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#,
            br#"{"result":{},"jsonrpc":"2.0","id":7}"#,
            b"",
        ] {
            assert!(!plainly_answers(other, REQUEST), "{}", String::from_utf8_lossy(other));
        }
        assert!(!plainly_answers(br#"{"jsonrpc":"2.0","id":,"result":{}}"#, br#"{"jsonrpc":"2.0","id":,"#));
    }

    #[test]
    fn answers_are_told_from_notifications_and_other_answers() {
        let answers = |message: &[u8]| answers(message, REQUEST, 1000);
        assert!(answers(br#"{"result":{},"jsonrpc":"2.0","id":7}"#));
        assert!(answers(br#"[{"jsonrpc":"2.0","method":"x"},{"result":{},"jsonrpc":"2.0","id":7}]"#));
        assert!(answers(br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#));
        assert!(!answers(br#"{"result":{},"jsonrpc":"2.0","id":8}"#));
        assert!(!answers(br#"{"method":"ping","jsonrpc":"2.0","id":7}"#));
        assert!(!answers(br#"{"method":"notifications/progress","jsonrpc":"2.0"}"#));
        assert!(!answers(b"nonsense"));
    }
}

//! A request of ours over streamable HTTP, from the message to whatever answers it.

use bytes::Bytes;
use hyper::header::HeaderValue;
use hyper::{HeaderMap, Method, StatusCode};
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId, TransportError};
use refmcp_proto::frame::SseReceived;
use refmcp_proto::jsonrpc::{Incoming, Limits, Message, RequestId, decode, excerpt};
use refmcp_proto::revision::{Lifecycle, Resumption, Rules};

use super::cursor::StreamCursor;
use super::events::{EventStream, StreamEnd};
use super::headers::Content;
use super::refusal::{check_encoding, refused, unexpected};
use super::requester::HttpRequester;
use super::response::{BodyError, HttpResponse};

/// Attempts in a row, to take up a stream, that may bring nothing.
const FRUITLESS_ATTEMPTS: u32 = 5;

/// Sends a message that wants an answer and hands on what comes.
pub(super) async fn ask(requester: &HttpRequester, message: ClientMessage) {
    let ClientMessage { exchange, kind, json, rules } = message;
    let session = requester.session_of(&kind, rules);
    let asked = Asked { requester, exchange, rules, session, json: json.into() };
    if let Err(why) = asked.run(&kind).await {
        requester.sink.ended(exchange, why);
    }
}

/// Sends a message that wants no answer.
pub(super) async fn tell(
    requester: &HttpRequester,
    message: ClientMessage,
) -> Result<HttpResponse, TransportError> {
    let ClientMessage { kind, json, rules, .. } = message;
    let session = requester.session_of(&kind, rules);
    let headers = || requester.headers.post(&kind, rules, session.clone());
    let answer = requester.request(Method::POST, &requester.target, json.into(), headers).await?;
    if answer.status.is_success() {
        Ok(answer)
    } else {
        Err(failed(requester, answer, session.as_ref()).await)
    }
}

/// What it means that a message was refused; a lost session is left.
async fn failed(
    requester: &HttpRequester,
    answer: HttpResponse,
    session: Option<&HeaderValue>,
) -> TransportError {
    let why = refused(answer, session).await;
    if let (TransportError::SessionLost, Some(lost)) = (&why, session) {
        requester.leave_session(lost);
    }
    why
}

/// A request of ours.
struct Asked<'a> {
    requester: &'a HttpRequester,
    exchange: ExchangeId,
    rules: Option<&'static Rules>,
    session: Option<HeaderValue>,
    json: Bytes,
}

impl Asked<'_> {
    async fn run(&self, kind: &ClientMessageKind) -> Result<(), TransportError> {
        let requester = self.requester;
        let _slot = requester.slot().await;
        let headers = || requester.headers.post(kind, self.rules, self.session.clone());
        // The head of the response may come as late as the answer, so whoever asked says how long that may be.
        let sent =
            requester.request_within(None, Method::POST, &requester.target, self.json.clone(), headers);
        let mut answer = sent.await?;
        if !answer.status.is_success() {
            return Err(failed(requester, answer, self.session.as_ref()).await);
        }
        self.look_at(&answer.headers)?;
        match Content::of(&answer.headers) {
            Content::Json => {
                let body =
                    answer.body.whole(requester.max_message).await.map_err(|fault| self.no_body(fault))?;
                // Free before the message is handed on: whoever gets it may ask again at once.
                answer.body.finish();
                self.take_body(&body, answer.status)
            }
            Content::EventStream => self.follow(answer).await,
            Content::Other => Err(unexpected(answer, "JSON or a stream of events").await),
        }
    }

    fn look_at(&self, headers: &HeaderMap) -> Result<(), TransportError> {
        check_encoding(headers)?;
        let alone = self.rules.is_some_and(|rules| rules.lifecycle == Lifecycle::PerRequest);
        if alone { Ok(()) } else { self.requester.join_session(headers, self.session.as_ref()) }
    }

    fn no_body(&self, fault: BodyError) -> TransportError {
        match fault {
            BodyError::TooLong => too_long(self.requester.max_message),
            BodyError::Broken(why) => TransportError::Broken(why),
        }
    }

    fn take_body(&self, body: &Bytes, status: StatusCode) -> Result<(), TransportError> {
        if body.trim_ascii().is_empty() {
            return Err(TransportError::Misbehaved(format!("status {} with an empty body", status.as_u16())));
        }
        self.requester.sink.message(Some(self.exchange), body);
        if plainly_answers(body, &self.json) || answers(body, &self.json, self.requester.max_message) {
            return Ok(());
        }
        Err(TransportError::Misbehaved("the body of the response held no answer to the request".to_owned()))
    }

    /// Reads a stream until the answer has come, over as many connections as the server wants.
    async fn follow(&self, answer: HttpResponse) -> Result<(), TransportError> {
        let mut cursor = StreamCursor::new();
        let mut events = EventStream::new(answer.body, self.requester.max_message);
        loop {
            let why = loop {
                match events.next().await {
                    Ok(item) => {
                        if let Some(event) = cursor.note(item)
                            && self.take_event(&event)
                        {
                            events.finish(&*self.requester.sink).await;
                            return Ok(());
                        }
                    }
                    Err(StreamEnd::TooLong) => return Err(too_long(self.requester.max_message)),
                    Err(StreamEnd::Broken(why)) => break why,
                }
            };
            cursor.ended();
            let never = self.rules.is_some_and(|rules| rules.resumption == Resumption::Never);
            if never || cursor.id().is_none() {
                return Err(TransportError::Broken(why));
            }
            events.release();
            events = self.take_up(&mut cursor, &why).await?;
        }
    }

    /// Hands an event on; whether it is the answer.
    fn take_event(&self, event: &SseReceived) -> bool {
        if event.event != "message" {
            self.requester.sink.ignored_input(&format!("an event named {:?}", excerpt(&event.event)));
            return false;
        }
        let json = event.data.as_bytes();
        self.requester.sink.message(Some(self.exchange), json);
        plainly_answers(json, &self.json) || answers(json, &self.json, self.requester.max_message)
    }

    /// Asks for the rest of a stream until there is some.
    async fn take_up(&self, cursor: &mut StreamCursor, why: &str) -> Result<EventStream, TransportError> {
        let requester = self.requester;
        let mut why = why.to_owned();
        loop {
            if cursor.fruitless() >= FRUITLESS_ATTEMPTS {
                let given_up =
                    format!("{why}; {FRUITLESS_ATTEMPTS} attempts to take it up again brought nothing");
                return Err(TransportError::Broken(given_up));
            }
            tokio::time::sleep(cursor.pause()).await;
            cursor.attempt();
            let headers = || requester.headers.get(self.rules, self.session.clone(), cursor.id().cloned());
            let answer = match requester.request(Method::GET, &requester.target, Bytes::new(), headers).await
            {
                Ok(answer) => answer,
                Err(TransportError::Broken(fault) | TransportError::Unreachable(fault)) => {
                    why = fault;
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            if answer.status == StatusCode::OK && Content::of(&answer.headers) == Content::EventStream {
                check_encoding(&answer.headers)?;
                cursor.opened();
                return Ok(EventStream::new(answer.body, requester.max_message));
            }
            if answer.status.is_success() {
                return Err(unexpected(answer, "the rest of a stream of events").await);
            }
            let may_pass = answer.status.is_server_error() || answer.status == StatusCode::TOO_MANY_REQUESTS;
            let fault = failed(requester, answer, self.session.as_ref()).await;
            match fault {
                _ if may_pass => why = fault.to_string(),
                TransportError::SessionLost | TransportError::Unauthorized { .. } => return Err(fault),
                // A refusal of the stream is none of the request, and must not look like one.
                _ => {
                    return Err(TransportError::Broken(format!(
                        "{why}, and it cannot be taken up again: {fault}"
                    )));
                }
            }
        }
    }
}

fn too_long(limit: usize) -> TransportError {
    TransportError::Misbehaved(format!("a message is longer than {limit} bytes"))
}

const ENVELOPE: &[u8] = br#"{"jsonrpc":"2.0","id":"#;

/// Whether a message can be seen at a glance to answer a request. Many servers write answers in this one way.
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

/// Whether a message answers a request, or holds something that does.
fn answers(message: &[u8], request: &[u8], max_message: usize) -> bool {
    let limits = Limits { message_bytes: max_message, ..Limits::default() };
    let asked = || match decode(request, &Limits { message_bytes: usize::MAX, ..limits }) {
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
    fn a_glance_is_never_wrong() {
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
    fn answers_are_told_from_what_comes_before_them() {
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

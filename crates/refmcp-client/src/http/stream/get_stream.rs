//! The GET stream of a session: requests and notifications of the server that belong to no request of the client. It
//! reconnects where it breaks, and resumes behind the last event.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use refmcp_proto::engine::client::TransportError;
use refmcp_proto::revision::Rules;
use refmcp_transport::observer::StreamId;
use tokio::time::timeout;

use super::events::{EventStream, StreamEnd};
use super::resume_position::ResumePosition;
use crate::http::request::error_response::check_encoding;
use crate::http::request::{ContentType, HttpRequester, SendOrderGuard};

/// How long requests wait until the server has answered that the stream is open. Some servers answer with the first event.
const MAX_HELD: Duration = Duration::from_millis(200);

/// Keeps the GET stream open, if the server has one. Requests wait for the guard.
pub(crate) async fn keep_open(requester: Arc<HttpRequester>, rules: &'static Rules, order: SendOrderGuard) {
    let (session, observed) = (requester.session().id, requester.observed.stream(StreamId::GET));
    let mut position = ResumePosition::new();
    let (mut was_open, mut lost) = (false, false);
    let mut order = Some(order);
    loop {
        let headers = || requester.headers.get(Some(rules), session.clone(), position.id().cloned());
        let response = requester.request(requester.get(observed.clone(), headers));
        match held(order.take(), response).await {
            Ok(response)
                if response.status == StatusCode::OK
                    && ContentType::from_headers(&response.headers) == ContentType::EventStream =>
            {
                if let Err(error) = check_encoding(&response.headers) {
                    return requester.sink.ignored_input(&error.to_string());
                }
                position.opened();
                was_open = true;
                if std::mem::take(&mut lost) {
                    requester.sink.stream_restored();
                }
                read(&requester, &mut position, EventStream::new(response, requester.max_message_size)).await;
                position.ended();
            }
            Ok(response) if response.status.is_success() => {
                let status = response.status;
                return requester
                    .sink
                    .ignored_input(&format!("status {status} without events, where a stream was asked for"));
            }
            // Servers without a GET stream respond so; one that had it has ended the session, which 404 says.
            Ok(response)
                if response.status.is_client_error() && response.status != StatusCode::TOO_MANY_REQUESTS =>
            {
                if was_open && response.status == StatusCode::NOT_FOUND && session.is_some() {
                    requester.stream_lost(TransportError::SessionLost);
                } else if was_open || lost {
                    requester.stream_lost(refused(response.status));
                }
                return response.discard().await;
            }
            Ok(response) => {
                if was_open && !std::mem::replace(&mut lost, true) {
                    requester.stream_lost(refused(response.status));
                }
                response.discard().await;
            }
            Err(why @ (TransportError::Broken(_) | TransportError::Unreachable(_))) => {
                if !std::mem::replace(&mut lost, true) {
                    requester.stream_lost(why);
                }
            }
            // Requests report it; the server broke no rule.
            Err(error) if error.needs_authorization() => {
                return tracing::debug!(%error, "there is no GET stream");
            }
            Err(error) => return requester.sink.ignored_input(&error.to_string()),
        }
        tokio::time::sleep(position.delay()).await;
        position.attempt();
    }
}

/// Waits for the first response, and lets requests go once it is there or takes long.
async fn held<T>(order: Option<SendOrderGuard>, response: impl Future<Output = T>) -> T {
    let mut response = pin!(response);
    if order.is_some()
        && let Ok(response) = timeout(MAX_HELD, &mut response).await
    {
        return response;
    }
    drop(order);
    response.await
}

fn refused(status: StatusCode) -> TransportError {
    TransportError::Broken(format!("the server refuses the stream of its messages with status {status}"))
}

async fn read(requester: &HttpRequester, position: &mut ResumePosition, mut events: EventStream) {
    loop {
        match events.next().await {
            Ok(item) => match position.advance(item) {
                Some(event) if event.event != "message" => requester.ignored_event(&event),
                Some(event) => requester.sink.message(None, event.data.as_bytes()),
                None => {}
            },
            Err(StreamEnd::TooLong) => {
                requester.observed.stream(StreamId::GET).too_long(requester.max_message_size);
                return requester.sink.too_long(None, requester.max_message_size);
            }
            Err(StreamEnd::Broken(_)) => return events.release(),
        }
    }
}

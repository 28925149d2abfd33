//! The body of a request: its content type, its limits, and what becomes of one that is not wanted.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;

use crate::access::caller::Caller;
use crate::endpoint::EndpointState;
use crate::refusal::{Reason, Refusal};
use crate::request::headers;

/// Bytes of an unwanted body that are read and discarded, and how long that may take.
const DISCARDED: (usize, Duration) = (64 << 10, Duration::from_secs(1));

/// Refuses a body that is not plain JSON in UTF-8.
pub(crate) fn check_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let why = if headers.contains_key(header::CONTENT_ENCODING) {
        "Content-Encoding is not understood here"
    } else if headers::is_json(headers) {
        return Ok(());
    } else {
        "Content-Type must be application/json in UTF-8"
    };
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Reason::ContentType, why))
}

/// Refuses a request whose body was not read. A short body is read first, so that the connection can be used for the next
/// request; otherwise the connection is closed.
pub(crate) async fn refuse_unread(headers: &HeaderMap, body: Body, refusal: Refusal) -> Refusal {
    // A client that expects `100 Continue` has not sent its body.
    let expects = headers.contains_key(header::EXPECT);
    let (most, within) = DISCARDED;
    let short = !expects && body.size_hint().lower() <= most as u64;
    let read = short && matches!(tokio::time::timeout(within, to_bytes(body, most)).await, Ok(Ok(_)));
    if read { refusal } else { refusal.and_close() }
}

/// Reads the body of a message.
pub(crate) async fn read_message(
    endpoint: &EndpointState,
    caller: &Caller,
    body: Body,
) -> Result<Bytes, Refusal> {
    let body = read(endpoint, body, endpoint.options.max_message_size).await?;
    caller.observed.read(&body);
    Ok(body)
}

/// Reads a whole body of at most so many bytes.
pub(crate) async fn read(endpoint: &EndpointState, body: Body, most: usize) -> Result<Bytes, Refusal> {
    let too_long = || {
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, Reason::BodySize, format!("at most {most} bytes"))
            .and_close()
    };
    // A client that announces too long a body need not send it.
    if body.size_hint().lower() > most as u64 {
        return Err(too_long());
    }
    let mut reading = pin!(to_bytes(body, most));
    // Most bodies arrive together with their heads; those need no timer.
    let read = match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
        Poll::Ready(read) => Ok(read),
        Poll::Pending => tokio::time::timeout(endpoint.options.body_timeout, reading).await,
    };
    match read {
        Ok(Ok(bytes)) => {
            endpoint.metrics.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            Ok(bytes)
        }
        Ok(Err(fault)) if is_too_long(&fault) => Err(too_long()),
        Ok(Err(_)) => Err(Refusal::bad_request(Reason::BodySize, "the body broke off").and_close()),
        Err(_) => {
            let why = "the body took too long";
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, Reason::BodyTimeout, why).and_close())
        }
    }
}

fn is_too_long(fault: &axum::Error) -> bool {
    let cause = std::error::Error::source(fault);
    cause.is_some_and(<dyn std::error::Error>::is::<http_body_util::LengthLimitError>)
}

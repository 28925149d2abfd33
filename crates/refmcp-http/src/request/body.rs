//! The body of a request: its content type, its limits, and what becomes of one that is not wanted.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Frame, SizeHint};
use refmcp_server::transport::{MemoryAccount, MemoryReservation, NoMemory};

use crate::access::caller::Caller;
use crate::endpoint::EndpointState;
use crate::refusal::{Reason, Refusal};
use crate::request::headers;

/// Bytes of an unwanted body that are read and discarded, and how long that may take.
const DISCARDED: (usize, Duration) = (64 << 10, Duration::from_secs(1));

/// Bytes of a body for which no memory is reserved.
const SHORT: u64 = 8 << 10;

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
) -> Result<HeldBody, Refusal> {
    let body = read(endpoint, &caller.memory, body, endpoint.options.max_message_size).await?;
    caller.observed.read(&body.bytes);
    Ok(body)
}

/// A body that was read, and the memory that is reserved for it.
#[derive(Debug)]
pub(crate) struct HeldBody {
    pub(crate) bytes: Bytes,
    _reserved: Option<MemoryReservation>,
}

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// A body that reserves memory for what was read of it.
struct CountedBody<'a> {
    body: Body,
    reserved: Option<&'a mut MemoryReservation>,
}

impl HttpBody for CountedBody<'_> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if let (Some(Ok(frame)), Some(reserved)) = (&frame, &mut self.reserved) {
            let bytes = frame.data_ref().map_or(0, Bytes::len);
            if let Err(fault) = reserved.try_grow(bytes) {
                return Poll::Ready(Some(Err(fault.into())));
            }
        }
        Poll::Ready(frame.map(|frame| frame.map_err(BoxError::from)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Reads a whole body of at most so many bytes.
pub(crate) async fn read(
    endpoint: &EndpointState,
    memory: &MemoryAccount,
    body: Body,
    most: usize,
) -> Result<HeldBody, Refusal> {
    let too_long = || {
        Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, Reason::BodySize, format!("at most {most} bytes"))
            .and_close()
    };
    // A client that announces too long a body need not send it.
    if body.size_hint().lower() > most as u64 {
        return Err(too_long());
    }
    // A short body is counted with its connection.
    let is_short = body.size_hint().upper().is_some_and(|length| length <= SHORT);
    let mut reserved = (!is_short).then(|| memory.reservation());
    let read = {
        let counted = CountedBody { body, reserved: reserved.as_mut() };
        let mut reading = pin!(Limited::new(counted, most).collect());
        // Most bodies arrive together with their heads; those need no timer.
        match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
            Poll::Ready(read) => Ok(read),
            Poll::Pending => tokio::time::timeout(endpoint.options.body_timeout, reading).await,
        }
    };
    match read {
        Ok(Ok(collected)) => {
            let bytes = collected.to_bytes();
            endpoint.metrics.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            Ok(HeldBody { bytes, _reserved: reserved })
        }
        Ok(Err(fault)) if fault.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(fault)) => Err(match fault.downcast_ref::<NoMemory>() {
            Some(fault) => Refusal::no_memory(*fault).and_close(),
            None => Refusal::bad_request(Reason::BodySize, "the body broke off").and_close(),
        }),
        Err(_) => {
            let why = "the body took too long";
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, Reason::BodyTimeout, why).and_close())
        }
    }
}

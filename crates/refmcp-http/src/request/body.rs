//! The body of a request: its content type, its limits, and what becomes of one that is not wanted.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use http_body_util::BodyExt;
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

/// Why a body was not read.
#[derive(Debug)]
enum BodyFault {
    TooLong,
    NoMemory(NoMemory),
    BrokenOff,
}

/// Reads a body of at most so many bytes. Frames are joined as they come: each keeps a buffer, and a client can send one for
/// every byte.
async fn join(
    mut body: Body,
    most: usize,
    mut reserved: Option<&mut MemoryReservation>,
) -> Result<Bytes, BodyFault> {
    let (mut first, mut joined) = (Bytes::new(), Vec::new());
    while let Some(frame) = body.frame().await {
        // Trailers are passed over.
        let Ok(data) = frame.map_err(|_| BodyFault::BrokenOff)?.into_data() else { continue };
        if first.len() + joined.len() + data.len() > most {
            return Err(BodyFault::TooLong);
        }
        if let Some(reserved) = &mut reserved {
            reserved.try_grow(data.len()).map_err(BodyFault::NoMemory)?;
        }
        // Most bodies are one frame, which is not copied.
        if first.is_empty() && joined.is_empty() {
            first = data;
        } else {
            joined.extend_from_slice(&std::mem::take(&mut first));
            joined.extend_from_slice(&data);
        }
    }
    Ok(if joined.is_empty() { first } else { joined.into() })
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
        let mut reading = pin!(join(body, most, reserved.as_mut()));
        // Most bodies arrive together with their heads; those need no timer.
        match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
            Poll::Ready(read) => Ok(read),
            Poll::Pending => tokio::time::timeout(endpoint.options.body_timeout, reading).await,
        }
    };
    match read {
        Ok(Ok(bytes)) => {
            endpoint.metrics.received.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            Ok(HeldBody { bytes, _reserved: reserved })
        }
        Ok(Err(BodyFault::TooLong)) => Err(too_long()),
        Ok(Err(BodyFault::NoMemory(error))) => Err(Refusal::no_memory(error).and_close()),
        Ok(Err(BodyFault::BrokenOff)) => {
            Err(Refusal::bad_request(Reason::BodySize, "the body broke off").and_close())
        }
        Err(_) => {
            let why = "the body took too long";
            Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, Reason::BodyTimeout, why).and_close())
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use futures_util::{StreamExt, stream};

    use super::*;

    struct Buffer {
        _counted: Arc<()>,
    }

    impl AsRef<[u8]> for Buffer {
        fn as_ref(&self) -> &[u8] {
            b"x"
        }
    }

    #[tokio::test]
    async fn frames_are_not_kept_until_the_body_is_whole() {
        let buffers = Arc::new(());
        let counted = buffers.clone();
        let frames = stream::iter(0..1000).map(move |_| {
            assert!(Arc::strong_count(&counted) < 5, "{}", Arc::strong_count(&counted));
            Ok::<_, Infallible>(Bytes::from_owner(Buffer { _counted: counted.clone() }))
        });
        let read = join(Body::from_stream(frames), 1000, None).await.unwrap();
        assert_eq!(read, vec![b'x'; 1000]);
        assert_eq!(Arc::strong_count(&buffers), 1);
    }

    #[tokio::test]
    async fn a_body_has_a_limit_and_one_frame_is_not_copied() {
        let whole = Bytes::from(vec![b'x'; 100]);
        let read = join(Body::from(whole.clone()), 100, None).await.unwrap();
        assert_eq!(read.as_ptr(), whole.as_ptr());
        assert!(matches!(join(Body::from(whole), 99, None).await, Err(BodyFault::TooLong)));
    }
}

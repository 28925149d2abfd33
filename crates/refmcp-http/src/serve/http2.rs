//! HTTP/2: many responses share one connection, so what a client does not read is limited for each of them. Each request
//! reserves memory until its response is sent; a response goes to h2 in small parts, and its stream is reset when the
//! client takes none for too long.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use hyper::server::conn::http2;
use hyper_util::rt::TokioTimer;
use parking_lot::Mutex;
use refmcp_server::transport::memory_budget::{MemoryAccount, MemoryReservation, NoMemory};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::access::caller::Client;
use crate::endpoint::EndpointState;
use crate::options::Options;
use crate::refusal::Refusal;

/// Requests at once on one connection.
const MAX_STREAMS: u32 = 256;

/// The interval of pings, and the time for their answers.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Bytes of bodies that a client may send before they are read: of one request, and of a connection.
const WINDOWS: (u32, u32) = (128 << 10, 512 << 10);

/// What a request costs besides its head and its body.
const REQUEST_BYTES: usize = 8 << 10;

/// Bytes of a response that h2 gets at once. It keeps them until the client has taken them.
const PART: usize = 16 << 10;

pub(super) fn builder(endpoint: &Arc<EndpointState>, client: Client) -> http2::Builder<StreamExecutor> {
    let (options, endpoint) = (&endpoint.options, endpoint.clone());
    let write_timeout = options.write_timeout;
    let stalled = Arc::new(move || endpoint.refused(client, None, None, &Refusal::unread()));
    let mut builder = http2::Builder::new(StreamExecutor { write_timeout, stalled });
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_INTERVAL)
        .max_concurrent_streams(MAX_STREAMS)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .max_header_list_size(most_head_bytes(options));
    builder
}

/// Bytes of a head that h2 refuses by itself. From the endpoint's limit to this one the refusal is ours, with a path in its line
/// of the log.
pub(super) fn most_head_bytes(options: &Options) -> u32 {
    u32::try_from(options.head_bytes.saturating_mul(2)).unwrap_or(u32::MAX)
}

/// Reserves memory for a request until its response is sent.
pub(super) fn reserve(memory: &MemoryAccount, head: &Parts) -> Result<MemoryReservation, NoMemory> {
    let fields = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
    memory.reserve(REQUEST_BYTES + fields.sum::<usize>())
}

/// The response with a body that h2 takes in parts.
pub(super) fn in_parts(response: Response, reserved: MemoryReservation) -> Response {
    let reading = STREAM.try_with(Clone::clone).unwrap_or_default();
    response.map(|body| Body::new(PartedBody { body, rest: Bytes::new(), reading, reserved }))
}

tokio::task_local! {
    /// The stream whose task is polled.
    static STREAM: Reading;
}

/// Since when the client is to take a part of the response; none while there is none.
#[derive(Debug, Clone, Default)]
struct Reading(Arc<Mutex<Option<Instant>>>);

/// Runs each stream as a task that ends when its client takes nothing for too long, which resets the stream.
#[derive(Clone)]
pub(super) struct StreamExecutor {
    write_timeout: Duration,
    /// Reports a stream that is reset.
    stalled: Arc<dyn Fn() + Send + Sync>,
}

impl<F> hyper::rt::Executor<F> for StreamExecutor
where
    F: Future + Send + 'static,
    F::Output: Send,
{
    fn execute(&self, stream: F) {
        let reading = Reading::default();
        let (executor, timer) = (self.clone(), None);
        let stream = UntilStalled { stream: Box::pin(stream), reading: reading.clone(), executor, timer };
        tokio::spawn(STREAM.scope(reading, stream));
    }
}

struct UntilStalled<F> {
    stream: Pin<Box<F>>,
    reading: Reading,
    executor: StreamExecutor,
    timer: Option<Pin<Box<Sleep>>>,
}

impl<F: Future> Future for UntilStalled<F> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.stream.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let Some(since) = *self.reading.0.lock() else { return Poll::Pending };
        let due = since + self.executor.write_timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        if timer.deadline() != due {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(context).map(|()| (self.executor.stalled)())
    }
}

/// A body in parts of limited size.
struct PartedBody {
    body: Body,
    /// What is left of the last frame.
    rest: Bytes,
    reading: Reading,
    reserved: MemoryReservation,
}

impl PartedBody {
    /// The next part. The last one of a frame is a copy: a slice would keep the whole frame while h2 has it.
    fn next_part(&mut self) -> Bytes {
        if self.rest.len() > PART {
            return self.rest.split_to(PART);
        }
        let rest = std::mem::take(&mut self.rest);
        let account = self.reserved.account();
        account.hold(Bytes::copy_from_slice(&rest)).unwrap_or(rest)
    }
}

impl HttpBody for PartedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // h2 asks for more: the client has taken what was sent before.
        *self.reading.0.lock() = None;
        let mut frame = None;
        if self.rest.is_empty() {
            match std::task::ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(next)) => match next.into_data() {
                    Ok(data) if data.len() > PART => self.rest = data,
                    Ok(data) => frame = Some(Frame::data(data)),
                    Err(trailers) => frame = Some(trailers),
                },
                end => return Poll::Ready(end),
            }
        }
        let frame = frame.unwrap_or_else(|| Frame::data(self.next_part()));
        *self.reading.0.lock() = Some(Instant::now());
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (body, rest) = (self.body.size_hint(), self.rest.len() as u64);
        let mut hint = SizeHint::new();
        hint.set_lower(body.lower() + rest);
        if let Some(upper) = body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use hyper::rt::Executor as _;
    use refmcp_server::transport::memory_budget::MemoryBudget;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn a_long_body_comes_in_parts_of_which_the_last_keeps_little() {
        let budget = MemoryBudget::new(1 << 20);
        let account = budget.account();
        let whole = account.hold(Bytes::from(vec![7; 3 * PART + 5])).unwrap();
        let response = in_parts(Response::new(Body::from(whole)), account.reserve(100).unwrap());
        let mut body = response.into_body();
        assert_eq!(body.size_hint().exact(), Some(3 * PART as u64 + 5));
        let mut parts = Vec::new();
        while let Some(frame) = body.frame().await {
            parts.push(frame.unwrap().into_data().unwrap());
        }
        assert_eq!(parts.iter().map(Bytes::len).collect::<Vec<_>>(), [PART, PART, PART, 5]);
        drop(body);
        parts.drain(..3);
        assert_eq!(budget.held(), 5, "the whole message is given back, and the request");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_ends_when_its_client_takes_nothing() {
        let resets = Arc::new(AtomicUsize::new(0));
        let counted = resets.clone();
        let stalled = Arc::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        let executor = StreamExecutor { write_timeout: Duration::from_secs(60), stalled };
        let (ended, has_ended) = oneshot::channel::<()>();
        let began = Instant::now();
        executor.execute(async move {
            let reserved = MemoryBudget::new(1000).account().reserve(1).unwrap();
            let mut body = in_parts(Response::new(Body::from(vec![7; 3 * PART])), reserved).into_body();
            for _ in 0..2 {
                tokio::time::sleep(Duration::from_secs(50)).await;
                body.frame().await.unwrap().unwrap();
            }
            std::future::pending::<()>().await;
            drop(ended);
        });
        assert!(has_ended.await.is_err(), "the stream was dropped");
        assert_eq!((began.elapsed().as_secs(), resets.load(Ordering::SeqCst)), (160, 1));
    }
}

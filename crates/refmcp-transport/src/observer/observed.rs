//! The handle of what is observed: a connection or a stream of it, with its observer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use refmcp_proto::finding::Finding;
use refmcp_proto::frame::{SseDecoder, SseItem};
use refmcp_proto::jsonrpc::{Limits, decode};
use refmcp_proto::revision::Revision;

use super::{
    ConnectionId, Direction, EventContext, Head, InvalidInput, MessageEvent, Observer, Refused, Side,
    SseControlEvent, StartLine, StreamId,
};
use crate::clock::Clock;

/// A connection, or one stream of it, and its observer if it has one. Clones belong to the same connection, which is closed
/// with the last of them at the latest. What is kept for the observer is freed once it wants no more.
#[derive(Default)]
pub struct Observed {
    connection: Mutex<Option<Arc<ObservedConnection>>>,
    /// The number of the connection, also when the observer wants no more; 0 where there never was one.
    id: u64,
    /// The number of the stream, and one more; 0 where it is the whole connection.
    stream: u64,
}

impl Clone for Observed {
    fn clone(&self) -> Self {
        Self { connection: Mutex::new(self.connection()), id: self.id, stream: self.stream }
    }
}

struct ObservedConnection {
    observer: Arc<dyn Observer>,
    id: ConnectionId,
    side: Side,
    transport: &'static str,
    peer: String,
    clock: Clock,
    negotiated: Mutex<Negotiated>,
    /// The observer wants to see more.
    is_wanted: AtomicBool,
    closed: AtomicBool,
}

#[derive(Debug, Default, Clone)]
struct Negotiated {
    session: Option<Arc<str>>,
    revision: Option<Revision>,
}

/// Peers enforce limits themselves; what has passed is shown whatever its size.
const NO_LIMITS: Limits =
    Limits { max_message_size: usize::MAX, depth: 128, name_bytes: usize::MAX, batch: usize::MAX };

impl Observed {
    /// Opens a connection with a number of its own. One that the observer does not want is not observed.
    pub fn open(
        observer: Arc<dyn Observer>,
        side: Side,
        transport: &'static str,
        peer: impl Into<String>,
        clock: Clock,
    ) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        if !observer.wants_connection(clock.now()) {
            return Self::default();
        }
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let connection = ObservedConnection {
            observer,
            id: ConnectionId(id),
            side,
            transport,
            peer: peer.into(),
            clock,
            negotiated: Mutex::default(),
            is_wanted: AtomicBool::new(true),
            closed: AtomicBool::new(false),
        };
        let observed = Self { connection: Mutex::new(Some(Arc::new(connection))), id, stream: 0 };
        observed.tell(|connection| connection.tell(None, Observer::opened));
        observed
    }

    fn stream_id(&self) -> Option<StreamId> {
        self.stream.checked_sub(1).map(StreamId)
    }

    /// The connection, while its observer wants to see it.
    #[inline]
    fn connection(&self) -> Option<Arc<ObservedConnection>> {
        if self.id == 0 {
            return None;
        }
        let mut connection = self.connection.lock();
        let is_wanted = connection.as_ref()?.is_wanted.load(Ordering::Relaxed);
        if is_wanted { connection.clone() } else { connection.take().and(None) }
    }

    /// Tells the observer of an event, and lets go of the connection if it wants no more.
    #[inline]
    fn tell<T: Default>(&self, event: impl FnOnce(&ObservedConnection) -> T) -> T {
        let Some(connection) = self.connection() else { return T::default() };
        let told = event(&connection);
        self.ask(&connection);
        told
    }

    fn ask(&self, connection: &ObservedConnection) {
        if !connection.observer.wants_more(connection.id) {
            connection.is_wanted.store(false, Ordering::Relaxed);
            self.connection.lock().take();
        }
    }

    /// Lets go of a connection that is silent and that the observer no longer wants to see.
    pub fn release_unwanted(&self) {
        if let Some(connection) = self.connection() {
            self.ask(&connection);
        }
    }

    /// The number of the connection, also when its observer wants to see no more of it.
    pub fn id(&self) -> Option<ConnectionId> {
        Some(ConnectionId(self.id)).filter(|id| id.0 > 0)
    }

    /// A stream of this connection.
    #[must_use]
    pub fn stream(&self, stream: impl Into<StreamId>) -> Self {
        Self { stream: stream.into().0.saturating_add(1), ..self.clone() }
    }

    /// Whether there is an observer that wants to see more.
    #[inline]
    pub fn is_observed(&self) -> bool {
        self.connection().is_some()
    }

    /// A message is sent.
    #[inline]
    pub fn sent(&self, bytes: &[u8]) {
        self.passed(Direction::Sent, bytes);
    }

    /// A message was received, or what should have been one.
    #[inline]
    pub fn received(&self, bytes: &[u8]) {
        self.passed(Direction::Received, bytes);
    }

    /// A message passes in this direction, or what should be one.
    #[inline]
    pub fn passed(&self, direction: Direction, bytes: &[u8]) {
        self.tell(|connection| connection.message(self.stream_id(), direction, bytes, None));
    }

    /// A message is sent in an SSE event with this id.
    #[inline]
    pub fn sent_in_event(&self, id: Option<&str>, bytes: &[u8]) {
        self.tell(|connection| connection.message(self.stream_id(), Direction::Sent, bytes, id));
    }

    /// An item of an SSE stream passes: a message, or an event without one. Comments are not told.
    #[inline]
    pub fn sse_item(&self, direction: Direction, item: &SseItem) {
        self.tell(|connection| connection.sse_item(self.stream_id(), direction, item));
    }

    /// Whole SSE events pass, as these bytes.
    #[inline]
    pub fn sse_events(&self, direction: Direction, bytes: &[u8]) {
        self.tell(|connection| {
            let mut items = Vec::new();
            // Without a limit, nothing is over it.
            if SseDecoder::new(usize::MAX).feed(bytes, &mut items).is_ok() {
                items.iter().for_each(|item| connection.sse_item(self.stream_id(), direction, item));
            }
        });
    }

    /// The body of an HTTP response has ended in its direction; in the other one, its reader has left.
    #[inline]
    pub fn stream_ended(&self, direction: Direction) {
        self.tell(|connection| {
            connection.tell(self.stream_id(), |observer, context| observer.stream_ended(context, direction));
        });
    }

    /// Something was received that is no message.
    #[inline]
    pub fn invalid_input(&self, bytes: &[u8], why: impl fmt::Display) {
        self.not_a_message(Direction::Received, bytes, &why);
    }

    /// Something passes in this direction that is no message.
    #[inline]
    pub fn not_a_message(&self, direction: Direction, bytes: &[u8], why: &dyn fmt::Display) {
        self.tell(|connection| {
            let input = InvalidInput { direction, bytes, why: &why.to_string() };
            connection.tell(self.stream_id(), |observer, context| observer.invalid_input(context, &input));
        });
    }

    /// A message was over the limit and was dropped.
    #[inline]
    pub fn too_long(&self, limit: usize) {
        self.invalid_input(&[], format_args!("longer than {limit} bytes"));
    }

    /// The head of an HTTP request or response.
    #[inline]
    pub fn head<'a>(
        &self,
        direction: Direction,
        start: StartLine<'a>,
        fields: impl IntoIterator<Item = (&'a str, &'a [u8])>,
    ) {
        self.tell(|connection| {
            let fields: Vec<_> = fields.into_iter().collect();
            let head = Head { direction, start, fields: &fields };
            connection.tell(self.stream_id(), |observer, context| observer.head(context, &head));
        });
    }

    /// An HTTP request is refused.
    #[inline]
    pub fn refused(&self, refusal: &Refused<'_>) {
        self.tell(|connection| {
            connection.tell(self.stream_id(), |observer, context| observer.refused(context, refusal));
        });
    }

    /// An HTTP request failed, or its stream ended without the answer.
    #[inline]
    pub fn stream_failed(&self, why: &dyn fmt::Display) {
        self.tell(|connection| {
            let why = why.to_string();
            connection.tell(self.stream_id(), |observer, context| observer.stream_failed(context, &why));
        });
    }

    /// The peer broke a rule, in this message if it is known. Returns whether the observer has told of it already.
    #[inline]
    pub fn finding(&self, finding: &Finding, message: Option<&[u8]>) -> bool {
        self.tell(|connection| {
            connection.tell(self.stream_id(), |observer, context| observer.finding(context, finding, message))
        })
    }

    /// A child process wrote this to its standard error.
    #[inline]
    pub fn stderr(&self, bytes: &[u8]) {
        self.tell(|connection| {
            connection.tell(self.stream_id(), |observer, context| observer.stderr(context, bytes));
        });
    }

    /// The session over HTTP has this id from now on.
    #[inline]
    pub fn set_session(&self, id: &str) {
        if let Some(connection) = self.connection() {
            connection.negotiated.lock().session = Some(id.into());
        }
    }

    /// This revision was negotiated.
    #[inline]
    pub fn set_revision(&self, revision: Revision) {
        if let Some(connection) = self.connection() {
            connection.negotiated.lock().revision = Some(revision);
        }
    }

    /// Looks for the negotiated revision, until there is one.
    #[inline]
    pub fn negotiated(&self, revision: impl FnOnce() -> Option<Revision>) {
        if let Some(connection) = self.connection() {
            let mut negotiated = connection.negotiated.lock();
            negotiated.revision = negotiated.revision.or_else(revision);
        }
    }

    /// The connection has ended; only the first reason counts.
    #[inline]
    pub fn closed(&self, why: &dyn fmt::Display) {
        self.tell(|connection| connection.close(&why.to_string()));
    }
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed").field("connection", &self.id()).field("stream", &self.stream_id()).finish()
    }
}

impl ObservedConnection {
    fn tell<T>(
        &self,
        stream: Option<StreamId>,
        event: impl FnOnce(&dyn Observer, &EventContext<'_>) -> T,
    ) -> T {
        let Negotiated { session, revision } = self.negotiated.lock().clone();
        let context = EventContext {
            time: self.clock.now(),
            connection: self.id,
            side: self.side,
            transport: self.transport,
            peer: &self.peer,
            session: session.as_deref(),
            revision,
            stream,
        };
        event(&*self.observer, &context)
    }

    fn message(&self, stream: Option<StreamId>, direction: Direction, bytes: &[u8], event_id: Option<&str>) {
        self.tell(stream, |observer, context| match &decode(bytes, &NO_LIMITS) {
            Ok(decoded) => observer.message(context, &MessageEvent { direction, bytes, decoded, event_id }),
            Err(error) => {
                observer
                    .invalid_input(context, &InvalidInput { direction, bytes, why: &error.error.message });
            }
        });
    }

    fn sse_item(&self, stream: Option<StreamId>, direction: Direction, item: &SseItem) {
        let nothing = SseControlEvent { direction, name: None, id: None, retry: None, data: "" };
        let event = match item {
            SseItem::Event(event) => {
                let id = event.id.as_deref().filter(|_| event.has_own_id);
                let name = Some(&*event.event).filter(|name| *name != "message");
                if name.is_none() && !event.data.is_empty() {
                    return self.message(stream, direction, event.data.as_bytes(), id);
                }
                SseControlEvent { name, id, data: &event.data, ..nothing }
            }
            SseItem::Primed { id } => SseControlEvent { id: Some(id), ..nothing },
            SseItem::Retry(millis) => SseControlEvent { retry: Some(*millis), ..nothing },
            SseItem::Comment => return,
        };
        self.tell(stream, |observer, context| observer.sse_event(context, &event));
    }

    fn close(&self, why: &str) {
        if !self.closed.swap(true, Ordering::Relaxed) && self.is_wanted.load(Ordering::Relaxed) {
            self.tell(None, |observer, context| observer.closed(context, why));
        }
    }
}

impl Drop for ObservedConnection {
    fn drop(&mut self) {
        self.close("finished");
    }
}

#[cfg(test)]
mod tests {
    use refmcp_proto::engine::ExchangeId;
    use refmcp_proto::jsonrpc::Incoming;
    use refmcp_proto::time::Timestamp;

    use super::*;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<String>>);

    impl Recorder {
        fn note(&self, context: &EventContext<'_>, event: &str) {
            let EventContext { transport, peer, session, revision, stream, .. } = context;
            let place = format!("{transport} {peer} {session:?} {revision:?} {stream:?}");
            self.0.lock().push(format!("{event} | {place}"));
        }

        fn take(&self) -> Vec<String> {
            std::mem::take(&mut self.0.lock())
        }
    }

    impl Observer for Recorder {
        fn opened(&self, context: &EventContext<'_>) {
            self.note(context, "opened");
        }

        fn message(&self, context: &EventContext<'_>, message: &MessageEvent<'_>) {
            let Incoming::One(refmcp_proto::jsonrpc::Message::Request(request)) = message.decoded else {
                panic!("{message:?}")
            };
            let id = message.event_id.map(|id| format!(" of event {id}")).unwrap_or_default();
            self.note(context, &format!("{:?} {}{id}", message.direction, request.method));
        }

        fn sse_event(&self, context: &EventContext<'_>, event: &SseControlEvent<'_>) {
            let SseControlEvent { direction, name, id, retry, data } = event;
            self.note(context, &format!("{direction:?} {name:?} {id:?} {retry:?} {data:?}"));
        }

        fn stream_ended(&self, context: &EventContext<'_>, direction: Direction) {
            self.note(context, &format!("{direction:?} end"));
        }

        fn invalid_input(&self, context: &EventContext<'_>, input: &InvalidInput<'_>) {
            self.note(context, &format!("invalid {:?}: {}", String::from_utf8_lossy(input.bytes), input.why));
        }

        fn head(&self, context: &EventContext<'_>, head: &Head<'_>) {
            self.note(context, &format!("{:?} {:?} {}", head.direction, head.start, head.fields.len()));
        }

        fn closed(&self, context: &EventContext<'_>, why: &str) {
            self.note(context, &format!("closed: {why}"));
        }
    }

    fn open(recorder: &Arc<Recorder>) -> Observed {
        Observed::open(recorder.clone(), Side::Client, "http", "it", Clock::new())
    }

    #[tokio::test]
    async fn events_have_the_context_of_their_connection_and_stream() {
        let recorder = Arc::new(Recorder::default());
        let observed = open(&recorder);
        assert_eq!(recorder.take(), ["opened | http it None None None"]);
        let ping = br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let stream = observed.stream(ExchangeId(7));
        let start = StartLine::Request { method: "POST", target: "/mcp" };
        stream.head(Direction::Sent, start, [("host", &b"it"[..])]);
        stream.sent(ping);
        observed.set_session("s");
        observed.set_revision(Revision::LATEST_SESSION);
        stream.received(b"nonsense");
        observed.too_long(9);
        let revision = Revision::LATEST_SESSION;
        assert_eq!(
            recorder.take(),
            [
                "Sent Request { method: \"POST\", target: \"/mcp\" } 1 | http it None None Some(StreamId(7))"
                    .to_owned(),
                "Sent ping | http it None None Some(StreamId(7))".to_owned(),
                format!(
                    "invalid \"nonsense\": not JSON: expected null at byte 0 | \
                     http it Some(\"s\") Some({revision:?}) Some(StreamId(7))"
                ),
                format!("invalid \"\": longer than 9 bytes | http it Some(\"s\") Some({revision:?}) None"),
            ]
        );
    }

    #[tokio::test]
    async fn messages_in_events_have_their_own_ids_and_other_events_are_told() {
        let recorder = Arc::new(Recorder::default());
        let observed = open(&recorder);
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let events = format!(
            ": hello\nid: 1\nretry: 5\ndata:\n\ndata: {ping}\n\nid: 2\nevent: message\ndata: {ping}\n\n\
             event: endpoint\ndata: /messages\n\n"
        );
        observed.sse_events(Direction::Received, events.as_bytes());
        observed.sent_in_event(Some("3"), ping.as_bytes());
        observed.stream_ended(Direction::Sent);
        let seen: Vec<_> = recorder.take();
        let seen: Vec<_> = seen.iter().map(|line| line.split(" | ").next().unwrap()).collect();
        assert_eq!(
            seen,
            [
                "opened",
                "Received None None Some(5) \"\"",
                "Received None Some(\"1\") None \"\"",
                "Received ping",
                "Received ping of event 2",
                "Received Some(\"endpoint\") None None \"/messages\"",
                "Sent ping of event 3",
                "Sent end",
            ]
        );
    }

    #[tokio::test]
    async fn a_connection_is_closed_once() {
        let recorder = Arc::new(Recorder::default());
        let observed = open(&recorder);
        observed.closed(&"over");
        observed.closed(&"again");
        drop(observed);
        assert_eq!(recorder.take().len(), 2);
        let observed = open(&recorder);
        drop(observed.stream(StreamId::GET));
        drop(observed);
        assert_eq!(recorder.take()[1], "closed: finished | http it None None None");
    }

    #[tokio::test]
    async fn several_observers_see_the_same() {
        let (one, two) = (Arc::new(Recorder::default()), Arc::new(Recorder::default()));
        let all: Vec<Arc<dyn Observer>> = vec![one.clone(), two.clone()];
        let observed = Observed::open(Arc::new(all), Side::Server, "stdio", "", Clock::new());
        observed.received(b"?");
        drop(observed);
        let seen = one.take();
        assert_eq!((seen.len(), &seen), (3, &two.take()));
    }

    #[test]
    fn without_an_observer_nothing_is_formatted() {
        struct Unprintable;
        impl fmt::Display for Unprintable {
            fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
                panic!("formatted")
            }
        }
        let observed = Observed::default();
        observed.invalid_input(b"", Unprintable);
        observed.closed(&Unprintable);
        assert_eq!(size_of::<Observed>(), 32, "a pointer and its lock, and two numbers");
    }

    /// Wants to see some connections, and so many events of each.
    struct Curious {
        events: AtomicU64,
        wants: u64,
    }

    impl Observer for Curious {
        fn wants_connection(&self, _: Timestamp) -> bool {
            self.wants > 0
        }

        fn wants_more(&self, _: ConnectionId) -> bool {
            self.events.load(Ordering::Relaxed) < self.wants
        }

        fn message(&self, _: &EventContext<'_>, _: &MessageEvent<'_>) {
            self.events.fetch_add(1, Ordering::Relaxed);
        }

        fn closed(&self, _: &EventContext<'_>, _: &str) {
            panic!("it had left before");
        }
    }

    fn seen_by(wants: u64) -> (Arc<Curious>, Observed) {
        let curious = Arc::new(Curious { events: AtomicU64::new(0), wants });
        let observed = Observed::open(curious.clone(), Side::Server, "stdio", "", Clock::new());
        (curious, observed)
    }

    #[tokio::test]
    async fn an_observer_that_has_seen_enough_is_told_nothing_more() {
        let (curious, observed) = seen_by(2);
        let clone = observed.clone();
        for _ in 0..5 {
            observed.received(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        }
        assert_eq!(curious.events.load(Ordering::Relaxed), 2);
        assert!(!observed.is_observed() && observed.id() == clone.id() && clone.id().is_some());
        clone.received(b"{}");
        // What was kept of the connection is freed with the last clone that was used.
        clone.closed(&"");
        assert_eq!(Arc::strong_count(&curious), 1);
    }

    #[tokio::test]
    async fn a_connection_that_is_not_wanted_is_not_observed() {
        let (curious, observed) = seen_by(0);
        observed.received(br#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
        assert_eq!(curious.events.load(Ordering::Relaxed), 0);
        assert!(observed.id().is_none() && Arc::strong_count(&curious) == 1);
    }

    #[tokio::test]
    async fn a_silent_connection_is_released_when_it_is_no_longer_wanted() {
        let (curious, observed) = seen_by(1);
        curious.events.store(1, Ordering::Relaxed);
        observed.release_unwanted();
        assert_eq!(Arc::strong_count(&curious), 1);
    }
}

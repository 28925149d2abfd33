//! The fixture of the cases: makes backplanes, and measures time in ticks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_server::backplane::{
    AppendOutcome, Backplane, BackplaneSettings, CreateOutcome, NewSession, OpenStreamOutcome, ReadFrom,
    ReadOutcome, SessionId, StreamEventKind, StreamKey, StreamReader, WriterEpoch,
};

/// Makes backplanes for the cases.
pub struct BackplaneFixture {
    make: Box<Make>,
    tick: Duration,
}

type Make = dyn Fn(BackplaneSettings) -> Pin<Box<dyn Future<Output = Replicas> + Send>> + Send + Sync;

/// Two handles of one empty state of their own. An implementation in memory gives the same one twice.
#[derive(Debug, Clone)]
pub struct Replicas {
    /// One.
    pub one: Arc<dyn Backplane>,
    /// The other.
    pub other: Arc<dyn Backplane>,
}

impl BackplaneFixture {
    /// A fixture on which a tick takes so long, and that makes what it tests in this way.
    pub fn new<F>(tick: Duration, make: impl Fn(BackplaneSettings) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Replicas> + Send + 'static,
    {
        Self { make: Box::new(move |settings| Box::pin(make(settings))), tick }
    }

    /// So many ticks.
    pub(crate) fn ticks(&self, count: u32) -> Duration {
        self.tick * count
    }

    /// Lets so many ticks pass.
    pub(crate) async fn pass(&self, ticks: u32) {
        tokio::time::sleep(self.ticks(ticks)).await;
    }

    /// What comes soon; a case that waits for ever fails instead.
    pub(crate) async fn soon<T>(&self, what: &str, future: impl Future<Output = T>) -> T {
        match tokio::time::timeout(self.ticks(50), future).await {
            Ok(value) => value,
            Err(_) => panic!("waited in vain for {what}"),
        }
    }

    /// Waits a while for what must not come, and gives the waiting up.
    pub(crate) async fn never<T: fmt::Debug>(&self, what: &str, future: impl Future<Output = T>) {
        if let Ok(value) = tokio::time::timeout(self.ticks(3), future).await {
            panic!("{what}: {value:?}");
        }
    }

    /// An empty state.
    pub(crate) async fn replicas(&self, settings: BackplaneSettings) -> Replicas {
        (self.make)(settings).await
    }

    /// A state with one session, which does not end by itself.
    pub(crate) async fn session(&self, settings: BackplaneSettings) -> (Replicas, SessionId) {
        let replicas = self.replicas(settings).await;
        let session = self.open(&replicas, "a").await;
        (replicas, session)
    }

    /// Another session.
    pub(crate) async fn open(&self, replicas: &Replicas, name: &str) -> SessionId {
        let id = SessionId::new(name);
        let created = replicas.one.create_session(&id, NewSession::default(), self.ticks(1000)).await;
        assert_eq!(created.unwrap(), CreateOutcome::Created);
        id
    }
}

impl fmt::Debug for BackplaneFixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackplaneFixture").field("tick", &self.tick).finish_non_exhaustive()
    }
}

/// An id.
pub(crate) fn request(number: i64) -> RequestId {
    RequestId::Integer(number)
}

/// A text as bytes.
pub(crate) fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// A kilobyte, which says which one it is.
pub(crate) fn kilobyte(number: u64) -> Bytes {
    format!("{number:01000}").into()
}

/// The writer of a stream.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    pub(crate) backplane: Arc<dyn Backplane>,
    pub(crate) stream: StreamKey,
    pub(crate) epoch: WriterEpoch,
}

impl Writer {
    /// Opens a stream for a request.
    pub(crate) async fn open(backplane: &Arc<dyn Backplane>, session: &SessionId, id: i64) -> Self {
        match backplane.open_stream(session, Some(request(id)), WriterEpoch(1)).await.unwrap() {
            OpenStreamOutcome::Opened(number) => {
                let stream = StreamKey::new(session.clone(), number);
                Self { backplane: backplane.clone(), stream, epoch: WriterEpoch(1) }
            }
            refused => panic!("no stream: {refused:?}"),
        }
    }

    pub(crate) async fn append(&self, seq: u64, event: Bytes, kind: StreamEventKind) -> AppendOutcome {
        self.backplane.append(&self.stream, self.epoch, seq, event, kind).await.unwrap()
    }

    /// Adds an event that is its number.
    pub(crate) async fn event(&self, seq: u64) -> AppendOutcome {
        self.append(seq, text(&seq.to_string()), StreamEventKind::Event).await
    }

    /// Adds the last event, which is its number.
    pub(crate) async fn end(&self, seq: u64) -> AppendOutcome {
        self.append(seq, text(&seq.to_string()), StreamEventKind::Final).await
    }

    /// Adds that many events, each its number.
    pub(crate) async fn events(&self, count: u64) {
        for seq in 1..=count {
            assert_eq!(self.event(seq).await, AppendOutcome::Stored);
        }
    }

    /// Forgets the stream, at this replica.
    pub(crate) async fn forget(&self, backplane: &Arc<dyn Backplane>) -> bool {
        backplane.forget(&self.stream, self.epoch).await.unwrap()
    }
}

/// Begins to read.
pub(crate) async fn reader(
    backplane: &Arc<dyn Backplane>,
    stream: &StreamKey,
    from: ReadFrom,
) -> StreamReader {
    let reading = StreamReader::begin(backplane.clone(), stream.clone(), from).await.unwrap();
    reading.unwrap_or_else(|refused| panic!("cannot read: {refused:?}"))
}

/// What there is to read now: the events, and what the reader is told after them.
pub(crate) async fn drain(reading: &mut StreamReader) -> (Vec<(u64, Bytes)>, ReadOutcome) {
    let mut events = Vec::new();
    loop {
        match reading.try_next().await.unwrap() {
            ReadOutcome::Events(batch) => {
                assert!(!batch.is_empty(), "no events are Nothing");
                events.extend(batch.into_iter().map(|event| (event.seq, event.bytes)));
            }
            other => return (events, other),
        }
    }
}

/// The numbers of the events there are to read now, and what the reader is told after them.
pub(crate) async fn numbers(reading: &mut StreamReader) -> (Vec<u64>, ReadOutcome) {
    let (events, end) = drain(reading).await;
    (events.into_iter().map(|(seq, _)| seq).collect(), end)
}

//! The state that replicas of an HTTP server share: sessions, parked calls, and the events of streams (an event store).
//!
//! A replica is a process that serves clients. Several that share one [`Backplane`] are one server: a client may send
//! each request to another one, and resume a stream there. A single process keeps the state in [`MemoryBackplane`],
//! which is also the model of other implementations (`refmcp_testkit::backplane`).
//!
//! Every implementation guarantees:
//!
//! - **Append, then send.** An event is stored under its number before it is read; the numbers of a stream begin at 1 and
//!   have no gaps.
//! - **Exactly once, or an error.** A reader after event `k` gets `k+1`, `k+2` and so on, or the error that they are gone.
//! - **One writer.** The engine that opened a stream writes it, until another one claims its call. One that was taken for
//!   dead and wakes up again changes nothing: its appends are fenced.
//! - **One end.** A stream ends with its final event or by cancellation, whichever comes first, never both.
//! - **Idempotent changes.** A caller that does not know whether a change was made makes it again: events have numbers,
//!   posts, calls and server requests have keys.
//! - **Everything has a limit** ([`BackplaneSettings`]), and reaching one has an outcome of its own.
//! - **Cancel safety.** Dropping a future that waits loses nothing. Methods that wait may return early.
//!
//! | file | what it is |
//! |---|---|
//! | `session`, `stream` | sessions with their limits, streams with their readers |
//! | `task` | tasks, which belong to no session |
//! | `outcome` | the outcomes of methods |
//! | `memory` | the state of one process |
//!
#![doc = include_str!("example.md")]

mod memory;
mod outcome;
mod session;
mod stream;
mod task;

use std::error::Error;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;

pub use memory::MemoryBackplane;
pub use outcome::{
    AppendOutcome, AttachOutcome, ClaimedCall, CreateOutcome, DeliverOutcome, ExpectOutcome, OnceOutcome,
    OpenStreamOutcome, ParkOutcome, PostOutcome, ReadOutcome, ResponseOutcome, TopicChanges, UpdateOutcome,
    WriterStop,
};
pub use session::{BackplaneSettings, NewSession, SessionId, SessionRecord};
pub use stream::{
    Event, PostKey, ReadFrom, ReaderToken, StreamEventKind, StreamKey, StreamNumber, StreamReader,
    WriterEpoch,
};
pub use task::{CreateTaskOutcome, NewTask, TaskEntry, TaskRecord, UpdateTaskOutcome};

/// What a method of a backplane returns.
pub type Result<T, E = Unavailable> = std::result::Result<T, E>;

/// The state cannot be reached now, and why. Whether the change was made is unknown; making it again is safe.
#[derive(Debug, thiserror::Error)]
#[error("the shared state cannot be reached: {0}")]
pub struct Unavailable(#[source] Box<dyn Error + Send + Sync>);

impl Unavailable {
    /// For this reason.
    pub fn new(reason: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(reason.into())
    }
}

/// The shared state. See the [module](self) for what holds of it.
///
/// Sessions, and all that belongs to them, are found by the session's id. One that was closed, has not been used for
/// its idle time or never was is *unknown*, and so is everything in it.
///
/// Every method that names a session is use of it, and one that waits is use for as long as it waits: a session does
/// not end while its client reads or a call in it runs. Only [`post`](Self::post) and [`detach`](Self::detach) are
/// none. Servers tell all sessions of their changes, and that must not keep those open whose clients have left.
#[async_trait]
pub trait Backplane: fmt::Debug + Send + Sync {
    /// Opens a session under an unguessable id. It ends when it is not used for the idle time.
    async fn create_session(
        &self,
        id: &SessionId,
        session: NewSession,
        idle: Duration,
    ) -> Result<CreateOutcome>;

    /// The session of this id.
    async fn session(&self, id: &SessionId) -> Result<Option<SessionRecord>>;

    /// Replaces the facts of a session, if it still has the version that the caller has seen.
    async fn update_session(&self, id: &SessionId, version: u64, facts: Bytes) -> Result<UpdateOutcome>;

    /// Ends a session with its streams, server requests and parked calls, and wakes all that wait for them. `false` when
    /// there was none.
    async fn close_session(&self, id: &SessionId) -> Result<bool>;

    /// Opens a stream for what is said about a request, and counts the request as running until the stream ends or is
    /// forgotten.
    ///
    /// A call whose messages go elsewhere (to the GET stream, into a batch) can have a stream all the same: it is
    /// then what [`cancel`](Self::cancel) finds.
    async fn open_stream(
        &self,
        session: &SessionId,
        request: Option<RequestId>,
        writer: WriterEpoch,
    ) -> Result<OpenStreamOutcome>;

    /// Adds an event to a stream, for its writer: the one that opened it, or that has [claimed](Self::claim) its call since.
    /// The number of the event must be the next one; the same number again is a retry and changes nothing.
    ///
    /// The GET stream has no single writer: see [`post`](Self::post).
    async fn append(
        &self,
        stream: &StreamKey,
        writer: WriterEpoch,
        seq: u64,
        event: Bytes,
        kind: StreamEventKind,
    ) -> Result<AppendOutcome>;

    /// Adds an event to the GET stream. Any replica may, so the backplane numbers these events itself, and a
    /// retry is known by its key: for as long as the event is kept, the same key is the same event.
    async fn post(&self, session: &SessionId, key: PostKey, event: Bytes) -> Result<PostOutcome>;

    /// Forgets a stream that is not needed, since the response goes another way.
    ///
    /// `true` at most once, and then the answer is the caller's to give. `false` when it is not: the request was
    /// cancelled, the stream has ended, has another writer or is unknown. A caller that tries again after
    /// [`Unavailable`] may be told `false` for what it did itself: an answer can be lost so, but never given twice.
    async fn forget(&self, stream: &StreamKey, writer: WriterEpoch) -> Result<bool>;

    /// Waits until the writer should stop.
    async fn writer_stopped(&self, stream: &StreamKey) -> Result<WriterStop>;

    /// Cancels whatever runs under this id of the client's: clients repeat ids, so that may be several. Their streams
    /// end here and now, without a final event. Tells how many.
    async fn cancel(&self, session: &SessionId, request: &RequestId) -> Result<usize>;

    /// Becomes the reader of a stream, in place of the current one.
    async fn attach(&self, stream: &StreamKey, from: ReadFrom) -> Result<AttachOutcome>;

    /// What follows this event, without waiting. There may be more than is given at once.
    async fn read(&self, stream: &StreamKey, reader: ReaderToken, after: u64) -> Result<ReadOutcome>;

    /// Waits until [`read`](Self::read) may have another outcome than [`ReadOutcome::Nothing`], if it has not already.
    async fn readable(&self, stream: &StreamKey, reader: ReaderToken, after: u64) -> Result<()>;

    /// Detaches this reader of a stream if it still is the reader, or whichever one it has; the stream goes on, and can be
    /// attached to again.
    async fn detach(&self, stream: &StreamKey, reader: Option<ReaderToken>) -> Result<()>;

    /// Registers a request of the server whose response is expected within this time. Idempotent.
    async fn expect_response(
        &self,
        session: &SessionId,
        request: &RequestId,
        within: Duration,
    ) -> Result<ExpectOutcome>;

    /// Delivers the client's response, at whichever replica it arrived. The first one counts.
    async fn deliver_response(
        &self,
        session: &SessionId,
        request: &RequestId,
        body: Bytes,
    ) -> Result<DeliverOutcome>;

    /// Waits for the response. Every caller gets it, for as long as it is remembered: the one that expects it may be gone.
    /// Once it was given it may make room for another.
    async fn wait_response(&self, session: &SessionId, request: &RequestId) -> Result<ResponseOutcome>;

    /// Keeps a detached call, until it is claimed, it expires or the session ends.
    ///
    /// A key is good for one call: parking again under it changes nothing, also after the call was claimed, so that a
    /// retry does not run a call twice.
    async fn park(&self, session: &SessionId, call: &str, state: Bytes, ttl: Duration)
    -> Result<ParkOutcome>;

    /// Takes a parked call, to go on with it as the engine of this epoch. Of all who try, one gets it; the same one that
    /// tries again gets it again.
    ///
    /// Where the call has a stream, the claimant becomes its writer in the same step, and what an earlier writer still
    /// appends is [fenced](AppendOutcome::Fenced). A call whose stream has ended is not given.
    async fn claim(
        &self,
        session: &SessionId,
        call: &str,
        claimant: WriterEpoch,
        stream: Option<StreamNumber>,
    ) -> Result<Option<ClaimedCall>>;

    /// The keys of the calls that are parked in a session and not claimed, in no order.
    async fn parked_keys(&self, session: &SessionId) -> Result<Vec<Box<str>>>;

    /// Keeps a task under an unguessable id, until its time is over. It belongs to no session, and outlives all.
    async fn create_task(&self, task: NewTask) -> Result<CreateTaskOutcome>;

    /// The task of this id.
    async fn task(&self, id: &str) -> Result<Option<TaskRecord>>;

    /// The call of a task; `None` where there is no such task, or its call is not needed any more.
    async fn task_call(&self, id: &str) -> Result<Option<Bytes>>;

    /// Replaces the state of a task, and its call where one is given, if the task still has the version that the caller has
    /// seen. Without bytes, its call is not needed any more.
    async fn update_task(
        &self,
        id: &str,
        version: u64,
        state: Bytes,
        call: Option<Bytes>,
    ) -> Result<UpdateTaskOutcome>;

    /// Waits until a task has another version than this, or is gone.
    async fn task_changed(&self, id: &str, version: u64) -> Result<()>;

    /// The tasks of an owner behind this position, in the order in which they were created; at most so many.
    async fn tasks(&self, owner: &str, after: u64, most: usize) -> Result<Vec<TaskEntry>>;

    /// Says that this replica is there, for so long from now.
    async fn renew_replica(&self, replica: &str, ttl: Duration) -> Result<()>;

    /// Whether a replica is there, by what it has said.
    async fn is_replica_there(&self, replica: &str) -> Result<bool>;

    /// Says that something has changed; gives the topic's new generation.
    ///
    /// All topics share one count, so the generation of a topic rises with each change, by one or by more.
    async fn bump(&self, topic: &str) -> Result<u64>;

    /// The newest generation of all: where to begin with [`changes`](Self::changes).
    async fn latest(&self) -> Result<u64>;

    /// Waits for changes after a generation. Each topic that has changed is named once, however often it has.
    async fn changes(&self, after: u64) -> Result<TopicChanges>;

    /// Uses up a key that is good for one time. It is remembered for so long.
    async fn once(&self, key: [u8; 32], ttl: Duration) -> Result<OnceOutcome>;

    /// Gives back the memory of what is over. Nothing is ever *answered* from what is over; this is for its owner to
    /// call now and then.
    async fn sweep(&self) -> Result<()>;
}

//! The state of one process: the default, and the model that other implementations are compared with.
//!
//! Nothing runs in the background. What has expired is found at the next access, and freed then or by [`Backplane::sweep`]. The clock is tokio's, so tests can stop it and move it on.
//!
//! Each session has a lock of its own, held for a few instructions and never while waiting. All sessions share the
//! count of bytes; when it is full, the session that keeps most makes room.
//!
//! Keys that are looked up with every event have a fast hash: clients cannot choose them.

mod budget;
mod log;
mod replicas;
mod session;
mod slots;
mod store;
mod tasks;
#[cfg(test)]
mod tests;
mod topics;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_transport::MemoryBudget;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;
use tokio::time::{Instant, timeout_at};

use super::{
    AppendOutcome, AttachOutcome, Backplane, BackplaneSettings, ClaimedCall, CreateOutcome,
    CreateTaskOutcome, DeliverOutcome, ExpectOutcome, NewSession, NewTask, OnceOutcome, OpenStreamOutcome,
    ParkOutcome, PostKey, PostOutcome, ReadFrom, ReadOutcome, ReaderToken, ResponseOutcome, Result,
    SessionId, SessionRecord, StreamEventKind, StreamKey, StreamNumber, TaskEntry, TaskRecord, TopicChanges,
    UpdateOutcome, UpdateTaskOutcome, WriterEpoch, WriterStop,
};
use replicas::LiveReplicas;
use slots::{Added, Slot};
use store::Sessions;
use tasks::Tasks;
use topics::{Keys, Topics};

/// The state of one process.
///
/// No future of its methods is ever pending, except of those that wait: [`writer_stopped`](Backplane::writer_stopped),
/// [`readable`](Backplane::readable), [`wait_response`](Backplane::wait_response), [`task_changed`](Backplane::task_changed) and
/// [`changes`](Backplane::changes).
pub struct MemoryBackplane {
    settings: Arc<BackplaneSettings>,
    sessions: Sessions,
    tasks: Mutex<Tasks>,
    replicas: Mutex<LiveReplicas>,
    topics: Mutex<Topics>,
    keys: Mutex<Keys>,
}

impl MemoryBackplane {
    /// An empty one.
    pub fn new(settings: BackplaneSettings) -> Self {
        Self::with_budget(settings, &MemoryBudget::new(usize::MAX))
    }

    /// The same; what it keeps counts in this budget.
    pub fn with_budget(settings: BackplaneSettings, memory: &MemoryBudget) -> Self {
        let settings = Arc::new(settings);
        Self {
            sessions: Sessions::new(settings.clone(), memory),
            tasks: Mutex::new(Tasks::new(settings.clone(), memory)),
            settings,
            replicas: Mutex::default(),
            topics: Mutex::default(),
            keys: Mutex::default(),
        }
    }

    /// How many sessions are kept; those whose time is over count until they are found out.
    pub fn session_count(&self) -> usize {
        self.sessions.count()
    }

    /// How many tasks are kept, and their bytes.
    pub fn kept_tasks(&self) -> (usize, usize) {
        self.tasks.lock().kept()
    }

    /// How many bytes are kept for all sessions.
    pub fn bytes(&self) -> usize {
        self.sessions.bytes()
    }
}

impl Default for MemoryBackplane {
    fn default() -> Self {
        Self::new(BackplaneSettings::default())
    }
}

impl fmt::Debug for MemoryBackplane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryBackplane")
            .field("sessions", &self.session_count())
            .field("bytes", &self.bytes())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Backplane for MemoryBackplane {
    async fn create_session(
        &self,
        id: &SessionId,
        session: NewSession,
        idle: Duration,
    ) -> Result<CreateOutcome> {
        Ok(self.sessions.create(id, session, idle))
    }

    async fn session(&self, id: &SessionId) -> Result<Option<SessionRecord>> {
        Ok(self.sessions.used(id, |session, _| session.record()))
    }

    async fn update_session(&self, id: &SessionId, version: u64, facts: Bytes) -> Result<UpdateOutcome> {
        let updated =
            self.sessions.with_room(id, UpdateOutcome::Full, |session, _| session.update(version, &facts));
        Ok(updated.unwrap_or(UpdateOutcome::Unknown))
    }

    async fn close_session(&self, id: &SessionId) -> Result<bool> {
        Ok(self.sessions.close(id))
    }

    async fn open_stream(
        &self,
        session: &SessionId,
        request: Option<RequestId>,
        writer: WriterEpoch,
    ) -> Result<OpenStreamOutcome> {
        let opened = self.sessions.with_room(session, OpenStreamOutcome::Full, |session, _| {
            session.open_stream(request.as_ref(), writer)
        });
        Ok(opened.unwrap_or(OpenStreamOutcome::Unknown))
    }

    async fn append(
        &self,
        stream: &StreamKey,
        writer: WriterEpoch,
        seq: u64,
        event: Bytes,
        kind: StreamEventKind,
    ) -> Result<AppendOutcome> {
        let appended = self.sessions.with_room(&stream.session, AppendOutcome::Full, |session, now| {
            session.append(stream.number, writer, seq, &event, kind, now)
        });
        Ok(appended.unwrap_or(AppendOutcome::Unknown))
    }

    async fn post(&self, session: &SessionId, key: PostKey, event: Bytes) -> Result<PostOutcome> {
        let posted = self
            .sessions
            .with_room_unused(session, PostOutcome::Full, |session, now| session.post(key, &event, now));
        Ok(posted.unwrap_or(PostOutcome::Unknown))
    }

    async fn forget(&self, stream: &StreamKey, writer: WriterEpoch) -> Result<bool> {
        let forgotten =
            self.sessions.used(&stream.session, |session, _| session.forget(stream.number, writer));
        Ok(forgotten.unwrap_or(false))
    }

    async fn writer_stopped(&self, stream: &StreamKey) -> Result<WriterStop> {
        loop {
            let found = self.sessions.awaited(&stream.session, |session, _| {
                let Some(log) = session.stream(stream.number) else { return Ok(WriterStop::Unknown) };
                log.stop().ok_or_else(|| hear(&log.changed))
            });
            match found.unwrap_or(Ok(WriterStop::Unknown)) {
                Ok(stop) => return Ok(stop),
                Err((news, _waiting)) => news.await,
            }
        }
    }

    async fn cancel(&self, session: &SessionId, request: &RequestId) -> Result<usize> {
        Ok(self.sessions.used(session, |session, now| session.cancel(request, now)).unwrap_or(0))
    }

    async fn attach(&self, stream: &StreamKey, from: ReadFrom) -> Result<AttachOutcome> {
        let attached = self.sessions.used(&stream.session, |session, _| session.attach(stream.number, from));
        Ok(attached.unwrap_or(AttachOutcome::Unknown))
    }

    async fn read(&self, stream: &StreamKey, reader: ReaderToken, after: u64) -> Result<ReadOutcome> {
        let read =
            self.sessions.used(&stream.session, |session, _| session.read(stream.number, reader, after));
        Ok(read.unwrap_or(ReadOutcome::Unknown))
    }

    async fn readable(&self, stream: &StreamKey, reader: ReaderToken, after: u64) -> Result<()> {
        // Kept in no variable: there are many readers, and each would wait with the room for it.
        let Some(Err((news, _waiting))) = self.sessions.awaited(&stream.session, |session, _| {
            let log = session.stream(stream.number).filter(|log| log.is_quiet(reader, after));
            log.map_or(Ok(()), |log| Err(hear(&log.changed)))
        }) else {
            return Ok(());
        };
        news.await;
        Ok(())
    }

    async fn detach(&self, stream: &StreamKey, reader: Option<ReaderToken>) -> Result<()> {
        self.sessions.found(&stream.session, |session, _| session.detach(stream.number, reader));
        Ok(())
    }

    async fn expect_response(
        &self,
        session: &SessionId,
        request: &RequestId,
        within: Duration,
    ) -> Result<ExpectOutcome> {
        let expected = self.sessions.with_room(session, ExpectOutcome::Full, |session, now| {
            let deadline = later(now, within);
            let slot = Slot::awaited(deadline, later(deadline, self.settings.late));
            let most = self.settings.pending_requests;
            let added = session.add_slot(|session| &mut session.responses, request, slot, most, now)?;
            Ok(if added == Added::Full { ExpectOutcome::Full } else { ExpectOutcome::Expected })
        });
        Ok(expected.unwrap_or(ExpectOutcome::Unknown))
    }

    async fn deliver_response(
        &self,
        session: &SessionId,
        request: &RequestId,
        body: Bytes,
    ) -> Result<DeliverOutcome> {
        let delivered = self.sessions.with_room(session, DeliverOutcome::Full, |session, now| match session
            .responses
            .is_awaited(request, now)
        {
            None => Ok(DeliverOutcome::Unknown),
            Some(false) => Ok(DeliverOutcome::Late),
            Some(true) => {
                session.take(body.len())?;
                session.responses.fill(request, body.clone());
                Ok(DeliverOutcome::Taken)
            }
        });
        Ok(delivered.unwrap_or(DeliverOutcome::Unknown))
    }

    async fn wait_response(&self, session: &SessionId, request: &RequestId) -> Result<ResponseOutcome> {
        loop {
            let found = self.sessions.awaited(session, |session, now| {
                if let Some(body) = session.responses.read(request, now) {
                    return Ok(ResponseOutcome::Body(body));
                }
                match session.responses.next_fill(request, now) {
                    None => Ok(ResponseOutcome::Unknown),
                    Some((deadline, _)) if now >= deadline => Ok(ResponseOutcome::Overdue),
                    Some((deadline, news)) => Err((deadline, hear(&news))),
                }
            });
            match found.unwrap_or(Ok(ResponseOutcome::Unknown)) {
                Ok(answered) => return Ok(answered),
                Err(((deadline, news), _waiting)) => {
                    // Which of the two it was is found out by looking again.
                    let _ = timeout_at(deadline, news).await;
                }
            }
        }
    }

    async fn park(
        &self,
        session: &SessionId,
        call: &str,
        state: Bytes,
        ttl: Duration,
    ) -> Result<ParkOutcome> {
        let parked = self.sessions.with_room(session, ParkOutcome::Full, |session, now| {
            let slot = Slot::filled(state.clone(), later(now, ttl));
            let most = self.settings.parked_calls;
            let added = session.add_slot(|session| &mut session.parked, &call.into(), slot, most, now)?;
            Ok(match added {
                Added::New => ParkOutcome::Parked,
                Added::Known => ParkOutcome::Already,
                Added::Full => ParkOutcome::Full,
            })
        });
        Ok(parked.unwrap_or(ParkOutcome::Unknown))
    }

    async fn claim(
        &self,
        session: &SessionId,
        call: &str,
        claimant: WriterEpoch,
        stream: Option<StreamNumber>,
    ) -> Result<Option<ClaimedCall>> {
        let claimed =
            self.sessions.used(session, |session, now| session.claim(&call.into(), claimant, stream, now));
        Ok(claimed.flatten())
    }

    async fn parked_keys(&self, session: &SessionId) -> Result<Vec<Box<str>>> {
        let keys = self.sessions.used(session, |session, now| session.parked.filled_keys(now));
        Ok(keys.unwrap_or_default())
    }

    async fn create_task(&self, task: NewTask) -> Result<CreateTaskOutcome> {
        Ok(self.tasks.lock().create(task, Instant::now()))
    }

    async fn task(&self, id: &str) -> Result<Option<TaskRecord>> {
        Ok(self.tasks.lock().record(id, Instant::now()))
    }

    async fn task_call(&self, id: &str) -> Result<Option<Bytes>> {
        Ok(self.tasks.lock().call(id, Instant::now()))
    }

    async fn update_task(
        &self,
        id: &str,
        version: u64,
        state: Bytes,
        call: Option<Bytes>,
    ) -> Result<UpdateTaskOutcome> {
        Ok(self.tasks.lock().update(id, version, state, call, Instant::now()))
    }

    async fn task_changed(&self, id: &str, version: u64) -> Result<()> {
        // A task that expires changes too.
        let awaited = self.tasks.lock().next_change(id, version, Instant::now());
        match awaited {
            None => {}
            Some((news, None)) => news.await,
            // Which of the two it was is found out by looking again.
            Some((news, Some(expires))) => drop(timeout_at(expires, news).await),
        }
        Ok(())
    }

    async fn tasks(&self, owner: &str, after: u64, most: usize) -> Result<Vec<TaskEntry>> {
        Ok(self.tasks.lock().of_owner(owner, after, most, Instant::now()))
    }

    async fn renew_replica(&self, replica: &str, ttl: Duration) -> Result<()> {
        self.replicas.lock().renew(replica, ttl, Instant::now());
        Ok(())
    }

    async fn is_replica_there(&self, replica: &str) -> Result<bool> {
        Ok(self.replicas.lock().is_there(replica, Instant::now()))
    }

    async fn bump(&self, topic: &str) -> Result<u64> {
        Ok(self.topics.lock().bump(topic, self.settings.topics))
    }

    async fn latest(&self) -> Result<u64> {
        Ok(self.topics.lock().latest())
    }

    async fn changes(&self, after: u64) -> Result<TopicChanges> {
        loop {
            let news = {
                let topics = self.topics.lock();
                if let Some(changes) = topics.changes(after) {
                    return Ok(changes);
                }
                hear(&topics.news)
            };
            news.await;
        }
    }

    async fn once(&self, key: [u8; 32], ttl: Duration) -> Result<OnceOutcome> {
        Ok(self.keys.lock().once(key, ttl, self.settings.keys, Instant::now()))
    }

    async fn sweep(&self) -> Result<()> {
        self.sessions.sweep();
        self.tasks.lock().sweep(Instant::now());
        self.keys.lock().sweep(Instant::now());
        Ok(())
    }
}

/// A future of the next notification, from now on. Called under the lock that notifiers hold.
fn hear(news: &Arc<Notify>) -> OwnedNotified {
    news.clone().notified_owned()
}

/// A time from now on; so late a one that it makes no difference when there is none.
fn later(now: Instant, duration: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
    now + duration.min(YEAR)
}

//! A backplane that one replica cannot always reach: methods fail or are held, as a test says.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_server::backplane::*;
use refmcp_testkit::paused::real_pause;
use tokio::sync::Notify;

/// One replica's way to the shared state.
#[derive(Debug, Default)]
pub(crate) struct FaultyBackplane {
    inner: Arc<MemoryBackplane>,
    methods: Mutex<HashMap<&'static str, Method>>,
    released: Notify,
}

#[derive(Debug, Default)]
struct Method {
    called: usize,
    /// How many of the next calls pass before others fail.
    passes: usize,
    /// How many of the calls after that fail.
    fails: usize,
    is_held: bool,
}

impl FaultyBackplane {
    pub(crate) fn new(inner: Arc<MemoryBackplane>) -> Arc<Self> {
        Arc::new(Self { inner, ..Self::default() })
    }

    /// The next so many calls of a method fail.
    pub(crate) fn fail(&self, method: &'static str, count: usize) {
        self.fail_after(method, 0, count);
    }

    /// The next so many calls of a method pass, and so many after them fail.
    pub(crate) fn fail_after(&self, method: &'static str, passes: usize, fails: usize) {
        let mut methods = self.methods.lock();
        let method = methods.entry(method).or_default();
        (method.passes, method.fails) = (passes, fails);
    }

    /// Calls of a method wait until it is released.
    pub(crate) fn hold(&self, method: &'static str) {
        self.methods.lock().entry(method).or_default().is_held = true;
    }

    pub(crate) fn release(&self, method: &'static str) {
        self.methods.lock().entry(method).or_default().is_held = false;
        self.released.notify_waiters();
    }

    /// How often a method was called.
    pub(crate) fn called(&self, method: &'static str) -> usize {
        self.methods.lock().entry(method).or_default().called
    }

    /// Waits until a method was called so often.
    pub(crate) async fn until_called(&self, method: &'static str, count: usize) {
        for _ in 0..5000 {
            if self.called(method) >= count {
                return;
            }
            real_pause().await;
        }
        panic!("{method} was called {} times", self.called(method));
    }

    async fn pass(&self, method: &'static str) -> Result<()> {
        self.methods.lock().entry(method).or_default().called += 1;
        loop {
            let mut released = std::pin::pin!(self.released.notified());
            released.as_mut().enable();
            {
                let mut methods = self.methods.lock();
                let method = methods.entry(method).or_default();
                if !method.is_held {
                    if method.passes > 0 {
                        method.passes -= 1;
                        return Ok(());
                    }
                    let fails = method.fails > 0;
                    method.fails = method.fails.saturating_sub(1);
                    return if fails { Err(Unavailable::new("it is unplugged")) } else { Ok(()) };
                }
            }
            released.await;
        }
    }
}

#[async_trait]
impl Backplane for FaultyBackplane {
    async fn create_session(
        &self,
        id: &SessionId,
        session: NewSession,
        idle: Duration,
    ) -> Result<CreateOutcome> {
        self.pass("create_session").await?;
        self.inner.create_session(id, session, idle).await
    }

    async fn session(&self, id: &SessionId) -> Result<Option<SessionRecord>> {
        self.pass("session").await?;
        self.inner.session(id).await
    }

    async fn update_session(&self, id: &SessionId, version: u64, facts: Bytes) -> Result<UpdateOutcome> {
        self.pass("update_session").await?;
        self.inner.update_session(id, version, facts).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<bool> {
        self.pass("close_session").await?;
        self.inner.close_session(id).await
    }

    async fn open_stream(
        &self,
        session: &SessionId,
        request: Option<RequestId>,
        writer: WriterEpoch,
    ) -> Result<OpenStreamOutcome> {
        self.pass("open_stream").await?;
        self.inner.open_stream(session, request, writer).await
    }

    async fn append(
        &self,
        stream: &StreamKey,
        writer: WriterEpoch,
        seq: u64,
        event: Bytes,
        kind: StreamEventKind,
    ) -> Result<AppendOutcome> {
        self.pass("append").await?;
        self.inner.append(stream, writer, seq, event, kind).await
    }

    async fn post(&self, session: &SessionId, key: PostKey, event: Bytes) -> Result<PostOutcome> {
        self.pass("post").await?;
        self.inner.post(session, key, event).await
    }

    async fn forget(&self, stream: &StreamKey, writer: WriterEpoch) -> Result<bool> {
        self.pass("forget").await?;
        self.inner.forget(stream, writer).await
    }

    async fn writer_stopped(&self, stream: &StreamKey) -> Result<WriterStop> {
        self.pass("writer_stopped").await?;
        self.inner.writer_stopped(stream).await
    }

    async fn cancel(&self, session: &SessionId, request: &RequestId) -> Result<usize> {
        self.pass("cancel").await?;
        self.inner.cancel(session, request).await
    }

    async fn attach(&self, stream: &StreamKey, from: ReadFrom) -> Result<AttachOutcome> {
        self.pass("attach").await?;
        self.inner.attach(stream, from).await
    }

    async fn read(&self, stream: &StreamKey, reader: ReaderToken, after: u64) -> Result<ReadOutcome> {
        self.pass("read").await?;
        self.inner.read(stream, reader, after).await
    }

    async fn readable(&self, stream: &StreamKey, reader: ReaderToken, after: u64) -> Result<()> {
        self.pass("readable").await?;
        self.inner.readable(stream, reader, after).await
    }

    async fn detach(&self, stream: &StreamKey, reader: Option<ReaderToken>) -> Result<()> {
        self.pass("detach").await?;
        self.inner.detach(stream, reader).await
    }

    async fn expect_response(
        &self,
        session: &SessionId,
        request: &RequestId,
        within: Duration,
    ) -> Result<ExpectOutcome> {
        self.pass("expect_response").await?;
        self.inner.expect_response(session, request, within).await
    }

    async fn deliver_response(
        &self,
        session: &SessionId,
        request: &RequestId,
        body: Bytes,
    ) -> Result<DeliverOutcome> {
        self.pass("deliver_response").await?;
        self.inner.deliver_response(session, request, body).await
    }

    async fn wait_response(&self, session: &SessionId, request: &RequestId) -> Result<ResponseOutcome> {
        self.pass("wait_response").await?;
        self.inner.wait_response(session, request).await
    }

    async fn park(
        &self,
        session: &SessionId,
        call: &str,
        state: Bytes,
        ttl: Duration,
    ) -> Result<ParkOutcome> {
        self.pass("park").await?;
        self.inner.park(session, call, state, ttl).await
    }

    async fn claim(
        &self,
        session: &SessionId,
        call: &str,
        claimant: WriterEpoch,
        stream: Option<StreamNumber>,
    ) -> Result<Option<ClaimedCall>> {
        self.pass("claim").await?;
        self.inner.claim(session, call, claimant, stream).await
    }

    async fn parked_keys(&self, session: &SessionId) -> Result<Vec<Box<str>>> {
        self.pass("parked_keys").await?;
        self.inner.parked_keys(session).await
    }

    async fn create_task(&self, task: NewTask) -> Result<CreateTaskOutcome> {
        self.pass("create_task").await?;
        self.inner.create_task(task).await
    }

    async fn task(&self, id: &str) -> Result<Option<TaskRecord>> {
        self.pass("task").await?;
        self.inner.task(id).await
    }

    async fn task_call(&self, id: &str) -> Result<Option<Bytes>> {
        self.pass("task_call").await?;
        self.inner.task_call(id).await
    }

    async fn update_task(
        &self,
        id: &str,
        version: u64,
        state: Bytes,
        call: Option<Bytes>,
    ) -> Result<UpdateTaskOutcome> {
        self.pass("update_task").await?;
        self.inner.update_task(id, version, state, call).await
    }

    async fn task_changed(&self, id: &str, version: u64) -> Result<()> {
        self.pass("task_changed").await?;
        self.inner.task_changed(id, version).await
    }

    async fn tasks(&self, owner: &str, after: u64, most: usize) -> Result<Vec<TaskEntry>> {
        self.pass("tasks").await?;
        self.inner.tasks(owner, after, most).await
    }

    async fn renew_replica(&self, replica: &str, ttl: Duration) -> Result<()> {
        self.pass("renew_replica").await?;
        self.inner.renew_replica(replica, ttl).await
    }

    async fn is_replica_there(&self, replica: &str) -> Result<bool> {
        self.pass("is_replica_there").await?;
        self.inner.is_replica_there(replica).await
    }

    async fn bump(&self, topic: &str) -> Result<u64> {
        self.pass("bump").await?;
        self.inner.bump(topic).await
    }

    async fn latest(&self) -> Result<u64> {
        self.pass("latest").await?;
        self.inner.latest().await
    }

    async fn changes(&self, after: u64) -> Result<TopicChanges> {
        self.pass("changes").await?;
        self.inner.changes(after).await
    }

    async fn once(&self, key: [u8; 32], ttl: Duration) -> Result<OnceOutcome> {
        self.pass("once").await?;
        self.inner.once(key, ttl).await
    }

    async fn sweep(&self) -> Result<()> {
        self.pass("sweep").await?;
        self.inner.sweep().await
    }
}

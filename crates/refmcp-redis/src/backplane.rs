//! The methods: each runs a script and reads its reply.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_server::backplane::{
    AppendOutcome, AttachOutcome, Backplane, ClaimedCall, CreateOutcome, CreateTaskOutcome, DeliverOutcome,
    ExpectOutcome, NewSession, NewTask, OnceOutcome, OpenStreamOutcome, ParkOutcome, PostKey, PostOutcome,
    ReadFrom, ReadOutcome, ReaderToken, ResponseOutcome, Result, SessionId, SessionRecord, StreamEventKind,
    StreamKey, StreamNumber, TaskEntry, TaskRecord, TopicChanges, UpdateOutcome, UpdateTaskOutcome,
    WriterEpoch, WriterStop,
};

use crate::RedisBackplane;
use crate::keys::{name, request_of, request_text};

/// How many events are read at once, and how many of their bytes unless a single one has more.
const BATCH: (usize, usize) = (256, 64 << 10);
/// How much is swept in one step, so that Redis is not blocked for long.
const SWEEP: usize = 200;

#[async_trait]
impl Backplane for RedisBackplane {
    async fn create_session(
        &self,
        id: &SessionId,
        session: NewSession,
        idle: Duration,
    ) -> Result<CreateOutcome> {
        if session.facts.len() > self.settings.facts_bytes {
            return Ok(CreateOutcome::TooLarge);
        }
        let mut create = self.invoke_in(&self.scripts.create_session, id);
        create = create.duration(idle).text(&session.revision).arg(session.facts);
        if let Some(principal) = &session.principal {
            create = create.text(principal);
        }
        let reply = create.run().await?;
        match reply.outcome() {
            "created" => Ok(CreateOutcome::Created),
            "taken" => Ok(CreateOutcome::Taken),
            "full" => Ok(CreateOutcome::Full),
            _ => Err(reply.unexpected()),
        }
    }

    async fn session(&self, id: &SessionId) -> Result<Option<SessionRecord>> {
        let mut reply = self.invoke_in(&self.scripts.session, id).run().await?;
        match reply.outcome() {
            "record" => reply.session_record().map(Some),
            "unknown" => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }

    async fn update_session(&self, id: &SessionId, version: u64, facts: Bytes) -> Result<UpdateOutcome> {
        let update = self.invoke_in(&self.scripts.update_session, id).number(version);
        let mut reply = update.arg(facts).run().await?;
        match reply.outcome() {
            "updated" => reply.number().map(UpdateOutcome::Updated),
            "conflict" => reply.session_record().map(UpdateOutcome::Conflict),
            "too_large" => Ok(UpdateOutcome::TooLarge),
            "full" => Ok(UpdateOutcome::Full),
            "unknown" => Ok(UpdateOutcome::Unknown),
            _ => Err(reply.unexpected()),
        }
    }

    async fn close_session(&self, id: &SessionId) -> Result<bool> {
        let reply = self.invoke_in(&self.scripts.close_session, id).run().await?;
        Ok(reply.outcome() == "closed")
    }

    async fn open_stream(
        &self,
        session: &SessionId,
        request: Option<RequestId>,
        writer: WriterEpoch,
    ) -> Result<OpenStreamOutcome> {
        let request = request.as_ref().map(request_text).unwrap_or_default();
        let open = self.invoke_in(&self.scripts.open_stream, session).writer(writer);
        let mut reply = open.arg(request).run().await?;
        match reply.outcome() {
            "opened" => Ok(OpenStreamOutcome::Opened(StreamNumber(reply.number()?))),
            "full" => Ok(OpenStreamOutcome::Full),
            "unknown" => Ok(OpenStreamOutcome::Unknown),
            _ => Err(reply.unexpected()),
        }
    }

    async fn append(
        &self,
        stream: &StreamKey,
        writer: WriterEpoch,
        seq: u64,
        event: Bytes,
        kind: StreamEventKind,
    ) -> Result<AppendOutcome> {
        let is_final = u64::from(kind == StreamEventKind::Final);
        let append = self.invoke_in(&self.scripts.append, &stream.session).stream(stream.number);
        let mut reply = append.writer(writer).number(seq).number(is_final).arg(event).run().await?;
        Ok(match reply.outcome() {
            "stored" => AppendOutcome::Stored,
            "already" => AppendOutcome::Already,
            "gap" => AppendOutcome::Gap { last: reply.number()? },
            "fenced" => AppendOutcome::Fenced,
            "ended" => AppendOutcome::Ended,
            "cancelled" => AppendOutcome::Cancelled,
            "too_large" => AppendOutcome::TooLarge,
            "full" => AppendOutcome::Full,
            "unknown" => AppendOutcome::Unknown,
            _ => return Err(reply.unexpected()),
        })
    }

    async fn post(&self, session: &SessionId, key: PostKey, event: Bytes) -> Result<PostOutcome> {
        let post = self.invoke_in(&self.scripts.post, session);
        let mut reply = post.arg(key.0.to_be_bytes().to_vec()).arg(event).run().await?;
        Ok(match reply.outcome() {
            "stored" => PostOutcome::Stored(reply.number()?),
            "already" => PostOutcome::Already(reply.number()?),
            "too_large" => PostOutcome::TooLarge,
            "full" => PostOutcome::Full,
            "unknown" => PostOutcome::Unknown,
            _ => return Err(reply.unexpected()),
        })
    }

    async fn forget(&self, stream: &StreamKey, writer: WriterEpoch) -> Result<bool> {
        let forget = self.invoke_in(&self.scripts.forget, &stream.session);
        let reply = forget.stream(stream.number).writer(writer).run().await?;
        Ok(reply.outcome() == "forgotten")
    }

    async fn writer_stopped(&self, stream: &StreamKey) -> Result<WriterStop> {
        let waiter = self.link.hints().waiter(self.stream_hint(stream));
        loop {
            let hint = waiter.next();
            let look = self.invoke_in(&self.scripts.writer_stopped, &stream.session);
            let mut reply = look.stream(stream.number).run().await?;
            match reply.outcome() {
                "running" => self.wait(hint, Some(reply.number()?), None).await,
                "cancelled" => return Ok(WriterStop::Cancelled),
                "ended" => return Ok(WriterStop::Ended),
                "unknown" => return Ok(WriterStop::Unknown),
                _ => return Err(reply.unexpected()),
            }
        }
    }

    async fn cancel(&self, session: &SessionId, request: &RequestId) -> Result<usize> {
        let cancel = self.invoke_in(&self.scripts.cancel, session);
        let mut reply = cancel.arg(request_text(request)).run().await?;
        Ok(usize::try_from(reply.number()?).unwrap_or(usize::MAX))
    }

    async fn attach(&self, stream: &StreamKey, from: ReadFrom) -> Result<AttachOutcome> {
        let attach = self.invoke_in(&self.scripts.attach, &stream.session).stream(stream.number);
        let attach = match from {
            ReadFrom::After(after) => attach.number(after),
            ReadFrom::Unread => attach.text(""),
        };
        let mut reply = attach.run().await?;
        Ok(match reply.outcome() {
            "reading" => AttachOutcome::Reading {
                reader: ReaderToken(reply.number()?),
                after: reply.number()?,
                missed: reply.number()?,
            },
            "gone" => AttachOutcome::Gone { request: request_of(&reply.text()?) },
            "beyond" => AttachOutcome::Beyond,
            "ended" => AttachOutcome::Ended,
            "unknown" => AttachOutcome::Unknown,
            _ => return Err(reply.unexpected()),
        })
    }

    async fn read(&self, stream: &StreamKey, reader: ReaderToken, after: u64) -> Result<ReadOutcome> {
        let read = self.invoke_in(&self.scripts.read, &stream.session).stream(stream.number);
        let (events, bytes) = BATCH;
        let read = read.number(reader.0).number(after).number(events as u64).number(bytes as u64);
        let mut reply = read.run().await?;
        Ok(match reply.outcome() {
            "events" => {
                let has_final = reply.number()? == 1;
                let mut events = reply.list()?.events(stream.number, after)?;
                if let Some(last) = events.last_mut().filter(|_| has_final) {
                    last.kind = StreamEventKind::Final;
                }
                ReadOutcome::Events(events)
            }
            "nothing" => ReadOutcome::Nothing,
            "end" => ReadOutcome::End,
            "replaced" => ReadOutcome::Replaced,
            "detached" => ReadOutcome::Detached,
            "gone" => ReadOutcome::Gone { request: request_of(&reply.text()?) },
            "unknown" => ReadOutcome::Unknown,
            _ => return Err(reply.unexpected()),
        })
    }

    async fn readable(&self, stream: &StreamKey, reader: ReaderToken, after: u64) -> Result<()> {
        let waiter = self.link.hints().waiter(self.stream_hint(stream));
        loop {
            let hint = waiter.next();
            let look = self.invoke_in(&self.scripts.readable, &stream.session).stream(stream.number);
            let mut reply = look.number(reader.0).number(after).run().await?;
            match reply.outcome() {
                "nothing" => self.wait(hint, Some(reply.number()?), None).await,
                _ => return Ok(()),
            }
        }
    }

    async fn detach(&self, stream: &StreamKey, reader: Option<ReaderToken>) -> Result<()> {
        let mut detach = self.invoke_in(&self.scripts.detach, &stream.session).stream(stream.number);
        if let Some(reader) = reader {
            detach = detach.number(reader.0);
        }
        detach.run().await.map(drop)
    }

    async fn expect_response(
        &self,
        session: &SessionId,
        request: &RequestId,
        within: Duration,
    ) -> Result<ExpectOutcome> {
        let expect = self.invoke_in(&self.scripts.expect_response, session);
        let reply = expect.arg(request_text(request)).duration(within).run().await?;
        match reply.outcome() {
            "expected" => Ok(ExpectOutcome::Expected),
            "full" => Ok(ExpectOutcome::Full),
            "unknown" => Ok(ExpectOutcome::Unknown),
            _ => Err(reply.unexpected()),
        }
    }

    async fn deliver_response(
        &self,
        session: &SessionId,
        request: &RequestId,
        body: Bytes,
    ) -> Result<DeliverOutcome> {
        let deliver = self.invoke_in(&self.scripts.deliver_response, session);
        let reply = deliver.arg(request_text(request)).arg(body).run().await?;
        match reply.outcome() {
            "taken" => Ok(DeliverOutcome::Taken),
            "late" => Ok(DeliverOutcome::Late),
            "full" => Ok(DeliverOutcome::Full),
            "unknown" => Ok(DeliverOutcome::Unknown),
            _ => Err(reply.unexpected()),
        }
    }

    async fn wait_response(&self, session: &SessionId, request: &RequestId) -> Result<ResponseOutcome> {
        let waiter = self.link.hints().waiter(format!("{}:responses", name(session.reveal())));
        loop {
            let hint = waiter.next();
            let look = self.invoke_in(&self.scripts.wait_response, session);
            let mut reply = look.arg(request_text(request)).run().await?;
            match reply.outcome() {
                "awaited" => self.wait(hint, Some(reply.number()?), Some(reply.number()?)).await,
                "body" => return reply.bytes().map(ResponseOutcome::Body),
                "overdue" => return Ok(ResponseOutcome::Overdue),
                "unknown" => return Ok(ResponseOutcome::Unknown),
                _ => return Err(reply.unexpected()),
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
        let park = self.invoke_in(&self.scripts.park, session);
        let reply = park.arg(format!("t{call}")).arg(state).duration(ttl).run().await?;
        match reply.outcome() {
            "new" => Ok(ParkOutcome::Parked),
            "known" => Ok(ParkOutcome::Already),
            "full" => Ok(ParkOutcome::Full),
            "unknown" => Ok(ParkOutcome::Unknown),
            _ => Err(reply.unexpected()),
        }
    }

    async fn claim(
        &self,
        session: &SessionId,
        call: &str,
        claimant: WriterEpoch,
        stream: Option<StreamNumber>,
    ) -> Result<Option<ClaimedCall>> {
        let mut claim = self.invoke_in(&self.scripts.claim, session);
        claim = claim.arg(format!("t{call}")).writer(claimant);
        if let Some(number) = stream {
            claim = claim.stream(number);
        }
        let mut reply = claim.run().await?;
        match reply.outcome() {
            "claimed" => Ok(Some(ClaimedCall { state: reply.bytes()?, last: reply.number()? })),
            "unknown" => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }

    async fn parked_keys(&self, session: &SessionId) -> Result<Vec<Box<str>>> {
        let mut reply = self.invoke_in(&self.scripts.parked_keys, session).run().await?;
        let mut list = reply.list()?;
        let mut keys = Vec::with_capacity(list.len());
        while !list.is_empty() {
            keys.push(list.text()?.get(1..).unwrap_or_default().into());
        }
        Ok(keys)
    }

    async fn create_task(&self, task: NewTask) -> Result<CreateTaskOutcome> {
        let mut create = self.invoke(&self.scripts.create_task);
        create = create.arg(name(&task.id)).arg(name(&task.owner)).arg(task.state).arg(task.call);
        if let Some(ttl) = task.ttl {
            create = create.duration(ttl);
        }
        let reply = create.run().await?;
        match reply.outcome() {
            "created" => Ok(CreateTaskOutcome::Created),
            "taken" => Ok(CreateTaskOutcome::Taken),
            "full" => Ok(CreateTaskOutcome::Full),
            _ => Err(reply.unexpected()),
        }
    }

    async fn task(&self, id: &str) -> Result<Option<TaskRecord>> {
        let mut reply = self.invoke(&self.scripts.task).arg(name(id)).run().await?;
        match reply.outcome() {
            "record" => reply.task_record().map(Some),
            "unknown" => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }

    async fn task_call(&self, id: &str) -> Result<Option<Bytes>> {
        let mut reply = self.invoke(&self.scripts.task_call).arg(name(id)).run().await?;
        match reply.outcome() {
            "call" => reply.bytes().map(Some),
            "unknown" => Ok(None),
            _ => Err(reply.unexpected()),
        }
    }

    async fn update_task(
        &self,
        id: &str,
        version: u64,
        state: Bytes,
        call: Option<Bytes>,
    ) -> Result<UpdateTaskOutcome> {
        let mut update = self.invoke(&self.scripts.update_task);
        update = update.arg(name(id)).number(version).arg(state);
        if let Some(call) = call {
            update = update.arg(call);
        }
        let mut reply = update.run().await?;
        match reply.outcome() {
            "updated" => reply.number().map(UpdateTaskOutcome::Updated),
            "conflict" => reply.task_record().map(UpdateTaskOutcome::Conflict),
            "full" => Ok(UpdateTaskOutcome::Full),
            "unknown" => Ok(UpdateTaskOutcome::Unknown),
            _ => Err(reply.unexpected()),
        }
    }

    async fn task_changed(&self, id: &str, version: u64) -> Result<()> {
        let name = name(id);
        let waiter = self.link.hints().waiter(format!("task:{name}"));
        loop {
            let hint = waiter.next();
            let look = self.invoke(&self.scripts.task_changed).text(&name).number(version);
            let mut reply = look.run().await?;
            match reply.outcome() {
                "same" => self.wait(hint, None, reply.optional_number()?).await,
                _ => return Ok(()),
            }
        }
    }

    async fn tasks(&self, owner: &str, after: u64, most: usize) -> Result<Vec<TaskEntry>> {
        let list = self.invoke(&self.scripts.tasks).arg(name(owner)).number(after);
        let mut list = list.number(most as u64).run().await?.list()?;
        let mut entries = Vec::with_capacity(list.len() / 2);
        while !list.is_empty() {
            entries.push(TaskEntry { position: list.number()?, state: list.bytes()? });
        }
        Ok(entries)
    }

    async fn renew_replica(&self, replica: &str, ttl: Duration) -> Result<()> {
        let renew = self.invoke(&self.scripts.renew_replica).arg(name(replica));
        renew.duration(ttl).run().await.map(drop)
    }

    async fn is_replica_there(&self, replica: &str) -> Result<bool> {
        let reply = self.invoke(&self.scripts.is_replica_there).arg(name(replica)).run().await?;
        Ok(reply.outcome() == "there")
    }

    async fn bump(&self, topic: &str) -> Result<u64> {
        self.invoke(&self.scripts.bump).text(topic).run().await?.number()
    }

    async fn latest(&self) -> Result<u64> {
        self.invoke(&self.scripts.latest).run().await?.number()
    }

    async fn changes(&self, after: u64) -> Result<TopicChanges> {
        let waiter = self.link.hints().waiter("topics".to_owned());
        loop {
            let hint = waiter.next();
            let mut reply = self.invoke(&self.scripts.changes).number(after).run().await?;
            match reply.outcome() {
                "changes" => {
                    let (latest, missed) = (reply.number()?, reply.number()? == 1);
                    let mut list = reply.list()?;
                    let mut topics = Vec::with_capacity(list.len() / 2);
                    while !list.is_empty() {
                        topics.push((list.text()?.into(), list.number()?));
                    }
                    return Ok(TopicChanges { topics, missed, latest });
                }
                "nothing" => self.wait(hint, None, None).await,
                _ => return Err(reply.unexpected()),
            }
        }
    }

    async fn once(&self, key: [u8; 32], ttl: Duration) -> Result<OnceOutcome> {
        let once = self.invoke(&self.scripts.once).arg(key.to_vec());
        let reply = once.duration(ttl).run().await?;
        match reply.outcome() {
            "first" => Ok(OnceOutcome::First),
            "again" => Ok(OnceOutcome::Again),
            "full" => Ok(OnceOutcome::Full),
            _ => Err(reply.unexpected()),
        }
    }

    async fn sweep(&self) -> Result<()> {
        loop {
            let reply = self.invoke(&self.scripts.sweep).number(SWEEP as u64).run().await?;
            if reply.outcome() != "more" {
                return Ok(());
            }
        }
    }
}

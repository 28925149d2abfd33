//! A connection to the server behind the gateway: the calls that are forwarded over it, what the server requests of the
//! client meanwhile, and its notifications.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_client::transport::BoxFuture;
use refmcp_client::{Client, Error, Event, OpenError, ServerFacts};
use refmcp_proto::engine::{CallId, InputOutcome};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{InputRequest, LogLevel, ProgressParams, ServerNotification};
use refmcp_proto::revision::Lifecycle;
use refmcp_server::{Call, ServerRequestError};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use super::listeners::Listeners;
use super::params::forwarded_params;

/// How long a call may take. The client of the gateway decides, by cancelling it or by leaving.
const CALL_WITHIN: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long the client may take to answer, and how long a call is kept for it meanwhile.
const ANSWER_WITHIN: Duration = Duration::from_secs(900);
/// How long a request of the server waits for a call that can carry it to the client.
const HELD_FOR: Duration = Duration::from_secs(60);
/// How long the answer of the client may take to be sent to the server.
const SENT_WITHIN: Duration = Duration::from_secs(1);
/// Requests of the server that wait for a call, and calls that wait for the client.
const MOST_HELD: usize = 16;
const MOST_PARKED: usize = 1024;
/// Notifications that wait to be passed on: for one call, and for the session.
const INBOX: usize = 1024;

/// Numbers of calls and of requests, for the whole process: a `requestState` names its call, and must find no other one
/// once the server is connected again.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A connection to the server.
pub(super) struct Upstream {
    client: OnceLock<Client>,
    pub(super) listeners: Arc<Listeners>,
    notifications: mpsc::Sender<ServerNotification>,
    /// Calls in flight, the oldest first, and whether they can carry a request to the client.
    calls: Mutex<BTreeMap<u64, (mpsc::Sender<CallEvent>, bool)>>,
    held: Mutex<VecDeque<Question>>,
    parked: Mutex<BTreeMap<u64, Parked>>,
    /// The level of log messages that a server with sessions was asked for.
    level: tokio::sync::Mutex<Option<LogLevel>>,
    /// Streams of `subscriptions/listen`, by the session in front.
    pub(super) streams: Mutex<BTreeMap<u64, AbortOnDropHandle<()>>>,
    pub(super) acknowledged: Notify,
    /// What a server with sessions is subscribed to, and what sessions in front want of it.
    pub(super) subscribed: tokio::sync::Mutex<BTreeSet<String>>,
    pub(super) wanted: Mutex<BTreeMap<u64, Vec<String>>>,
    /// Why it has ended, and that it has.
    ended: OnceLock<OpenError>,
    pub(super) over: CancellationToken,
    closing: TaskTracker,
}

/// Something that happens to a call while it is forwarded.
enum CallEvent {
    Progress(ProgressParams),
    Notification(ServerNotification),
    Question(Question),
}

/// A request of the server to the client.
struct Question {
    key: String,
    request: InputRequest,
    reply: oneshot::Sender<Result<Value, RpcError>>,
    /// Told when a call takes it to the client.
    taken: Option<oneshot::Sender<()>>,
}

/// A call under way at the server.
pub(super) struct Running {
    number: u64,
    upstream: Weak<Upstream>,
    inbox: mpsc::Receiver<CallEvent>,
    result: BoxFuture<'static, Result<Box<RawValue>, Error>>,
    done: Option<Result<Box<RawValue>, Error>>,
    /// Whether it was sent, which polling the result does.
    is_sent: bool,
    /// Requests of the server that the client has not answered.
    open: Vec<Question>,
}

/// A call that is not being forwarded at the moment: it is about to be, or waits for the client.
enum Parked {
    Ready(Box<Running>),
    Waiting {
        session: u64,
        call: CallId,
        task: AbortOnDropHandle<Option<Box<Running>>>,
        wanted_back: CancellationToken,
    },
}

impl Upstream {
    pub(super) fn new(listeners: Listeners, closing: TaskTracker) -> Arc<Self> {
        let (notifications, mut received) = mpsc::channel(INBOX);
        let listeners = Arc::new(listeners);
        let deliver = listeners.clone();
        tokio::spawn(async move {
            while let Some(notification) = received.recv().await {
                deliver.deliver(notification).await;
            }
        });
        Arc::new(Self {
            client: OnceLock::new(),
            listeners,
            notifications,
            calls: Mutex::default(),
            held: Mutex::default(),
            parked: Mutex::default(),
            level: tokio::sync::Mutex::default(),
            streams: Mutex::default(),
            acknowledged: Notify::new(),
            subscribed: tokio::sync::Mutex::default(),
            wanted: Mutex::default(),
            ended: OnceLock::new(),
            over: CancellationToken::new(),
            closing,
        })
    }

    /// The client is connected.
    pub(super) fn connected(&self, client: Client) {
        // Called once.
        let _ = self.client.set(client);
    }

    pub(super) fn client(&self) -> Option<&Client> {
        self.client.get()
    }

    pub(super) fn facts(&self) -> Option<Arc<ServerFacts>> {
        self.client().map(Client::server)
    }

    /// Why the server has ended it, if it has.
    pub(super) fn ended(&self) -> Option<&OpenError> {
        self.ended.get()
    }

    pub(super) fn heard(&self, event: &Event) {
        match event {
            Event::Notification(ServerNotification::SubscriptionsAcknowledged(_)) => {
                self.acknowledged.notify_waiters();
            }
            Event::Notification(notification) => self.notified(notification),
            // An attempt to connect that failed is followed by another, or reported by the connector.
            Event::Closed(_) if self.client().is_none() => {}
            Event::Closed(why) => self.end(why),
            Event::Finding(finding) => tracing::debug!(finding = %finding, "the server broke a rule"),
            Event::Ignored(what) => tracing::warn!("the server sent what is ignored: {what}"),
            other => tracing::debug!(?other, "the server"),
        }
    }

    /// The server has ended the connection.
    pub(super) fn end(&self, why: &OpenError) {
        // The first reason stays.
        let _ = self.ended.set(why.clone());
        self.over.cancel();
    }

    /// A notification that names no call. One that concerns calls goes to the oldest.
    fn notified(&self, notification: &ServerNotification) {
        let is_change = matches!(
            notification,
            ServerNotification::ToolsListChanged(_)
                | ServerNotification::PromptsListChanged(_)
                | ServerNotification::ResourcesListChanged(_)
                | ServerNotification::ResourceUpdated(_)
        );
        let oldest = self.calls.lock().values().next().map(|(inbox, _)| inbox.clone());
        let passed = match oldest.filter(|_| !is_change) {
            Some(inbox) => inbox.try_send(CallEvent::Notification(notification.clone())).is_ok(),
            None => self.notifications.try_send(notification.clone()).is_ok(),
        };
        if !passed {
            tracing::warn!(method = notification.method(), "the client is slow: a notification is dropped");
        }
    }

    /// A request of the server, which a call takes to the client.
    pub(super) async fn ask(
        upstream: Weak<Self>,
        call: Option<u64>,
        request: InputRequest,
    ) -> Result<Value, RpcError> {
        let gone = || RpcError::internal("the client is gone");
        let late = |_| RpcError::internal("the client did not answer in time");
        let (reply, answered) = oneshot::channel();
        let (taken, is_taken) = oneshot::channel();
        let is_held;
        {
            let upstream = upstream.upgrade().ok_or_else(gone)?;
            let key = format!("input-{}", NEXT.fetch_add(1, Ordering::Relaxed));
            is_held = upstream.place(call, Question { key, request, reply, taken: Some(taken) })?;
        }
        // A call that waits for the client takes it once the client has answered.
        let within = if is_held { HELD_FOR } else { ANSWER_WITHIN };
        timeout(within, is_taken).await.map_err(late)?.map_err(|_| gone())?;
        timeout(ANSWER_WITHIN, answered).await.map_err(late)?.map_err(|_| gone())?
    }

    /// Gives a request to its call, to the oldest that can carry it, or to the next one; `true` when it waits for that.
    fn place(&self, call: Option<u64>, mut question: Question) -> Result<bool, RpcError> {
        let calls = self.calls.lock();
        let own = call.and_then(|call| calls.get(&call)).filter(|(_, may_ask)| *may_ask);
        if let Some((inbox, _)) = own.or_else(|| calls.values().find(|(_, may_ask)| *may_ask)) {
            match inbox.try_send(CallEvent::Question(question)) {
                Ok(()) => return Ok(false),
                Err(refused) => match refused.into_inner() {
                    CallEvent::Question(back) => question = back,
                    _ => return Ok(false),
                },
            }
        }
        let mut held = self.held.lock();
        held.retain(|question| !question.reply.is_closed());
        if held.len() >= MOST_HELD {
            return Err(RpcError::internal("too many requests wait for the client"));
        }
        held.push_back(question);
        Ok(true)
    }

    /// Prepares a call, and gives the number by which [`Self::take`] finds it.
    pub(super) fn start(self: &Arc<Self>, call: &Call) -> Result<u64, RpcError> {
        let client = self.client().ok_or_else(|| RpcError::internal("the server is not connected"))?;
        if self.parked.lock().len() >= MOST_PARKED {
            return Err(RpcError::internal("too many calls wait for the client"));
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (events, inbox) = mpsc::channel(INBOX);
        let (params, meta) = forwarded_params(call.params())?;
        let mut request = client.forward(call.method().name(), &params).meta(meta);
        request = request.timeout(CALL_WITHIN).total_timeout(CALL_WITHIN);
        if call.wants_progress() {
            let events = events.clone();
            // A client that is slow to read misses steps.
            request = request
                .on_progress(move |progress| drop(events.try_send(CallEvent::Progress(progress.clone()))));
        }
        if let Some(level) = call.log_level() {
            request = request.log_level(level);
        }
        let (own, upstream) = (events.clone(), Arc::downgrade(self));
        let request = request
            .on_notification(move |notification| {
                if own.try_send(CallEvent::Notification(notification.clone())).is_err() {
                    tracing::warn!("the client is slow: a notification is dropped");
                }
            })
            .on_request(move |request| Self::ask(upstream.clone(), Some(number), request));
        let stateless = call.peer().rules().lifecycle == Lifecycle::PerRequest;
        let may_ask = !stateless || call.method().may_request_input();
        self.calls.lock().insert(number, (events, may_ask));
        let open = if may_ask { self.held.lock().drain(..).collect() } else { Vec::new() };
        let result = Box::pin(async move { request.await });
        let upstream = Arc::downgrade(self);
        let running = Box::new(Running { number, upstream, inbox, result, done: None, is_sent: false, open });
        self.parked.lock().insert(number, Parked::Ready(running));
        Ok(number)
    }

    /// The call of this number, once.
    pub(super) async fn take(&self, number: u64) -> Option<Box<Running>> {
        let parked = self.parked.lock().remove(&number)?;
        match parked {
            Parked::Ready(running) => Some(running),
            Parked::Waiting { task, wanted_back, .. } => {
                wanted_back.cancel();
                task.await.ok().flatten()
            }
        }
    }

    /// Keeps a call while the client is asked.
    pub(super) fn park(self: &Arc<Self>, mut running: Box<Running>, call: Call) {
        let (number, wanted_back) = (running.number, CancellationToken::new());
        let (session, id) = (call.connection_session().number(), call.id());
        let (upstream, back) = (Arc::downgrade(self), wanted_back.clone());
        let in_session = (call.peer().rules().lifecycle == Lifecycle::Handshake).then_some(call);
        let task = tokio::spawn(async move {
            let waiting = async {
                running.settled().await;
                // In a session the call runs again at once; otherwise when its client comes back. The engine ignores this
                // until it has asked the client.
                let Some(call) = in_session else { return std::future::pending().await };
                loop {
                    call.withdraw_input().await;
                    sleep(SENT_WITHIN).await;
                }
            };
            tokio::select! {
                () = back.cancelled() => return Some(running),
                () = waiting => {}
                () = sleep(ANSWER_WITHIN) => {}
            }
            if let Some(upstream) = upstream.upgrade() {
                upstream.parked.lock().remove(&number);
            }
            None
        });
        let task = AbortOnDropHandle::new(task);
        self.parked.lock().insert(number, Parked::Waiting { session, call: id, task, wanted_back });
    }

    /// A call in front that waits for its client has ended; so does the call at the server.
    pub(super) fn drop_parked(&self, of_session: u64, of_call: CallId) {
        self.parked.lock().retain(|_, parked| {
            !matches!(parked, Parked::Waiting { session, call, .. } if (*session, *call) == (of_session, of_call))
        });
    }

    /// Asks a server with sessions for log messages of this level, where it sends only more severe ones.
    pub(super) async fn lower_level(&self, level: LogLevel) -> Result<(), Error> {
        let Some(client) = self.client() else { return Ok(()) };
        let server = client.server();
        let mut known = self.level.lock().await;
        if server.rules().lifecycle == Lifecycle::Handshake
            && server.capabilities.logging.is_some()
            && known.is_none_or(|known| level < known)
        {
            client.set_level(level).await?;
            *known = Some(level);
        }
        Ok(())
    }

    /// Ends the connection in order.
    pub(super) async fn close(&self) {
        if let Some(client) = self.client() {
            client.close().await;
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        if let Some(client) = self.client.take() {
            self.closing.spawn(async move { client.close().await });
        }
    }
}

impl Running {
    /// Gives the client's answers to the server.
    pub(super) async fn answer(&mut self, call: &Call) {
        for question in std::mem::take(&mut self.open) {
            let answer = match call.input_outcome(&question.key) {
                None => {
                    self.open.push(question);
                    continue;
                }
                Some(InputOutcome::Response(value)) => Ok(value.clone()),
                Some(InputOutcome::Error(error)) => Err(error.clone()),
                Some(InputOutcome::TimedOut) => Err(RpcError::internal("the client did not answer in time")),
            };
            let upstream = self.upstream.upgrade();
            let sent = upstream.as_ref().and_then(|upstream| upstream.client()).map(Client::response_sent);
            // The server may have withdrawn it. Otherwise it gets the answer before the call, which may need it.
            if let (Ok(()), Some(sent)) = (question.reply.send(answer), sent)
                && timeout(SENT_WITHIN, sent).await.is_err()
            {
                tracing::debug!("an answer was not sent in time");
            }
        }
    }

    /// Asks the client what the server has asked and still wants to know; `true` when the call waits for it. The client
    /// is not asked what it does not support: the server gets an error, and the call goes on.
    pub(super) fn ask(&mut self, call: &Call) -> bool {
        for mut question in std::mem::take(&mut self.open) {
            if question.reply.is_closed() {
                continue;
            }
            if let Some(taken) = question.taken.take() {
                // The handler of the request waits for it.
                let _ = taken.send(());
            }
            match call.request::<Value>(&question.key, question.request.clone()) {
                Ok(_) | Err(ServerRequestError::Pending) => self.open.push(question),
                Err(refused) => {
                    // The server may have withdrawn it.
                    let _ = question.reply.send(Err(RpcError::method_not_found(&refused.to_string())));
                }
            }
        }
        !self.open.is_empty()
    }

    /// Whether the result has come.
    pub(super) fn is_done(&self) -> bool {
        self.done.is_some()
    }

    /// Gives what the server has asked, and still wants to know after the result, to another call.
    pub(super) fn pass_on_requests(&mut self) {
        let Some(upstream) = self.upstream.upgrade() else { return };
        upstream.calls.lock().remove(&self.number);
        for question in self.open.drain(..).filter(|question| !question.reply.is_closed()) {
            if let Err(full) = upstream.place(None, question) {
                tracing::warn!("a request of the server is dropped: {full}");
            }
        }
    }

    /// Passes on what the server says until it has a result, or a request for the client.
    pub(super) async fn run(&mut self, call: &Call) -> Option<Result<Box<RawValue>, Error>> {
        if self.done.is_some() {
            return self.done.take();
        }
        self.is_sent = true;
        loop {
            tokio::select! {
                // What was said before the result is passed on before it.
                biased;
                Some(event) = self.inbox.recv() => match event {
                    CallEvent::Progress(progress) => {
                        let total = progress.total.as_ref().and_then(serde_json::Number::as_f64);
                        let value = progress.progress.as_f64().unwrap_or_default();
                        call.progress(value, total, progress.message.unwrap_or_default()).await;
                    }
                    CallEvent::Notification(ServerNotification::Log(log)) => {
                        call.log(log.level, log.logger.as_deref().unwrap_or_default(), log.data).await;
                    }
                    CallEvent::Notification(other) => call.notify(other).await,
                    CallEvent::Question(question) => {
                        self.open.push(question);
                        return None;
                    }
                },
                done = &mut self.result => return Some(done),
            }
        }
    }

    /// Waits until the server needs no answer any more: it has a result, or has withdrawn its requests.
    async fn settled(&mut self) {
        let Self { result, open, done, is_sent, .. } = self;
        if done.is_some() {
            return;
        }
        let withdrawn = async {
            for question in open.iter_mut() {
                question.reply.closed().await;
            }
        };
        tokio::select! {
            ended = result, if *is_sent => *done = Some(ended),
            () = withdrawn => {}
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(upstream) = self.upstream.upgrade() {
            upstream.calls.lock().remove(&self.number);
        }
    }
}

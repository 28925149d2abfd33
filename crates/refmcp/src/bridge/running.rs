//! A call under way at the server behind the gateway, and what happens to it: progress, notifications and requests of the
//! server, which the client answers while the call is parked.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use refmcp_client::transport::BoxFuture;
use refmcp_client::{Client, Error};
use refmcp_proto::engine::{CallId, InputOutcome};
use refmcp_proto::jsonrpc::RpcError;
use refmcp_proto::model::{InputRequest, ServerNotification};
use refmcp_proto::revision::{Lifecycle, NotificationMethod, Tasks};
use refmcp_server::{Call, CallError, ServerRequestError};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::upstream::{HOLD_TIMEOUT, INBOX, NEXT, RESPONSE_TIMEOUT, Upstream, WaitingNotification};

/// How long a call may take. The client of the gateway decides, by cancelling it or by leaving.
const CALL_TIMEOUT: Duration = Duration::from_secs(30 * 24 * 3600);
/// How long the answer of the client may take to be sent to the server.
const SEND_TIMEOUT: Duration = Duration::from_secs(1);
/// Calls that wait for the client.
const MAX_PARKED: usize = 1024;

/// Something that happens to a call while it is forwarded.
pub(super) enum CallEvent {
    Notification(WaitingNotification),
    Request(WaitingRequest),
}

/// A request of the server to the client.
pub(super) struct WaitingRequest {
    pub(super) key: String,
    pub(super) request: InputRequest,
    pub(super) reply: oneshot::Sender<Result<Value, RpcError>>,
    /// Told when a call takes it to the client.
    pub(super) taken: Option<oneshot::Sender<()>>,
}

/// A call under way at the server.
pub(super) struct Running {
    number: u64,
    upstream: Weak<Upstream>,
    client: Client,
    inbox: mpsc::Receiver<CallEvent>,
    result: BoxFuture<'static, Result<Box<RawValue>, Error>>,
    done: Option<Result<Box<RawValue>, Error>>,
    /// Whether it was sent, which polling the result does, and whether the server has answered it.
    is_sent: bool,
    is_answered: bool,
    /// Requests of the server that the client has not answered.
    open: Vec<WaitingRequest>,
}

/// A call that waits for the client.
pub(super) struct Parked {
    /// The session in front, and the number of the call there.
    of: (u64, CallId),
    task: AbortOnDropHandle<Option<Box<Running>>>,
    wanted_back: CancellationToken,
}

impl Upstream {
    /// The call at the server that this one in front is, new or parked.
    pub(super) async fn running(
        self: &Arc<Self>,
        call: &Call,
        client: &Client,
    ) -> Result<Box<Running>, CallError> {
        let mut new = None;
        let number = async { Ok(new.insert(self.start(call, client)?).number) };
        let number = call.once("call", number).await?;
        let parked = self.parked.lock().remove(&number);
        let running = match (new, parked) {
            (Some(new), _) => Some(new),
            (None, Some(Parked { task, wanted_back, .. })) => {
                wanted_back.cancel();
                task.await.ok().flatten()
            }
            (None, None) => None,
        };
        let gone =
            || RpcError::invalid_request("the call that asked for this input has ended; make it again");
        Ok(running.ok_or_else(gone)?)
    }

    fn start(self: &Arc<Self>, call: &Call, client: &Client) -> Result<Box<Running>, RpcError> {
        if self.parked.lock().len() >= MAX_PARKED {
            return Err(RpcError::internal("too many calls wait for the client"));
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (events, inbox) = mpsc::channel(INBOX);
        let mut request = client.forward(call.method().name(), call.params());
        request = request.timeout(CALL_TIMEOUT).total_timeout(CALL_TIMEOUT);
        if !passes_tasks(call, client) {
            request = request.task_outcome();
        }
        let (own, room) = (events.clone(), self.room.clone());
        let enqueue = move |notification: &ServerNotification| {
            let waiting = WaitingNotification::new(notification, &room).map(CallEvent::Notification);
            if waiting.is_none_or(|waiting| own.try_send(waiting).is_err()) {
                tracing::warn!("the client is slow: a notification is dropped");
            }
        };
        if call.wants_progress() {
            let enqueue = enqueue.clone();
            request =
                request.on_progress(move |progress| enqueue(&ServerNotification::Progress(progress.clone())));
        }
        if let Some(level) = call.log_level() {
            request = request.log_level(level);
        }
        let upstream = Arc::downgrade(self);
        let request = request
            .on_notification(enqueue)
            .on_request(move |request| Self::ask(upstream.clone(), Some(number), request));
        let stateless = call.peer().rules().lifecycle == Lifecycle::PerRequest;
        let may_ask = !stateless || call.method().may_request_input();
        self.calls.lock().insert(number, (events, may_ask));
        let open = if may_ask { self.held.lock().drain(..).collect() } else { Vec::new() };
        let result = Box::pin(async move { request.await });
        Ok(Box::new(Running {
            number,
            upstream: Arc::downgrade(self),
            client: client.clone(),
            inbox,
            result,
            done: None,
            is_sent: false,
            is_answered: false,
            open,
        }))
    }

    /// Keeps a call while the client is asked.
    pub(super) fn park(self: &Arc<Self>, mut running: Box<Running>, call: Call) {
        let (number, wanted_back) = (running.number, CancellationToken::new());
        let of = (call.connection_session().number(), call.id());
        let (upstream, back) = (Arc::downgrade(self), wanted_back.clone());
        let task = tokio::spawn(async move {
            let in_session = call.peer().rules().lifecycle == Lifecycle::Handshake;
            let waiting = async {
                running.settled().await;
                // In a session the call runs again at once; otherwise when its client comes back. The engine ignores this
                // until it has asked the client.
                if !in_session {
                    std::future::pending::<()>().await;
                }
                loop {
                    call.withdraw_input().await;
                    sleep(SEND_TIMEOUT).await;
                }
            };
            tokio::select! {
                () = back.cancelled() => return Some(running),
                () = waiting => {}
                // Cancelled before the engine knew that the call waits; later it says so (`drop_parked`).
                () = call.cancelled() => {}
                () = sleep(RESPONSE_TIMEOUT) => {}
            }
            if let Some(upstream) = upstream.upgrade() {
                upstream.parked.lock().remove(&number);
            }
            None
        });
        let task = AbortOnDropHandle::new(task);
        self.parked.lock().insert(number, Parked { of, task, wanted_back });
    }

    /// A call in front that waits for its client has ended; so does the call at the server.
    pub(super) fn drop_parked(&self, session: u64, call: CallId) {
        self.parked.lock().retain(|_, parked| parked.of != (session, call));
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
            let sent = self.client.response_sent();
            // The server may have withdrawn it. Otherwise it gets the answer before the call, which may need it.
            if question.reply.send(answer).is_ok() && timeout(SEND_TIMEOUT, sent).await.is_err() {
                tracing::debug!("an answer was not sent in time");
            }
        }
    }

    /// Asks the client what the server has asked and still wants to know; `true` when the call waits for it. The client
    /// is not asked what it does not support: the server gets an error, and the call goes on.
    pub(super) fn ask(&mut self, call: &Call) -> bool {
        if self.done.is_some() {
            return false;
        }
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

    /// Passes on what the server says until it has a result, or a request for the client.
    pub(super) async fn run(&mut self, call: &Call) -> Option<Result<Box<RawValue>, Error>> {
        self.is_sent = true;
        loop {
            let event = match self.inbox.try_recv() {
                Ok(event) => event,
                // What was said before the result is in the inbox by then, and is passed on before it.
                Err(_) if self.done.is_some() => {
                    self.is_answered = true;
                    return self.done.take();
                }
                Err(_) => tokio::select! {
                    Some(event) = self.inbox.recv() => event,
                    done = &mut self.result => {
                        self.done = Some(done);
                        continue;
                    }
                },
            };
            match event {
                CallEvent::Notification(WaitingNotification { notification, room }) => {
                    pass_on(call, notification).await;
                    drop(room);
                }
                CallEvent::Request(question) => {
                    self.open.push(question);
                    // The client is asked first, unless there is a result.
                    self.done.as_ref()?;
                }
            }
        }
    }

    /// Waits until the server needs no answer any more: it has a result, or has withdrawn its requests.
    async fn settled(&mut self) {
        let Self { result, open, done, is_sent, .. } = self;
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

/// Whether the client has tasks as the server has them. Otherwise it gets what comes of one.
fn passes_tasks(call: &Call, client: &Client) -> bool {
    let peer = call.peer();
    let takes_tasks = peer.rules().tasks == Tasks::Experimental || peer.capabilities.takes_tasks();
    takes_tasks && peer.revision == client.server().revision
}

async fn pass_on(call: &Call, notification: ServerNotification) {
    match notification {
        ServerNotification::Progress(progress) => {
            let total = progress.total.as_ref().and_then(serde_json::Number::as_f64);
            let value = progress.progress.as_f64().unwrap_or_default();
            call.progress(value, total, progress.message.unwrap_or_default()).await;
        }
        ServerNotification::Log(log) => {
            call.log(log.level, log.logger.as_deref().unwrap_or_default(), log.data).await;
        }
        // The revision of the client may not have it, such as the status of a task that is followed here.
        other => {
            let method = NotificationMethod::known(other.method());
            if method.is_none_or(|method| method.server_may_send(call.peer().rules())) {
                call.notify(other).await;
            }
        }
    }
}

impl Drop for Running {
    /// What the server has asked and still wants to know goes to another call: after the result all of it, otherwise what
    /// the client has not seen.
    fn drop(&mut self) {
        let Some(upstream) = self.upstream.upgrade() else { return };
        let is_cancelled = self.is_sent && !self.is_answered && self.done.is_none();
        if is_cancelled
            && upstream.is_shared
            && let Ok(runtime) = Handle::try_current()
        {
            // Servers go on with cancelled calls: what they request for one must not reach another client.
            let (number, upstream) = (self.number, self.upstream.clone());
            runtime.spawn(async move {
                sleep(HOLD_TIMEOUT).await;
                upstream.upgrade().map(|upstream| upstream.calls.lock().remove(&number))
            });
        } else {
            upstream.calls.lock().remove(&self.number);
        }
        self.inbox.close();
        let asked = self.open.drain(..).filter(|_| self.is_answered);
        let unseen = std::iter::from_fn(|| self.inbox.try_recv().ok()).filter_map(|event| match event {
            CallEvent::Request(question) => Some(question),
            _ => None,
        });
        for question in asked.chain(unseen).filter(|question| !question.reply.is_closed()) {
            upstream.place_or_refuse(None, question);
        }
    }
}

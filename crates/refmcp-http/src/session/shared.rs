//! A session that several replicas serve: what this one shares with the others by the backplane.
//!
//! Its facts are written when they change and read with every request. Responses to server requests, and cancellations, go
//! to the replica whose call they concern.

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use foldhash::HashMap;
use parking_lot::Mutex;
use refmcp_proto::engine::{CallId, FactsChange, InputOutcome, ServerEngine, SessionFacts, SharedOutput};
use refmcp_proto::jsonrpc::RequestId;
use refmcp_server::Server;
use refmcp_server::backplane::{
    Backplane, DeliverOutcome, OpenStreamOutcome, SessionId, SessionRecord, StreamKey, UpdateOutcome,
    WriterEpoch, WriterStop,
};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::yield_now;
use tokio_util::sync::CancellationToken;

use crate::refusal::{Reason, Refusal};
use crate::session::SessionTransport;
use crate::session::driver::{SessionDriver, WeakSessionDriver};
use crate::session::parked::ParkedHere;
use crate::session::running::RunningHere;
use crate::stream::message::Gate;
use crate::stream::response_stream::{ResponseStream, drive};
use crate::stream::retry::{RETRY_DELAY, until_available};

/// How often facts are written again when others have changed them meanwhile.
const ATTEMPTS: usize = 8;

/// The facts of a session as the backplane keeps them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct StoredFacts {
    pub(super) transport: SessionTransport,
    /// The topic of changes of this session. Its id is a secret, and no part of it.
    pub(super) topic: Arc<str>,
    /// How many engines have served the session so far: the epoch of the next one.
    pub(super) engines: u32,
    /// `None` before `initialize`.
    pub(super) facts: Option<SessionFacts>,
}

impl StoredFacts {
    pub(super) fn read(record: &SessionRecord) -> Result<Self, Refusal> {
        serde_json::from_slice(&record.facts).map_err(|error| {
            Refusal::internal("this session cannot be read here").with_detail(error.to_string())
        })
    }

    pub(super) fn to_bytes(&self) -> Result<Bytes, Refusal> {
        let bytes = serde_json::to_vec(self);
        bytes.map(Into::into).map_err(|_| Refusal::internal("the session cannot be kept"))
    }
}

/// This replica's part of a session.
pub(crate) struct SharedSession {
    pub(super) backplane: Arc<dyn Backplane>,
    pub(super) id: SessionId,
    pub(super) driver: WeakSessionDriver,
    pub(super) server: Server,
    pub(super) topic: Arc<str>,
    /// The epoch of the engine here.
    pub(super) epoch: WriterEpoch,
    /// Also the order in which things are shared: whatever holds the lock is done before the next begins.
    saved: tokio::sync::Mutex<Saved>,
    /// Changes of the facts that the engine has made and the backplane does not have yet. Changed under the engine's lock,
    /// or that of `saved`.
    unsaved: Mutex<Vec<FactsChange>>,
    /// A task saves changes that could not be saved before.
    is_saving_again: AtomicBool,
    /// The client's requests that run here, each until its sender is dropped.
    watched: Mutex<Vec<(RequestId, oneshot::Sender<()>)>>,
    /// The calls that wait for input here and can go on elsewhere.
    pub(super) parked: Mutex<HashMap<CallId, Arc<ParkedHere>>>,
    /// The calls that run here and that other replicas know of.
    pub(super) running: Mutex<Vec<RunningHere>>,
    /// The calls of other replicas that this one goes on with or gives an outcome, unless those do so themselves.
    pub(super) looked_after: tokio::sync::Mutex<HashSet<Box<str>>>,
    /// The engine is gone, so there is nothing to wait for.
    pub(super) gone: CancellationToken,
}

/// What the backplane has, as far as this replica knows.
#[derive(Debug)]
struct Saved {
    version: u64,
    stored: StoredFacts,
    /// The engine does not have what other replicas have changed in these facts.
    unadopted: bool,
    /// Other replicas were not told of the newest version.
    unannounced: bool,
}

impl Saved {
    /// Takes what another replica has saved.
    fn take(&mut self, record: &SessionRecord) -> Result<(), Refusal> {
        self.stored = StoredFacts::read(record)?;
        (self.version, self.unadopted) = (record.version, true);
        Ok(())
    }
}

tokio::task_local! {
    /// What the request that is being served shares.
    static RECEIPTS: Receipts;
}

type Receipts = Arc<Mutex<Vec<oneshot::Receiver<Result<(), Refusal>>>>>;

/// Serves a request, and waits until what it shares has reached the backplane; the second value is why it has not.
pub(super) async fn with_receipts<F: Future>(serve: F) -> (F::Output, Result<(), Refusal>) {
    let receipts = Receipts::default();
    let served = RECEIPTS.scope(receipts.clone(), serve).await;
    let receipts = std::mem::take(&mut *receipts.lock());
    for receipt in receipts {
        if let Ok(Err(refusal)) = receipt.await {
            return (served, Err(refusal));
        }
    }
    (served, Ok(()))
}

impl SharedSession {
    pub(super) fn new(
        backplane: Arc<dyn Backplane>,
        id: SessionId,
        driver: &SessionDriver,
        epoch: WriterEpoch,
        version: u64,
        stored: StoredFacts,
    ) -> Arc<Self> {
        let topic = stored.topic.clone();
        Arc::new(Self {
            backplane,
            id,
            driver: driver.downgrade(),
            server: driver.server(),
            topic,
            epoch,
            saved: tokio::sync::Mutex::new(Saved { version, stored, unadopted: false, unannounced: false }),
            unsaved: Mutex::default(),
            is_saving_again: AtomicBool::new(false),
            watched: Mutex::default(),
            parked: Mutex::default(),
            running: Mutex::default(),
            looked_after: tokio::sync::Mutex::default(),
            gone: CancellationToken::new(),
        })
    }

    /// Takes over what other replicas have changed.
    pub(super) async fn refresh(&self, record: &SessionRecord) -> Result<(), Refusal> {
        let mut saved = self.saved.lock().await;
        if record.version > saved.version {
            saved.take(record)?;
        }
        if !std::mem::take(&mut saved.unadopted) {
            return Ok(());
        }
        self.adopt(&saved.stored, 0).await
    }

    /// Gives the engine the facts that the backplane has, of which it has made so many changes; what it has changed beside
    /// them stays.
    async fn adopt(&self, stored: &StoredFacts, saved: usize) -> Result<(), Refusal> {
        // Not under the engine's lock.
        yield_now().await;
        let Some(driver) = self.driver.upgrade() else { return Ok(()) };
        driver.adopt(|| {
            let mut unsaved = self.unsaved.lock();
            unsaved.drain(..saved);
            let mut facts = stored.facts.clone();
            unsaved.iter().for_each(|change| change.apply(&mut facts));
            facts
        })
    }

    /// Waits until what was shared so far has reached the backplane, or could not.
    pub(super) async fn settled(&self) {
        drop(self.saved.lock().await);
    }

    /// Takes what the engine has for other replicas, which may concern this stream. Called under the engine's lock. The
    /// requests to the client that follow are sent once the gate is open.
    pub(super) fn share(
        self: &Arc<Self>,
        output: SharedOutput,
        stream: Option<Arc<ResponseStream>>,
    ) -> Option<Gate> {
        match output {
            SharedOutput::Expect { ids, within, call } => {
                if let Some(call) = &call {
                    self.watch(call.id.clone());
                }
                return Some(self.expect(ids, within, call, stream));
            }
            SharedOutput::Claim(call) => self.claim(call),
            SharedOutput::Facts(change) => {
                self.unsaved.lock().push(change);
                self.carry_out(Shared::Facts);
            }
            SharedOutput::Withdraw(id) => self.carry_out(Shared::Response(id, Bytes::new())),
            SharedOutput::Response { id, outcome } => {
                let body = serde_json::to_vec(&outcome).unwrap_or_default();
                self.carry_out(Shared::Response(id, body.into()));
            }
            SharedOutput::Cancel(id) => self.carry_out(Shared::Cancel(id)),
        }
        None
    }

    /// Shares something, in order. The request that is being served hears what became of it.
    fn carry_out(self: &Arc<Self>, shared: Shared) {
        let (receipt, received) = oneshot::channel();
        let is_awaited = RECEIPTS.try_with(|receipts| receipts.lock().push(received)).is_ok();
        let session = self.clone();
        drive(async move {
            let mut saved = session.saved.lock().await;
            let done = match shared {
                Shared::Facts => session.save(&mut saved).await,
                Shared::Response(id, body) => session.deliver(&id, body).await,
                Shared::Cancel(id) => {
                    let cancelled = session.backplane.cancel(&session.id, &id).await;
                    cancelled.map(drop).map_err(Refusal::from)
                }
            };
            if let Err(refusal) = &done
                && !is_awaited
            {
                tracing::warn!(why = %refusal.why, "other replicas do not hear of something");
            }
            // A request that is over waits for nothing.
            let _ = receipt.send(done);
        });
    }

    /// Saves the changes of the facts that are not saved yet. Where that is impossible now, it is tried again.
    async fn save(self: &Arc<Self>, saved: &mut Saved) -> Result<(), Refusal> {
        let done = self.try_save(saved).await;
        let is_left = saved.unannounced || !self.unsaved.lock().is_empty();
        if done.is_err() && is_left && !self.is_saving_again.swap(true, Ordering::Relaxed) {
            tokio::spawn(self.clone().save_again());
        }
        done
    }

    async fn save_again(self: Arc<Self>) {
        let mut delay = RETRY_DELAY.0;
        loop {
            tokio::select! {
                () = tokio::time::sleep(delay) => {}
                () = self.gone.cancelled() => return,
            }
            delay = RETRY_DELAY.1.min(delay * 2);
            let mut saved = self.saved.lock().await;
            if let Err(refusal) = self.try_save(&mut saved).await {
                tracing::warn!(why = %refusal.why, "changes of a session are not saved");
            }
            if !saved.unannounced && self.unsaved.lock().is_empty() {
                return self.is_saving_again.store(false, Ordering::Relaxed);
            }
        }
    }

    async fn try_save(&self, saved: &mut Saved) -> Result<(), Refusal> {
        let changes = self.unsaved.lock().clone();
        let mut is_saved = changes.is_empty();
        for _ in 0..ATTEMPTS {
            if is_saved {
                break;
            }
            let mut stored = saved.stored.clone();
            changes.iter().for_each(|change| change.apply(&mut stored.facts));
            match self.backplane.update_session(&self.id, saved.version, stored.to_bytes()?).await? {
                UpdateOutcome::Updated(version) => {
                    let is_merged = saved.unadopted;
                    *saved = Saved { version, stored, unadopted: false, unannounced: true };
                    if is_merged {
                        self.adopt(&saved.stored, changes.len()).await?;
                    } else {
                        self.unsaved.lock().drain(..changes.len());
                    }
                    is_saved = true;
                }
                UpdateOutcome::Conflict(record) => saved.take(&record)?,
                UpdateOutcome::Unknown => {
                    self.unsaved.lock().clear();
                    return Err(Refusal::unknown_session("the session has ended"));
                }
                UpdateOutcome::TooLarge | UpdateOutcome::Full => {
                    // What is refused is not set here either.
                    saved.unadopted = false;
                    self.adopt(&saved.stored, changes.len()).await?;
                    return Err(not_kept());
                }
            }
        }
        if saved.unannounced {
            self.backplane.bump(&self.topic).await?;
            saved.unannounced = false;
        }
        if is_saved { Ok(()) } else { Err(not_kept()) }
    }

    /// Delivers the client's response to the replica that expects it.
    async fn deliver(self: &Arc<Self>, id: &RequestId, body: Bytes) -> Result<(), Refusal> {
        let withdrawn = body.is_empty();
        match self.backplane.deliver_response(&self.id, id, body).await? {
            DeliverOutcome::Full if !withdrawn => {
                Err(Refusal::unavailable(Reason::Sessions, "no room is left for this response", 1))
            }
            DeliverOutcome::Unknown if !withdrawn => {
                self.step(|engine| engine.report_unknown_response(id)).await;
                Ok(())
            }
            DeliverOutcome::Taken if !withdrawn => {
                self.look_after_asker(id);
                Ok(())
            }
            // Late ones are ignored, since messages cross.
            _ => Ok(()),
        }
    }

    /// Counts a request of the client as running here, so that every replica can cancel it. Called under the engine's
    /// lock.
    pub(super) fn watch(self: &Arc<Self>, id: RequestId) {
        let (running, ended) = oneshot::channel();
        let mut watched = self.watched.lock();
        if watched.iter().all(|(known, _)| *known != id) {
            watched.push((id.clone(), running));
            drop(watched);
            drive(self.clone().until_cancelled(id, ended));
        }
    }

    /// Forgets requests that are over.
    pub(super) fn step_done(self: &Arc<Self>, engine: &ServerEngine) {
        let mut watched = self.watched.lock();
        // A call that waits is watched, too.
        if !watched.is_empty() {
            watched.retain(|(id, _)| engine.has_request(id));
            drop(watched);
            self.drop_ended(engine);
        }
    }

    async fn until_cancelled(self: Arc<Self>, id: RequestId, ended: oneshot::Receiver<()>) {
        let (backplane, writer) = (&self.backplane, self.epoch);
        let open = || backplane.open_stream(&self.id, Some(id.clone()), writer);
        let stream = match until_available("a call cannot be cancelled elsewhere", open).await {
            OpenStreamOutcome::Opened(number) => StreamKey::new(self.id.clone(), number),
            refused => return tracing::warn!(?refused, "a call can be cancelled only at this replica"),
        };
        let stopped = || backplane.writer_stopped(&stream);
        tokio::select! {
            stop = until_available("a call is not cancelled elsewhere", stopped) => {
                if let WriterStop::Cancelled | WriterStop::Unknown = stop {
                    self.step(|engine| engine.cancel_request(&id)).await;
                }
                return;
            }
            _ = ended => {}
            () = self.gone.cancelled() => {}
        }
        until_available("a call that has ended counts as running", || backplane.forget(&stream, writer))
            .await;
    }

    /// Takes a response of the client to the engine, and not under its lock.
    pub(super) async fn deliver_here(&self, id: &RequestId, outcome: InputOutcome) {
        yield_now().await;
        if let Some(driver) = self.driver.upgrade() {
            driver.deliver(id, outcome);
        }
    }

    /// Calls the engine, and not under its lock.
    pub(super) async fn step(&self, act: impl FnOnce(&mut ServerEngine)) {
        yield_now().await;
        if let Some(driver) = self.driver.upgrade() {
            driver.step(act);
        }
    }
}

fn not_kept() -> Refusal {
    Refusal::unavailable(Reason::Sessions, "what was set in this session cannot be kept", 1)
}

/// What is carried out in order.
enum Shared {
    /// Changes of the facts that are not saved yet.
    Facts,
    Response(RequestId, Bytes),
    Cancel(RequestId),
}

impl fmt::Debug for SharedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSession").field("topic", &self.topic).finish_non_exhaustive()
    }
}

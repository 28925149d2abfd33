//! A session that several replicas serve: what this one shares with the others by the backplane.
//!
//! Its facts are written when they change and read with every request. Responses to server requests, and cancellations, go
//! to the replica whose call they concern.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use refmcp_proto::engine::{InputOutcome, ServerEngine, SessionFacts, SharedOutput};
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use refmcp_server::backplane::{
    Backplane, DeliverOutcome, ExpectOutcome, OpenStreamOutcome, ResponseOutcome, SessionId, SessionRecord,
    StreamKey, UpdateOutcome, WriterStop,
};
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::refusal::{Reason, Refusal};
use crate::session::SessionTransport;
use crate::session::driver::{SessionDriver, WeakSessionDriver};
use crate::stream::response_stream::drive;

/// How often facts are written again when others have changed them meanwhile.
const ATTEMPTS: usize = 8;

/// The delay before a backplane that was unavailable is asked again.
const RETRY: Duration = Duration::from_secs(1);

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
        serde_json::from_slice(&record.facts).map_err(|fault| {
            Refusal::internal("this session cannot be read here").with_detail(fault.to_string())
        })
    }

    pub(super) fn to_bytes(&self) -> Result<Bytes, Refusal> {
        let bytes = serde_json::to_vec(self);
        bytes.map(Into::into).map_err(|_| Refusal::internal("the session cannot be kept"))
    }
}

/// This replica's part of a session.
pub(crate) struct SharedSession {
    backplane: Arc<dyn Backplane>,
    id: SessionId,
    driver: WeakSessionDriver,
    pub(super) topic: Arc<str>,
    /// Also the order in which things are shared: whatever holds the lock is done before the next begins.
    saved: tokio::sync::Mutex<Saved>,
    /// The client's requests that run here, each until its sender is dropped.
    watched: Mutex<Vec<(RequestId, oneshot::Sender<()>)>>,
}

/// What the backplane has, as far as this replica knows.
#[derive(Debug)]
struct Saved {
    version: u64,
    stored: StoredFacts,
    /// What could not be shared, for the request that wanted it.
    fault: Option<Refusal>,
}

impl SharedSession {
    pub(super) fn new(
        backplane: Arc<dyn Backplane>,
        id: SessionId,
        driver: &SessionDriver,
        version: u64,
        stored: StoredFacts,
    ) -> Arc<Self> {
        let topic = stored.topic.clone();
        let saved = tokio::sync::Mutex::new(Saved { version, stored, fault: None });
        Arc::new(Self { backplane, id, driver: driver.downgrade(), topic, saved, watched: Mutex::default() })
    }

    /// Takes over what other replicas have changed.
    pub(super) async fn refresh(&self, record: &SessionRecord) -> Result<(), Refusal> {
        let mut saved = self.saved.lock().await;
        if record.version <= saved.version {
            return Ok(());
        }
        let stored = StoredFacts::read(record)?;
        if let (Some(facts), Some(driver)) = (&stored.facts, self.driver.upgrade()) {
            driver.adopt(facts)?;
        }
        (saved.version, saved.stored) = (record.version, stored);
        Ok(())
    }

    /// Waits until all that was shared so far has reached the backplane.
    pub(super) async fn settled(&self) -> Result<(), Refusal> {
        self.saved.lock().await.fault.take().map_or(Ok(()), Err)
    }

    /// Takes what the engine has for other replicas. Called under the engine's lock.
    pub(super) fn share(self: &Arc<Self>, output: SharedOutput) {
        match output {
            SharedOutput::Expect { id, within, call } => {
                if let Some(call) = call {
                    self.watch(call);
                }
                drive(self.clone().expect(id, within));
            }
            SharedOutput::Facts(facts) => self.carry_out(Shared::Facts(facts)),
            SharedOutput::Withdraw(id) => self.carry_out(Shared::Response(id, Bytes::new())),
            SharedOutput::Response { id, outcome } => {
                let body = serde_json::to_vec(&outcome).unwrap_or_default();
                self.carry_out(Shared::Response(id, body.into()));
            }
            SharedOutput::Cancel(id) => self.carry_out(Shared::Cancel(id)),
        }
    }

    fn carry_out(self: &Arc<Self>, shared: Shared) {
        let session = self.clone();
        drive(async move {
            let mut saved = session.saved.lock().await;
            let done = match shared {
                Shared::Facts(facts) => session.save(&mut saved, *facts).await,
                Shared::Response(id, body) => session.deliver(&id, body).await,
                Shared::Cancel(id) => {
                    let cancelled = session.backplane.cancel(&session.id, &id).await;
                    cancelled.map(drop).map_err(Refusal::from)
                }
            };
            if let Err(refusal) = done {
                saved.fault = Some(refusal);
            }
        });
    }

    async fn save(&self, saved: &mut Saved, facts: SessionFacts) -> Result<(), Refusal> {
        let (mut version, mut stored) = (saved.version, saved.stored.clone());
        stored.facts = Some(facts.clone());
        for _ in 0..ATTEMPTS {
            match self.backplane.update_session(&self.id, version, stored.to_bytes()?).await? {
                UpdateOutcome::Updated(new) => {
                    // What others have changed is taken over with the next request.
                    if version == saved.version {
                        (saved.version, saved.stored) = (new, stored);
                    }
                    self.backplane.bump(&self.topic).await?;
                    return Ok(());
                }
                UpdateOutcome::Conflict(record) => {
                    let others = StoredFacts::read(&record)?;
                    let merged = match (&saved.stored.facts, &others.facts) {
                        (Some(base), Some(others)) => facts.clone().merge(base, others),
                        _ => facts.clone(),
                    };
                    (version, stored) = (record.version, StoredFacts { facts: Some(merged), ..others });
                }
                UpdateOutcome::Unknown => return Err(Refusal::unknown_session("the session has ended")),
                UpdateOutcome::TooLarge | UpdateOutcome::Full => break,
            }
        }
        Err(Refusal::unavailable(Reason::Sessions, "what was set in this session cannot be kept", 1))
    }

    /// Delivers the client's response to the replica that expects it.
    async fn deliver(&self, id: &RequestId, body: Bytes) -> Result<(), Refusal> {
        let withdrawn = body.is_empty();
        match self.backplane.deliver_response(&self.id, id, body).await? {
            DeliverOutcome::Full if !withdrawn => {
                Err(Refusal::unavailable(Reason::Sessions, "no room is left for this response", 1))
            }
            DeliverOutcome::Unknown if !withdrawn => {
                self.step(|engine| engine.report_unknown_response(id)).await;
                Ok(())
            }
            // Late ones are ignored, since messages cross.
            _ => Ok(()),
        }
    }

    /// Waits for the response to a request that is about to be sent. An empty body withdraws it.
    async fn expect(self: Arc<Self>, id: RequestId, within: Duration) {
        let refused = |why: &'static str| InputOutcome::Error(RpcError::internal(why));
        let outcome = match self.backplane.expect_response(&self.id, &id, within).await {
            Ok(ExpectOutcome::Expected) => match self.response(&id).await {
                Some(body) if !body.is_empty() => {
                    serde_json::from_slice(&body).unwrap_or_else(|_| refused("the response cannot be read"))
                }
                // The engine has a deadline of its own.
                _ => return,
            },
            Ok(ExpectOutcome::Full) => refused("too many requests to the client are open"),
            Ok(ExpectOutcome::Unknown) => return,
            Err(fault) => {
                tracing::warn!(%fault, "a request to the client was given up");
                refused("requests to the client are not possible now")
            }
        };
        self.step(|engine| engine.deliver(&id, outcome)).await;
    }

    async fn response(&self, id: &RequestId) -> Option<Bytes> {
        loop {
            match self.backplane.wait_response(&self.id, id).await {
                Ok(ResponseOutcome::Body(body)) => return Some(body),
                Ok(ResponseOutcome::Overdue | ResponseOutcome::Unknown) => return None,
                Err(fault) => {
                    tracing::warn!(%fault, "a response is waited for again");
                    tokio::time::sleep(RETRY).await;
                }
            }
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
    pub(super) fn step_done(&self, engine: &ServerEngine) {
        self.watched.lock().retain(|(id, _)| engine.has_request(id));
    }

    async fn until_cancelled(self: Arc<Self>, id: RequestId, ended: oneshot::Receiver<()>) {
        let stream = match self.backplane.open_stream(&self.id, Some(id.clone())).await {
            Ok(OpenStreamOutcome::Opened(number)) => StreamKey::new(self.id.clone(), number),
            refused => return tracing::warn!(?refused, "a call can be cancelled only at this replica"),
        };
        tokio::select! {
            stop = self.backplane.writer_stopped(&stream) => match stop {
                Ok(WriterStop::Cancelled | WriterStop::Unknown) => {
                    self.step(|engine| engine.cancel_request(&id)).await;
                }
                Ok(WriterStop::Ended) => {}
                Err(fault) => tracing::warn!(%fault, "a call can be cancelled only at this replica"),
            },
            _ = ended => {
                if let Err(fault) = self.backplane.forget(&stream).await {
                    tracing::warn!(%fault, "a call that has ended counts as running");
                }
            }
        }
    }

    /// Calls the engine, and not under its lock.
    async fn step(&self, act: impl FnOnce(&mut ServerEngine)) {
        yield_now().await;
        if let Some(driver) = self.driver.upgrade() {
            driver.step(act);
        }
    }
}

/// What is carried out in order.
enum Shared {
    Facts(Box<SessionFacts>),
    Response(RequestId, Bytes),
    Cancel(RequestId),
}

impl fmt::Debug for SharedSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedSession").field("topic", &self.topic).finish_non_exhaustive()
    }
}

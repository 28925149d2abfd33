//! Calls that wait for input of the client, parked in the backplane: whichever replica claims one goes on with it, and runs
//! its handler again with the responses.
//!
//! The replica that asked is woken by the last response, and claims the call at once. One that gets a response, or whose
//! reader resumes the stream of such a call, waits for the responses as well and gives the first some time; then it claims
//! the call, and with it the stream. What the first still writes is fenced from then on.

use std::ops::RangeInclusive;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use refmcp_proto::engine::{CallId, InputOutcome, ParkedCall, ServerEngine, WaitingCall};
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use refmcp_server::backplane::{ExpectOutcome, ParkOutcome, ResponseOutcome, StreamNumber};
use tokio::time::{sleep, timeout};

use crate::session::shared::SharedSession;
use crate::stream::message::Gate;
use crate::stream::response_stream::{ResponseStream, drive};
use crate::stream::retry::until_available;

/// How long the replica that asked has to claim a call before others do.
const CLAIM_AFTER: Duration = Duration::from_secs(2);

/// How long a parked call is kept after its last response was due.
const KEPT_AFTER: Duration = Duration::from_secs(60);

/// A call that waits for input here.
#[derive(Debug)]
pub(super) struct ParkedHere {
    /// The client's id of the request.
    request: RequestId,
    /// Where its messages go.
    stream: Option<Arc<ResponseStream>>,
    /// Opens when the call is parked, or cannot be.
    gate: Gate,
    /// What it is parked under.
    key: OnceLock<ParkedKey>,
}

/// What a call is parked under: its stream, and the ids of its requests to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ParkedKey {
    stream: StreamNumber,
    ids: RangeInclusive<i64>,
}

impl ParkedKey {
    fn new(stream: StreamNumber, ids: &[RequestId]) -> Option<Self> {
        let (Some(RequestId::Integer(first)), Some(RequestId::Integer(last))) = (ids.first(), ids.last())
        else {
            return None;
        };
        Some(Self { stream, ids: *first..=*last })
    }

    fn text(&self) -> Box<str> {
        format!("{}/{}-{}", self.stream.0, self.ids.start(), self.ids.end()).into()
    }

    /// Whether this is the key of a call that waits and whose messages go to this stream.
    pub(super) fn is_of(text: &str, stream: StreamNumber) -> bool {
        Self::read(text).is_some_and(|key| key.stream == stream)
    }

    fn read(text: &str) -> Option<Self> {
        let (stream, ids) = text.split_once('/')?;
        let (first, last) = ids.split_once('-')?;
        Some(Self {
            stream: StreamNumber(stream.parse().ok()?),
            ids: first.parse().ok()?..=last.parse().ok()?,
        })
    }
}

impl SharedSession {
    /// Waits for the responses to requests that are about to be sent, for a call whose messages go to this stream. The
    /// requests are sent once the gate is open, if their responses can be expected.
    pub(super) fn expect(
        self: &Arc<Self>,
        ids: Vec<RequestId>,
        within: Duration,
        call: Option<WaitingCall>,
        stream: Option<Arc<ResponseStream>>,
    ) -> Gate {
        let (closed, gate) = Gate::new();
        let mut parking = None;
        if let Some(WaitingCall { number, id: request, parked: Some(parked), .. }) = call {
            let (gate, key) = (gate.clone(), OnceLock::new());
            let here = Arc::new(ParkedHere { request, stream: stream.clone(), gate, key });
            self.parked.lock().insert(number, here.clone());
            parking = stream.map(|stream| (here, parked, stream));
        }
        let session = self.clone();
        self.unless_gone(async move {
            let registered = timeout(within, async {
                let is_expected = session.register(&ids, within).await;
                if let Some((here, parked, stream)) = parking
                    && is_expected
                {
                    session.park(&here, &parked, &stream, &ids, within).await;
                }
                is_expected
            });
            let is_expected = registered.await.unwrap_or(false);
            // A response to a request that is not registered would be unknown.
            closed.send_replace(!is_expected);
            drop(closed);
            if is_expected {
                for id in ids {
                    let waiting = session.clone();
                    session.unless_gone(async move { waiting.await_response(&id).await });
                }
            }
        });
        gate
    }

    /// Does this work while the engine is there.
    pub(super) fn unless_gone(&self, work: impl Future<Output = ()> + Send + 'static) {
        let gone = self.gone.clone();
        drive(async move { gone.run_until_cancelled(work).await.unwrap_or_default() });
    }

    /// Registers requests whose responses are expected. One that cannot be registered fails.
    async fn register(&self, ids: &[RequestId], within: Duration) -> bool {
        for id in ids {
            let expect = || self.backplane.expect_response(&self.id, id, within);
            match until_available("a request to the client is not sent yet", expect).await {
                ExpectOutcome::Expected => {}
                ExpectOutcome::Full => {
                    let error = RpcError::internal("too many requests to the client are open");
                    for id in ids {
                        let outcome = InputOutcome::Error(error.clone());
                        self.deliver_here(id, outcome).await;
                    }
                    return false;
                }
                ExpectOutcome::Unknown => return false,
            }
        }
        true
    }

    async fn park(
        &self,
        here: &ParkedHere,
        parked: &ParkedCall,
        stream: &ResponseStream,
        ids: &[RequestId],
        within: Duration,
    ) {
        let Ok(state) = serde_json::to_vec(parked).map(Bytes::from) else { return };
        let Some(number) = stream.log_number().await else { return };
        let Some(key) = ParkedKey::new(number, ids) else { return };
        let text = key.text();
        let park = || self.backplane.park(&self.id, &text, state.clone(), within + KEPT_AFTER);
        match until_available("a request to the client is not sent yet", park).await {
            ParkOutcome::Parked | ParkOutcome::Already => {
                drop(here.key.set(key));
                self.runs_no_longer(number);
            }
            ParkOutcome::Full => tracing::warn!("a call that waits for input can go on at this replica only"),
            ParkOutcome::Unknown => {}
        }
    }

    /// Takes a response to the engine, which has a deadline of its own. An empty body withdraws the request.
    async fn await_response(&self, id: &RequestId) {
        if let ResponseOutcome::Body(body) = self.response(id).await
            && !body.is_empty()
        {
            let outcome = read_response(&body);
            self.deliver_here(id, outcome).await;
        }
    }

    async fn response(&self, id: &RequestId) -> ResponseOutcome {
        let wait = || self.backplane.wait_response(&self.id, id);
        until_available("a response is not heard of", wait).await
    }

    /// Goes on with a call that was parked here and has all of its responses, unless another replica does.
    pub(super) fn claim(self: &Arc<Self>, call: CallId) {
        let (session, here) = (self.clone(), self.parked.lock().remove(&call));
        self.unless_gone(async move {
            let mut is_ours = true;
            if let Some(here) = here {
                here.gate.clone().opened().await;
                if let Some(key) = here.key.get() {
                    is_ours = session.try_claim(key).await.is_some();
                    if let (true, Some(stream)) = (is_ours, &here.stream) {
                        session.runs_here(stream.clone(), key.stream, here.request.clone());
                    }
                }
            }
            session
                .step(|engine| if is_ours { engine.run_claimed(call) } else { engine.abandon(call) })
                .await;
        });
    }

    /// Whether a call is parked. If so, it is left to other replicas.
    pub(super) fn leave(&self, call: CallId) -> bool {
        let mut parked = self.parked.lock();
        let is_parked = parked.get(&call).is_some_and(|here| here.key.get().is_some());
        if is_parked {
            parked.remove(&call);
        }
        is_parked
    }

    /// Takes calls out of the backplane that have ended while they waited. Called under the engine's lock.
    pub(super) fn drop_ended(self: &Arc<Self>, engine: &ServerEngine) {
        let mut parked = self.parked.lock();
        if parked.is_empty() {
            return;
        }
        let ended: Vec<_> = parked.extract_if(|call, _| !engine.is_in_flight(*call)).collect();
        drop(parked);
        for (_, here) in ended {
            let session = self.clone();
            self.unless_gone(async move {
                here.gate.clone().opened().await;
                if let Some(key) = here.key.get() {
                    let text = key.text();
                    let claim = || session.backplane.claim(&session.id, &text, session.epoch, None);
                    until_available("a call that has ended is still parked", claim).await;
                }
            });
        }
    }

    async fn try_claim(&self, key: &ParkedKey) -> Option<(Bytes, u64)> {
        let text = key.text();
        let claim = || self.backplane.claim(&self.id, &text, self.epoch, Some(key.stream));
        let claimed = until_available("a call that has its input does not go on", claim).await?;
        Some((claimed.state, claimed.last))
    }

    /// Looks after the call that this response is for: its replica may be gone.
    pub(super) fn look_after_asker(self: &Arc<Self>, id: &RequestId) {
        if let RequestId::Integer(number) = *id {
            self.look_after(move |key| key.ids.contains(&number));
        }
    }

    /// Looks after the call whose stream is resumed here.
    pub(super) fn look_after_stream(self: &Arc<Self>, stream: StreamNumber) {
        self.look_after(move |key| key.stream == stream);
    }

    /// Goes on with parked calls of other replicas, unless those do so themselves.
    fn look_after(self: &Arc<Self>, is_wanted: impl Fn(&ParkedKey) -> bool + Send + 'static) {
        let session = self.clone();
        self.unless_gone(async move {
            // A claim can be made again, so none may be made twice for one run: keys are released under the lock that they
            // are listed under, so that no list from before a claim is worked off after it.
            let mut looked_after = session.looked_after.lock().await;
            let keys = || session.backplane.parked_keys(&session.id);
            let keys = until_available("calls of other replicas are not looked after", keys).await;
            for text in keys {
                let Some(key) = ParkedKey::read(&text).filter(|key| is_wanted(key)) else { continue };
                let epoch = ServerEngine::epoch_of_request(&RequestId::Integer(*key.ids.start()));
                let is_own = epoch == Some(session.epoch.0);
                if !is_own && looked_after.insert(text.clone()) {
                    let work = session.clone();
                    session.unless_gone(async move {
                        work.go_on_with(&key).await;
                        work.looked_after.lock().await.remove(&text);
                    });
                }
            }
        });
    }

    /// Goes on with a parked call once it has its responses, if its replica does not.
    async fn go_on_with(&self, key: &ParkedKey) {
        let mut responses = Vec::new();
        for id in key.ids.clone().map(RequestId::Integer) {
            let outcome = match self.response(&id).await {
                // It was withdrawn: its replica is there, or the call has ended.
                ResponseOutcome::Body(body) if body.is_empty() => return,
                ResponseOutcome::Body(body) => read_response(&body),
                ResponseOutcome::Overdue => InputOutcome::TimedOut,
                ResponseOutcome::Unknown => return,
            };
            responses.push((id, outcome));
        }
        sleep(CLAIM_AFTER).await;
        let Some((state, last)) = self.try_claim(key).await else { return };
        let mut parked: ParkedCall = match serde_json::from_slice(&state) {
            Ok(parked) => parked,
            Err(error) => {
                return tracing::error!(%error, "a parked call cannot be read; it has no outcome");
            }
        };
        responses.into_iter().for_each(|(id, outcome)| parked.respond(&id, outcome));
        tracing::info!("this replica goes on with a call of another one");
        if let Some(driver) = self.driver.upgrade() {
            driver.resume_call(key.stream, last, parked.into_call());
        }
    }
}

fn read_response(body: &[u8]) -> InputOutcome {
    let unreadable = |_| InputOutcome::Error(RpcError::internal("the response cannot be read"));
    serde_json::from_slice(body).unwrap_or_else(unreadable)
}

#[cfg(test)]
mod tests {
    use refmcp_server::Server;
    use refmcp_server::backplane::{
        Backplane, MemoryBackplane, NewSession, OpenStreamOutcome, SessionId, WriterEpoch,
    };

    use super::*;
    use crate::Endpoint;
    use crate::access::caller::{Caller, Client};
    use crate::session::SessionTransport;
    use crate::session::shared::StoredFacts;

    /// A client that answers for ever must not make the table grow for ever.
    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_claimed_is_not_looked_after_any_more() {
        let backplane = Arc::new(MemoryBackplane::default());
        let server = Server::builder("replica", "1").build().unwrap();
        let endpoint = Endpoint::builder(server).backplane(backplane.clone()).build().inner;
        let caller = Caller {
            client: Client::default(),
            token: None,
            origin: None,
            observed: Default::default(),
            memory: endpoint.server.memory().account(),
        };
        let (id, transport) = (SessionId::new("a"), SessionTransport::Streamable);
        let stored = StoredFacts { transport, topic: "topic".into(), engines: 1, facts: None };
        let record = NewSession { facts: stored.to_bytes().unwrap(), ..NewSession::default() };
        let minute = Duration::from_secs(60);
        backplane.create_session(&id, record, minute).await.unwrap();
        let session = endpoint.adopt(transport, id.reveal(), &caller, &Default::default()).await.unwrap();
        let shared = session.as_ref().and_then(|session| session.shared.as_ref()).unwrap();
        for number in 1..=3 {
            let request = RequestId::Integer(number);
            let opened = backplane.open_stream(&id, Some(request.clone()), WriterEpoch(0)).await.unwrap();
            let OpenStreamOutcome::Opened(stream) = opened else { panic!("{opened:?}") };
            let key = ParkedKey::new(stream, std::slice::from_ref(&request)).unwrap().text();
            backplane.park(&id, &key, Bytes::from_static(b"a call"), minute).await.unwrap();
            backplane.expect_response(&id, &request, minute).await.unwrap();
            backplane.deliver_response(&id, &request, Bytes::from_static(b"{}")).await.unwrap();
            shared.look_after_asker(&request);
            assert_eq!(shared.looked_after.lock().await.len(), 1);
            sleep(CLAIM_AFTER * 2).await;
            assert_eq!(backplane.parked_keys(&id).await.unwrap(), [], "it was claimed");
            assert_eq!(shared.looked_after.lock().await.len(), 0);
        }
    }

    #[test]
    fn a_key_has_the_stream_and_the_ids_of_the_requests() {
        let ids = [5, 6, 7].map(RequestId::Integer);
        let key = ParkedKey::new(StreamNumber(3), &ids).unwrap();
        assert_eq!(&*key.text(), "3/5-7");
        assert_eq!(ParkedKey::read("3/5-7"), Some(key));
        for other in ["", "3", "3/5", "task/1", "3/5-", "a/5-7"] {
            assert_eq!(ParkedKey::read(other), None, "{other}");
        }
    }
}

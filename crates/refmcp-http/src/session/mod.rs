//! Sessions: opening, finding and expiring them. The `driver` runs the engine of one session, `streams` has its streams;
//! `quotas` says how many there may be.
//! Where several processes serve one session, `shared` is this process's part of it, `replica` keeps it up to date, and
//! `parked` has calls that wait for input.

pub(crate) mod driver;
mod parked;
pub(crate) mod quotas;
mod replica;
mod running;
pub(crate) mod shared;
pub(crate) mod streams;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::request::Parts;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use foldhash::HashMap;
use parking_lot::{Mutex, RwLock};
use refmcp_proto::http::{WrongVersion, check_session_version, no_session};
use refmcp_proto::revision::{Resumption, Rules};
use refmcp_server::backplane::{Backplane, CreateOutcome, NewSession, SessionId, StreamNumber, WriterEpoch};
use refmcp_server::transport::clock::Clock;
use serde::{Deserialize, Serialize};

use crate::access::caller::Caller;
use crate::endpoint::EndpointState;
use crate::options::Options;
use crate::refusal::{Reason, Refusal};
use crate::request::{headers, http_sse};
use crate::session::driver::SessionDriver;
use crate::session::quotas::{ClientKey, NoRoom, SessionQuota, SessionQuotas, SessionUse};
use crate::session::shared::{SharedSession, StoredFacts};
use crate::stream::response_stream::drive;

#[derive(Debug)]
pub(crate) struct HttpSession {
    pub(crate) id: SessionId,
    transport: SessionTransport,
    pub(crate) driver: SessionDriver,
    /// The rules of its revision; none where `initialize` comes later.
    rules: Option<&'static Rules>,
    /// The time of the last request, in milliseconds of the clock.
    used: AtomicU64,
    /// When the backplane was last told of a request.
    reported: AtomicU64,
    /// What this replica shares with others, where there are any.
    shared: Option<Arc<SharedSession>>,
    /// The client that it belongs to and counts for.
    quota: SessionQuota,
}

impl HttpSession {
    /// Reserves memory for a client that says so much of itself, where `initialize` comes once the session is open.
    pub(crate) fn reserve_client(&self, client_bytes: usize) -> Result<(), Refusal> {
        self.driver.resize_memory(session_bytes(client_bytes)).map_err(Refusal::no_memory)
    }

    /// The use of the session.
    fn last_use(&self) -> SessionUse {
        match self.driver.is_in_use() {
            true => SessionUse::Busy,
            false => SessionUse::Idle(self.used.load(Ordering::Relaxed)),
        }
    }

    /// Looks after the call of another replica whose stream is resumed here.
    pub(crate) fn stream_resumed(&self, stream: StreamNumber) {
        if let Some(shared) = &self.shared {
            shared.look_after_stream(stream);
            shared.look_after_runner(stream);
        }
    }
}

impl AsRef<SessionQuota> for HttpSession {
    fn as_ref(&self) -> &SessionQuota {
        &self.quota
    }
}

/// The transport of a session; its id is valid for no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SessionTransport {
    Streamable,
    HttpSse,
}

/// What a session costs besides what is reserved for it.
const SESSION_BYTES: usize = 2 << 10;

/// Bytes of what a client says of itself for which no more is reserved, and what each byte more costs: JSON is kept parsed.
const SHORT_CLIENT: usize = 1 << 10;
const PARSED: usize = 4;

/// What a session costs whose client says so much of itself.
fn session_bytes(client_bytes: usize) -> usize {
    SESSION_BYTES + client_bytes.saturating_sub(SHORT_CLIENT) * PARSED
}

/// Milliseconds after which a silent session frees memory.
const SHRINK_AFTER: u64 = 1000;

/// All sessions of this process.
#[derive(Debug)]
pub(crate) struct Sessions {
    clock: Clock,
    session_timeout: Duration,
    pub(crate) backplane: Arc<dyn Backplane>,
    /// Whether other processes may use the backplane.
    pub(crate) is_shared: bool,
    open: RwLock<HashMap<SessionId, Arc<HttpSession>>>,
    /// How many there are of each client, those that are being opened included. Its lock is taken before the others.
    quotas: Mutex<SessionQuotas<HttpSession>>,
    /// Shared sessions by their topics.
    topics: RwLock<HashMap<Arc<str>, SessionId>>,
}

impl Sessions {
    pub(crate) fn new(
        clock: Clock,
        options: &Options,
        backplane: Arc<dyn Backplane>,
        is_shared: bool,
    ) -> Self {
        let (open, topics, session_timeout) = (RwLock::default(), RwLock::default(), options.session_timeout);
        let quotas = SessionQuotas::new(options.max_sessions, options.sessions_per_client());
        Self { clock, session_timeout, backplane, is_shared, open, quotas: Mutex::new(quotas), topics }
    }

    fn get(&self, id: &SessionId) -> Option<Arc<HttpSession>> {
        self.open.read().get(id).cloned()
    }

    fn with_topic(&self, topic: &str) -> Option<Arc<HttpSession>> {
        let id = self.topics.read().get(topic).cloned()?;
        self.get(&id)
    }

    /// Whether the session that a request names is observed, by its header or, over HTTP+SSE, in its URI; `None` where it
    /// names none that is here.
    pub(crate) fn is_observed(&self, head: &Parts) -> Option<bool> {
        let of_header = head.headers.get(headers::SESSION_ID).and_then(|id| id.to_str().ok());
        let id = of_header.or_else(|| http_sse::session_id(&head.uri))?;
        self.open.read().get(id).map(|session| session.driver.observed().is_observed())
    }

    /// The session of this id, which stays alive by being used. One of another principal is not found.
    pub(crate) fn find(
        &self,
        transport: SessionTransport,
        id: &str,
        caller: &Caller,
    ) -> Result<Arc<HttpSession>, Refusal> {
        let matches = |session: &&Arc<HttpSession>| {
            session.transport == transport && session.quota.client.principal() == caller.principal()
        };
        let Some(session) = self.open.read().get(id).filter(matches).cloned() else {
            return Err(Refusal::unknown_session("there is no such session"));
        };
        caller.observed.join(session.driver.observed());
        if session.driver.has_ended() {
            caller.observed.closes("the server has ended the session");
            if let Some(session) = self.drop_local(&session.id) {
                self.forget(session.id.clone(), session.shared.as_ref().map(|shared| shared.topic.clone()));
            }
            return Err(Refusal::unknown_session("the session has ended"));
        }
        let now = self.clock.now().as_millis();
        session.used.store(now, Ordering::Relaxed);
        self.report_use(&session, now);
        Ok(session)
    }

    /// Reports to the backplane from time to time that a session is in use.
    fn report_use(&self, session: &HttpSession, now: u64) {
        let interval = millis(self.session_timeout) / 10;
        let reported = session.reported.load(Ordering::Relaxed);
        if now.saturating_sub(reported) < interval
            || session.reported.swap(now, Ordering::Relaxed) != reported
        {
            return;
        }
        let (backplane, id) = (self.backplane.clone(), session.id.clone());
        drive(async move {
            if let Err(error) = backplane.session(&id).await {
                tracing::warn!(%error, "a session was not kept alive");
            }
        });
    }

    /// Ends a session, at all replicas, for this reason.
    pub(crate) fn close(&self, id: &SessionId, why: &str) {
        if let Some(session) = self.drop_local(id) {
            self.forget(id.clone(), session.shared.as_ref().map(|shared| shared.topic.clone()));
            session.driver.observed().closed(&why);
        }
    }

    /// The same, and done when the backplane knows it; the caller reports the end to the observer. A session that the
    /// backplane could not be told of goes on.
    pub(crate) async fn close_now(&self, session: &HttpSession) -> Result<(), Refusal> {
        self.backplane.close_session(&session.id).await?;
        self.drop_local(&session.id);
        if let Some(shared) = &session.shared
            && let Err(error) = self.backplane.bump(&shared.topic).await
        {
            tracing::warn!(%error, "other replicas do not hear yet that a session has ended");
        }
        Ok(())
    }

    /// Ends this process's part of a session.
    fn drop_local(&self, id: &SessionId) -> Option<Arc<HttpSession>> {
        let mut open = self.open.write();
        let session = open.remove(id)?;
        if let Some(shared) = &session.shared {
            // Under the lock: a session that is adopted again has the same topic.
            self.topics.write().remove(&shared.topic);
        }
        drop(open);
        self.quotas.lock().close(id, &session);
        session.driver.end();
        Some(session)
    }

    fn forget(&self, id: SessionId, topic: Option<Arc<str>>) {
        let backplane = self.backplane.clone();
        drive(async move {
            let mut closed = backplane.close_session(&id).await.map(drop);
            if let (Ok(()), Some(topic)) = (&closed, topic) {
                closed = backplane.bump(&topic).await.map(drop);
            }
            if let Err(error) = closed {
                tracing::warn!(%error, "a session was not closed in the backplane; it expires there");
            }
        });
    }

    pub(crate) fn all(&self) -> Vec<Arc<HttpSession>> {
        self.open.read().values().cloned().collect()
    }

    /// The number of sessions of each transport.
    pub(crate) fn count(&self) -> [(&'static str, usize); 2] {
        let open = self.open.read();
        let is_sse = |session: &&Arc<HttpSession>| session.transport == SessionTransport::HttpSse;
        let http_sse = open.values().filter(is_sse).count();
        [("streamable", open.len() - http_sse), ("http+sse", http_sse)]
    }

    /// Session timeout (idle expiry): ends sessions that were not used for long, and frees memory.
    pub(crate) async fn sweep(&self, options: &Options) {
        let now = self.clock.now().as_millis();
        for session in self.all() {
            let driver = &session.driver;
            driver.observed().release_unwanted();
            let silent = now.saturating_sub(session.used.load(Ordering::Relaxed));
            let in_use = driver.is_in_use();
            let never_ready = silent >= millis(options.initialize_within) && !driver.is_ready();
            if never_ready && (in_use || session.shared.is_none()) {
                // Another replica may know more. One that cannot be asked may, too.
                if self.refresh(&session).await && !driver.is_ready() {
                    self.close(&session.id, "the session was not used");
                }
            } else if never_ready {
                self.drop_local(&session.id);
            } else if silent >= millis(self.session_timeout) && !in_use {
                // A shared one may be in use elsewhere; where it is not, the backplane forgets it.
                if session.shared.is_some() {
                    self.drop_local(&session.id);
                } else {
                    self.close(&session.id, "the session was not used");
                }
            } else if in_use {
                self.report_use(&session, now);
            } else if silent >= SHRINK_AFTER {
                driver.shrink();
            }
        }
        {
            let mut open = self.open.write();
            if open.capacity() > 1024 && open.capacity() / 4 > open.len() {
                open.shrink_to_fit();
            }
        }
        if let Err(error) = self.backplane.sweep().await {
            tracing::warn!(%error, "the backplane was not swept");
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The place of a session among those that may be open. It is given back if no session is opened in it.
struct SessionPlace<'a> {
    sessions: &'a Sessions,
    /// The client that it counts for.
    client: Arc<ClientKey>,
    /// A session was opened in it.
    filled: bool,
}

impl Drop for SessionPlace<'_> {
    fn drop(&mut self) {
        if !self.filled {
            self.sessions.quotas.lock().give_back(&self.client);
        }
    }
}

impl EndpointState {
    /// Takes a place for a session, where all are taken that of a session which is idle.
    fn take_place(&self, caller: &Caller) -> Result<SessionPlace<'_>, Refusal> {
        let (sessions, now) = (&self.sessions, self.clock.now().as_millis());
        let taken = sessions.quotas.lock().take_place(&caller.client_key(), now, HttpSession::last_use);
        let (client, evicted) = taken.map_err(|why| match why {
            NoRoom::Total => too_many_sessions(),
            NoRoom::Client => {
                let why = "too many sessions of this client are open, and none of them is idle";
                Refusal::too_many(Reason::ClientSessions, why, 30)
            }
        })?;
        if let Some(evicted) = evicted {
            self.evicted(caller.client);
            if sessions.is_shared {
                // It may be in use elsewhere, or come back.
                sessions.drop_local(&evicted.id);
            } else {
                sessions.close(&evicted.id, "another session needed its place");
            }
        }
        Ok(SessionPlace { sessions, client, filled: false })
    }

    /// Opens a session, unless there are too many. `client_bytes` is the length of what the client says of itself.
    pub(crate) async fn open_session(
        &self,
        transport: SessionTransport,
        caller: &Caller,
        driver: SessionDriver,
        client_bytes: usize,
    ) -> Result<Arc<HttpSession>, Refusal> {
        self.check_running()?;
        let id = SessionId::new(random_text()?);
        let place = self.take_place(caller)?;
        let memory = driver.memory().open(session_bytes(client_bytes)).map_err(Refusal::no_memory)?;
        let (backplane, is_shared) = (&self.sessions.backplane, self.sessions.is_shared);
        let rules = driver.session_rules();
        let resumable = transport == SessionTransport::Streamable
            && rules.is_some_and(|rules| rules.resumption != Resumption::Never);
        let mut shared = None;
        if is_shared || resumable {
            let revision = rules.map(|rules| self.revision_name(rules.revision)).unwrap_or_default();
            let mut record =
                NewSession { principal: caller.principal().cloned(), revision, facts: Bytes::new() };
            if is_shared {
                let topic = random_text()?.into();
                let stored = StoredFacts { transport, topic, engines: 1, facts: driver.facts() };
                record.facts = stored.to_bytes()?;
                let epoch = WriterEpoch::default();
                shared = Some(SharedSession::new(backplane.clone(), id.clone(), &driver, epoch, 1, stored));
            }
            let mut idle = self.options.session_timeout;
            if !is_shared {
                // The backplane hears of requests only from time to time, so its session must expire later than ours.
                idle += idle / 5;
            }
            match backplane.create_session(&id, record, idle).await? {
                CreateOutcome::Created => {
                    driver.keep_log(backplane.clone(), id.clone(), WriterEpoch::default());
                }
                CreateOutcome::Full => return Err(too_many_sessions()),
                CreateOutcome::Taken | CreateOutcome::TooLarge => {
                    return Err(Refusal::internal("the session cannot be kept"));
                }
            }
        }
        self.metrics.sessions_opened.fetch_add(1, Ordering::Relaxed);
        driver.keep_memory(memory);
        Ok(self.add_session(id, transport, place, driver, shared))
    }

    /// Adds a session in its place. One that is there already stays.
    fn add_session(
        &self,
        id: SessionId,
        transport: SessionTransport,
        mut place: SessionPlace<'_>,
        driver: SessionDriver,
        shared: Option<Arc<SharedSession>>,
    ) -> Arc<HttpSession> {
        driver.observed().set_session(id.reveal());
        driver.observed().negotiated(|| driver.session_rules().map(|rules| rules.revision));
        let now = self.clock.now().as_millis();
        let mut quotas = self.sessions.quotas.lock();
        let mut open = self.sessions.open.write();
        if let Some(session) = open.get(&id) {
            return session.clone();
        }
        if let Some(shared) = &shared {
            driver.share(shared.clone());
            self.sessions.topics.write().insert(shared.topic.clone(), id.clone());
        }
        let session = Arc::new(HttpSession {
            id: id.clone(),
            transport,
            rules: driver.session_rules(),
            driver,
            used: AtomicU64::new(now),
            reported: AtomicU64::new(now),
            shared,
            quota: SessionQuota::new(place.client.clone(), now),
        });
        quotas.open(&id, &session);
        place.filled = true;
        open.insert(id, session.clone());
        session
    }

    /// The session that the headers name. A wrong version header is recorded as a finding of the session, whether it is
    /// tolerated or not.
    pub(crate) fn find_session(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Arc<HttpSession>, Refusal> {
        let session = self.named_session(caller, headers)?;
        if let Some(rules) = session.rules {
            let bad = |wrong: WrongVersion| {
                session.driver.record_refused_finding(&caller.observed, wrong.finding);
                Refusal::bad_request(Reason::Revision, wrong.why)
            };
            let named = headers::value(headers, &headers::PROTOCOL_VERSION);
            let named = named.map_err(|why| bad(WrongVersion::new(why, rules.revision)))?;
            let finding = check_session_version(named, rules, self.options.require_version).map_err(bad)?;
            session.driver.record_finding(finding);
        }
        Ok(session)
    }

    /// The same, whatever the version header says.
    pub(crate) fn named_session(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Arc<HttpSession>, Refusal> {
        let bad = |why: String| Refusal::broken(Reason::Session, no_session(why));
        let id = headers::value(headers, &headers::SESSION_ID).map_err(bad)?;
        let id = id.ok_or_else(|| bad("no Mcp-Session-Id header; initialize opens a session".to_owned()))?;
        self.sessions.find(SessionTransport::Streamable, id, caller)
    }
}

fn too_many_sessions() -> Refusal {
    Refusal::unavailable(Reason::Sessions, "too many sessions are open", 30)
}

/// 192 random bits, in visible ASCII characters.
fn random_text() -> Result<String, Refusal> {
    let mut bits = [0; 24];
    getrandom::fill(&mut bits).map_err(|error| {
        tracing::error!(%error, "no random bytes for a session id");
        Refusal::internal("no session can be opened now")
    })?;
    Ok(URL_SAFE_NO_PAD.encode(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_unique_and_visible_ascii() {
        let ids: std::collections::HashSet<_> = (0..10_000).map(|_| random_text().unwrap()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_graphic())));
    }
}

//! The sessions of the revisions that have them.

pub(crate) mod driver;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use foldhash::HashMap;
use parking_lot::RwLock;
use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::revision::Resumption;
use refmcp_server::Policy;
use refmcp_server::backplane::{Backplane, CreateOutcome, NewSession, SessionId};
use refmcp_server::transport::clock::Clock;

use crate::access::caller::Caller;
use crate::endpoint::Inner;
use crate::options::Options;
use crate::refusal::{Reason, Refusal};
use crate::request::{get, headers};
use crate::session::driver::SessionDriver;
use crate::stream::response_stream::drive;

/// A session, as the client names it.
#[derive(Debug)]
pub(crate) struct HttpSession {
    pub(crate) id: SessionId,
    transport: SessionTransport,
    /// Whose it is, where anybody asks.
    principal: Option<Arc<str>>,
    pub(crate) conversation: Arc<SessionDriver>,
    /// When it was last used, in milliseconds of the clock.
    used: AtomicU64,
    /// When the shared state was last told so.
    told: AtomicU64,
}

/// By which transport a session is used; its id is good for no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionTransport {
    /// One endpoint, streamable HTTP.
    Streamable,
    /// Two endpoints, HTTP+SSE.
    HttpSse,
}

/// Milliseconds after which a silent session keeps no more room than it needs.
const RESTING: u64 = 1000;

/// All sessions that are served here.
#[derive(Debug)]
pub(crate) struct Sessions {
    clock: Clock,
    idle: Duration,
    backplane: Arc<dyn Backplane>,
    open: RwLock<HashMap<SessionId, Arc<HttpSession>>>,
}

impl Sessions {
    pub(crate) fn new(clock: Clock, idle: Duration, backplane: Arc<dyn Backplane>) -> Self {
        Self { clock, idle, backplane, open: RwLock::default() }
    }

    /// The session of this id, if it is the caller's; using it keeps it alive. Nobody learns of one that is somebody
    /// else's.
    pub(crate) fn find(
        &self,
        transport: SessionTransport,
        id: &str,
        caller: &Caller,
    ) -> Option<Arc<HttpSession>> {
        let is_meant = |session: &&Arc<HttpSession>| {
            session.transport == transport && session.principal.as_ref() == caller.principal()
        };
        let session = self.open.read().get(id).filter(is_meant).cloned()?;
        let now = self.clock.now().as_millis();
        session.used.store(now, Ordering::Relaxed);
        self.keep_alive(&session, now);
        Some(session)
    }

    /// Tells the shared state that a session is in use, now and then.
    fn keep_alive(&self, session: &HttpSession, now: u64) {
        let seldom = millis(self.idle) / 10;
        let told = session.told.load(Ordering::Relaxed);
        if now.saturating_sub(told) < seldom || session.told.swap(now, Ordering::Relaxed) != told {
            return;
        }
        let (backplane, id) = (self.backplane.clone(), session.id.clone());
        drive(async move {
            if let Err(fault) = backplane.session(&id).await {
                tracing::warn!(%fault, "a session was not kept alive");
            }
        });
    }

    /// Ends a session.
    pub(crate) fn close(&self, id: &SessionId) -> Option<Arc<HttpSession>> {
        let session = self.open.write().remove(id)?;
        session.conversation.end();
        self.forget(id.clone());
        Some(session)
    }

    /// Tells the shared state that a session is over.
    fn forget(&self, id: SessionId) {
        let backplane = self.backplane.clone();
        drive(async move {
            if let Err(fault) = backplane.close_session(&id).await {
                tracing::warn!(%fault, "a session was not closed; its time will end it");
            }
        });
    }

    /// Every session.
    pub(crate) fn all(&self) -> Vec<Arc<HttpSession>> {
        self.open.read().values().cloned().collect()
    }

    /// How many there are, by transport.
    pub(crate) fn count(&self) -> [(&'static str, usize); 2] {
        let open = self.open.read();
        let http_sse = open.values().filter(|session| session.transport == SessionTransport::HttpSse).count();
        [("streamable", open.len() - http_sse), ("http+sse", http_sse)]
    }

    /// Ends what nobody has used for long.
    pub(crate) async fn sweep(&self, options: &Options) {
        let now = self.clock.now().as_millis();
        let (idle, get_ready) = (millis(self.idle), millis(options.initialize_within));
        let mut stale = Vec::new();
        for session in self.all() {
            let conversation = &session.conversation;
            let silent = now.saturating_sub(session.used.load(Ordering::Relaxed));
            let in_use = conversation.is_read() || conversation.in_flight() > 0;
            let never_ready = silent >= get_ready && !conversation.is_ready();
            if never_ready || (silent >= idle && !in_use) {
                stale.push(session.id.clone());
            } else if in_use {
                self.keep_alive(&session, now);
            } else if silent >= RESTING {
                conversation.shrink();
            }
        }
        for id in stale {
            self.close(&id);
        }
        self.give_back();
        if let Err(fault) = self.backplane.sweep().await {
            tracing::warn!(%fault, "old state was not cleared away");
        }
    }

    /// A crowd that has left needs no room any more.
    fn give_back(&self) {
        let mut open = self.open.write();
        if open.capacity() > 1024 && open.capacity() / 4 > open.len() {
            open.shrink_to_fit();
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl Inner {
    /// Opens a session for a conversation, if there is room.
    pub(crate) async fn open_session(
        &self,
        transport: SessionTransport,
        caller: &Caller,
        conversation: Arc<SessionDriver>,
    ) -> Result<Arc<HttpSession>, Refusal> {
        if self.stop.is_cancelled() {
            return Err(Refusal::full(Reason::Stopping, "the server stops", 10));
        }
        let full = || Refusal::full(Reason::Sessions, "too many sessions are open", 30);
        let id = new_id().map_err(|fault| {
            tracing::error!(%fault, "the system gives nothing to make ids from");
            Refusal::fault("no session can be opened now")
        })?;
        if transport == SessionTransport::Streamable
            && let Some(rules) = conversation.session_rules()
            && rules.resumption != Resumption::Never
        {
            let (principal, revision) = (caller.principal().cloned(), self.revision_name(rules.revision));
            let record = NewSession { principal, revision, ..NewSession::default() };
            // It hears of the session's use only now and then, so it must not be the first to give up.
            let idle = self.options.session_idle + self.options.session_idle / 5;
            let created = self.sessions.backplane.create_session(&id, record, idle).await;
            match created.map_err(|fault| get::unavailable(&fault))? {
                CreateOutcome::Created => conversation.keep_log(self.sessions.backplane.clone(), id.clone()),
                CreateOutcome::Full => return Err(full()),
                CreateOutcome::Taken | CreateOutcome::TooLarge => {
                    return Err(Refusal::fault("the session cannot be kept"));
                }
            }
        }
        let now = self.clock.now().as_millis();
        let (used, told) = (AtomicU64::new(now), AtomicU64::new(now));
        let (id_of_it, principal) = (id.clone(), caller.principal().cloned());
        let session = Arc::new(HttpSession { id: id_of_it, transport, principal, conversation, used, told });
        let mut open = self.sessions.open.write();
        if open.len() >= self.options.max_sessions {
            drop(open);
            self.sessions.forget(id);
            return Err(full());
        }
        open.insert(id, session.clone());
        self.metrics.sessions_opened.fetch_add(1, Ordering::Relaxed);
        Ok(session)
    }
}

/// The session that the headers name, if they name it properly.
pub(crate) fn find(
    endpoint: &Inner,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Arc<HttpSession>, Refusal> {
    let bad = |why: String| Refusal::bad(Reason::Session, why);
    let id = headers::value(headers, &headers::SESSION_ID).map_err(bad)?;
    let id = id.ok_or_else(|| bad("no Mcp-Session-Id header; initialize opens a session".to_owned()))?;
    let unknown = || Refusal::new(StatusCode::NOT_FOUND, Reason::Session, "there is no such session");
    let session = endpoint.sessions.find(SessionTransport::Streamable, id, caller).ok_or_else(unknown)?;
    let Some(rules) = session.conversation.session_rules() else { return Ok(session) };
    let agreed = rules.revision;
    let bad = |why: String| Refusal::bad(Reason::Revision, why);
    match headers::value(headers, &headers::PROTOCOL_VERSION).map_err(bad)? {
        Some(version) if version == agreed.as_str() => Ok(session),
        Some(version) => {
            let version = excerpt(version);
            Err(bad(format!("MCP-Protocol-Version is {version:?}, but this session agreed on {agreed}")))
        }
        None if rules.version_header && endpoint.options.require_version => {
            let why = format!("no MCP-Protocol-Version header; this session agreed on {agreed}");
            Err(bad(format!("{why}; {}", Policy::LENIENT_SERVES)))
        }
        None => Ok(session),
    }
}

/// The session that a request is for. What its headers lack, and what is served nevertheless, is noted.
pub(crate) fn find_and_note(
    endpoint: &Inner,
    caller: &Caller,
    headers: &HeaderMap,
) -> Result<Arc<HttpSession>, Refusal> {
    let session = find(endpoint, caller, headers)?;
    if let Some(rules) = session.conversation.session_rules()
        && let Some(finding) = headers::absent_version(headers, rules)
    {
        session.conversation.note(finding);
    }
    Ok(session)
}

/// An id that nobody can guess: 192 random bits, in visible characters.
fn new_id() -> Result<SessionId, getrandom::Error> {
    let mut bits = [0; 24];
    getrandom::fill(&mut bits)?;
    Ok(SessionId::new(URL_SAFE_NO_PAD.encode(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_are_visible() {
        let ids: std::collections::HashSet<_> = (0..10_000).map(|_| new_id().unwrap()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id: &SessionId| id.reveal().len() == 32
            && id.reveal().bytes().all(|byte| byte.is_ascii_graphic())));
    }
}

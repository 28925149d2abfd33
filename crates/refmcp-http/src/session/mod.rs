//! Sessions: opening, finding and expiring them. The `driver` runs the engine of one session, `streams` has its streams.

pub(crate) mod driver;
pub(crate) mod streams;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use foldhash::HashMap;
use parking_lot::RwLock;
use refmcp_proto::http::check_session_version;
use refmcp_proto::revision::{Resumption, Rules};
use refmcp_server::backplane::{Backplane, CreateOutcome, NewSession, SessionId};
use refmcp_server::transport::clock::Clock;

use crate::access::caller::Caller;
use crate::endpoint::EndpointState;
use crate::options::Options;
use crate::refusal::{Reason, Refusal};
use crate::request::headers;
use crate::session::driver::SessionDriver;
use crate::stream::response_stream::drive;

#[derive(Debug)]
pub(crate) struct HttpSession {
    pub(crate) id: SessionId,
    transport: SessionTransport,
    /// The principal that it belongs to, where access tokens are required.
    principal: Option<Arc<str>>,
    pub(crate) driver: SessionDriver,
    /// The rules of its revision; none where `initialize` comes later.
    rules: Option<&'static Rules>,
    /// The time of the last request, in milliseconds of the clock.
    used: AtomicU64,
    /// When the backplane was last told of a request.
    reported: AtomicU64,
}

/// The transport of a session; its id is valid for no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionTransport {
    Streamable,
    HttpSse,
}

/// Milliseconds after which a silent session frees memory.
const SHRINK_AFTER: u64 = 1000;

/// All sessions of this process.
#[derive(Debug)]
pub(crate) struct Sessions {
    clock: Clock,
    session_timeout: Duration,
    backplane: Arc<dyn Backplane>,
    open: RwLock<HashMap<SessionId, Arc<HttpSession>>>,
}

impl Sessions {
    pub(crate) fn new(clock: Clock, session_timeout: Duration, backplane: Arc<dyn Backplane>) -> Self {
        Self { clock, session_timeout, backplane, open: RwLock::default() }
    }

    /// The session of this id, which stays alive by being used. One of another principal is not found.
    pub(crate) fn find(
        &self,
        transport: SessionTransport,
        id: &str,
        caller: &Caller,
    ) -> Result<Arc<HttpSession>, Refusal> {
        let matches = |session: &&Arc<HttpSession>| {
            session.transport == transport && session.principal.as_ref() == caller.principal()
        };
        let Some(session) = self.open.read().get(id).filter(matches).cloned() else {
            return Err(Refusal::unknown_session("there is no such session"));
        };
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
            if let Err(fault) = backplane.session(&id).await {
                tracing::warn!(%fault, "a session was not kept alive");
            }
        });
    }

    pub(crate) fn close(&self, id: &SessionId) {
        let removed = self.open.write().remove(id);
        if let Some(session) = removed {
            session.driver.end();
            self.forget(id.clone());
        }
    }

    fn forget(&self, id: SessionId) {
        let backplane = self.backplane.clone();
        drive(async move {
            if let Err(fault) = backplane.close_session(&id).await {
                tracing::warn!(%fault, "a session was not closed in the backplane; it expires there");
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
            let silent = now.saturating_sub(session.used.load(Ordering::Relaxed));
            let in_use = driver.is_in_use();
            let never_ready = silent >= millis(options.initialize_within) && !driver.is_ready();
            if never_ready || (silent >= millis(self.session_timeout) && !in_use) {
                self.close(&session.id);
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
        if let Err(fault) = self.backplane.sweep().await {
            tracing::warn!(%fault, "the backplane was not swept");
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl EndpointState {
    /// Opens a session, unless there are too many.
    pub(crate) async fn open_session(
        &self,
        transport: SessionTransport,
        caller: &Caller,
        driver: SessionDriver,
    ) -> Result<Arc<HttpSession>, Refusal> {
        self.check_running()?;
        let full = || Refusal::unavailable(Reason::Sessions, "too many sessions are open", 30);
        let id = new_id().map_err(|fault| {
            tracing::error!(%fault, "no random bytes for a session id");
            Refusal::internal("no session can be opened now")
        })?;
        let rules = driver.session_rules();
        if transport == SessionTransport::Streamable
            && let Some(rules) = rules
            && rules.resumption != Resumption::Never
        {
            let (principal, revision) = (caller.principal().cloned(), self.revision_name(rules.revision));
            let record = NewSession { principal, revision, ..NewSession::default() };
            // The backplane hears of requests only from time to time, so its session must expire later than ours.
            let idle = self.options.session_timeout + self.options.session_timeout / 5;
            match self.sessions.backplane.create_session(&id, record, idle).await? {
                CreateOutcome::Created => driver.keep_log(self.sessions.backplane.clone(), id.clone()),
                CreateOutcome::Full => return Err(full()),
                CreateOutcome::Taken | CreateOutcome::TooLarge => {
                    return Err(Refusal::internal("the session cannot be kept"));
                }
            }
        }
        let now = self.clock.now().as_millis();
        let session = Arc::new(HttpSession {
            id: id.clone(),
            transport,
            principal: caller.principal().cloned(),
            driver,
            rules,
            used: AtomicU64::new(now),
            reported: AtomicU64::new(now),
        });
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

    /// The session that the headers name. A missing version header that is tolerated is recorded as a finding.
    pub(crate) fn find_session(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Arc<HttpSession>, Refusal> {
        let bad = |why: String| Refusal::bad_request(Reason::Session, why);
        let id = headers::value(headers, &headers::SESSION_ID).map_err(bad)?;
        let id = id.ok_or_else(|| bad("no Mcp-Session-Id header; initialize opens a session".to_owned()))?;
        let session = self.sessions.find(SessionTransport::Streamable, id, caller)?;
        if let Some(rules) = session.rules {
            let bad = |why: String| Refusal::bad_request(Reason::Revision, why);
            let named = headers::value(headers, &headers::PROTOCOL_VERSION).map_err(bad)?;
            let finding = check_session_version(named, rules, self.options.require_version).map_err(bad)?;
            session.driver.note(finding);
        }
        Ok(session)
    }
}

/// A random id of 192 bits, in visible ASCII characters.
fn new_id() -> Result<SessionId, getrandom::Error> {
    let mut bits = [0; 24];
    getrandom::fill(&mut bits)?;
    Ok(SessionId::new(URL_SAFE_NO_PAD.encode(bits)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_ids_are_unique_and_visible_ascii() {
        let ids: std::collections::HashSet<_> = (0..10_000).map(|_| new_id().unwrap()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id: &SessionId| id.reveal().len() == 32
            && id.reveal().bytes().all(|byte| byte.is_ascii_graphic())));
    }
}

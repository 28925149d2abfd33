//! The sessions of the revisions that have them.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use refmcp_server::transport::clock::Clock;
use tokio::time::Instant;

use crate::conversation::Conversation;
use crate::options::Options;

/// A session, as the client names it.
#[derive(Debug)]
pub(crate) struct HttpSession {
    pub(crate) id: Box<str>,
    kind: Kind,
    pub(crate) conversation: Arc<Conversation>,
    /// When it was last used, in milliseconds of the clock.
    used: AtomicU64,
}

/// By which transport a session is used; its id is good for no other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One endpoint, streamable HTTP.
    Streamable,
    /// Two endpoints, HTTP+SSE.
    Legacy,
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    clock: Clock,
    open: RwLock<HashMap<Box<str>, Arc<HttpSession>>>,
}

/// Why there is no new session.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoSession {
    /// There are as many as there may be.
    #[error("too many sessions are open")]
    Full,
    /// Ids have to be unguessable, and the system gives nothing to make them from.
    #[error("no session can be opened now")]
    NoRandomness(#[from] getrandom::Error),
}

impl Sessions {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, open: RwLock::default() }
    }

    /// Opens a session for a conversation.
    pub(crate) fn open(
        &self,
        kind: Kind,
        conversation: Arc<Conversation>,
        most: usize,
    ) -> Result<Arc<HttpSession>, NoSession> {
        let id = new_id()?;
        let used = AtomicU64::new(self.clock.now().as_millis());
        let session = Arc::new(HttpSession { id: id.clone(), kind, conversation, used });
        let mut open = self.write();
        if open.len() >= most {
            return Err(NoSession::Full);
        }
        open.insert(id, session.clone());
        Ok(session)
    }

    /// The session of this id; using it keeps it alive.
    pub(crate) fn find(&self, kind: Kind, id: &str) -> Option<Arc<HttpSession>> {
        let session = self.read().get(id).filter(|session| session.kind == kind).cloned()?;
        session.used.store(self.clock.now().as_millis(), Ordering::Relaxed);
        Some(session)
    }

    /// Ends a session.
    pub(crate) fn close(&self, id: &str) -> Option<Arc<HttpSession>> {
        let session = self.write().remove(id)?;
        session.conversation.end();
        Some(session)
    }

    /// Every session.
    pub(crate) fn all(&self) -> Vec<Arc<HttpSession>> {
        self.read().values().cloned().collect()
    }

    /// Ends what nobody has used for long: sessions, and streams that nobody came back for.
    pub(crate) fn sweep(&self, options: &Options) {
        let now = self.clock.now().as_millis();
        let idle = u64::try_from(options.session_idle.as_millis()).unwrap_or(u64::MAX);
        let kept_since = Instant::now().checked_sub(options.retention);
        let mut stale = Vec::new();
        for session in self.all() {
            let silent = now.saturating_sub(session.used.load(Ordering::Relaxed));
            let in_use = session.conversation.in_flight() > 0 || session.conversation.is_read();
            if silent >= idle && !in_use {
                stale.push(session.id.clone());
            } else if let Some(since) = kept_since {
                session.conversation.forget_streams_before(since);
            }
        }
        for id in stale {
            self.close(&id);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<Box<str>, Arc<HttpSession>>> {
        self.open.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<Box<str>, Arc<HttpSession>>> {
        self.open.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An id that nobody can guess: 192 random bits, in visible characters.
pub(crate) fn new_id() -> Result<Box<str>, getrandom::Error> {
    let mut bits = [0; 24];
    getrandom::fill(&mut bits)?;
    Ok(URL_SAFE_NO_PAD.encode(bits).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_and_are_visible() {
        let ids: std::collections::HashSet<_> = (0..10_000).map(|_| new_id().unwrap()).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_graphic())));
    }
}

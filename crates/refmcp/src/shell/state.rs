//! Whether a server of the session is connected, and if not, why.

use std::sync::Arc;

use parking_lot::Mutex;

use super::servers::Connected;

/// Whether a server is connected.
#[derive(Debug, Clone)]
pub(super) enum State {
    /// Not yet; or not again, where it was before.
    Connecting {
        again: bool,
    },
    Connected(Arc<Connected>),
    /// It was left.
    Disconnected,
    /// It could not be connected or has gone, and why.
    Failed(String),
}

impl State {
    /// The state in one word.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Self::Connecting { again: false } => "connecting",
            Self::Connecting { again: true } => "reconnecting",
            Self::Connected(_) => "connected",
            Self::Disconnected => "disconnected",
            Self::Failed(_) => "failed",
        }
    }

    /// What went wrong, if something did.
    pub(super) fn reason(&self) -> Option<&str> {
        match self {
            Self::Failed(why) => Some(why),
            _ => None,
        }
    }

    /// The state for people.
    pub(super) fn text(&self) -> String {
        described(self.word(), self.reason())
    }
}

/// A state in one word, and the reason for it.
pub(super) fn described(word: &str, reason: Option<&str>) -> String {
    reason.map_or_else(|| word.to_owned(), |why| format!("{word}: {why}"))
}

/// Why a server that has no connection of its own to lose does not answer at the moment, as far as that is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Trouble(Arc<Mutex<Option<String>>>);

impl Trouble {
    /// It does not answer; whether that is new.
    pub(super) fn begins(&self, why: String) -> bool {
        self.0.lock().replace(why).is_none()
    }

    /// It answers; whether it did not before.
    pub(super) fn ends(&self) -> bool {
        self.0.lock().take().is_some()
    }

    pub(super) fn why(&self) -> Option<String> {
        self.0.lock().clone()
    }
}

//! The log of refusals: a line for each, with where it came from and why, until there are too many of one kind.
//!
//! A flood must not fill a disk: of each reason, a burst is logged whole and then a line a second, which says how many were
//! left out before it. Each reason counts for itself, so that no flood hides another kind of refusal.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::Method;
use refmcp_proto::jsonrpc::excerpt;
use tracing::Level;

use crate::access::caller::Client;
use crate::endpoint::Inner;
use crate::refusal::{Reason, Refusal};

/// Lines of one reason at once, after a pause.
const BURST: u64 = 20;

/// One line more every so many milliseconds.
const EVERY: u64 = 1000;

const TARGET: &str = "refmcp::http";

/// What may be logged of each reason.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    reasons: [LogLimiter; Reason::ALL.len()],
}

/// How many lines there may be, as a time: that at which all lines so far would have been due at an even pace.
#[derive(Debug, Default)]
pub(crate) struct LogLimiter {
    due: AtomicU64,
    left_out: AtomicU64,
}

impl LogLimiter {
    fn has_room(due: u64, now: u64) -> bool {
        due.saturating_sub(now) <= (BURST - 1) * EVERY
    }

    /// Whether one line more may be written now; if so, how many were not before it. The
    /// time is in milliseconds.
    pub(crate) fn take(&self, now: u64) -> Option<u64> {
        let taken = self.due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |due| {
            Self::has_room(due, now).then(|| due.max(now) + EVERY)
        });
        if taken.is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.left_out.swap(0, Ordering::Relaxed))
    }

    /// How many were left out, once there is room for a line to say so.
    fn take_left_out(&self, now: u64) -> u64 {
        let waits = self.left_out.load(Ordering::Relaxed) > 0;
        if waits && Self::has_room(self.due.load(Ordering::Relaxed), now) {
            self.left_out.swap(0, Ordering::Relaxed)
        } else {
            0
        }
    }
}

impl Inner {
    /// Counts a refusal and logs it: failed authorization and faults of ours as warnings, everything else as information.
    #[cold]
    pub(crate) fn refused(
        &self,
        client: Client,
        method: Option<&Method>,
        path: Option<&str>,
        refusal: &Refusal,
    ) {
        self.metrics.refused(refusal.reason);
        let is_wanted = if refusal.is_warning() {
            tracing::enabled!(target: TARGET, Level::WARN)
        } else {
            tracing::enabled!(target: TARGET, Level::INFO)
        };
        if !is_wanted {
            return;
        }
        let allowance = &self.refusal_log.reasons[refusal.reason as usize];
        let Some(left_out) = allowance.take(self.clock.now().as_millis()) else { return };
        // Not within the span of the request, which has the same fields, so that lines of all refusals are alike.
        macro_rules! line {
            ($level:expr) => {
                tracing::event!(
                    target: TARGET,
                    parent: None,
                    $level,
                    address = client.address.map(tracing::field::display),
                    method = method.map(Method::as_str),
                    path,
                    status = refusal.status.as_u16(),
                    reason = refusal.reason.name(),
                    why = refusal.why(),
                    detail = refusal.detail(),
                    left_out = (left_out > 0).then_some(left_out),
                    "refused"
                )
            };
        }
        if refusal.is_warning() {
            line!(Level::WARN);
        } else {
            line!(Level::INFO);
        }
    }

    /// Tells of refusals that were left out of the log and that no later line has told of.
    pub(crate) fn log_left_out(&self) {
        let now = self.clock.now().as_millis();
        for (reason, allowance) in Reason::ALL.into_iter().zip(&self.refusal_log.reasons) {
            let left_out = allowance.take_left_out(now);
            if left_out > 0 {
                tracing::info!(target: TARGET, reason = reason.name(), left_out, "more were refused");
            }
        }
    }
}

/// A path that is none of ours, as it may be logged: in brief, and without anything that could be a token or an id which
/// a client has put there by mistake.
pub(crate) fn logged_path(path: &str) -> String {
    let is_word = |segment: &str| {
        segment.len() < 16 || segment.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_.".contains(&byte))
    };
    let mut logged = String::new();
    for (place, segment) in path.split('/').enumerate() {
        if place > 0 {
            logged.push('/');
        }
        logged.push_str(if is_word(segment) { segment } else { "…" });
    }
    excerpt(&logged)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_path_that_looks_like_a_secret_is_logged() {
        for (path, logged) in [
            ("/", "/"),
            ("/mcp/", "/mcp/"),
            ("/.well-known/oauth-authorization-server/mcp", "/.well-known/oauth-authorization-server/mcp"),
            ("/v1/q7Xw0Zk4n1Vt8Rb2Yc5L/x", "/v1/…/x"),
            ("/mcp;t=eyJhbGciOiJFUzI1NiJ9", "/…"),
            ("*", "*"),
        ] {
            assert_eq!(logged_path(path), logged);
        }
        assert!(logged_path(&"/y".repeat(10_000)).len() < 200);
    }

    #[test]
    fn a_flood_is_logged_in_part_and_counted_whole() {
        let allowance = LogLimiter::default();
        let start = 1_000_000;
        let lines = |now| (0..100).filter_map(|_| allowance.take(now)).collect::<Vec<_>>();
        assert_eq!(lines(start), vec![0; 20], "a burst");
        assert_eq!(allowance.take_left_out(start), 0, "there is no room to say so, either");
        assert_eq!(lines(start + 999).len(), 0);
        assert_eq!(lines(start + 1000), [180], "one line a second, with all that came before it");
        assert_eq!(lines(start + 3000), [99, 0]);
        // The flood is over.
        assert_eq!(allowance.take_left_out(start + 3500), 0);
        assert_eq!(allowance.take_left_out(start + 4000), 98);
        assert_eq!(allowance.take_left_out(start + 4000), 0, "it is told once");
        assert_eq!(lines(start + 100_000).len(), 20, "after a pause, a burst again");
        assert_eq!(lines(start).len(), 0, "a clock that jumps back gives nothing");
    }
}

//! Log lines of refused requests and of JSON-RPC errors.
//!
//! A flood of refusals must not fill a disk: for each reason a burst is logged, and then a line a second with the number of
//! lines that were left out. Each reason has a limit for information and one for warnings, so that no flood hides refusals
//! for another reason, nor a warning.

use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::Method;
use refmcp_proto::jsonrpc::{RpcError, excerpt, log_excerpt};
use serde::Deserialize;
use tracing::Level;

use crate::access::caller::Client;
use crate::endpoint::EndpointState;
use crate::refusal::{PerReason, Reason, Refusal};

/// Lines of one reason at once after a pause.
const BURST: u64 = 20;

/// Milliseconds until one more line is allowed.
const MIN_INTERVAL: u64 = 1000;

const TARGET: &str = "refmcp::http";

/// The limits of each reason: of information, and of warnings.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog {
    evictions: LogLimiter,
    reasons: PerReason<[LogLimiter; 2]>,
}

/// A rate limit of log lines: the time at which all lines so far would have been due at an even pace.
#[derive(Debug, Default)]
pub(crate) struct LogLimiter {
    due: AtomicU64,
    left_out: AtomicU64,
}

impl LogLimiter {
    fn has_room(due: u64, now: u64) -> bool {
        due.saturating_sub(now) <= (BURST - 1) * MIN_INTERVAL
    }

    /// Allows one more line at this time in milliseconds; gives the number of lines that were left out before it.
    pub(crate) fn take(&self, now: u64) -> Option<u64> {
        let taken = self.due.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |due| {
            Self::has_room(due, now).then(|| due.max(now) + MIN_INTERVAL)
        });
        if taken.is_err() {
            self.left_out.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.left_out.swap(0, Ordering::Relaxed))
    }

    /// The number of lines that were left out, once a line may say so.
    fn take_left_out(&self, now: u64) -> u64 {
        let waits = self.left_out.load(Ordering::Relaxed) > 0;
        if waits && Self::has_room(self.due.load(Ordering::Relaxed), now) {
            self.left_out.swap(0, Ordering::Relaxed)
        } else {
            0
        }
    }
}

impl EndpointState {
    /// Counts a refusal and logs it: failed authorization and internal faults as warnings, others as information.
    #[cold]
    pub(crate) fn refused(
        &self,
        client: Client,
        method: Option<&Method>,
        path: Option<&str>,
        refusal: &Refusal,
    ) {
        self.metrics.refused(refusal.reason);
        if let Some(finding) = refusal.finding() {
            self.server.record(None, finding, refusal.is_finding_told());
        }
        let is_wanted = if refusal.is_warning() {
            tracing::enabled!(target: TARGET, Level::WARN)
        } else {
            tracing::enabled!(target: TARGET, Level::INFO)
        };
        if !is_wanted {
            return;
        }
        let limiter = &self.refusal_log.reasons.of(refusal.reason)[usize::from(refusal.is_warning())];
        let Some(left_out) = limiter.take(self.clock.now().as_millis()) else { return };
        // Without the span of the request, which has the same fields: lines of all refusals are alike.
        macro_rules! line {
            ($level:expr) => {
                tracing::event!(
                    target: TARGET,
                    parent: None,
                    $level,
                    address = client.shown_address().map(tracing::field::display),
                    method = method.map(Method::as_str),
                    path,
                    status = refusal.reason.has_response().then_some(refusal.status.as_u16()),
                    reason = refusal.reason.name(),
                    why = &*refusal.why,
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

    /// Counts a session that has ended for one of this client, and logs it.
    #[cold]
    pub(crate) fn evicted(&self, client: Client) {
        self.metrics.sessions_evicted.fetch_add(1, Ordering::Relaxed);
        if let Some(left_out) = self.refusal_log.evictions.take(self.clock.now().as_millis()) {
            let (address, left_out) = (client.shown_address(), (left_out > 0).then_some(left_out));
            let address = address.map(tracing::field::display);
            tracing::info!(target: TARGET, parent: None, address, left_out, "an idle session ended to make room");
        }
    }

    /// Logs the numbers of refusals that were left out and that no later line has reported.
    pub(crate) fn log_left_out(&self) {
        let now = self.clock.now().as_millis();
        for reason in Reason::ALL {
            let [information, warnings] = self.refusal_log.reasons.of(*reason);
            let left_out = information.take_left_out(now);
            if left_out > 0 {
                tracing::info!(target: TARGET, reason = reason.name(), left_out, "more were refused");
            }
            let left_out = warnings.take_left_out(now);
            if left_out > 0 {
                tracing::warn!(target: TARGET, reason = reason.name(), left_out, "more were refused");
            }
        }
    }
}

/// An unknown path for the log: shortened, and without parts that may be a token or an id.
pub(crate) fn logged_path(path: &str) -> String {
    let is_word = |segment: &str| {
        segment.len() < 16 || segment.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_.".contains(&byte))
    };
    let mut logged = String::new();
    for (index, segment) in path.split('/').enumerate() {
        if index > 0 {
            logged.push('/');
        }
        logged.push_str(if is_word(segment) { segment } else { "…" });
    }
    excerpt(&logged)
}

/// Logs an error that was found before an engine received the message.
pub(crate) fn rpc_error_found(error: &RpcError) {
    if tracing::enabled!(target: TARGET, Level::DEBUG) {
        log_rpc_error(None, error.code, &error.message);
    }
}

/// Logs each error of a response, or of a batch of them.
pub(crate) fn rpc_errors_answered(session: u64, json: &[u8]) {
    if tracing::enabled!(target: TARGET, Level::DEBUG) {
        for error in rpc_errors(json) {
            log_rpc_error(Some(session), error.code, &error.message);
        }
    }
}

/// The errors of a response, or of a batch of them.
pub(crate) fn rpc_errors(json: &[u8]) -> impl Iterator<Item = RpcError> {
    #[derive(Deserialize)]
    struct Response {
        error: Option<RpcError>,
    }
    let responses = match json.first() {
        Some(b'[') => serde_json::from_slice::<Vec<Response>>(json).unwrap_or_default(),
        _ => serde_json::from_slice::<Response>(json).into_iter().collect(),
    };
    responses.into_iter().filter_map(|response| response.error)
}

fn log_rpc_error(session: Option<u64>, code: i64, why: &str) {
    tracing::debug!(target: TARGET, session, code, why = log_excerpt(why), "answered with an error");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_logged_without_secrets() {
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
    fn a_flood_is_logged_in_part_and_counted_in_full() {
        let limiter = LogLimiter::default();
        let start = 1_000_000;
        let lines = |now| (0..100).filter_map(|_| limiter.take(now)).collect::<Vec<_>>();
        assert_eq!(lines(start), vec![0; 20], "a burst");
        assert_eq!(limiter.take_left_out(start), 0, "there is no room to say so, either");
        assert_eq!(lines(start + 999).len(), 0);
        assert_eq!(lines(start + 1000), [180], "one line a second, with all that came before it");
        assert_eq!(lines(start + 3000), [99, 0]);
        // The flood is over.
        assert_eq!(limiter.take_left_out(start + 3500), 0);
        assert_eq!(limiter.take_left_out(start + 4000), 98);
        assert_eq!(limiter.take_left_out(start + 4000), 0, "it is reported once");
        assert_eq!(lines(start + 100_000).len(), 20, "after a pause, a burst again");
        assert_eq!(lines(start).len(), 0, "a clock that jumps back gives nothing");
    }
}

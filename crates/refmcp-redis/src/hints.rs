//! Hints: what is published when something changes, and who waits for it in this process.
//!
//! A hint says that looking again may be worth it. One that is lost costs time, never data: who waits looks again now and
//! then anyhow, and after every reconnection.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::sync::futures::Notified;

/// Who waits for which hint.
#[derive(Debug, Default)]
pub(crate) struct Hints(Mutex<BTreeMap<Arc<str>, Waiters>>);

#[derive(Debug, Default)]
struct Waiters {
    changed: Arc<Notify>,
    count: usize,
}

/// Waits for one hint until it is dropped.
#[derive(Debug)]
pub(crate) struct Waiter<'a> {
    hints: &'a Hints,
    what: Arc<str>,
    changed: Arc<Notify>,
}

impl Hints {
    /// Waits for a hint from now on.
    pub(crate) fn waiter(&self, what: String) -> Waiter<'_> {
        let mut waiting = self.0.lock();
        let what: Arc<str> = what.into();
        let waiters = waiting.entry(what.clone()).or_default();
        waiters.count += 1;
        Waiter { hints: self, what, changed: waiters.changed.clone() }
    }

    /// Takes in a hint. That of a session concerns all that is in it.
    pub(crate) fn hear(&self, what: &str) {
        let waiting = self.0.lock();
        let of_session = |known: &str| {
            known.strip_prefix(what).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        let from = waiting.range::<str, _>((std::ops::Bound::Included(what), std::ops::Bound::Unbounded));
        for (_, waiters) in
            from.take_while(|(known, _)| known.starts_with(what)).filter(|(known, _)| of_session(known))
        {
            waiters.changed.notify_waiters();
        }
    }

    /// Any hint may have been missed.
    pub(crate) fn hear_all(&self) {
        self.0.lock().values().for_each(|waiters| waiters.changed.notify_waiters());
    }
}

impl Waiter<'_> {
    /// The next hint from now on, also before it is polled.
    pub(crate) fn next(&self) -> Notified<'_> {
        self.changed.notified()
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = self.hints.0.lock();
        if let Some(waiters) = waiting.get_mut(&self.what) {
            waiters.count -= 1;
            if waiters.count == 0 {
                waiting.remove(&self.what);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    fn is_ready(future: impl Future<Output = ()>) -> bool {
        pin!(future).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_hint_wakes_those_who_wait_for_it() {
        let hints = Hints::default();
        let waits = ["a:1", "a:12", "a", "a-b:1", "b:1"];
        for (what, woken) in
            [("a:1", vec!["a:1"]), ("a", vec!["a:1", "a:12", "a"]), ("c", vec![]), ("b", vec!["b:1"])]
        {
            let waiters: Vec<_> = waits.iter().map(|what| hints.waiter((*what).to_owned())).collect();
            let futures: Vec<_> = waiters.iter().map(Waiter::next).collect();
            hints.hear(what);
            let heard: Vec<_> = waits
                .iter()
                .zip(futures)
                .filter_map(|(what, next)| is_ready(next).then_some(*what))
                .collect();
            assert_eq!(heard, woken, "{what}");
        }
        assert!(hints.0.lock().is_empty(), "waiters that have left cost nothing");
    }
}

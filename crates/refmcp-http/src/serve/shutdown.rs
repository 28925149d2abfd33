//! Shutdown: its phases, each of which can be hastened, and the signal to all connections.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Stops an endpoint that is served with it. Clones are handles of the same shutdown.
///
/// 1. After [`trigger`](Self::trigger), `/readyz` is not ready, and everything is still served for the time of
///    [`drain`](Self::drain): load balancers can notice and send requests elsewhere.
/// 2. Then no connection is accepted, streams end, and requests in flight have the `timeout` to finish.
/// 3. Then every connection is closed.
///
/// Each further trigger begins the next phase at once.
#[derive(Debug, Clone)]
pub struct Shutdown {
    phase: watch::Sender<Phase>,
    drain: Duration,
    pub(super) timeout: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Serving,
    /// Not ready, but everything is served.
    Draining,
    /// No connection is accepted.
    Ending,
    /// Connections are closed.
    Closing,
}

impl Shutdown {
    /// Without draining; requests in flight have this time to finish.
    pub fn new(timeout: Duration) -> Self {
        Self { phase: watch::Sender::new(Phase::Serving), drain: Duration::ZERO, timeout }
    }

    /// Sets how long everything is still served while the server is not ready.
    #[must_use]
    pub fn drain(self, time: Duration) -> Self {
        Self { drain: time, ..self }
    }

    /// Begins the shutdown, or its next phase at once.
    pub fn trigger(&self) {
        self.phase.send_modify(|phase| {
            *phase = match phase {
                Phase::Serving if self.drain.is_zero() => Phase::Ending,
                Phase::Serving => Phase::Draining,
                Phase::Draining => Phase::Ending,
                Phase::Ending | Phase::Closing => Phase::Closing,
            };
        });
    }

    /// Waits until no connection is accepted.
    pub async fn ending(&self) {
        self.reached(Phase::Ending).await;
    }

    pub(super) async fn reached(&self, wanted: Phase) {
        // It cannot fail: `self` has the sender.
        let _ = self.phase.subscribe().wait_for(|phase| *phase >= wanted).await;
    }

    /// Waits until draining has ended, or was hastened.
    pub(super) async fn drained(&self) {
        if tokio::time::timeout(self.drain, self.ending()).await.is_err() {
            self.phase.send_modify(|phase| *phase = (*phase).max(Phase::Ending));
        }
    }
}

/// A signal to all connections, sent once. There are many connections, and each is polled often, so waiting for it must
/// cost nothing: after the first poll a connection looks at a flag instead of taking the lock of the token.
#[derive(Debug, Clone, Default)]
pub(super) struct StopSignal {
    token: CancellationToken,
    is_sent: Arc<AtomicBool>,
}

impl StopSignal {
    pub(super) fn send(&self) {
        self.is_sent.store(true, Ordering::Release);
        self.token.cancel();
    }

    pub(super) async fn sent(&self) {
        self.token.cancelled().await;
    }

    /// Runs a future to its end; none if the signal is sent before.
    pub(super) async fn run_until_sent<W: Future>(&self, mut work: Pin<&mut W>) -> Option<W::Output> {
        let mut sent = pin!(self.token.cancelled());
        let mut listening: Option<Waker> = None;
        poll_fn(move |context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            let is_listening = listening.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
            if is_listening && !self.is_sent.load(Ordering::Acquire) {
                return Poll::Pending;
            }
            listening = Some(context.waker().clone());
            sent.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::Context;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_trigger_begins_the_next_phase() {
        let shutdown = Shutdown::new(Duration::from_secs(5)).drain(Duration::from_secs(60));
        let steps = [Phase::Serving, Phase::Draining, Phase::Ending, Phase::Closing, Phase::Closing];
        for step in steps {
            assert_eq!(*shutdown.phase.borrow(), step);
            shutdown.clone().trigger();
        }
        let at_once = Shutdown::new(Duration::from_secs(5));
        at_once.trigger();
        assert_eq!(*at_once.phase.borrow(), Phase::Ending, "there is nothing to drain");
    }

    #[tokio::test(start_paused = true)]
    async fn draining_takes_its_time_unless_hastened() {
        let began = tokio::time::Instant::now();
        let shutdown = Shutdown::new(Duration::from_secs(5)).drain(Duration::from_secs(60));
        shutdown.trigger();
        shutdown.drained().await;
        assert_eq!(began.elapsed(), Duration::from_secs(60));
        shutdown.ending().await;
        let hastened = Shutdown::new(Duration::from_secs(5)).drain(Duration::from_secs(60));
        hastened.trigger();
        hastened.trigger();
        hastened.drained().await;
        assert_eq!(began.elapsed(), Duration::from_secs(60));
    }

    #[tokio::test]
    async fn a_future_that_is_ready_ends_first() {
        let signal = StopSignal::default();
        signal.send();
        assert_eq!(signal.run_until_sent(pin!(ready(1))).await, Some(1));
        assert_eq!(signal.run_until_sent(pin!(pending::<()>())).await, None);
    }

    #[tokio::test]
    async fn a_running_future_is_stopped() {
        let signal = StopSignal::default();
        let works = {
            let signal = signal.clone();
            tokio::spawn(async move { signal.run_until_sent(pin!(pending::<()>())).await })
        };
        tokio::task::yield_now().await;
        signal.send();
        assert_eq!(works.await.unwrap(), None);
    }

    #[tokio::test]
    async fn the_latest_waker_is_woken() {
        let signal = StopSignal::default();
        let work = pin!(pending::<()>());
        let mut working = pin!(signal.run_until_sent(work));
        assert!(working.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let (heard, ()) = tokio::join!(working, async { signal.send() });
        assert_eq!(heard, None);
    }
}

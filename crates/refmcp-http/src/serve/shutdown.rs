//! How a server ends: in steps, each of which can be hastened.

use std::time::Duration;

use tokio::sync::watch;

/// Ends whatever is served with it. Clones are handles to the same end.
///
/// 1. After [`trigger`](Self::trigger), `/readyz` says that the server is not ready, and everything is still served for
///    the time of [`drain`](Self::drain): whatever spreads requests over several servers can notice and go elsewhere.
/// 2. Then nothing new is accepted, streams are ended, and exchanges have the `timeout` to finish.
/// 3. Then every connection is cut.
///
/// Each further trigger goes to the next step at once.
#[derive(Debug, Clone)]
pub struct Shutdown {
    phase: watch::Sender<Phase>,
    drain: Duration,
    timeout: Duration,
}

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Serving,
    /// Not ready any more, but everything is served.
    Draining,
    /// Nothing new is accepted.
    Ending,
    /// Connections are cut.
    Cut,
}

impl Shutdown {
    /// Without a drain; exchanges have this time to finish.
    pub fn new(timeout: Duration) -> Self {
        Self { phase: watch::Sender::new(Phase::Serving), drain: Duration::ZERO, timeout }
    }

    /// The same with so much time in which everything is still served although the server is not ready any more.
    #[must_use]
    pub fn drain(self, time: Duration) -> Self {
        Self { drain: time, ..self }
    }

    /// Begins the end, or goes on to its next step at once.
    pub fn trigger(&self) {
        self.phase.send_modify(|phase| {
            *phase = match phase {
                Phase::Serving if self.drain.is_zero() => Phase::Ending,
                Phase::Serving => Phase::Draining,
                Phase::Draining => Phase::Ending,
                Phase::Ending | Phase::Cut => Phase::Cut,
            };
        });
    }

    /// Waits until nothing new is accepted any more.
    pub async fn ending(&self) {
        self.reached(Phase::Ending).await;
    }

    pub(super) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Waits until the end has come so far.
    pub(super) async fn reached(&self, wanted: Phase) {
        // It cannot fail: the sender is here.
        let _ = self.phase.subscribe().wait_for(|phase| *phase >= wanted).await;
    }

    /// Waits until the drain is over, or was cut short.
    pub(super) async fn drained(&self) {
        if tokio::time::timeout(self.drain, self.ending()).await.is_err() {
            self.phase.send_modify(|phase| *phase = (*phase).max(Phase::Ending));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_trigger_is_a_step() {
        let shutdown = Shutdown::new(Duration::from_secs(5)).drain(Duration::from_secs(60));
        let steps = [Phase::Serving, Phase::Draining, Phase::Ending, Phase::Cut, Phase::Cut];
        for step in steps {
            assert_eq!(*shutdown.phase.borrow(), step);
            shutdown.clone().trigger();
        }
        let at_once = Shutdown::new(Duration::from_secs(5));
        at_once.trigger();
        assert_eq!(*at_once.phase.borrow(), Phase::Ending, "there is nothing to drain");
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_takes_its_time_unless_hastened() {
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
}

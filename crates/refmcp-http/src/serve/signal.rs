//! A signal to all connections. There are many of them and each is often busy, so hearing it must cost nothing: whoever
//! listens asks for it once and then looks at a flag, instead of queueing up behind one lock at every turn.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

use tokio_util::sync::CancellationToken;

/// Given once, to all who hold a copy.
#[derive(Debug, Clone, Default)]
pub(super) struct Signal {
    token: CancellationToken,
    is_given: Arc<AtomicBool>,
}

impl Signal {
    pub(super) fn give(&self) {
        self.is_given.store(true, Ordering::Release);
        self.token.cancel();
    }

    /// Waits for it.
    pub(super) async fn given(&self) {
        self.token.cancelled().await;
    }

    /// Does some work; nothing if the signal is given before it is done.
    pub(super) async fn unless_given<W: Future>(&self, mut work: Pin<&mut W>) -> Option<W::Output> {
        let mut given = pin!(self.token.cancelled());
        let mut listening: Option<Waker> = None;
        poll_fn(move |context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            let is_listening = listening.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
            if is_listening && !self.is_given.load(Ordering::Acquire) {
                return Poll::Pending;
            }
            listening = Some(context.waker().clone());
            given.as_mut().poll(context).map(|()| None)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::task::Context;

    use super::*;

    #[tokio::test]
    async fn work_that_is_done_is_done_whatever_is_signalled() {
        let signal = Signal::default();
        signal.give();
        assert_eq!(signal.unless_given(pin!(ready(1))).await, Some(1));
        assert_eq!(signal.unless_given(pin!(pending::<()>())).await, None);
    }

    #[tokio::test]
    async fn whoever_works_for_long_hears_it() {
        let signal = Signal::default();
        let works = {
            let signal = signal.clone();
            tokio::spawn(async move { signal.unless_given(pin!(pending::<()>())).await })
        };
        tokio::task::yield_now().await;
        signal.give();
        assert_eq!(works.await.unwrap(), None);
    }

    #[tokio::test]
    async fn whoever_moves_is_found() {
        let signal = Signal::default();
        let work = pin!(pending::<()>());
        let mut working = pin!(signal.unless_given(work));
        assert!(working.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let (heard, ()) = tokio::join!(working, async { signal.give() });
        assert_eq!(heard, None);
    }
}

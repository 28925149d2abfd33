//! A deadline that can be postponed without touching the timer. Most deadlines are postponed again and again and never
//! pass; so the timer stays as it is when the deadline moves, and is set again only after it has fired.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use hyper::rt::Timer;
use parking_lot::Mutex;
use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// One timer for a deadline that moves.
#[derive(Debug, Default)]
pub(crate) struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
    /// The task that is woken when the timer fires.
    waker: Option<Waker>,
}

impl Deadline {
    /// Whether the deadline has passed; otherwise the task is woken by then, and perhaps sooner.
    pub(crate) fn poll(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= deadline {
            return Poll::Ready(());
        }
        let known = self.waker.as_ref().is_some_and(|waker| waker.will_wake(context.waker()));
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        let early = timer.deadline() <= deadline;
        if known && early && !timer.is_elapsed() {
            return Poll::Pending;
        }
        if !early {
            timer.as_mut().reset(deadline);
        }
        self.waker = Some(context.waker().clone());
        // Unconstrained: in a task without budget, tokio's timer would not register the waker.
        while Pin::new(&mut unconstrained(timer.as_mut())).poll(context).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

/// The timer of one connection for hyper, which waits for one thing at a time: the head of a request. That time starts
/// again with every request and hardly ever passes.
#[derive(Debug, Default)]
pub(crate) struct HeadTimer {
    deadline: Arc<Mutex<Deadline>>,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn hyper::rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, until: std::time::Instant) -> Pin<Box<dyn hyper::rt::Sleep>> {
        Box::pin(HeadSleep { until: until.into(), deadline: self.deadline.clone() })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into()
    }
}

#[derive(Debug)]
struct HeadSleep {
    until: Instant,
    deadline: Arc<Mutex<Deadline>>,
}

impl hyper::rt::Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.deadline.lock().poll(self.until, context)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use tokio::task::coop;
    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn passes(timer: &mut Deadline, deadline: Instant) {
        poll_fn(|context| timer.poll(deadline, context)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn it_passes_in_time_and_not_before() {
        let (began, mut timer) = (Instant::now(), Deadline::default());
        passes(&mut timer, began + SECOND).await;
        assert_eq!(began.elapsed(), SECOND);
        passes(&mut timer, began + SECOND).await;
        assert_eq!(began.elapsed(), SECOND, "what has passed stays passed");
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_be_postponed_and_brought_forward() {
        let (began, mut timer) = (Instant::now(), Deadline::default());
        for seconds in [5, 9, 3] {
            let asked = poll_fn(|context| Poll::Ready(timer.poll(began + seconds * SECOND, context))).await;
            assert!(asked.is_pending());
        }
        passes(&mut timer, began + 4 * SECOND).await;
        assert_eq!(began.elapsed(), 4 * SECOND);
        passes(&mut timer, began + 10 * SECOND).await;
        assert_eq!(began.elapsed(), 10 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn it_passes_for_a_task_without_budget() {
        let asks = tokio::spawn(async {
            let (due, mut timer, mut budget_is_used) = (Instant::now() + SECOND, Deadline::default(), false);
            poll_fn(|context| {
                while !budget_is_used {
                    match coop::poll_proceed(context) {
                        Poll::Ready(turn) => turn.made_progress(),
                        Poll::Pending => budget_is_used = true,
                    }
                }
                timer.poll(due, context)
            })
            .await;
        });
        assert!(timeout(3600 * SECOND, asks).await.is_ok(), "it never passed");
    }

    #[tokio::test(start_paused = true)]
    async fn the_latest_waker_is_woken() {
        let (began, mut timer) = (Instant::now(), Deadline::default());
        let noop = &mut Context::from_waker(Waker::noop());
        assert!(timer.poll(began + SECOND, noop).is_pending());
        passes(&mut timer, began + SECOND).await;
        assert_eq!(began.elapsed(), SECOND);
    }
}

//! An alarm that costs nothing to put off. Most of what is waited for comes long before its time is over, again and
//! again; so the system's timer is left as it is when the time moves on, and set anew only once it has rung.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::task::unconstrained;
use tokio::time::{Instant, Sleep, sleep_until};

/// One timer for many deadlines, of which the last counts.
#[derive(Debug, Default)]
pub(crate) struct Deadline {
    timer: Option<Pin<Box<Sleep>>>,
    /// Who is woken when it rings.
    sleeper: Option<Waker>,
}

impl Deadline {
    /// Whether it is time. Whoever asks is woken by then, and perhaps sooner.
    pub(crate) fn poll(&mut self, deadline: Instant, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= deadline {
            return Poll::Ready(());
        }
        let known = self.sleeper.as_ref().is_some_and(|sleeper| sleeper.will_wake(context.waker()));
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        let early = timer.deadline() <= deadline;
        if known && early && !timer.is_elapsed() {
            return Poll::Pending;
        }
        if !early {
            timer.as_mut().reset(deadline);
        }
        self.sleeper = Some(context.waker().clone());
        // A task that has used up its turn is told to wait, and a timer that minds turns would not have heard of it.
        while Pin::new(&mut unconstrained(timer.as_mut())).poll(context).is_ready() {
            if Instant::now() >= deadline {
                return Poll::Ready(());
            }
            timer.as_mut().reset(deadline);
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::task::coop;
    use tokio::time::timeout;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn rings(alarm: &mut Deadline, deadline: Instant) {
        poll_fn(|context| alarm.poll(deadline, context)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn it_rings_when_it_is_time_and_not_before() {
        let (began, mut alarm) = (Instant::now(), Deadline::default());
        rings(&mut alarm, began + SECOND).await;
        assert_eq!(began.elapsed(), SECOND);
        rings(&mut alarm, began + SECOND).await;
        assert_eq!(began.elapsed(), SECOND, "what is over is over");
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_be_put_off_and_brought_forward() {
        let (began, mut alarm) = (Instant::now(), Deadline::default());
        for seconds in [5, 9, 3] {
            let asked = poll_fn(|context| Poll::Ready(alarm.poll(began + seconds * SECOND, context))).await;
            assert!(asked.is_pending());
        }
        rings(&mut alarm, began + 4 * SECOND).await;
        assert_eq!(began.elapsed(), 4 * SECOND);
        rings(&mut alarm, began + 10 * SECOND).await;
        assert_eq!(began.elapsed(), 10 * SECOND);
    }

    #[tokio::test(start_paused = true)]
    async fn it_rings_for_whoever_asks_at_the_end_of_a_turn() {
        let asks = tokio::spawn(async {
            let (due, mut alarm, mut turn_is_over) = (Instant::now() + SECOND, Deadline::default(), false);
            poll_fn(|context| {
                while !turn_is_over {
                    match coop::poll_proceed(context) {
                        Poll::Ready(turn) => turn.made_progress(),
                        Poll::Pending => turn_is_over = true,
                    }
                }
                alarm.poll(due, context)
            })
            .await;
        });
        assert!(timeout(3600 * SECOND, asks).await.is_ok(), "it never rang");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_asked_last_is_woken() {
        let (began, mut alarm) = (Instant::now(), Deadline::default());
        let nobody = &mut Context::from_waker(Waker::noop());
        assert!(alarm.poll(began + SECOND, nobody).is_pending());
        rings(&mut alarm, began + SECOND).await;
        assert_eq!(began.elapsed(), SECOND);
    }
}

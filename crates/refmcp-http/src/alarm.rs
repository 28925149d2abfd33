//! An alarm that costs nothing to put off. Most of what is waited for comes long before its time is over, again and
//! again; so the system's timer is left as it is when the time moves on, and set anew only once it has rung.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::time::{Instant, Sleep, sleep_until};

/// One timer for many deadlines, of which the last counts.
#[derive(Debug, Default)]
pub(crate) struct Alarm {
    timer: Option<Pin<Box<Sleep>>>,
    /// Who is woken when it rings.
    sleeper: Option<Waker>,
}

impl Alarm {
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
        while timer.as_mut().poll(context).is_ready() {
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

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn rings(alarm: &mut Alarm, deadline: Instant) {
        poll_fn(|context| alarm.poll(deadline, context)).await;
    }

    #[tokio::test(start_paused = true)]
    async fn it_rings_when_it_is_time_and_not_before() {
        let (began, mut alarm) = (Instant::now(), Alarm::default());
        rings(&mut alarm, began + SECOND).await;
        assert_eq!(began.elapsed(), SECOND);
        rings(&mut alarm, began + SECOND).await;
        assert_eq!(began.elapsed(), SECOND, "what is over is over");
    }

    #[tokio::test(start_paused = true)]
    async fn it_can_be_put_off_and_brought_forward() {
        let (began, mut alarm) = (Instant::now(), Alarm::default());
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
    async fn whoever_asked_last_is_woken() {
        let (began, mut alarm) = (Instant::now(), Alarm::default());
        let nobody = &mut Context::from_waker(Waker::noop());
        assert!(alarm.poll(began + SECOND, nobody).is_pending());
        rings(&mut alarm, began + SECOND).await;
        assert_eq!(began.elapsed(), SECOND);
    }
}

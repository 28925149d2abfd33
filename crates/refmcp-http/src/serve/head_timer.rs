//! The time that a request's head may take. It starts again with every request of a connection and hardly ever passes,
//! so all requests of a connection share one timer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;

use crate::deadline::Deadline;

/// The timer of one connection, which waits for one thing at a time.
#[derive(Debug, Default)]
pub(super) struct HeadTimer {
    deadline: Arc<Mutex<Deadline>>,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, until: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(HeadSleep { until: until.into(), deadline: self.deadline.clone() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

#[derive(Debug)]
struct HeadSleep {
    until: tokio::time::Instant,
    deadline: Arc<Mutex<Deadline>>,
}

impl Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.deadline.lock().poll(self.until, context)
    }
}

//! The time that a request's head may take. It begins anew with every request of a connection and is hardly ever over,
//! so all of a connection's requests share one alarm.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper::rt::{Sleep, Timer};

use crate::alarm::Alarm;

/// The timer of one connection, which waits for one thing at a time.
#[derive(Debug, Default)]
pub(super) struct HeadTimer {
    alarm: Arc<Mutex<Alarm>>,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        Box::pin(Deadline { deadline: deadline.into(), alarm: self.alarm.clone() })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

#[derive(Debug)]
struct Deadline {
    deadline: tokio::time::Instant,
    alarm: Arc<Mutex<Alarm>>,
}

impl Sleep for Deadline {}

impl Future for Deadline {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut alarm = self.alarm.lock().unwrap_or_else(PoisonError::into_inner);
        alarm.poll(self.deadline, context)
    }
}

//! The process group of a server: itself and whatever it has started.

use std::time::Duration;

use tokio::process::Child;
use tokio::time::{Instant, sleep};

/// How often a group is looked at that is to end.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The group that a child leads. Whatever is left of it when this is dropped is killed.
#[derive(Debug)]
pub(super) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    pub(super) fn of(child: &Child) -> Self {
        let number = child.id().and_then(|number| i32::try_from(number).ok());
        Self { leader: number.and_then(rustix::process::Pid::from_raw) }
    }

    /// Whether any process is left in it.
    pub(super) fn is_alive(&self) -> bool {
        // Other answers than "there is none" come from processes that are there.
        self.leader.is_some_and(|leader| {
            rustix::process::test_kill_process_group(leader) != Err(rustix::io::Errno::SRCH)
        })
    }

    pub(super) fn terminate(&self) {
        self.signal(rustix::process::Signal::TERM);
    }

    pub(super) fn kill(&self) {
        self.signal(rustix::process::Signal::KILL);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let Some(leader) = self.leader else { return };
        match rustix::process::kill_process_group(leader, signal) {
            Ok(()) | Err(rustix::io::Errno::SRCH) => {}
            Err(fault) => tracing::warn!(%fault, ?signal, "a server's process group could not be signalled"),
        }
    }

    /// Nothing of it is left; its number may soon belong to somebody else.
    pub(super) fn forget(&mut self) {
        self.leader = None;
    }
}

/// Without process groups the child is alone, and [`tokio`] kills it.
#[cfg(not(unix))]
impl Group {
    pub(super) fn of(_: &Child) -> Self {
        Self {}
    }

    pub(super) fn is_alive(&self) -> bool {
        false
    }

    pub(super) fn terminate(&self) {}

    pub(super) fn kill(&self) {}

    pub(super) fn forget(&mut self) {}
}

impl Group {
    /// Waits until nothing is left of it; whether that came in time.
    pub(super) async fn gone_by(&mut self, deadline: Instant) -> bool {
        while self.is_alive() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(LOOK_EVERY).await;
        }
        self.forget();
        true
    }
}

impl Drop for Group {
    /// The last resort, when nobody was left to end it in order.
    fn drop(&mut self) {
        self.kill();
    }
}

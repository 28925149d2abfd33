//! The process group of a server: itself and all that it has started.

use std::time::Duration;

use tokio::process::Child;
use tokio::time::{Instant, sleep};

/// How often a group that is to end is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// The group that a child leads. What is left of it on drop is killed.
pub(super) struct Group {
    #[cfg(unix)]
    leader: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    pub(super) fn led_by(child: &Child) -> Self {
        let number = child.id().and_then(|number| i32::try_from(number).ok());
        Self { leader: number.and_then(rustix::process::Pid::from_raw) }
    }

    /// True if a process is left in it.
    pub(super) fn is_alive(&self) -> bool {
        // Any error but "no such process" comes from an existing one.
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
            Err(error) => tracing::warn!(%error, ?signal, "a server's process group could not be signalled"),
        }
    }

    /// Nothing of it is left; its number may be given to another process.
    pub(super) fn forget(&mut self) {
        self.leader = None;
    }
}

/// Without process groups the child is alone, and [`tokio`] kills it.
#[cfg(not(unix))]
impl Group {
    pub(super) fn led_by(_: &Child) -> Self {
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
    /// Waits until nothing is left of it; false after the deadline.
    pub(super) async fn gone_by(&mut self, deadline: Instant) -> bool {
        while self.is_alive() {
            if Instant::now() >= deadline {
                return false;
            }
            sleep(CHECK_INTERVAL).await;
        }
        self.forget();
        true
    }
}

impl Drop for Group {
    /// The last resort, where it was not ended in order.
    fn drop(&mut self) {
        self.kill();
    }
}

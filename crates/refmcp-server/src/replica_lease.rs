//! The lease of this process (replica) among those that share the backplane: while it runs calls that others know of, tasks among
//! them, it says there that it is alive. Where one stops saying so, the next that looks at its calls fails them. They are
//! not run again: nothing tells which effects their handlers have had.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use crate::backplane::Result;
use crate::server::Server;
use crate::tasks::random_text;

/// How long a process counts as alive after it has said so.
const ALIVE: Duration = Duration::from_secs(9);

/// How often it says so.
const RENEWAL: Duration = Duration::from_secs(2);

/// Random bytes of a process's id: no two processes have the same one.
const ID: usize = 9;

/// The process among those that share the backplane: a value of its [`Server`].
pub struct ReplicaLease {
    id: Arc<str>,
    state: Mutex<LeaseState>,
}

#[derive(Default)]
struct LeaseState {
    /// How many runs of handlers there are.
    runs: usize,
    renewed: Option<Instant>,
    /// Something renews it in the background.
    is_renewed: bool,
}

impl Default for ReplicaLease {
    fn default() -> Self {
        Self { id: random_text::<ID>(), state: Mutex::default() }
    }
}

impl ReplicaLease {
    /// Its id, once the others know that it is alive.
    pub async fn announce(&self, server: &Server) -> Result<Arc<str>> {
        let is_due = self.state.lock().renewed.is_none_or(|at| at.elapsed() >= RENEWAL);
        if is_due {
            self.renew(server).await?;
        }
        Ok(self.id.clone())
    }

    /// Whether this is its id.
    pub fn is(&self, id: &str) -> bool {
        *self.id == *id
    }

    /// A run of a handler, which keeps the process alive for the others until it is dropped.
    pub fn run(self: &Arc<Self>, server: &Server) -> RunGuard {
        let mut state = self.state.lock();
        state.runs += 1;
        if !state.is_renewed {
            state.is_renewed = true;
            tokio::spawn(renew(RenewalGuard(self.clone()), server.clone()));
        }
        RunGuard(self.clone())
    }

    async fn renew(&self, server: &Server) -> Result<()> {
        server.backplane().renew_replica(&self.id, ALIVE).await?;
        self.state.lock().renewed = Some(Instant::now());
        Ok(())
    }
}

/// Says from time to time that the process is alive, as long as handlers run.
async fn renew(renewal: RenewalGuard, server: Server) {
    loop {
        sleep(RENEWAL).await;
        let lease = &renewal.0;
        {
            let mut state = lease.state.lock();
            if state.runs == 0 {
                state.is_renewed = false;
                return;
            }
        }
        if let Err(error) = lease.renew(&server).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "others may take this process for gone, and fail its calls");
        }
    }
}

/// A run of a handler, until it is dropped.
pub struct RunGuard(Arc<ReplicaLease>);

impl fmt::Debug for ReplicaLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplicaLease").field("id", &self.id).finish_non_exhaustive()
    }
}

impl fmt::Debug for RunGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunGuard").finish_non_exhaustive()
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.0.state.lock().runs -= 1;
    }
}

/// What renews in the background. It ends with its runtime, and then the next run begins another.
struct RenewalGuard(Arc<ReplicaLease>);

impl Drop for RenewalGuard {
    fn drop(&mut self) {
        self.0.state.lock().is_renewed = false;
    }
}

//! This process, as the others know it that share the backplane: while it runs tasks, it says there that it is alive. Where
//! one stops saying so, the next that looks at its tasks fails them. They are not run again: nothing tells which effects
//! their handlers have had.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::start::random_text;
use crate::backplane::Result;
use crate::server::Server;

/// How long a process counts as alive after it has said so.
const ALIVE: Duration = Duration::from_secs(20);

/// How often it says so.
const RENEWAL: Duration = Duration::from_secs(5);

/// Random bytes of a process's id: no two processes have the same one.
const ID: usize = 9;

/// The process among those that share the backplane.
pub(crate) struct Runner {
    id: Arc<str>,
    life: Mutex<Life>,
}

#[derive(Default)]
struct Life {
    /// How many runs of handlers there are.
    runs: usize,
    renewed: Option<Instant>,
    /// Something renews it in the background.
    is_renewed: bool,
}

impl Default for Runner {
    fn default() -> Self {
        Self { id: random_text::<ID>(), life: Mutex::default() }
    }
}

impl Runner {
    /// Its id, once the others know that it is alive.
    pub(super) async fn announce(&self, server: &Server) -> Result<Arc<str>> {
        let is_due = self.life.lock().renewed.is_none_or(|at| at.elapsed() >= RENEWAL);
        if is_due {
            self.renew(server).await?;
        }
        Ok(self.id.clone())
    }

    pub(super) fn is(&self, id: &str) -> bool {
        *self.id == *id
    }

    /// A run of a handler, which keeps the process alive for the others until it is dropped.
    pub(super) fn run(self: &Arc<Self>, server: &Server) -> Run {
        let mut life = self.life.lock();
        life.runs += 1;
        if !life.is_renewed {
            life.is_renewed = true;
            tokio::spawn(renew(Renewal(self.clone()), server.clone()));
        }
        Run(self.clone())
    }

    async fn renew(&self, server: &Server) -> Result<()> {
        server.backplane().renew_replica(&self.id, ALIVE).await?;
        self.life.lock().renewed = Some(Instant::now());
        Ok(())
    }
}

/// Says from time to time that the process is alive, as long as handlers run.
async fn renew(renewal: Renewal, server: Server) {
    loop {
        sleep(RENEWAL).await;
        let runner = &renewal.0;
        {
            let mut life = runner.life.lock();
            if life.runs == 0 {
                life.is_renewed = false;
                return;
            }
        }
        if let Err(error) = runner.renew(&server).await {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "others may take this process for gone, and fail its tasks");
        }
    }
}

/// A run of a handler.
pub(super) struct Run(Arc<Runner>);

impl Drop for Run {
    fn drop(&mut self) {
        self.0.life.lock().runs -= 1;
    }
}

/// What renews in the background. It ends with its runtime, and then the next run begins another.
struct Renewal(Arc<Runner>);

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.life.lock().is_renewed = false;
    }
}

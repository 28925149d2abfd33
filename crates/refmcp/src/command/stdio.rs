//! `refmcp stdio`: the reference server for the process that started it.

use anyhow::{Context, Result};
use tokio::runtime;

use super::{configure, reference_options};
use crate::args::ServerOptions;
use crate::audit::ServerAudit;
use crate::relay::{self, SharedFaults};

/// Threads for handlers beyond one for each core: some may block, and the others still run.
const SPARE_THREADS: usize = 6;

pub(crate) fn run(options: ServerOptions) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let handlers = runtime::Builder::new_multi_thread()
        .worker_threads(cores + SPARE_THREADS)
        .thread_name("handler")
        .enable_all()
        .build()
        .context("cannot start threads")?;
    // Messages have a thread of their own, so that no handler can delay them.
    let messages = runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let audit = ServerAudit::new(&options);
    let configure = configure(&options, &audit)?;
    let faults = options.faults.as_deref().map(SharedFaults::read).transpose()?;
    let record = options.record.clone();
    let server = refmcp_reference::server_with(reference_options(options, &audit), configure)?;
    let served = match faults {
        None => messages.block_on(async {
            server.stdio_with_handlers_on(handlers.handle().clone()).await.context("stdio").map(drop)
        }),
        Some(faults) => handlers.block_on(relay::serve_stdio(server, relay::observer(&record)?, faults)),
    };
    audit.finish();
    // A handler that still computes must not keep the process alive.
    handlers.shutdown_background();
    // Neither must a terminal: reading it cannot be cancelled.
    messages.shutdown_background();
    served
}

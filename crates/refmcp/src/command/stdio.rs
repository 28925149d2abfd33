//! `refmcp stdio`: the reference server for the process that started it.

use anyhow::{Context, Result};
use refmcp_reference::Options;
use tokio::runtime;

use crate::args::{Policy, Profile, ServerOptions};

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
    let grace = options.grace;
    let server = refmcp_reference::server_with(reference_options(options), |builder| builder.grace(grace))?;
    let served = messages.block_on(async {
        server.stdio_with_handlers_on(handlers.handle().clone()).await.context("stdio")
    });
    // A handler that still computes must not keep the process alive.
    handlers.shutdown_background();
    served.map(drop)
}

fn reference_options(options: ServerOptions) -> Options {
    Options {
        profile: match options.profile {
            Profile::Reference => refmcp_reference::Profile::Reference,
            Profile::Conformance => refmcp_reference::Profile::Conformance,
            Profile::All => refmcp_reference::Profile::All,
        },
        resources_dir: options.resources,
        prompts_dir: options.prompts,
        page_size: options.page_size as usize,
        policy: match options.policy {
            Policy::Strict => refmcp_server::Policy::STRICT,
            Policy::Lenient => refmcp_server::Policy::LENIENT,
        },
        name: options.name,
        ping_after: options.ping_after,
        ..Options::default()
    }
}

//! The commands, one file each.

pub(crate) mod auth;
pub(crate) mod check;
pub(crate) mod client;
pub(crate) mod install;
pub(crate) mod log;
pub(crate) mod reachable;
pub(crate) mod replay;
pub(crate) mod report;
pub(crate) mod scoped_fetch;
pub(crate) mod serve;
pub(crate) mod servers;
pub(crate) mod stdio;
pub(crate) mod trust;

use std::sync::Arc;

use anyhow::Result;
use refmcp_reference::{Options, TourSteps};
use refmcp_server::transport::MemoryBudget;
use refmcp_server::{ServerBuilder, Timeouts};
use refmcp_transport::observer::Observer;

use crate::args::{Policy, ServerOptions};
use crate::audit::ServerAudit;
use crate::record::Recording;

/// What of the options is for any server.
fn configure(
    options: &ServerOptions,
    audit: &ServerAudit,
) -> Result<impl FnOnce(ServerBuilder) -> ServerBuilder + use<>> {
    // Where a relay is in front of the server, it sees what the client gets.
    let recording = match options.faults {
        None => Recording::open(&options.record, false)?.observer(),
        Some(_) => None,
    };
    let mut observers: Vec<_> = [recording, audit.observer()].into_iter().flatten().collect();
    let observer =
        if observers.len() > 1 { Some(Arc::new(observers) as Arc<dyn Observer>) } else { observers.pop() };
    let grace = options.grace;
    let memory = options.memory.map(MemoryBudget::new).unwrap_or_default();
    Ok(move |builder: ServerBuilder| {
        let builder = builder.grace(grace).memory(memory);
        match observer {
            Some(observer) => builder.observer(observer),
            None => builder,
        }
    })
}

/// The reference server's options, as they were typed.
fn reference_options(options: ServerOptions, audit: &ServerAudit) -> Options {
    let tour = options.tour;
    // A tour shows pages to clients.
    let page_size = if tour.is_some() { 10 } else { 200 };
    Options {
        verdicts: audit.verdicts(),
        profile: options.profile,
        resources_dir: options.resources,
        prompts_dir: options.prompts,
        skills_dir: options.skills,
        page_size: options.page_size.unwrap_or(page_size) as usize,
        tour: tour.map(|steps| options.tour_skip.iter().fold(steps, TourSteps::without)),
        policy: match options.policy {
            Policy::Strict => refmcp_server::Policy::STRICT,
            Policy::Lenient => refmcp_server::Policy::LENIENT,
        },
        name: options.name,
        version: options.server_version,
        timeouts: Timeouts {
            ping_after: options.ping_after,
            pong: options.ping_timeout,
            ..Timeouts::default()
        },
        ..Options::default()
    }
}

//! `refmcp serve`: the reference server for any number of clients, over HTTP.

mod auth;
mod place;

use std::io::{Write, stdout};
use std::net::SocketAddr;

use anyhow::{Context, Result};
use refmcp_http::{Endpoint, Options, Rate, Tls};
use refmcp_server::ServerBuilder;
use refmcp_server::model::{JsonObject, ServerCapabilities};
use refmcp_server::transport::stdio::told_to_stop;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::place::Place;
use super::reference_options;
use crate::args::{Format, Policy, ServeOptions};

pub(crate) fn run(options: ServeOptions) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    let served = runtime.block_on(serve(options));
    // A handler that still computes must not keep the process alive.
    runtime.shutdown_background();
    served
}

async fn serve(options: ServeOptions) -> Result<()> {
    let tls = match (&options.tls_cert, &options.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::from_files(certificate, key)?),
        _ => None,
    };
    let at = format!("{}:{}", options.host, options.port);
    let listener = TcpListener::bind(&at).await.with_context(|| format!("cannot listen on {at}"))?;
    let address = listener.local_addr().context("no address")?;
    let (mut http, patience) = (http_options(&options, address), options.shutdown_timeout);
    let (grace, output) = (options.server.grace, options.output);
    let place = Place { address, secure: tls.is_some() };
    let about = auth::set(&options.authority, &place, &mut http)?;
    let mut reference = reference_options(options.server);
    reference.auth_required = http.authority.is_some();
    reference.endpoints = place.endpoints().map(|(_, url)| url).to_vec();
    let extensions = about.extensions;
    let declare = move |capabilities: &mut ServerCapabilities| {
        for id in extensions {
            let all = capabilities.extensions.get_or_insert_default();
            all.insert(id.to_owned(), JsonObject::new().into());
        }
    };
    let more = |builder: ServerBuilder| builder.grace(grace).capabilities(declare);
    let server = refmcp_reference::server_with(reference, more)?;
    let said = match output {
        Format::Text => place.banner("Authorization", &about.lines),
        Format::Json | Format::Jsonl => place.document(&about.lines),
    };
    if let Err(fault) = stdout().write_all(said.as_bytes()) {
        // Whoever closed our output does not want to read it; the server is no worse for that.
        tracing::debug!(%fault, "the banner was not read");
    }
    let stop = CancellationToken::new();
    let signals = tokio::spawn(told_to_stop(stop.clone()));
    let endpoint = Endpoint::new(server, http);
    let served = match tls {
        Some(tls) => endpoint.serve_tls(listener, tls, stop, patience).await,
        None => endpoint.serve(listener, stop, patience).await,
    };
    signals.abort();
    served.context("serving")
}

fn http_options(options: &ServeOptions, address: SocketAddr) -> Options {
    let lenient = options.server.policy == Policy::Lenient;
    Options {
        hosts: own_names(options, address),
        origins: options.allow_origin.clone(),
        rate: (options.rate > 0).then(|| Rate::per_second(options.rate)),
        rate_on_loopback: options.rate_on_loopback,
        max_sessions: options.max_sessions,
        max_connections: options.max_connections,
        session_idle: options.session_timeout,
        retention: options.retention,
        require_version: !lenient,
        serve_duplicate_ids: lenient,
        ..Options::default()
    }
}

/// Names under which clients reach us when we listen beyond this machine.
fn own_names(options: &ServeOptions, address: SocketAddr) -> Vec<String> {
    let mut names = options.allow_host.clone();
    if !address.ip().is_loopback() {
        names.push(options.host.clone());
    }
    names
}

//! `refmcp serve`: the reference server for any number of clients, over HTTP.

mod addresses;
mod auth;
mod backplane;

use anyhow::{Context, Result};
use refmcp_http::{Endpoint, OpsRoutes, Options, Rate, Shutdown, Tls};
use refmcp_server::ServerBuilder;
use refmcp_server::model::{JsonObject, ServerCapabilities};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use self::addresses::{ListenAddress, ServerAddresses};
use super::{configure, reachable, reference_options};
use crate::args::{OutputFormat, Policy, ServeOptions};
use crate::audit::ServerAudit;
use crate::relay::{self, SharedFaults};
use crate::signals::{Signal, Signals};
use crate::ui::output::announce;

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
    let signals = Signals::new()?;
    let faults = options.server.faults.as_deref().map(SharedFaults::read).transpose()?;
    let (listener, front, at) = match &faults {
        None => {
            let (listener, at) = addresses::listen(&options, tls.as_ref()).await?;
            (listener, None, at)
        }
        Some(_) => {
            let (front, private, at) = addresses::listen_behind(&options).await?;
            let server = private.local_addr().context("no address")?;
            (private.into(), Some((front, server)), at)
        }
    };
    let mut http = http_options(&options, &at);
    let shutdown = Shutdown::new(options.shutdown_timeout).drain(options.listen.drain);
    let audit = match &options.backplane.backplane {
        None => ServerAudit::new(&options.server),
        // This process sees a part of each conversation, and would miss what passes at the others.
        Some(_) => ServerAudit::Off,
    };
    let (configure, output) = (configure(&options.server, &audit)?, options.output);
    let public = options.listen.public_url.clone();
    let shown = match &at {
        ListenAddress::Address(address) => {
            reachable::authority(*address, &options.allow_host, reachable::outgoing_address)
        }
        ListenAddress::Unix(_) => "localhost".to_owned(),
    };
    let addresses =
        ServerAddresses { at, secure: tls.is_some(), path: options.listen.path.clone(), shown, public };
    http.hosts.extend(addresses.public_hosts());
    if front.is_some() {
        // The relay has checked the address that the client came to; the server sees another.
        http.hosts.push(addresses.shown.clone());
    }
    let about = auth::set(&options.authorization, &addresses, &mut http)?;
    let ops = listen_for_ops(options.ops_addr.as_deref(), &mut http).await?;
    let ops_address = ops.as_ref().and_then(|ops| ops.local_addr().ok());
    if let ListenAddress::Address(address) = addresses.at {
        if http.resource_server.is_none() {
            reachable::warn_if_open(address, reachable::OPEN_SERVER);
        }
        reachable::warn_of_proxies(&http.trusted_proxies);
    }
    ops_address.inspect(|address| reachable::warn_if_open(*address, reachable::OPEN_OPS));
    let ops_shown =
        ops_address.map(|address| reachable::authority(address, &[], reachable::outgoing_address));
    let record = options.server.record.clone();
    let mut reference = reference_options(options.server, &audit);
    reference.auth_required = http.resource_server.is_some();
    reference.endpoints = addresses.public_endpoints().map(|(_, url)| url).to_vec();
    let extensions = about.extensions;
    let declare = move |capabilities: &mut ServerCapabilities| {
        for id in extensions {
            let all = capabilities.extensions.get_or_insert_default();
            all.insert(id.to_owned(), JsonObject::new().into());
        }
    };
    let state_key = backplane::state_key(&options.backplane)?;
    let shared = backplane::connect(&options.backplane, &http, state_key.as_ref()).await?;
    let more = |builder: ServerBuilder| {
        let builder = configure(builder).capabilities(declare);
        match state_key {
            Some(key) => builder.seal_key(key),
            None => builder,
        }
    };
    let server = refmcp_reference::server_with(reference, more)?;
    let said = match output {
        OutputFormat::Text => addresses.banner(ops_shown.as_deref(), "Authorization", &about.lines),
        OutputFormat::Json | OutputFormat::Jsonl => addresses.document(ops_shown.as_deref(), &about.lines),
    };
    let relay = match (front, faults) {
        (Some((front, server)), Some(faults)) => {
            let (hosts, origins) = (http.hosts.clone(), http.origins.clone());
            let observer = relay::observer(&record)?;
            Some(relay::in_front_of(front, server, hosts, origins, observer, faults)?)
        }
        _ => None,
    };
    announce(&said);
    let mut endpoint = Endpoint::builder(server).options(http);
    if let Some(shared) = shared {
        endpoint = endpoint.backplane(shared);
    }
    let endpoint = endpoint.build();
    let signals = tokio::spawn(obey(signals, shutdown.clone(), tls));
    // Operators are answered until the end, and so see that the server stops.
    let (of_ops, end) = (endpoint.clone(), CancellationToken::new());
    let told = end.clone();
    let ops = ops.map(|listener| tokio::spawn(async move { of_ops.serve_ops(listener, told).await }));
    endpoint.serve_with_shutdown(listener, &shutdown).await;
    end.cancel();
    if let Some(ops) = ops {
        ops.await.context("--ops-addr")?;
    }
    audit.finish();
    signals.abort();
    relay.inspect(JoinHandle::abort);
    Ok(())
}

/// Listens for operators, where they have an address of their own; what is theirs is then nowhere else.
async fn listen_for_ops(address: Option<&str>, http: &mut Options) -> Result<Option<TcpListener>> {
    let Some(address) = address else { return Ok(None) };
    http.ops = OpsRoutes::Separate;
    let listener = TcpListener::bind(address).await;
    listener.with_context(|| format!("--ops-addr: cannot listen on {address}")).map(Some)
}

fn http_options(options: &ServeOptions, at: &ListenAddress) -> Options {
    let lenient = options.server.policy == Policy::Lenient;
    Options {
        path: options.listen.path.clone(),
        trusted_proxies: options.listen.trusted_proxies.clone(),
        hosts: own_names(options, at),
        origins: options.allow_origin.clone(),
        rate: (options.rate > 0).then(|| Rate::per_second(options.rate)),
        rate_on_loopback: options.rate_on_loopback,
        max_sessions: options.max_sessions,
        max_sessions_per_client: options.max_sessions_per_client,
        max_connections: options.max_connections,
        session_timeout: options.session_timeout,
        retention: options.retention,
        require_version: !lenient,
        require_accept: !lenient,
        serve_duplicate_ids: lenient,
        ..Options::default()
    }
}

/// Names under which clients reach us when we listen beyond this machine.
fn own_names(options: &ServeOptions, at: &ListenAddress) -> Vec<String> {
    let mut names = options.allow_host.clone();
    if let ListenAddress::Address(address) = at
        && !address.ip().is_loopback()
    {
        names.push(options.host.clone());
    }
    names
}

/// Does what signals ask for: SIGTERM and SIGINT to end, SIGHUP to read the certificate again. Ends when the task is aborted.
async fn obey(mut signals: Signals, shutdown: Shutdown, tls: Option<Tls>) {
    loop {
        match signals.next().await {
            Signal::Terminate | Signal::Interrupt => shutdown.trigger(),
            Signal::Hangup => {
                let tls = tls.clone();
                // Reading files may block; the signals that end the server must still be heard.
                tokio::task::spawn_blocking(move || reload(tls.as_ref()));
            }
        }
    }
}

fn reload(tls: Option<&Tls>) {
    match tls.map(Tls::reload) {
        None => tracing::warn!("SIGHUP: there is no certificate to read again (--tls-cert); nothing changes"),
        Some(Ok(())) => tracing::info!("SIGHUP: new connections get the certificate that was read now"),
        Some(Err(error)) => {
            let why = format!("{:#}", anyhow::Error::new(error));
            tracing::error!(why, "SIGHUP: the new certificate cannot be used; the old one stays in use");
        }
    }
}

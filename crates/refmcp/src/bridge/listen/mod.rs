//! Clients that come over a listener: streamable HTTP, HTTP+SSE or WebSocket, as the address says.

mod feed;
mod headers;
mod lane;
mod older;
mod reply;
mod session;
mod socket;
mod streamable;

use std::convert::Infallible;
use std::io::{Write, stdout};
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use refmcp_http::{Tls, cors, guard};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use url::Url;

use self::reply::{Body, Refusal, refuse};
use super::Upstream;
use super::pipe::MAX_MESSAGE_SIZE;
use crate::args::{BridgeListenOptions, UrlTransport};

/// Connections there may be at once.
const MOST_CONNECTIONS: usize = 1024;
/// Conversations there may be at once; each may be a process.
const MOST_CONVERSATIONS: usize = 256;
/// How long a head may take to arrive, and so how long a connection may be idle; and how long a body may.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
const BODY_WITHIN: Duration = Duration::from_secs(60);
/// How long exchanges may go on once the bridge is told to stop.
const STOPPED_WITHIN: Duration = Duration::from_secs(2);
/// How long nothing is accepted when the system has run out of something.
const BREATH: Duration = Duration::from_millis(100);

/// What every conversation needs.
#[derive(Debug)]
struct Common {
    to: Upstream,
    /// How long answers are waited for once a client has said everything.
    patience: Duration,
    /// One for each conversation.
    slots: Arc<Semaphore>,
    stop: CancellationToken,
}

/// What clients find here.
#[derive(Debug, Clone)]
enum Front {
    Streamable(Arc<streamable::Streamable>),
    WebSocket,
    Older(Arc<older::Older>),
}

impl Front {
    fn methods(&self) -> &'static [&'static str] {
        match self {
            Self::Streamable(_) => &["POST", "GET", "DELETE"],
            Self::WebSocket => &["GET"],
            Self::Older(_) => &["GET", "POST"],
        }
    }
}

/// A listener at an address.
#[derive(Debug, Clone)]
struct Door {
    front: Front,
    path: Arc<str>,
    /// The names it is called by, beside those of this machine.
    hosts: Arc<[String]>,
    /// Pages that may use it, beside those of this machine.
    origins: Arc<[String]>,
    tls: Option<Tls>,
    common: Arc<Common>,
}

/// Listens at an address until it is told to stop.
pub(super) async fn run(
    url: &Url,
    transport: UrlTransport,
    options: &BridgeListenOptions,
    to: Upstream,
    patience: Duration,
    as_json: bool,
    stop: &CancellationToken,
) -> Result<()> {
    let tls = match (&options.tls_cert, &options.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::from_files(certificate, key)?.only_http1()),
        _ => None,
    };
    let host = url.host_str().unwrap_or("127.0.0.1").to_owned();
    let at = format!("{host}:{}", url.port_or_known_default().unwrap_or_default());
    let listener = TcpListener::bind(&at).await.with_context(|| format!("cannot listen on {at}"))?;
    let port = listener.local_addr().context("no address")?.port();
    let slots = Arc::new(Semaphore::new(MOST_CONVERSATIONS));
    let common = Arc::new(Common { to, patience, slots, stop: stop.clone() });
    let front = match transport {
        UrlTransport::Auto | UrlTransport::StreamableHttp => {
            Front::Streamable(streamable::Streamable::new(common.clone()))
        }
        UrlTransport::WebSocket => Front::WebSocket,
        UrlTransport::Sse => Front::Older(Arc::new(older::Older::new(common.clone()))),
    };
    let hosts = options.allow_host.iter().chain([&host]).cloned().collect();
    let origins = options.allow_origin.as_slice().into();
    let door = Door { front, path: url.path().into(), hosts, origins, tls, common };
    let prefix = if transport == UrlTransport::Sse { "sse+" } else { "" };
    let at = format!("{prefix}{}://{host}:{port}{}", url.scheme(), url.path());
    let banner = if as_json {
        format!("{}\n", json!({ "version": env!("CARGO_PKG_VERSION"), "listening": at }))
    } else {
        format!("refmcp bridge is listening on {at}\n")
    };
    if let Err(fault) = stdout().write_all(banner.as_bytes()) {
        // A closed stdout only loses the banner; clients are served all the same.
        tracing::debug!(%fault, "the banner was not read");
    }
    door.accept(listener).await;
    Ok(())
}

impl Door {
    async fn accept(self, listener: TcpListener) {
        let mut connections = JoinSet::new();
        let stop = self.common.stop.clone();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                accepted = listener.accept(), if connections.len() < MOST_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(self.clone().welcome(stream));
                    }
                    Err(fault) => {
                        tracing::warn!(%fault, "no connection can be accepted now");
                        sleep(BREATH).await;
                    }
                },
                // Those that have ended make room.
                Some(_) = connections.join_next() => {}
            }
        }
        drop(listener);
        match &self.front {
            Front::Streamable(streamable) => streamable.wind_down(),
            Front::Older(older) => older.wind_down(),
            Front::WebSocket => {}
        }
        let ending = async { while connections.join_next().await.is_some() {} };
        if timeout(STOPPED_WITHIN, ending).await.is_err() {
            tracing::info!("not all exchanges have ended in time");
        }
        drop(connections);
        match &self.front {
            Front::Streamable(streamable) => streamable.close().await,
            Front::WebSocket | Front::Older(_) => {
                // Each conversation gives its place back once its connection to the server has ended in order.
                let all = u32::try_from(MOST_CONVERSATIONS).unwrap_or(u32::MAX);
                let ended = timeout(STOPPED_WITHIN * 4, self.common.slots.acquire_many(all)).await;
                tracing::debug!(in_time = ended.is_ok(), "conversations have ended");
            }
        }
    }

    async fn welcome(self, stream: TcpStream) {
        // Small answers must not wait for company.
        if let Err(fault) = stream.set_nodelay(true) {
            tracing::debug!(%fault, "TCP_NODELAY");
        }
        let called = stream.local_addr().ok().map(|address| address.ip());
        let Some(tls) = &self.tls else { return self.speak(stream, called).await };
        let opened = tokio::select! {
            opened = timeout(HEAD_WITHIN, tls.handshake(stream)) => opened,
            () = self.common.stop.cancelled() => return,
        };
        match opened {
            Ok(Ok(stream)) => self.speak(stream, called).await,
            Ok(Err(fault)) => tracing::debug!(%fault, "no TLS"),
            Err(_) => tracing::debug!("TLS took too long"),
        }
    }

    /// Speaks HTTP until the connection ends or has to.
    async fn speak(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        called: Option<IpAddr>,
    ) {
        let stop = self.common.stop.clone();
        let service = service_fn(|request: Request<Incoming>| {
            let door = self.clone();
            async move { Ok::<_, Infallible>(door.answer(called, request).await) }
        });
        let mut builder = http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_WITHIN);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service).with_upgrades());
        let served = tokio::select! {
            served = connection.as_mut() => served,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(fault) = served {
            tracing::debug!(%fault, "a connection ended");
        }
    }

    async fn answer(self, called: Option<IpAddr>, request: Request<Incoming>) -> Response<Body> {
        let (uri, headers) = (request.uri(), request.headers());
        if let Err(why) = guard::check(&self.hosts, &self.origins, called, uri, headers) {
            return *refuse(StatusCode::FORBIDDEN, why);
        }
        let page = headers.get(header::ORIGIN).cloned();
        let mut response = self.lead(request).await;
        if let Some(page) = page {
            cors::expose(&mut response, page);
        }
        response
    }

    /// Routes a request to its handler.
    async fn lead(self, request: Request<Incoming>) -> Response<Body> {
        if request.uri().path() != &*self.path {
            return *refuse(
                StatusCode::NOT_FOUND,
                format_args!("nothing is here; the bridge is at {}", self.path),
            );
        }
        if request.method() == Method::OPTIONS {
            return cors::preflight(self.front.methods(), request.headers());
        }
        if self.common.stop.is_cancelled() {
            return *refuse(StatusCode::SERVICE_UNAVAILABLE, "the bridge stops");
        }
        match &self.front {
            Front::Streamable(streamable) => Box::pin(streamable.answer(request)).await,
            Front::WebSocket => socket::upgrade(&self.common, request),
            Front::Older(older) => Box::pin(older.answer(request)).await,
        }
    }
}

/// Reads a body whole.
async fn body(request: Request<Incoming>) -> Result<Bytes, Refusal> {
    match timeout(BODY_WITHIN, Limited::new(request.into_body(), MAX_MESSAGE_SIZE).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(fault)) if fault.is::<http_body_util::LengthLimitError>() => {
            Err(refuse(StatusCode::PAYLOAD_TOO_LARGE, format_args!("at most {MAX_MESSAGE_SIZE} bytes")))
        }
        Ok(Err(_)) => Err(refuse(StatusCode::BAD_REQUEST, "the body broke off")),
        Err(_) => Err(refuse(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
    }
}

/// What a client is told for whose conversation there is no room.
fn full() -> Refusal {
    refuse(
        StatusCode::SERVICE_UNAVAILABLE,
        format_args!("there are already {MOST_CONVERSATIONS} conversations"),
    )
}

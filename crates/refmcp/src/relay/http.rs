//! The relay between clients of a port and a server at a URL, over HTTP/1.1: each connection of a client has one to the
//! server.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::request;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{HeaderMap, Request, Response, StatusCode, Uri, server};
use hyper_util::rt::{TokioIo, TokioTimer};
use refmcp_client::http::{Address, Dialer, HttpSettings, read_certificates};
use refmcp_client::observer::{Direction, Observed, Observer, Side, StartLine, StreamId};
use refmcp_http::guard;
use refmcp_transport::clock::Clock;
use tokio::net::{TcpListener, TcpStream, lookup_host};
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use url::Url;

use super::body::{SeenBody, content, has_transfer_coding, remove_hop_by_hop, upgrade};
use super::faults::{MAX_MESSAGE, SharedFaults};
use super::faulty_http::Planned;
use super::pass;
use super::taps::{Content, Tap};
use crate::args::{ExitReason, RelayOptions, UsageError, usage};
use crate::command::reachable;
use crate::signals::Signals;
use crate::ui::output::announce;

/// Connections of clients, to their end in whichever protocol; more wait to be accepted.
const MAX_CONNECTIONS: usize = 512;
/// How long the head of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// How long one side may stay once the other has left a connection that changed the protocol.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

pub(super) type ResponseBody = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// The body of a request: as it passes, or in memory where faults are planned.
type RequestBody = Either<SeenBody, Full<Bytes>>;

/// What all connections share.
struct HttpRelay {
    dialer: Dialer,
    /// What the server is addressed by; in front of the server in this process, what the client wrote.
    host: Option<HeaderValue>,
    /// The server as it is shown.
    name: String,
    hosts: Vec<String>,
    origins: Vec<String>,
    observer: Arc<dyn Observer>,
    faults: Option<SharedFaults>,
    /// HTTP requests, of all connections.
    requests: AtomicU64,
}

/// A connection of a client, and the one to the server that belongs to it.
struct Connection {
    relay: Arc<HttpRelay>,
    local: Option<SocketAddr>,
    observed: Observed,
    streams: AtomicU64,
    server: Mutex<Option<SendRequest<RequestBody>>>,
    /// What it is once the protocol has changed.
    tunnel: Mutex<Option<JoinHandle<()>>>,
}

/// Passes requests on until a signal ends it.
pub(super) async fn run(
    url: &Url,
    options: &RelayOptions,
    observer: Arc<dyn Observer>,
    faults: Option<SharedFaults>,
) -> Result<ExitReason> {
    let listen = &options.listen;
    let mut signals = Signals::new()?;
    let refused = |error: &dyn std::error::Error| UsageError::new(error.to_string());
    let mut settings = HttpSettings::default();
    for file in &options.cacert {
        settings.ca_certificates.extend(read_certificates(file).map_err(UsageError::new)?);
    }
    let address = Address::http(url.as_str()).map_err(|error| refused(&error))?;
    let relay = Arc::new(HttpRelay {
        host: Some(HeaderValue::from_str(url.authority()).map_err(|error| refused(&error))?),
        name: address.to_string(),
        dialer: Dialer::http1(address, settings),
        hosts: listen.allow_host.clone(),
        origins: listen.allow_origin.clone(),
        observer,
        faults,
        requests: AtomicU64::new(1),
    });
    let at = (listen.host.as_str(), listen.port);
    let listener =
        TcpListener::bind(at).await.with_context(|| format!("cannot listen on {}:{}", at.0, at.1))?;
    let local = listener.local_addr().context("no address")?;
    if is_own(url, local).await {
        return Err(usage!("{url}: the relay would be its own server").into());
    }
    reachable::warn_if_open(local, reachable::OPEN_RELAY);
    announce(&format!("refmcp relay is listening on http://{local}{}\n", url.path()));
    tokio::select! {
        () = accept(listener, relay) => Ok(ExitReason::Done),
        signal = signals.next() => Ok(signal.reason()),
    }
}

/// Passes requests on to the server in this process, which listens on a port that no other machine reaches, until the task is
/// aborted.
pub(crate) fn in_front_of(
    listener: TcpListener,
    server: SocketAddr,
    hosts: Vec<String>,
    origins: Vec<String>,
    observer: Arc<dyn Observer>,
    faults: SharedFaults,
) -> Result<JoinHandle<()>> {
    let address = Address::http(&format!("http://{server}/")).context("the server's own address")?;
    let relay = HttpRelay {
        host: None,
        name: "the reference server".to_owned(),
        dialer: Dialer::http1(address, HttpSettings::default()),
        hosts,
        origins,
        observer,
        faults: Some(faults),
        requests: AtomicU64::new(1),
    };
    Ok(tokio::spawn(accept(listener, Arc::new(relay))))
}

/// Whether a URL leads to this listener, which would pass each request to itself until no connection is left.
async fn is_own(url: &Url, local: SocketAddr) -> bool {
    let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else { return false };
    // A name that is not found now may be later.
    port == local.port()
        && lookup_host(format!("{host}:{port}")).await.is_ok_and(|mut found| {
            found.any(|at| at == local || local.ip().is_unspecified() && at.ip().is_loopback())
        })
}

async fn accept(listener: TcpListener, relay: Arc<HttpRelay>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    // The semaphore is never closed.
    while let Ok(place) = places.clone().acquire_owned().await {
        match listener.accept().await {
            Ok((stream, peer)) => {
                let relay = relay.clone();
                tokio::spawn(async move {
                    relay.serve(stream, peer).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "no connection can be accepted now");
                sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
}

impl HttpRelay {
    async fn serve(self: Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
        let (observer, name) = (self.observer.clone(), self.name.clone());
        let connection = Arc::new(Connection {
            observed: Observed::open(observer, Side::Client, "http", name, Clock::new()),
            local: stream.local_addr().ok(),
            relay: self,
            streams: AtomicU64::new(1),
            server: Mutex::new(None),
            tunnel: Mutex::new(None),
        });
        let service = service_fn(|request| {
            let connection = connection.clone();
            async move { Ok::<_, Infallible>(connection.answer(request).await) }
        });
        let mut builder = server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
        // Names and the absence of a date are the server's.
        builder.preserve_header_case(true).auto_date_header(false);
        let served = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await;
        let (observed, tunnel) = (&connection.observed, connection.tunnel.lock().await.take());
        if let Some(Err(error)) = async { Some(tunnel?.await) }.await {
            tracing::warn!(%error, "a connection was not passed on");
        }
        match served {
            Ok(()) => observed.closed(&format_args!("{peer} closed it")),
            Err(error) => observed.closed(&format_args!("{peer}: {error}")),
        }
    }
}

impl Connection {
    /// The server's response, or ours where there is none.
    async fn answer(&self, request: Request<Incoming>) -> Response<ResponseBody> {
        let stream = self.observed.stream(StreamId(self.streams.fetch_add(1, Ordering::Relaxed)));
        let (head, body) = request.into_parts();
        report_request(&stream, &head);
        let HttpRelay { hosts, origins, .. } = &*self.relay;
        let local = self.local.map(|local| local.ip());
        if let Err(refused) = guard::check(hosts, origins, local, &head.uri, &head.headers) {
            return own_response(&stream, StatusCode::FORBIDDEN, &refused);
        }
        let Some(target) = head.uri.path_and_query().map(|target| Uri::from(target.clone())) else {
            return own_response(&stream, StatusCode::BAD_REQUEST, &"the request names no path");
        };
        if has_transfer_coding(&head.headers) {
            return own_response(&stream, StatusCode::NOT_IMPLEMENTED, &"a Transfer-Encoding beside chunked");
        }
        let wanted = upgrade(&head.headers);
        let tap = Tap::new(stream.clone(), Direction::Sent, content(&head.headers));
        let (body, planned) = match &self.relay.faults {
            None => (Either::Left(SeenBody::new(body, tap, None)), None),
            Some(faults) => match self.receive(faults, &head, body, tap).await {
                Ok((body, planned)) => (Either::Right(Full::new(body)), Some(planned)),
                Err(why) => return own_response(&stream, StatusCode::BAD_REQUEST, &why),
            },
        };
        if let Some(response) = planned.as_ref().and_then(|planned| planned.refusal(&stream)) {
            return response;
        }
        let mut request = Request::from_parts(head, body);
        *request.uri_mut() = target;
        remove_hop_by_hop(request.headers_mut(), wanted.clone());
        if let Some(host) = &self.relay.host {
            request.headers_mut().insert(HOST, host.clone());
        }
        let client = wanted.is_some().then(|| hyper::upgrade::on(&mut request));
        match self.send(request).await {
            Ok(response) => self.respond(&stream, response, client, planned).await,
            Err(why) => own_response(&stream, StatusCode::BAD_GATEWAY, &why),
        }
    }

    /// Sends a request over the connection to the server, which is opened if there is none any more.
    async fn send(&self, mut request: Request<RequestBody>) -> Result<Response<Incoming>, String> {
        let mut server = self.server.lock().await;
        let mut known = server.take();
        loop {
            let is_known = match &mut known {
                Some(sender) => sender.ready().await.is_ok(),
                None => false,
            };
            let mut sender = match known.take().filter(|_| is_known) {
                Some(sender) => sender,
                None => self.connect().await?,
            };
            match sender.try_send_request(request).await {
                Ok(response) => {
                    *server = Some(sender);
                    return Ok(response);
                }
                // The server may have closed an idle connection just now. A request that never left is sent over another.
                Err(mut error) => match error.take_message() {
                    Some(unsent) if is_known => request = unsent,
                    _ => return Err(format!("{}: {}", self.relay.name, error.into_error())),
                },
            }
        }
    }

    /// Passes a response on; where the protocol changes, the bytes after it.
    async fn respond(
        &self,
        stream: &Observed,
        mut response: Response<Incoming>,
        client: Option<OnUpgrade>,
        planned: Option<Planned>,
    ) -> Response<ResponseBody> {
        let status = StartLine::Response { status: response.status().as_u16() };
        stream.head(Direction::Received, status, fields(response.headers()));
        let bad = |why| own_response(stream, StatusCode::BAD_GATEWAY, &format_args!("the server {why}"));
        if has_transfer_coding(response.headers()) {
            return bad("sends a Transfer-Encoding beside chunked");
        }
        let mut changes_to = None;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            changes_to = upgrade(response.headers());
            let (Some(client), Some(_)) = (client, &changes_to) else {
                return bad("changes to a protocol that the client did not ask for");
            };
            let server = hyper::upgrade::on(&mut response);
            let tunnel = match planned {
                None => tokio::spawn(tunnel(client, server, stream.clone())),
                Some(planned) => tokio::spawn(planned.tunnel(client, server, stream.clone())),
            };
            *self.tunnel.lock().await = Some(tunnel);
            remove_hop_by_hop(response.headers_mut(), changes_to);
            return response.map(|body| body.map_err(Into::into).boxed_unsync());
        }
        let content = content(response.headers());
        remove_hop_by_hop(response.headers_mut(), changes_to);
        let tap = Tap::new(stream.clone(), Direction::Received, content);
        match planned {
            None => response.map(|body| {
                SeenBody::new(body, tap, Some(stream.clone())).map_err(Into::into).boxed_unsync()
            }),
            Some(planned) => planned.respond(response, tap, stream.clone()).await,
        }
    }

    /// Reads the body of a request, and looks up what is planned for it.
    async fn receive(
        &self,
        faults: &SharedFaults,
        head: &request::Parts,
        body: Incoming,
        mut tap: Tap,
    ) -> Result<(Bytes, Planned), String> {
        let body =
            Limited::new(body, MAX_MESSAGE).collect().await.map_err(|error| error.to_string())?.to_bytes();
        tap.feed(&body);
        let channel = self.relay.requests.fetch_add(1, Ordering::Relaxed);
        Ok((body.clone(), Planned::new(faults, channel, head, &body)))
    }

    async fn connect(&self) -> Result<SendRequest<RequestBody>, String> {
        let stream = self.relay.dialer.open().await.map_err(|error| error.to_string())?;
        let mut builder = http1::Builder::new();
        builder.preserve_header_case(true);
        let (sender, connection) =
            builder.handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
        tokio::spawn(async move {
            // The error shows up in the response as well.
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection to the server ended");
            }
        });
        Ok(sender)
    }
}

/// Passes bytes both ways once the protocol has changed, in practice to WebSocket.
async fn tunnel(client: OnUpgrade, server: OnUpgrade, observed: Observed) {
    let (client, server) = match tokio::try_join!(client, server) {
        Ok(both) => both,
        Err(error) => return observed.stream_failed(&error),
    };
    let (from_client, to_client) = tokio::io::split(TokioIo::new(client));
    let (from_server, to_server) = tokio::io::split(TokioIo::new(server));
    let tap = |direction| Tap::new(observed.clone(), direction, Content::Frames(Box::default()));
    let left = CancellationToken::new();
    let until = || async {
        left.cancelled().await;
        sleep(LEAVE_TIMEOUT).await;
    };
    let (mut sent, mut received) = (tap(Direction::Sent), tap(Direction::Received));
    let sending = pass(from_client, to_server, |bytes| sent.feed(bytes), until);
    let receiving = pass(from_server, to_client, |bytes| received.feed(bytes), until);
    tokio::join!(
        async {
            sending.await;
            left.cancel();
        },
        async {
            receiving.await;
            left.cancel();
        },
    );
}

fn report_request(stream: &Observed, head: &request::Parts) {
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    let start = StartLine::Request { method: head.method.as_str(), target };
    stream.head(Direction::Sent, start, fields(&head.headers));
}

fn fields(headers: &HeaderMap) -> impl Iterator<Item = (&str, &[u8])> {
    headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()))
}

/// A response without a body.
pub(super) fn empty_response(status: StatusCode) -> Response<ResponseBody> {
    let mut response = Response::new(Full::default().map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response
}

/// A response that is not the server's.
pub(super) fn own_response(
    stream: &Observed,
    status: StatusCode,
    why: &dyn std::fmt::Display,
) -> Response<ResponseBody> {
    let why = format!("refmcp relay: {why}\n");
    stream.stream_failed(&why.trim_end());
    let mut response = Response::new(Full::from(why).map_err(|never| match never {}).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

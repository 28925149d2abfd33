//! Fetching what strangers name, within limits: of time, of size, of where it may lead.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use refmcp_auth::fetch::{Fetch, FetchError};
use refmcp_auth::uri::is_loopback;
use tokio::time::timeout;
use url::Url;

use super::address::Address;
use super::dial::{DialError, Dialer, LazyTls};
use super::headers::USER_AGENT;
use super::response::describe;
use super::scope::{AddressPolicy, AddressScope};
use super::settings::HttpSettings;
use crate::transport::BoxFuture;

/// How long one fetch may take in all, unless it is set otherwise.
const TIME: Duration = Duration::from_secs(10);
/// Bytes of a response, unless it is set otherwise.
const SIZE: usize = 1 << 20;
/// Bytes of the head of a response.
const HEAD: usize = 64 << 10;
/// What is spoken inside of TLS.
const PROTOCOLS: &[&[u8]] = &[b"http/1.1"];

/// Fetches documents and tokens over HTTP. It follows no redirection, adds nothing that says who asks, and connects only
/// to addresses that a stranger may name: the very addresses that were looked at, so a name cannot mean something else
/// a moment later. Without TLS it speaks to this machine only.
#[derive(Debug, Clone)]
pub struct Fetcher {
    settings: HttpSettings,
    from: AddressScope,
    time: Duration,
    size: usize,
    tls: LazyTls,
}

impl Fetcher {
    /// One for what is named by somebody who is there. It asks the world; private networks when they are in one or on
    /// this machine; this machine only when they are on it themselves. What no network is meant to carry it never asks.
    pub fn guarded(from: AddressScope) -> Self {
        Self { settings: HttpSettings::default(), from, time: TIME, size: SIZE, tls: LazyTls::default() }
    }

    /// How connections are made: of these the certificates, the way to look up hosts, the time for a connection and the
    /// observer matter here.
    #[must_use]
    pub fn settings(mut self, settings: HttpSettings) -> Self {
        self.settings = settings;
        self.tls = LazyTls::default();
        self
    }

    /// How long one fetch may take in all: ten seconds.
    #[must_use]
    pub fn within(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// How many bytes a response may have: a mebibyte.
    #[must_use]
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.size = bytes;
        self
    }

    async fn run(&self, request: Request<Bytes>) -> Result<Response<Bytes>, FetchError> {
        let forbidden = |why: &dyn std::fmt::Display| FetchError::Forbidden(why.to_string());
        let text = request.uri().to_string();
        let url = Url::parse(&text).map_err(|fault| forbidden(&fault))?;
        let address = Address::http(&text).map_err(|fault| forbidden(&fault))?;
        let plain = !address.is_secure();
        if plain && !is_loopback(&url) {
            return Err(forbidden(&format!("{address} is not protected by TLS")));
        }
        let guard = AddressPolicy { from: self.from, only_loopback: plain };
        let dialer = Dialer::new(address.clone(), self.settings.clone(), PROTOCOLS);
        let stream = dialer.guarded(guard, self.tls.clone()).try_dial().await.map_err(|why| match why {
            DialError::Forbidden(why) => FetchError::Forbidden(why),
            DialError::Unreachable(why) => FetchError::Unreachable(why),
            DialError::TooSlow(_) => FetchError::TimedOut,
        })?;
        let mut request = request.map(Full::new);
        *request.uri_mut() = address.target().map_err(|fault| forbidden(&fault))?.in_origin;
        let host = address.host_header().map_err(|fault| forbidden(&fault))?;
        request.headers_mut().insert(header::HOST, host);
        request.headers_mut().entry(header::USER_AGENT).or_insert(USER_AGENT);
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(HEAD)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|fault| FetchError::Unreachable(describe(&fault)))?;
        let asking = async {
            let response = sender.send_request(request).await.map_err(|fault| blame(&fault))?;
            self.read(response).await
        };
        let carrying = async {
            // Whoever waits for the response or its body is told by what they wait for.
            let _ended = connection.await;
            std::future::pending::<Infallible>().await
        };
        let response = tokio::select! {
            biased;
            response = asking => response?,
            never = carrying => match never {},
        };
        tracing::debug!(%address, status = %response.status(), "fetched");
        Ok(response)
    }

    async fn read(&self, response: Response<Incoming>) -> Result<Response<Bytes>, FetchError> {
        let (head, mut incoming) = response.into_parts();
        let announced = usize::try_from(incoming.size_hint().lower()).unwrap_or(usize::MAX);
        if announced > self.size {
            return Err(FetchError::TooLarge(self.size));
        }
        let mut body = Vec::new();
        while let Some(frame) = incoming.frame().await {
            let data = frame.map_err(|fault| blame(&fault))?.into_data().unwrap_or_default();
            if body.len().saturating_add(data.len()) > self.size {
                return Err(FetchError::TooLarge(self.size));
            }
            body.extend_from_slice(&data);
        }
        Ok(Response::from_parts(head, body.into()))
    }
}

impl Fetch for Fetcher {
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, FetchError>> {
        Box::pin(
            async move { timeout(self.time, self.run(request)).await.unwrap_or(Err(FetchError::TimedOut)) },
        )
    }
}

fn blame(fault: &hyper::Error) -> FetchError {
    if fault.is_parse() {
        FetchError::Broken(format!("it is not HTTP: {}", describe(fault)))
    } else {
        FetchError::Broken(describe(fault))
    }
}

//! Fetching documents that remote parties name, within limits of time, size and address scope.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response};
use refmcp_auth::fetch::{Fetch, FetchError};
use refmcp_auth::uri::is_loopback;
use tokio::time::timeout;
use url::Url;

use super::connection::{
    Address, AddressPolicy, AddressScope, BodyError, DialError, Dialer, Http1Connection, LazyTls, describe,
};
use super::request::USER_AGENT;
use super::settings::HttpSettings;
use crate::transport::BoxFuture;

/// How long one fetch may take in all, unless it is set otherwise.
const FETCH_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a response, unless it is set otherwise.
const SIZE: usize = 1 << 20;
/// Bytes of the head of a response.
const MAX_HEAD: usize = 64 << 10;
/// The HTTP versions offered inside of TLS (ALPN).
const PROTOCOLS: &[&[u8]] = &[b"http/1.1"];

/// Fetches documents and tokens over HTTP. It follows no redirection, sends no credentials, and connects only to
/// addresses that the party which named them can reach itself: the very addresses that were checked, so a name cannot
/// mean another one a moment later. Without TLS it connects to this machine only.
#[derive(Debug, Clone)]
#[must_use]
pub struct Fetcher {
    settings: HttpSettings,
    from: AddressScope,
    time: Duration,
    size: usize,
    tls: LazyTls,
}

impl Fetcher {
    /// A fetcher of URLs that a party in this scope names. Public addresses are always allowed, private networks if the
    /// party is in one or on this machine, this machine if the party is on it, reserved addresses never.
    pub fn guarded(from: AddressScope) -> Self {
        Self {
            settings: HttpSettings::default(),
            from,
            time: FETCH_TIMEOUT,
            size: SIZE,
            tls: LazyTls::default(),
        }
    }

    /// How connections are made. Used are the certificates, the resolver and the time for a connection.
    pub fn settings(mut self, settings: HttpSettings) -> Self {
        self.settings = settings;
        self.tls = LazyTls::default();
        self
    }

    /// How long one fetch may take in all: ten seconds.
    pub fn within(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// How many bytes a response may have: a mebibyte.
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.size = bytes;
        self
    }

    async fn run(&self, request: Request<Bytes>) -> Result<Response<Bytes>, FetchError> {
        let forbidden = |why: &dyn std::fmt::Display| FetchError::Forbidden(why.to_string());
        let text = request.uri().to_string();
        let url = Url::parse(&text).map_err(|error| forbidden(&error))?;
        let address = Address::http(&text).map_err(|error| forbidden(&error))?;
        let plain = !address.is_secure();
        if plain && !is_loopback(&url) {
            return Err(forbidden(&format!("{address} is not protected by TLS")));
        }
        let policy = AddressPolicy { from: self.from, only_loopback: plain };
        let dialer = Dialer::new(address.clone(), self.settings.clone(), PROTOCOLS);
        let stream = dialer.restricted(policy, self.tls.clone()).dial().await.map_err(|why| match why {
            DialError::Forbidden(why) => FetchError::Forbidden(why),
            DialError::Unreachable(why) => FetchError::Unreachable(why),
            DialError::TooSlow(_) => FetchError::TimedOut,
        })?;
        let mut request = request.map(Full::new);
        *request.uri_mut() = address.target().map_err(|error| forbidden(&error))?.origin_form;
        let host = address.host_header().map_err(|error| forbidden(&error))?;
        request.headers_mut().insert(header::HOST, host);
        request.headers_mut().entry(header::USER_AGENT).or_insert(USER_AGENT);
        request.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        let mut builder = http1::Builder::new();
        let connection = Http1Connection::handshake(stream, builder.max_buf_size(MAX_HEAD)).await;
        let connection = connection.map_err(|error| FetchError::Unreachable(describe(&error)))?;
        let mut response = connection.send(request, None).await.map_err(|error| {
            let why = describe(&error.error);
            FetchError::Broken(if error.error.is_parse() { format!("it is not HTTP: {why}") } else { why })
        })?;
        let body = response.body.whole(self.size).await.map_err(|error| match error {
            BodyError::TooLong => FetchError::TooLarge(self.size),
            BodyError::Broken(why) => FetchError::Broken(why),
        })?;
        tracing::debug!(%address, status = %response.status, "fetched");
        let mut fetched = Response::new(body);
        *fetched.status_mut() = response.status;
        *fetched.headers_mut() = response.headers;
        Ok(fetched)
    }
}

impl Fetch for Fetcher {
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, FetchError>> {
        Box::pin(
            async move { timeout(self.time, self.run(request)).await.unwrap_or(Err(FetchError::TimedOut)) },
        )
    }
}

//! The HTTP fetcher that drives the flows.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Fetches over HTTP within its own limits of time, size and address. Redirects are returned, not followed. A response of
/// any status is a success.
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Sends a request and reads the whole response.
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, FetchError>>;
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The address must not be contacted: a remote party named an address of a private network.
    #[error("the address is not allowed: {0}")]
    Forbidden(String),
    /// The connection failed.
    #[error("{0}")]
    Unreachable(String),
    /// The time limit passed.
    #[error("no response in time")]
    TimedOut,
    /// The response exceeds the size limit.
    #[error("the response is longer than {0} bytes")]
    TooLarge(usize),
    /// The response is not valid HTTP.
    #[error("the response is malformed: {0}")]
    Broken(String),
}

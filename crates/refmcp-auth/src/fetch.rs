//! Whoever does the fetching for the steps that want something fetched.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};

/// A future in a box.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Fetches over HTTP, within limits of its own: of time, of size, of where it may go. Redirections are not followed: they
/// come back as what they are. A response of any status is one.
pub trait Fetch: Send + Sync + fmt::Debug {
    /// Sends a request and reads the whole response.
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, Unfetched>>;
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unfetched {
    /// It must not be asked for: the address is one that strangers must not make us call.
    #[error("it is not asked for: {0}")]
    Forbidden(String),
    /// Nobody answers there.
    #[error("{0}")]
    Unreachable(String),
    /// It took too long.
    #[error("no answer in time")]
    TooSlow,
    /// The answer is too long to be what was asked for.
    #[error("the answer is longer than {0} bytes")]
    TooLong(usize),
    /// What came is no answer.
    #[error("the answer makes no sense: {0}")]
    Broken(String),
}

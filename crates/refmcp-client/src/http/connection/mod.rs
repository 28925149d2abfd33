//! Connections to HTTP servers: addresses and where they may lead, dialing, TLS, the pool, and responses.

mod address;
pub(crate) mod dial;
mod pool;
mod response;
mod scope;
mod tls;

pub use address::{Address, UrlError};
pub(crate) use address::{RequestTarget, as_http};
pub(crate) use dial::{DialError, LazyTls, Stream};
pub use dial::{Dialer, Io};
pub(crate) use pool::Pool;
pub(crate) use response::{Body, BodyError, Http1Connection, HttpResponse, describe};
pub(crate) use scope::AddressPolicy;
pub use scope::AddressScope;
pub use tls::read_certificates;

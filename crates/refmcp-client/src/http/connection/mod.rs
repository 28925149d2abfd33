//! Connections to HTTP servers: addresses and where they may lead, dialing, TLS, the pool, and responses.

mod address;
mod address_scope;
pub(crate) mod dial;
mod pool;
mod response;
mod tls;

pub use address::{Address, UrlError};
pub(crate) use address::{RequestTarget, as_http};
pub(crate) use address_scope::AddressPolicy;
pub use address_scope::AddressScope;
pub(crate) use dial::{DialError, LazyTls, Stream};
pub use dial::{Dialer, Io};
pub(crate) use pool::Pool;
pub(crate) use response::{Body, BodyError, Http1Connection, HttpResponse, describe};
pub use tls::read_certificates;

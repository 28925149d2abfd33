//! Servers over HTTP: streamable HTTP and the older HTTP+SSE.
//!
//! A call over HTTP/1.1 is one task that owns its connection while it lasts: it writes the request, reads the response,
//! returns the connection and hands on the message, without waking another task.
//!
//! | module | contents |
//! |---|---|
//! | `endpoint`, `settings` | what users set |
//! | `streamable`, `http_sse` | the two transports; `transport` is the connected form of both |
//! | `request` | messages as HTTP requests: headers, order, sessions, redirections, tokens, error responses |
//! | `stream` | SSE streams: reading, resuming, the GET stream |
//! | `connection` | addresses, dialing, TLS, the pool |
//! | `fetch` | documents and tokens of authorization servers |

pub(crate) mod connection;
pub(crate) mod endpoint;
mod fetch;
mod http_sse;
pub(crate) mod request;
mod settings;
mod stream;
mod streamable;
mod transport;

pub use connection::{Address, AddressScope, Dialer, Io, UrlError, read_certificates};
pub use fetch::Fetcher;
pub use http_sse::HttpSse;
pub use request::HeaderError;
pub use settings::{HttpSettings, MAX_MESSAGE_SIZE, Resolve};
pub use streamable::StreamableHttp;

//! Servers over HTTP: streamable HTTP and the older HTTP+SSE.
//!
//! A call over HTTP/1.1 is one task that owns its connection while it lasts: it writes the request, reads the answer
//! and hands both the connection back and the message on, without waking anybody else. The parts:
//!
//! - `address`, `settings`, `headers`: where to, how, and what is said in front of a message.
//! - `dial`, `near`, `tls`, `given`, `observer`, `pool`, `answer`: connections, where they may lead, those that wait for work, and what
//!   comes over them.
//! - `line`: what both transports share: sending, order, and the tasks that do it.
//! - `events`, `cursor`: reading streams of events and taking them up again.
//! - `streamable`, `reply`, `standing`: streamable HTTP. `legacy`: HTTP+SSE.
//! - `fetch`: documents and tokens of authorization servers.

mod address;
mod cursor;
pub(crate) mod dial;
mod events;
mod fetch;
mod get_stream;
mod given;
mod headers;
mod http_sse;
mod observer;
mod pool;
mod post;
mod refusal;
mod requester;
mod response;
mod scope;
mod settings;
mod streamable;
mod tasks;
mod tls;

pub(crate) use address::as_http;
pub use address::{Address, UrlError};
pub use fetch::Fetcher;
pub use given::read_certificates;
pub use headers::HeaderError;
pub use http_sse::HttpSse;
pub use observer::{ByteObserver, TransferredBytes};
pub use scope::AddressScope;
pub use settings::{HttpSettings, MAX_MESSAGE, Resolve};
pub use streamable::StreamableHttp;

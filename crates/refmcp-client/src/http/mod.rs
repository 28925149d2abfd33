//! Servers over HTTP: streamable HTTP and the older HTTP+SSE.
//!
//! A call over HTTP/1.1 is one task that owns its connection while it lasts: it writes the request, reads the answer
//! and hands both the connection back and the message on, without waking anybody else. The parts:
//!
//! - `address`, `settings`, `headers`: where to, how, and what is said in front of a message.
//! - `dial`, `near`, `tls`, `given`, `tap`, `pool`, `answer`: connections, where they may lead, those that wait for work, and what
//!   comes over them.
//! - `line`: what both transports share: sending, order, and the tasks that do it.
//! - `events`, `bookmark`: reading streams of events and taking them up again.
//! - `streamable`, `reply`, `standing`: streamable HTTP. `legacy`: HTTP+SSE.
//! - `fetch`: documents and tokens of authorization servers.

mod address;
mod answer;
mod bookmark;
pub(crate) mod dial;
mod events;
mod fetch;
mod given;
mod headers;
mod legacy;
mod line;
mod near;
mod pool;
mod refusal;
mod reply;
mod settings;
mod standing;
mod streamable;
mod tap;
mod tasks;
mod tls;

pub(crate) use address::as_http;
pub use address::{Address, BadUrl};
pub use fetch::Fetcher;
pub use given::read_certificates;
pub use headers::BadHeader;
pub use legacy::HttpSse;
pub use near::Reach;
pub use settings::{HttpSettings, MAX_MESSAGE, Resolve};
pub use streamable::StreamableHttp;
pub use tap::{Passed, Tap};

//! The endpoint as its clients see it: bytes on a socket.

mod abort;
mod authorization;
mod bad_http;
mod bad_sessions;
mod bad_websocket;
mod cancelled;
mod caps;
mod commit;
mod crowd;
mod exactness;
mod findings;
mod frames;
mod gates;
mod heads_and_bodies;
mod http2;
mod legacy;
mod logs;
mod metrics;
mod mounted;
mod operation;
mod ops;
mod paths;
mod policy;
mod proxies;
mod sessions;
mod shutdown;
mod slow_readers;
mod standing;
mod stateless;
mod support;
#[cfg(feature = "tls")]
mod tls;
mod tools;
#[cfg(unix)]
mod unix;
mod websocket;
mod wire;

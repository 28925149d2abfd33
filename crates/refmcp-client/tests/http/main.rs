//! The HTTP transports of the client, over real sockets, against servers that write exact bytes.

#![cfg(feature = "http")]

mod answers;
mod auth;
mod bad_streams;
mod exact_bytes;
mod fetch;
mod floods;
mod get_stream;
mod headers;
mod http_sse;
mod lifetimes;
mod messages;
mod observer;
mod order;
mod raw_server;
#[path = "../support/recording_sink.rs"]
mod recording_sink;
mod redirections;
mod refusals;
mod resumption;
mod sessions;
mod tls;

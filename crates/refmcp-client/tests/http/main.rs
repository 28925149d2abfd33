//! The HTTP transports of the client, over real sockets, against servers that write exact bytes.

#![cfg(feature = "http")]

mod answers;
mod auth;
mod bad_streams;
mod exactness;
mod fetch;
mod headers;
mod legacy;
mod lifetimes;
mod order;
mod raw_server;
mod redirections;
mod refusals;
mod resumption;
mod sessions;
mod sink;
mod standing;
mod tls;

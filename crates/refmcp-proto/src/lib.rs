//! The Model Context Protocol as values and functions: no IO, no clock, no randomness, no async.
//!
//! | module | what it is |
//! |---|---|
//! | [`jsonrpc`] | JSON-RPC messages from and to bytes, read strictly |
//! | [`frame`] | framing of messages: lines, server-sent events |
//! | [`model`] | what travels inside messages, in the newest shape |
//! | [`revision`] | the five revisions: what differs, and how shapes are adapted |
//! | [`engine`] | the engines of server and client: messages and a time in; messages, work and deadlines out |
//! | [`http`] | streamable HTTP as decisions: what a POST is, which status its response has |
//! | [`param_headers`] | tool parameters mirrored in `Mcp-Param-*` headers |
//! | [`uri_template`] | URI templates, expanded and matched |
//! | `schema` | validators of JSON Schemas; with the feature of that name |
//! | [`peer`] | the client as a server knows it: revision, capabilities, name |
//! | [`rule`] | the catalogue of the specification's rules |
//! | [`finding`] | rules that a peer broke |
//! | [`time`] | timestamps, passed as arguments |

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

pub mod engine;
pub mod finding;
pub mod frame;
pub mod http;
pub mod jsonrpc;
pub mod model;
pub mod param_headers;
pub mod peer;
pub mod revision;
pub mod rule;
#[cfg(feature = "schema")]
pub mod schema;
pub mod time;
pub mod uri_template;

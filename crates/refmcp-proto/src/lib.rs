//! The Model Context Protocol as values and functions: no IO, no clock, no randomness, no async.
//!
//! | module | what it is |
//! |---|---|
//! | [`jsonrpc`] | bytes to messages and back, strictly |
//! | [`frame`] | bytes to single messages: lines, server-sent events |
//! | [`model`] | everything that travels inside messages, in the newest shape |
//! | [`revision`] | the five revisions: what differs, and how shapes are adapted |
//! | [`engine`] | the conversation itself: messages and a time in, messages, work and deadlines out |
//! | [`param_headers`] | tool parameters mirrored in `Mcp-Param-*` headers |
//! | [`uri_template`] | URI templates, expanded and matched |
//! | `schema` | validators of JSON Schemas; with the feature of that name |
//! | [`peer`], [`finding`], [`time`] | who is on the other side, what it did wrong, when |

#![cfg_attr(
    not(test),
    warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

pub mod engine;
pub mod finding;
pub mod frame;
pub mod jsonrpc;
pub mod model;
pub mod param_headers;
pub mod peer;
pub mod revision;
#[cfg(feature = "schema")]
pub mod schema;
pub mod time;
pub mod uri_template;

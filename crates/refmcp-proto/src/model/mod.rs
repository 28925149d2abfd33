//! The data model of the protocol: what travels inside `params`, `result` and `_meta`.
//!
//! There is one model, in the shape of the newest revision, with what older revisions had besides. A value is fitted to
//! an older revision elsewhere ([`revision::downgrade`](crate::revision::downgrade)), by clearing members.
//!
//! | module | what it has |
//! |---|---|
//! | `base` | what every message may carry: `_meta`, parameters, results, notifications, error data |
//! | `lifecycle` | `initialize`, `server/discover`, implementations, capabilities |
//! | `content` | content blocks |
//! | `server` | what a server offers: tools, resources, prompts, skills, completion, logging, subscriptions |
//! | `client` | what a server requests from a client: sampling, roots, input of a call |
//! | `task` | tasks: requests that go on after their first response |
//! | `app` | apps: pages that show calls of tools |
//! | `elicitation` | requests to the user: parameters, forms with their fields, checks of what was filled in |
//!
//! Every object ends in `extra`, which keeps unknown members over a round trip. A `null` in an optional member reads as
//! absent. Unions are read by their discriminator, never by trying one shape after another.

#[macro_use]
mod macros;

mod app;
mod base;
mod client;
mod content;
mod elicitation;
mod lifecycle;
mod server;
mod task;

pub use app::*;
pub use base::*;
pub use client::*;
pub use content::*;
pub use elicitation::*;
pub use lifecycle::*;
pub use server::*;
pub use task::*;

/// A JSON object without a fixed shape.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;

/// The members of an object that this model does not name.
pub type Extra = JsonObject;

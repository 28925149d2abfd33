//! Apps (`io.modelcontextprotocol/ui`): pages that servers offer as resources, and that hosts show beside calls of tools.
//!
//! | module | what it is |
//! |---|---|
//! | [`fault`](AppError) | what can be wrong with an app, in words |
//! | `check` | what makes a URI, an origin and a page valid, for both sides |
//! | [`csp`](ContentSecurityPolicy) | the policy that a host enforces, from the declared origins |
//! | [`offer`](AppOffers) | the apps of a server, from its lists |
//! | [`read`](ToolUi) | metadata of tools and pages as a host reads it: faults are told and never widen anything |
//!
//! The types are in [`model`](crate::model): [`UiToolMeta`](crate::model::UiToolMeta),
//! [`UiResourceMeta`](crate::model::UiResourceMeta). What a page and its host say to each other passes no MCP connection.

mod check;
mod csp;
mod fault;
mod offer;
mod read;

pub use check::{check_csp, check_page, check_uri, check_visibility};
pub use csp::ContentSecurityPolicy;
pub use fault::AppError;
pub use offer::{AppOffer, AppOffers};
pub use read::{AppPage, MetaSource, ToolUi};

/// What every URI of a page begins with.
pub const URI_PREFIX: &str = "ui://";

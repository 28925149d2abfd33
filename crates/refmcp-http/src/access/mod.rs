//! Access: which requests are served at all, and for which caller.
//!
//! | module | what it is |
//! |---|---|
//! | `guard` | `Host` and `Origin`: protection against DNS rebinding and foreign web pages |
//! | `rate` | the rate limit of each client |
//! | `cors` | preflight responses and CORS headers |
//! | `trusted_proxy`, `forwarded` | proxies that are trusted, and the headers they forward clients with |
//! | `caller` | the client of a request: its address and its access token |
//! | `resource_server` | access tokens: the OAuth 2.1 resource server |
//! | `scopes` | whether a token has the scopes that a message needs |

pub(crate) mod caller;
pub mod cors;
pub(crate) mod forwarded;
pub mod guard;
pub(crate) mod rate;
pub(crate) mod resource_server;
pub(crate) mod scopes;
pub(crate) mod trusted_proxy;

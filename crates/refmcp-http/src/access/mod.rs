//! Access: which requests are served at all, and for which caller.

pub(crate) mod caller;
pub(crate) mod client_memory;
pub mod cors;
pub(crate) mod forwarded;
pub mod guard;
pub(crate) mod rate_limit;
pub(crate) mod resource_server;
pub(crate) mod scopes;
pub(crate) mod trusted_proxy;

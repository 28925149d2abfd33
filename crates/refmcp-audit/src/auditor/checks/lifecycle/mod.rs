//! Rules about how a conversation begins, and what was agreed on.

pub(super) mod capabilities;
pub(super) mod discovery;
pub(super) mod handshake;
pub(super) mod stateless_results;

//! Rules about how a conversation begins, what was agreed on, and what takes the place of a session where there is none.

pub(super) mod capabilities;
pub(super) mod discovery;
pub(super) mod handshake;
pub(super) mod input_rounds;
pub(super) mod stateless_results;
pub(super) mod subscriptions;

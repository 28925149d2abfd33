//! Operations: what an operator asks a running server, and what it logs.

pub(crate) mod health;
pub(crate) mod metrics;
mod process;
pub(crate) mod prometheus;
pub(crate) mod refusal_log;

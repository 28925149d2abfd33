//! Operations: what an operator asks a running server, and what it logs.
//!
//! | module | what it is |
//! |---|---|
//! | `health` | `/healthz`, `/readyz` and `/metrics` |
//! | `metrics` | counters and gauges |
//! | `prometheus`, `process` | the text format of the metrics, and those of the process |
//! | `refusal_log`, `error_log` | log lines of refused requests and of JSON-RPC errors |

pub(crate) mod error_log;
pub(crate) mod health;
pub(crate) mod metrics;
mod process;
pub(crate) mod prometheus;
pub(crate) mod refusal_log;

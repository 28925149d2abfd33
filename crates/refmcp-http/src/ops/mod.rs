//! Operations: what an operator asks a running server, and what it logs.
//!
//! | module | what it is |
//! |---|---|
//! | `health` | `/healthz`, `/readyz` and `/metrics` |
//! | `metrics` | counters and gauges |
//! | `prometheus`, `process` | the text format of the metrics, and those of the process |
//! | `log` | log lines of refused requests and of JSON-RPC errors |

pub(crate) mod health;
pub(crate) mod log;
pub(crate) mod metrics;
mod process;
pub(crate) mod prometheus;

//! The endpoint as its clients see it: bytes on a socket.

mod authorization;
mod cancellation;
mod count_limits;
mod disconnects;
mod endpoint_path;
mod findings;
mod forwarded;
mod get_stream;
mod guard;
mod health_and_metrics;
mod http2;
mod http_sse;
mod isolation;
mod logs;
mod malformed_http;
mod memory_budget;
mod mounted;
mod observer;
mod ops_listener;
mod policy;
mod prometheus_format;
mod replica_client_tasks;
mod replica_faults;
mod replica_tasks;
mod replicas;
mod replicas_gone;
mod request_headers;
mod response_mode;
mod resumption;
mod session_and_event_ids;
mod sessions;
mod shutdown;
mod size_and_time_limits;
mod slow_readers;
mod stateless;
mod support;
#[cfg(feature = "tls")]
mod tls;
#[cfg(unix)]
mod unix;
mod websocket;
mod websocket_violations;

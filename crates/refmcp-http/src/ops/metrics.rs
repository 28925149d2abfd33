//! Metrics: counters and gauges of an endpoint.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use refmcp_server::{Histogram, Server};

use crate::ops::process;
use crate::ops::prometheus::Exposition;
use crate::refusal::{PerReason, Reason};
use crate::routes::{EndpointPath, ROUTES, Route};

#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Responses by route and first digit of the status.
    responses: [[AtomicU64; 5]; ROUTES.len()],
    /// The time until the head of a response was known.
    took: Histogram,
    rejections: PerReason<AtomicU64>,
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) sessions_opened: AtomicU64,
    pub(crate) sessions_evicted: AtomicU64,
    pub(crate) in_flight: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) streams: Gauge,
    pub(crate) sockets: Gauge,
}

/// The number of things of a kind that there are now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge(Arc<AtomicUsize>);

/// Counts in a gauge until it is dropped.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Gauge);

impl Gauge {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Counts one more, unless there are so many already.
    pub(crate) fn enter(&self, most: usize) -> Option<GaugeGuard> {
        let guard = GaugeGuard(self.clone());
        (self.0.fetch_add(1, Ordering::Relaxed) < most).then_some(guard)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(crate) fn answered(&self, route: Option<&Route>, status: StatusCode, took: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
        if let Some(route) = route {
            self.responses[route.target as usize][class].fetch_add(1, Ordering::Relaxed);
        }
        self.took.add(took);
    }

    pub(crate) fn refused(&self, reason: Reason) {
        self.rejections.of(reason).fetch_add(1, Ordering::Relaxed);
    }

    /// All metrics in the text format of Prometheus.
    pub(crate) fn text(&self, paths: &EndpointPath, sessions: &[(&str, usize)], server: &Server) -> String {
        let mut out = Exposition(String::with_capacity(64 << 10));
        let count = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let (info, calls) = (&server.config().server_info, server.statistics());

        out.family("refmcp_build_info", "gauge", "The versions of refmcp and of the server; always 1.");
        let labels = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("server", &info.name),
            ("server_version", &info.version),
        ];
        out.sample("refmcp_build_info", &labels, 1);
        process::write(&mut out);
        out.family("refmcp_sessions", "gauge", "Sessions that are open, by transport.");
        for (transport, number) in sessions {
            out.sample("refmcp_sessions", &[("transport", transport)], number);
        }
        out.counter("refmcp_sessions_opened_total", "Sessions opened.", count(&self.sessions_opened));
        let about = "Sessions ended while they were idle, since another session needed their place.";
        out.counter("refmcp_sessions_evicted_total", about, count(&self.sessions_evicted));
        out.gauge("refmcp_connections", "Connections that are open.", self.connections.get());
        out.gauge("refmcp_streams", "Streams of events that are read.", self.streams.get());
        out.gauge("refmcp_websockets", "WebSockets that are open.", self.sockets.get());
        let memory = server.memory();
        out.gauge("refmcp_memory_bytes", "Bytes that are held for clients.", memory.held());
        out.gauge("refmcp_memory_limit_bytes", "Bytes that may be held for clients.", memory.limit());
        out.counter("refmcp_memory_refused_total", "How often bytes could not be held.", memory.refused());
        out.gauge("refmcp_requests_in_flight", "Requests being answered.", self.in_flight.get());

        out.family("refmcp_responses_total", "counter", "Responses by route and first digit of the status.");
        for (route, counts) in ROUTES.iter().zip(&self.responses) {
            let path = paths.of(route.target);
            for (class, value) in ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(counts) {
                out.sample("refmcp_responses_total", &[("route", path), ("status", class)], count(value));
            }
        }
        out.family("refmcp_response_seconds", "histogram", "Time until the head of a response was known.");
        out.histogram("refmcp_response_seconds", &[], &self.took);
        out.family("refmcp_rejections_total", "counter", "Requests turned away, by reason.");
        for reason in Reason::ALL {
            let rejected = count(self.rejections.of(*reason));
            out.sample("refmcp_rejections_total", &[("reason", reason.name())], rejected);
        }
        out.counter("refmcp_received_bytes_total", "Bytes of messages received.", count(&self.received));
        out.counter("refmcp_sent_bytes_total", "Bytes of messages sent.", count(&self.sent));

        out.family("refmcp_calls_total", "counter", "Requests, by method and ending.");
        for (method, statistics) in calls.methods() {
            for (outcome, number) in statistics.outcomes() {
                let labels = [("method", method), ("ending", outcome.name())];
                out.sample("refmcp_calls_total", &labels, number);
            }
        }
        out.family("refmcp_call_seconds", "histogram", "How long requests took to be answered, by method.");
        for (method, statistics) in calls.methods() {
            out.histogram("refmcp_call_seconds", &[("method", method)], statistics.took());
        }
        let tools = server.tool_statistics();
        out.family("refmcp_tool_calls_total", "counter", "Calls of tools, by tool and ending.");
        for (tool, statistics) in &tools {
            for (outcome, number) in statistics.outcomes() {
                out.sample("refmcp_tool_calls_total", &[("tool", tool), ("ending", outcome.name())], number);
            }
        }
        out.family("refmcp_tool_call_seconds", "histogram", "How long calls of tools ran, by tool.");
        for (tool, statistics) in &tools {
            out.histogram("refmcp_tool_call_seconds", &[("tool", tool)], statistics.took());
        }
        out.family("refmcp_findings_total", "counter", "Rules of the protocol that clients broke.");
        for found in calls.findings().iter() {
            out.sample("refmcp_findings_total", &[("rule", found.rule.id)], found.count);
        }
        out.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_count_guards() {
        let gauge = Gauge::default();
        let one = gauge.enter(2).unwrap();
        let two = gauge.enter(2).unwrap();
        assert!(gauge.enter(2).is_none());
        assert_eq!(gauge.get(), 2);
        drop((one, two));
        assert_eq!(gauge.get(), 0);
    }

    #[test]
    fn every_line_is_a_comment_or_a_number() {
        let metrics = Metrics::default();
        metrics.answered(ROUTES.first(), StatusCode::OK, Duration::from_millis(3));
        metrics.refused(Reason::Rate);
        let server =
            Server::builder("a \"server\"", "1").method("models/list", |_, params| async { Ok(params) });
        let server = server.build().unwrap();
        let text = metrics.text(&EndpointPath::default(), &[("streamable", 7)], &server);
        for wanted in [
            "refmcp_sessions{transport=\"streamable\"} 7\n",
            "refmcp_responses_total{route=\"/mcp\",status=\"2xx\"} 1\n",
            "refmcp_response_seconds_bucket{le=\"0.0025\"} 0\n",
            "refmcp_response_seconds_bucket{le=\"0.005\"} 1\n",
            "refmcp_response_seconds_bucket{le=\"+Inf\"} 1\n",
            "refmcp_response_seconds_sum 0.003\n",
            "refmcp_rejections_total{reason=\"rate\"} 1\n",
            "refmcp_calls_total{method=\"tools/call\",ending=\"done\"} 0\n",
            "refmcp_calls_total{method=\"models/list\",ending=\"done\"} 0\n",
            "refmcp_calls_total{method=\"other\",ending=\"done\"} 0\n",
            "refmcp_tool_calls_total{tool=\"(other)\",ending=\"done\"} 0\n",
            ",server=\"a \\\"server\\\"\",server_version=\"1\"} 1\n",
        ] {
            assert!(text.contains(wanted), "{wanted} is not in\n{text}");
        }
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}

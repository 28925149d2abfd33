//! What has happened here, in numbers, as Prometheus reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use refmcp_server::{Histogram, Server};

use crate::ops::process;
use crate::ops::prometheus::Exposition;
use crate::refusal::Reason;
use crate::routes::{EndpointPath, ROUTES};

/// Counts since the endpoint was made, and what there is now.
#[derive(Debug, Default)]
pub(crate) struct Metrics {
    /// Responses by route and by the first digit of their status.
    responses: [[AtomicU64; 5]; ROUTES.len()],
    /// How long it took until the head of a response was known.
    took: Histogram,
    rejections: [AtomicU64; Reason::ALL.len()],
    pub(crate) received: AtomicU64,
    pub(crate) sent: AtomicU64,
    pub(crate) sessions_opened: AtomicU64,
    pub(crate) in_flight: Gauge,
    pub(crate) connections: Gauge,
    pub(crate) streams: Gauge,
    pub(crate) sockets: Gauge,
}

/// How many there are of something now.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauge(Arc<AtomicUsize>);

/// One of what a gauge counts, for as long as it is kept.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Gauge);

impl Gauge {
    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// One more, unless there are so many already.
    pub(crate) fn enter(&self, most: usize) -> Option<GaugeGuard> {
        let counted = GaugeGuard(self.clone());
        (self.0.fetch_add(1, Ordering::Relaxed) < most).then_some(counted)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Metrics {
    pub(crate) fn answered(&self, route: Option<usize>, status: StatusCode, took: Duration) {
        let class = usize::from(status.as_u16() / 100).clamp(1, 5) - 1;
        if let Some(count) = route.and_then(|route| self.responses.get(route)) {
            count[class].fetch_add(1, Ordering::Relaxed);
        }
        self.took.add(took);
    }

    pub(crate) fn refused(&self, reason: Reason) {
        self.rejections[reason as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn rejections(&self, reason: Reason) -> u64 {
        self.rejections[reason as usize].load(Ordering::Relaxed)
    }

    /// Everything, in the text format of Prometheus.
    pub(crate) fn text(&self, paths: &EndpointPath, sessions: &[(&str, usize)], server: &Server) -> String {
        let mut page = Exposition::new();
        let count = |value: &AtomicU64| value.load(Ordering::Relaxed);
        let (info, calls) = (&server.config().server_info, server.statistics());

        page.family("refmcp_build_info", "gauge", "The versions of refmcp and of the server; always 1.");
        let labels = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("server", &info.name),
            ("server_version", &info.version),
        ];
        page.sample("refmcp_build_info", &labels, 1);
        process::write(&mut page);
        page.family("refmcp_sessions", "gauge", "Sessions that are open, by transport.");
        for (transport, number) in sessions {
            page.sample("refmcp_sessions", &[("transport", transport)], number);
        }
        page.single(
            "refmcp_sessions_opened_total",
            "counter",
            "Sessions opened.",
            count(&self.sessions_opened),
        );
        page.single("refmcp_connections", "gauge", "Connections that are open.", self.connections.get());
        page.single("refmcp_streams", "gauge", "Streams of events that are read.", self.streams.get());
        page.single("refmcp_websockets", "gauge", "WebSockets that are open.", self.sockets.get());
        page.single("refmcp_requests_in_flight", "gauge", "Requests being answered.", self.in_flight.get());

        page.family("refmcp_responses_total", "counter", "Responses by route and first digit of the status.");
        for (path, counts) in paths.all().zip(&self.responses) {
            for (class, value) in ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(counts) {
                page.sample("refmcp_responses_total", &[("route", path), ("status", class)], count(value));
            }
        }
        page.family("refmcp_response_seconds", "histogram", "Time until the head of a response was known.");
        page.histogram("refmcp_response_seconds", &[], &self.took);
        page.family("refmcp_rejections_total", "counter", "Requests turned away, by reason.");
        for reason in Reason::ALL {
            page.sample("refmcp_rejections_total", &[("reason", reason.name())], self.rejections(reason));
        }
        page.single(
            "refmcp_received_bytes_total",
            "counter",
            "Bytes of messages received.",
            count(&self.received),
        );
        page.single("refmcp_sent_bytes_total", "counter", "Bytes of messages sent.", count(&self.sent));

        page.family("refmcp_calls_total", "counter", "Calls that ran a handler, by method and ending.");
        for (method, statistics) in calls.methods() {
            for (outcome, number) in statistics.outcomes() {
                let labels = [("method", method), ("ending", outcome.name())];
                page.sample("refmcp_calls_total", &labels, number);
            }
        }
        page.family("refmcp_call_seconds", "histogram", "How long handlers ran, by method.");
        for (method, statistics) in calls.methods() {
            page.histogram("refmcp_call_seconds", &[("method", method)], statistics.took());
        }
        let tools = server.tool_statistics();
        page.family("refmcp_tool_calls_total", "counter", "Calls of tools, by tool and ending.");
        for (tool, statistics) in &tools {
            for (outcome, number) in statistics.outcomes() {
                page.sample("refmcp_tool_calls_total", &[("tool", tool), ("ending", outcome.name())], number);
            }
        }
        page.family("refmcp_tool_call_seconds", "histogram", "How long calls of tools ran, by tool.");
        for (tool, statistics) in &tools {
            page.histogram("refmcp_tool_call_seconds", &[("tool", tool)], statistics.took());
        }
        page.family("refmcp_findings_total", "counter", "Rules of the protocol that clients broke.");
        for (rule, number) in calls.findings() {
            page.sample("refmcp_findings_total", &[("rule", rule)], number);
        }
        page.into_text()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_count_what_is_kept() {
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
        metrics.answered(Some(0), StatusCode::OK, Duration::from_millis(3));
        metrics.refused(Reason::Rate);
        let server = Server::builder("a \"server\"", "1").build().unwrap();
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

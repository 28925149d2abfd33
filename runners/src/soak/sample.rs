//! What a server uses at one moment: by the system's accounts, and by its own metrics.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::http::{Connection, Target};
use super::probe::{Latencies, percentile};

pub(super) const MIB: f64 = 1_048_576.0;

/// The unit of CPU times in `/proc`; Linux has had no other for decades.
const TICK: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sample {
    /// Seconds since the first sample.
    pub(super) at: f64,
    /// Resident bytes, open files, threads and CPU time of the process.
    pub(super) rss: u64,
    pub(super) fds: usize,
    pub(super) threads: usize,
    pub(super) cpu: Duration,
    /// Bytes that are held for clients.
    pub(super) held: u64,
    pub(super) sessions: u64,
    pub(super) streams: u64,
    pub(super) connections: u64,
    /// Latency of the measured client since the sample before, in milliseconds.
    pub(super) p50: f64,
    pub(super) p99: f64,
}

/// Takes samples of one server.
pub(super) struct Sampler {
    pid: u32,
    /// Where its metrics are.
    target: Target,
    latencies: Latencies,
    /// All latencies since they were last asked for.
    pub(super) measured: Vec<Duration>,
    began: Instant,
}

impl Sampler {
    pub(super) fn new(pid: u32, target: Target, latencies: Latencies) -> Self {
        Self { pid, target, latencies, measured: Vec::new(), began: Instant::now() }
    }

    pub(super) async fn sample(&mut self) -> Result<Sample> {
        let mut latencies = self.latencies.take();
        let (p50, p99) = (percentile(&mut latencies, 50), percentile(&mut latencies, 99));
        self.measured.append(&mut latencies);
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid))?;
        let entry = |name| status_entry(&status, name).with_context(|| format!("no {name} in /proc"));
        let fds = fs::read_dir(format!("/proc/{}/fd", self.pid))?.count();
        // A connection of its own, opened after files were counted.
        let get = self.target.request("GET /metrics", "Connection: close\r\n", "");
        let response = Connection::open(self.target).await?.exchange(&get).await.context("/metrics")?;
        let metrics = String::from_utf8(response.body)?;
        let metric = |name| sum(&metrics, name).with_context(|| format!("no metric {name}"));
        Ok(Sample {
            at: self.began.elapsed().as_secs_f64(),
            rss: entry("VmRSS:")? << 10,
            fds,
            threads: entry("Threads:")? as usize,
            cpu: self.cpu()?,
            held: metric("refmcp_memory_bytes")?,
            sessions: metric("refmcp_sessions")?,
            streams: metric("refmcp_streams")?,
            connections: metric("refmcp_connections")?,
            p50,
            p99,
        })
    }

    /// User and system time of the process.
    pub(super) fn cpu(&self) -> Result<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid))?;
        let ticks = cpu_ticks(&stat).with_context(|| format!("not understood: {stat}"))?;
        Ok(TICK * ticks)
    }
}

/// The values of a metric, of all its labels together.
fn sum(metrics: &str, name: &str) -> Option<u64> {
    let values = metrics.lines().filter_map(|line| {
        let rest = line.strip_prefix(name)?;
        (rest.starts_with(' ') || rest.starts_with('{'))
            .then(|| rest.rsplit_once(' ')?.1.parse::<u64>().ok())?
    });
    values.fold(None, |sum, value| Some(sum.unwrap_or(0) + value))
}

fn status_entry(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The name of the program stands in parentheses, and may have spaces.
fn cpu_ticks(stat: &str) -> Option<u32> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    Some(fields.next()?.parse::<u32>().ok()? + fields.next()?.parse::<u32>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_the_sum_of_its_labels() {
        let text = "# TYPE a gauge\na{t=\"x\"} 3\na{t=\"y\"} 4\na_total 100\nb 5\n";
        assert_eq!((sum(text, "a"), sum(text, "b"), sum(text, "c")), (Some(7), Some(5), None));
    }

    #[test]
    fn accounts_of_the_system_are_read() {
        assert_eq!(status_entry("Name:\tx\nVmRSS:\t   120 kB\n", "VmRSS:"), Some(120));
        assert_eq!(cpu_ticks("7 (a b) S 1 2 3 4 5 6 7 8 9 10 30 12 0"), Some(42));
    }
}

//! Metrics of this process, by the names that Prometheus clients use. Linux has them under `/proc`; elsewhere there are
//! none.

use std::fs;

use crate::ops::prometheus::Exposition;

/// Clock ticks in a second in `/proc`: fixed by Linux on every architecture that Rust has a standard library for.
const TICKS: f64 = 100.0;

pub(crate) fn write(out: &mut Exposition) {
    if let Some(stat) = read("/proc/self/stat").as_deref().and_then(Stat::parse) {
        let help = "User and system CPU time spent, in seconds.";
        out.counter("process_cpu_seconds_total", help, stat.cpu_ticks / TICKS);
        out.gauge("process_threads", "Threads of this process.", stat.threads);
        out.gauge("process_virtual_memory_bytes", "Virtual memory, in bytes.", stat.virtual_bytes);
        if let Some(boot) = read("/proc/stat").as_deref().and_then(boot_time) {
            let help = "When this process was started, in seconds since 1970.";
            out.gauge("process_start_time_seconds", help, boot + stat.start_ticks / TICKS);
        }
    }
    if let Some(bytes) = read("/proc/self/status").as_deref().and_then(resident_bytes) {
        out.gauge("process_resident_memory_bytes", "Resident memory, in bytes.", bytes);
    }
    if let Ok(open) = fs::read_dir("/proc/self/fd") {
        // One of them reads the others.
        let count = open.count().saturating_sub(1);
        out.gauge("process_open_fds", "File descriptors that are open.", count);
    }
    if let Some(most) = read("/proc/self/limits").as_deref().and_then(most_fds) {
        out.gauge("process_max_fds", "File descriptors that may be open.", most);
    }
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()
}

/// Fields of `/proc/self/stat`.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_ticks: f64,
    threads: u64,
    start_ticks: f64,
    virtual_bytes: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The second field is the program's name, which may contain spaces and parentheses.
        let rest = text.rsplit_once(") ")?.1;
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let ticks = |number: usize| fields.get(number - 3)?.parse::<f64>().ok();
        let whole = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        Some(Self {
            cpu_ticks: ticks(14)? + ticks(15)?,
            threads: whole(20)?,
            start_ticks: ticks(22)?,
            virtual_bytes: whole(23)?,
        })
    }
}

/// When the machine was started, from `/proc/stat`.
fn boot_time(text: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse().ok()
}

/// The resident memory, from `/proc/self/status`.
fn resident_bytes(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = value.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

/// The soft limit of open files, from `/proc/self/limits`; none if unlimited.
fn most_fds(text: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    value.split_ascii_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_files_are_parsed() {
        let text = "7 (a) b) (c) S 1 7 7 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 9 0 12345 4096000 77 18446744073709551615";
        let wanted = Stat { cpu_ticks: 200.0, threads: 9, start_ticks: 12345.0, virtual_bytes: 4_096_000 };
        assert_eq!(Stat::parse(text), Some(wanted));
        for bad in ["", "7 (a", "7 (a) S 1", "7 (a) S x x x x x x x x x x x x x x x x x x x x x x x x"] {
            assert_eq!(Stat::parse(bad), None, "{bad}");
        }
        assert_eq!(boot_time("cpu 1 2\nbtime 1700000000\nprocesses 1\n"), Some(1.7e9));
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t   12 kB\n"), Some(12 << 10));
        let limits = "Limit  Soft Limit  Hard Limit  Units\nMax open files            1024                 4096       files\n";
        assert_eq!(most_fds(limits), Some(1024));
        assert_eq!(most_fds(&limits.replace("1024", "unlimited")), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_all_metrics() {
        let mut out = Exposition::default();
        write(&mut out);
        let text = out.0;
        let value = |name: &str| -> f64 {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
        };
        assert!(value("process_cpu_seconds_total") >= 0.0);
        assert!(value("process_threads") >= 1.0);
        assert!(value("process_virtual_memory_bytes") > value("process_resident_memory_bytes"));
        assert!(value("process_resident_memory_bytes") > 1e5);
        assert!(value("process_open_fds") >= 3.0);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs_f64();
        let age = now - value("process_start_time_seconds");
        assert!((-2.0..3600.0).contains(&age), "{age}");
    }
}

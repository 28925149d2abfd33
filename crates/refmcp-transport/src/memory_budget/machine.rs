//! The memory that this process may use: that of the machine, or less where its control group has a limit.

use std::fs;
use std::path::Path;

/// Assumed where neither can be read.
const UNKNOWN: usize = 2 << 30;

/// Bytes of memory.
pub(super) fn memory() -> usize {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let group = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limits =
        group_limit_files(&group).into_iter().filter_map(|file| limit(&fs::read_to_string(file).ok()?));
    limits.chain(machine).min().unwrap_or(UNKNOWN)
}

/// The files with the limits of this process's control group and of the groups around it, of both versions. In a
/// container only the outermost may be visible.
fn group_limit_files(group: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in group.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (root, file) = match controllers {
            "" => ("/sys/fs/cgroup", "memory.max"),
            "memory" => ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
            _ => continue,
        };
        let groups = Path::new(path).ancestors().filter_map(Path::to_str);
        files.extend(groups.map(|group| format!("{root}{}/{file}", group.trim_end_matches('/'))));
    }
    files
}

/// `MemTotal` of `/proc/meminfo`, which is in KiB.
fn total(meminfo: &str) -> Option<usize> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}

/// The limit of a control group; none where it is `max`.
fn limit(text: &str) -> Option<usize> {
    text.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_as_the_kernel_writes_them() {
        assert_eq!(total("MemTotal:       16314 kB\nMemFree: 1 kB\n"), Some(16314 * 1024));
        assert_eq!(total("MemFree: 1 kB\n"), None);
        assert_eq!(limit("268435456\n"), Some(256 << 20));
        assert_eq!(limit("max\n"), None);
        assert!(memory() > 1 << 20);
        assert_eq!(
            group_limit_files("12:cpu,cpuacct:/x\n4:memory:/docker/a\n0::/b\n"),
            [
                "/sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/docker/memory.limit_in_bytes",
                "/sys/fs/cgroup/memory/memory.limit_in_bytes",
                "/sys/fs/cgroup/b/memory.max",
                "/sys/fs/cgroup/memory.max"
            ]
        );
    }
}

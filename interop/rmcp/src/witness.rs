//! The server processes started for one connection, as `../witness.sh` saw them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

pub struct Witness {
    log: PathBuf,
}

impl Witness {
    pub fn new(folder: &Path, name: &str) -> Result<Self> {
        let log = folder.join(name);
        std::fs::write(&log, "")?;
        Ok(Self { log })
    }

    /// The command that starts the server under the witness.
    pub fn wrap(&self, command: &[String]) -> Vec<String> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../witness.sh");
        let mut wrapped = vec!["sh".to_owned(), script.to_owned(), self.log.display().to_string()];
        wrapped.extend_from_slice(command);
        wrapped
    }

    /// The lines of one event, without its name.
    fn events(&self, event: &str) -> Vec<String> {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines()
            .filter_map(|line| line.strip_prefix(event)?.strip_prefix(' ').map(str::to_owned))
            .collect()
    }

    /// The end of the session's server: by itself, with code 0, and nothing left behind.
    pub async fn clean(&self) -> Result<()> {
        let pid = self.events("started").pop().context("no server was started")?;
        let exited =
            || self.events("exited").into_iter().find_map(|line| line.strip_prefix(&pid).map(str::to_owned));
        let begin = Instant::now();
        while exited().is_none() && begin.elapsed() < Duration::from_secs(5) {
            sleep(Duration::from_millis(20)).await;
        }
        ensure!(!self.events("signalled").contains(&pid), "server {pid} ended only by a signal of the SDK");
        let code = exited().with_context(|| format!("server {pid} did not end"))?;
        ensure!(code.trim() == "0", "exit code of server {pid}: {code}");
        for other in self.events("started") {
            ensure!(!alive(&other), "server {other} was left behind");
        }
        Ok(())
    }
}

impl Drop for Witness {
    /// Leaves nothing running, whatever happened.
    fn drop(&mut self) {
        for pid in self.events("started").iter().filter(|pid| alive(pid)) {
            kill("-KILL", pid);
        }
    }
}

fn alive(pid: &str) -> bool {
    kill("-0", pid)
}

fn kill(signal: &str, pid: &str) -> bool {
    let status = Command::new("kill").args([signal, pid]).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

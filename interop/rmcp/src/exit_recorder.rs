//! How the scenario reaches its servers, and what is to be seen of them when a client has left.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tokio::time::sleep;

use crate::observed::{Request, RequestLog};

const PATIENCE: Duration = Duration::from_secs(5);

/// Where a server is.
pub enum Place {
    /// It is started by this, and spoken to over standard input and output.
    Command(Vec<String>),
    /// It listens there; the log has what was sent to it.
    Url(String, RequestLog),
}

/// `stdio`, or by the URL: `http` (streamable HTTP), `sse` (HTTP+SSE), `websocket`.
pub fn transport_of(server: &[String]) -> &'static str {
    match server.first().and_then(|first| first.split_once("://")) {
        Some(("ws" | "wss", _)) => "websocket",
        Some(("http" | "https", address)) if address.ends_with("/sse") => "sse",
        Some(("http" | "https", _)) => "http",
        _ => "stdio",
    }
}

/// The exit recorder of one connection.
pub struct ExitRecorder {
    place: Place,
    /// What `../exit_recorder.sh` writes about the processes it started.
    log: PathBuf,
}

impl ExitRecorder {
    /// `server` holds the words after `--`: a command, or the URLs of two servers. The second of those has small
    /// pages, as a command gets by arguments.
    pub fn new(server: &[String], folder: &Path, paged: bool) -> Result<Self> {
        let log = folder.join(if paged { "paged" } else { "main" });
        std::fs::write(&log, "")?;
        let place = if transport_of(server) == "stdio" {
            let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../exit_recorder.sh");
            let mut command = vec!["sh".to_owned(), script.to_owned(), log.display().to_string()];
            command.extend_from_slice(server);
            if paged {
                command.extend(["--page-size".to_owned(), "5".to_owned()]);
            }
            Place::Command(command)
        } else {
            let url = server.get(usize::from(paged)).context("no URL of a server with small pages")?;
            Place::Url(url.clone(), RequestLog::default())
        };
        Ok(Self { place, log })
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    fn requests(&self) -> Vec<Request> {
        match &self.place {
            Place::Command(_) => Vec::new(),
            Place::Url(_, log) => log.lock().unwrap().clone(),
        }
    }

    /// How often a stream was taken up where it had ended.
    pub fn resumptions(&self) -> usize {
        self.requests().iter().filter(|request| request.resumes).count()
    }

    /// Whether a session was used.
    pub fn has_session(&self) -> bool {
        self.requests().iter().any(|request| request.session.is_some())
    }

    /// What the end looked like, when it is as it should be.
    pub async fn clean(&self) -> Result<String> {
        match &self.place {
            Place::Command(_) => self.exited().await,
            Place::Url(url, _) => self.gone(url).await,
        }
    }

    /// The session is not known any more.
    async fn gone(&self, url: &str) -> Result<String> {
        let requests = self.requests();
        let in_session = |request: &&Request| request.method == "POST" && request.session.is_some();
        let last = requests.iter().rfind(in_session).context("no session was used")?;
        let client = reqwest::Client::new();
        let begin = Instant::now();
        loop {
            let request = client.post(url).headers(last.headers.clone().into_iter().collect());
            let request = request
                .header("mcp-session-id", last.session.as_deref().unwrap_or_default())
                .header("content-type", "application/json")
                .header("accept", "application/json, text/event-stream")
                .body(r#"{"jsonrpc":"2.0","method":"scenario/after-the-end"}"#);
            let status = request.send().await?.status();
            if status == 404 {
                break;
            }
            ensure!(begin.elapsed() < PATIENCE, "a request to the session that was closed gave {status}");
            sleep(Duration::from_millis(50)).await;
        }
        let deleted = requests.iter().any(|request| request.method == "DELETE");
        Ok(format!("the session is gone{}: 404", if deleted { " by DELETE" } else { "" }))
    }

    /// The lines of one event, without its name.
    fn events(&self, event: &str) -> Vec<String> {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        log.lines()
            .filter_map(|line| line.strip_prefix(event)?.strip_prefix(' ').map(str::to_owned))
            .collect()
    }

    /// The end of the session's server: by itself, with code 0, and nothing left behind.
    async fn exited(&self) -> Result<String> {
        let pid = self.events("started").pop().context("no server was started")?;
        let exited =
            || self.events("exited").into_iter().find_map(|line| line.strip_prefix(&pid).map(str::to_owned));
        let begin = Instant::now();
        while exited().is_none() && begin.elapsed() < PATIENCE {
            sleep(Duration::from_millis(20)).await;
        }
        ensure!(!self.events("signalled").contains(&pid), "server {pid} ended only by a signal of the SDK");
        let code = exited().with_context(|| format!("server {pid} did not end"))?;
        ensure!(code.trim() == "0", "exit code of server {pid}: {code}");
        for other in self.events("started") {
            ensure!(!alive(&other), "server {other} was left behind");
        }
        Ok("exit code 0".to_owned())
    }
}

impl Drop for ExitRecorder {
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

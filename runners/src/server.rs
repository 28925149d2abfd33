//! A running `refmcp serve`, and the transports it is reached by. Each run of a client has a server of its own, so that no
//! other client changes its lists.

use std::fs::File;
use std::io::{BufRead, BufReader, Lines};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

/// How long the server may take to end after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

/// A server that listens, for as long as this lives.
pub(crate) struct Server {
    child: Child,
    pub(crate) url: String,
    /// What it ends with when it is stopped.
    code: i32,
    /// Kept open: a program whose output is closed behind its back may well stop.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Server {
    /// Starts it on a free port; what it logs goes to a file.
    pub(crate) fn start(
        program: &Path,
        arguments: &[&str],
        transport: Transport,
        log: &Path,
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--port", "0"]).args(arguments);
        Self::listen(command, log, 0, |line| address(line, transport))
    }

    /// Starts it on a free port; `url` is the first line that it prints.
    pub(crate) fn start_with_banner(program: &Path, arguments: &[&str], log: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["serve", "--port", "0"]).args(arguments);
        Self::listen(command, log, 0, |line| Some(line.to_owned()))
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Starts a relay in front of it, which writes down what passes.
    pub(crate) fn relay(&self, program: &Path, trace: &Path, log: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.args(["relay", "--port", "0", "--record"]).arg(trace).arg(&self.url);
        Self::listen(command, log, 143, |line| Some(line.strip_prefix(RELAY_BANNER)?.to_owned()))
    }

    fn listen(
        mut command: Command,
        log: &Path,
        code: i32,
        address: impl Fn(&str) -> Option<String>,
    ) -> Result<Self> {
        let log = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let output = child.stdout.take().context("the server has no output")?;
        let mut lines = BufReader::new(output).lines();
        let url = lines.find_map(|line| address(&line.ok()?));
        match url {
            Some(url) => Ok(Self { child, url, code, _output: lines }),
            None => {
                let _ = child.kill(); // it has most likely ended already
                let _ = child.wait();
                bail!("the server did not say where it listens")
            }
        }
    }

    /// Ends it as an operator does: it must still run, and must end by itself with its usual code.
    pub(crate) fn stop(mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server ended before it was stopped: {status}");
        }
        if !cfg!(unix) {
            return Ok(()); // there is no signal to send
        }
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        ensure!(status.context("cannot run kill")?.success(), "the server cannot be signalled");
        let begin = Instant::now();
        while begin.elapsed() < STOP_LIMIT {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.code() == Some(self.code), "the server ended with {status}");
                return Ok(());
            }
            thread::sleep(POLL);
        }
        bail!("the server did not end within {STOP_LIMIT:?}")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may be gone already; what counts is that it is gone
        let _ = self.child.wait();
    }
}

/// A transport that the server is reached by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    Stdio,
    StreamableHttp,
    HttpSse,
    WebSocket,
    /// With `refmcp relay` in between.
    RelayedStdio,
    RelayedHttp,
}

pub(crate) const TRANSPORTS: [Transport; 6] = [
    Transport::Stdio,
    Transport::StreamableHttp,
    Transport::HttpSse,
    Transport::WebSocket,
    Transport::RelayedStdio,
    Transport::RelayedHttp,
];

/// What a relay says before its address.
const RELAY_BANNER: &str = "refmcp relay is listening on ";

impl Transport {
    /// What a client sees of it, which does not see a relay.
    pub(crate) fn seen(self) -> Self {
        match self {
            Self::RelayedStdio => Self::Stdio,
            Self::RelayedHttp => Self::StreamableHttp,
            other => other,
        }
    }

    /// How it is chosen; what is seen of it is what the clients call it in their results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "http",
            Self::HttpSse => "sse",
            Self::WebSocket => "websocket",
            Self::RelayedStdio => "relayed-stdio",
            Self::RelayedHttp => "relayed-http",
        }
    }

    /// Its name in headings; the server prints its addresses after the same words.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "streamable HTTP",
            Self::HttpSse => "HTTP+SSE",
            Self::WebSocket => "WebSocket",
            Self::RelayedStdio => "stdio, relayed",
            Self::RelayedHttp => "streamable HTTP, relayed",
        }
    }
}

/// The address in a line such as `  streamable HTTP   http://127.0.0.1:3000/mcp`.
fn address(line: &str, transport: Transport) -> Option<String> {
    Some(line.trim().strip_prefix(transport.title())?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found() {
        let line = "  HTTP+SSE          http://127.0.0.1:3000/sse";
        assert_eq!(address(line, Transport::HttpSse).as_deref(), Some("http://127.0.0.1:3000/sse"));
        assert_eq!(address(line, Transport::WebSocket), None);
    }

    #[test]
    #[cfg(unix)]
    fn a_server_that_says_nothing_is_no_server() {
        let log = std::env::temp_dir().join(format!("xtask-server-{}", std::process::id()));
        let error = Server::start(Path::new("true"), &[], Transport::WebSocket, &log).err().unwrap();
        std::fs::remove_file(&log).unwrap();
        assert_eq!(error.to_string(), "the server did not say where it listens");
    }
}

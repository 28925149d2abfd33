//! Processes: servers that listen, and commands that are waited for, but not for ever.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::step::CommandOutput;

/// How long a server may take until it listens.
const START: Duration = Duration::from_secs(60);
/// How long a server may take to end after SIGTERM.
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(10);

/// A server that listens, for as long as this lives.
pub(super) struct ServerProcess {
    child: Child,
}

impl ServerProcess {
    /// Starts it and waits until it can be reached. What it says goes to a file.
    pub(super) fn start(words: &[PathBuf], port: u16, log: &Path) -> Result<Self> {
        let log = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
        let mut command = command(words)?;
        command.env("PORT", port.to_string());
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let mut child = command.spawn().context("the server cannot be started")?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let begin = Instant::now();
        while TcpStream::connect_timeout(&address, START).is_err() {
            if let Some(status) = child.try_wait()? {
                bail!("the server ended before it listened: {status}");
            }
            if begin.elapsed() > START {
                let _ = child.kill(); // it may end just now
                let _ = child.wait();
                bail!("the server does not listen");
            }
            thread::sleep(POLL);
        }
        Ok(Self { child })
    }

    /// Ends it as an operator does: it must still run, and must end by itself.
    pub(super) fn stop(mut self) -> Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the server ended before it was stopped: {status}");
        }
        signal(&self.child, "TERM")?;
        ended(&mut self.child, STOP_LIMIT)?
            .with_context(|| format!("the server did not end within {STOP_LIMIT:?}"))
    }
}

impl Drop for ServerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill(); // it may be gone already; what counts is that it is gone
        let _ = self.child.wait();
    }
}

/// A port that was free a moment ago.
pub(super) fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// A command with its words.
pub(super) fn command(words: &[impl AsRef<OsStr>]) -> Result<Command> {
    let (program, arguments) = words.split_first().context("there is no command")?;
    let mut command = Command::new(program);
    command.args(arguments);
    Ok(command)
}

/// Runs a command to its end.
pub(super) fn run(command: &mut Command) -> Result<CommandOutput> {
    let mut child = spawn(command)?;
    let (out, err) = (collect(child.stdout.take()), collect(child.stderr.take()));
    let exit = ended(&mut child, LIMIT)?;
    if exit.is_none() {
        let _ = child.kill(); // it may end just now
        child.wait()?;
    }
    let (out, err) = (whole(out), whole(err));
    ensure!(exit.is_some(), "it was still running after {LIMIT:?}: {out} {err}");
    Ok(CommandOutput { exit: exit.and_then(|status| status.code()), out, err })
}

/// Runs a command that goes on by itself until it prints a line with one of these in it, then stops it. As long as it
/// prints nothing, `waiting` is done from time to time.
pub(super) fn watch(
    command: &mut Command,
    until: &[&str],
    mut waiting: impl FnMut() -> Result<()>,
) -> Result<CommandOutput> {
    let mut child = spawn(command)?;
    let err = collect(child.stderr.take());
    let (sender, lines) = mpsc::channel();
    let out = child.stdout.take().context("there is no output")?;
    let reader = thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let (begin, mut out, mut seen) = (Instant::now(), String::new(), false);
    while !seen && begin.elapsed() < LIMIT {
        match lines.recv_timeout(Duration::from_millis(300)) {
            Ok(line) => {
                seen = until.iter().any(|part| line.contains(part));
                out += &line;
                out.push('\n');
            }
            Err(mpsc::RecvTimeoutError::Timeout) => waiting()?,
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    drop(lines);
    // Not as ctrl-c would: a process that was started in the background of a shell may be deaf to that.
    signal(&child, "TERM")?;
    let exit = ended(&mut child, STOP_LIMIT)?;
    if exit.is_none() {
        let _ = child.kill(); // it may end just now
        child.wait()?;
    }
    let _ = reader.join(); // it has no result
    let err = whole(err);
    ensure!(seen, "it did not print {}: {out} {err}", until.join(" or "));
    ensure!(exit.is_some(), "it did not stop on SIGTERM");
    Ok(CommandOutput { exit: exit.and_then(|status| status.code()), out, err })
}

fn spawn(command: &mut Command) -> Result<Child> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().context("the command cannot be started")
}

fn collect(stream: Option<impl Read + Send + 'static>) -> JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut stream) = stream {
            let _ = stream.read_to_end(&mut bytes); // what output before a fault is what there is
        }
        bytes
    })
}

fn whole(stream: JoinHandle<Vec<u8>>) -> String {
    String::from_utf8_lossy(&stream.join().unwrap_or_default()).into_owned()
}

fn ended(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        match child.try_wait()? {
            None if begin.elapsed() < limit => thread::sleep(POLL),
            ended => return Ok(ended),
        }
    }
}

fn signal(child: &Child, name: &str) -> Result<()> {
    let status = Command::new("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .stderr(Stdio::null())
        .status();
    status.context("cannot run kill")?;
    Ok(())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_run_and_what_it_says_is_kept() {
        let output = run(&mut command(&["sh", "-c", "echo out; echo err >&2; exit 5"]).unwrap()).unwrap();
        assert_eq!((output.exit, output.out.as_str(), output.err.as_str()), (Some(5), "out\n", "err\n"));
    }

    #[test]
    fn a_command_that_goes_on_is_stopped_when_it_has_said_enough() {
        let mut forever = command(&["sh", "-c", "echo one; echo two; exec sleep 60"]).unwrap();
        let output = watch(&mut forever, &["two"], || Ok(())).unwrap();
        assert_eq!((output.exit, output.out.as_str()), (None, "one\ntwo\n"));
        let mut silent = command(&["true"]).unwrap();
        assert!(
            watch(&mut silent, &["two"], || Ok(())).unwrap_err().to_string().contains("did not print two")
        );
    }

    #[test]
    fn a_server_that_ends_at_once_is_no_server() {
        let log = std::env::temp_dir().join(format!("xtask-running-{}", std::process::id()));
        let words = [PathBuf::from("true")];
        let error = ServerProcess::start(&words, free_port().unwrap(), &log).err().unwrap();
        std::fs::remove_file(&log).unwrap();
        assert!(error.to_string().contains("ended before it listened"), "{error}");
    }
}

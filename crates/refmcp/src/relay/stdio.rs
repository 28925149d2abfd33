//! The relay between the process that started this one and a server that is started here, over standard input and output.

use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use refmcp_client::observer::{Direction, Observed, Observer, Side};
use refmcp_client::redact;
use refmcp_transport::clock::Clock;
use refmcp_transport::stdio::{input, output};
use tokio::process::{Child, Command};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::faults::{SharedFaults, pass_client_lines, pass_lines};
use super::pass;
use super::taps::{Content, Tap};
use crate::args::{ExitError, ExitReason};

/// How long output may still come once the server has ended: what a process that it left behind holds open is not
/// waited for.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Starts the server, passes bytes on until it ends, and ends like it.
pub(super) async fn run(
    words: &[String],
    observer: Arc<dyn Observer>,
    faults: Option<SharedFaults>,
) -> Result<ExitReason> {
    let name = redact::command_line(words);
    let signals = signals::Forwarded::new()?;
    let mut child = start(words, &name)?;
    let _forwarding = child.id().map(|id| signals.to(id));
    let observed = Observed::open(observer, Side::Client, "stdio", name, Clock::new());
    let tap = |direction, content| Tap::new(observed.clone(), direction, content);
    let (Some(stdin), Some(stdout), Some(stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        anyhow::bail!("the server has no pipes");
    };
    let (from_client, to_client) = (input().context("standard input")?, output().context("standard output")?);
    release_standard_streams();
    let exited = CancellationToken::new();
    let drained = || async {
        exited.cancelled().await;
        sleep(DRAIN_TIMEOUT).await;
    };
    let sending = async {
        let mut sent = tap(Direction::Sent, Content::lines());
        match &faults {
            None => pass(from_client, stdin, |bytes| sent.feed(bytes), std::future::pending).await,
            Some(faults) => pass_client_lines(from_client, stdin, sent, faults).await,
        }
    };
    let cut = CancellationToken::new();
    let receiving = async {
        let mut received = tap(Direction::Received, Content::lines());
        match &faults {
            None => pass(stdout, to_client, |bytes| received.feed(bytes), drained).await,
            Some(faults) => {
                if pass_lines(stdout, to_client, received, faults, drained).await {
                    cut.cancel();
                }
            }
        }
    };
    let mut complaints = tap(Direction::Received, Content::Stderr);
    let complaining = pass(stderr, tokio::io::stderr(), |bytes| complaints.feed(bytes), drained);
    let ending = async {
        let status = tokio::select! {
            status = child.wait() => status,
            () = cut.cancelled() => match child.kill().await {
                Ok(()) => child.wait().await,
                Err(error) => Err(error),
            },
        };
        exited.cancel();
        status
    };
    let (status, (), ()) = tokio::select! {
        done = async { tokio::join!(ending, receiving, complaining) } => done,
        () = async { sending.await; std::future::pending().await } => unreachable!("it waits forever"),
    };
    let status = status.context("the server's end")?;
    observed.closed(&format_args!("the server has ended: {status}"));
    Ok(ExitReason::Server(code(status)))
}

fn start(words: &[String], name: &str) -> Result<Child> {
    let (program, args) = words.split_first().context("there is no command")?;
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    // Ctrl-c at a terminal reaches a group of processes; the server gets each signal once, from here.
    #[cfg(unix)]
    command.process_group(0);
    let cannot =
        |error| ExitError::new(ExitReason::Unreachable, format!("{name}: it cannot be started: {error}"));
    Ok(command.spawn().map_err(cannot)?)
}

/// As shells do: 128 and the number of the signal that ended it.
fn code(status: ExitStatus) -> u8 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal = None;
    let code = status.code().or(signal.map(|signal: i32| 128 + signal)).unwrap_or(1);
    u8::try_from(code & 0xff).unwrap_or(1)
}

/// Closes this process's own ends, where they are pipes and others are used: the client must see when the server closes
/// its input or its output.
#[cfg(unix)]
fn release_standard_streams() {
    use rustix::fs::{FileType, fstat};
    use rustix::stdio::{dup2_stdin, dup2_stdout, stdin, stdout};

    let is_pipe = |fd| {
        fstat(fd).is_ok_and(|stat| {
            matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket)
        })
    };
    let Ok(nothing) = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null") else { return };
    let released =
        [is_pipe(stdin()).then(|| dup2_stdin(&nothing)), is_pipe(stdout()).then(|| dup2_stdout(&nothing))];
    for error in released.into_iter().flatten().filter_map(Result::err) {
        tracing::debug!(%error, "a standard stream stays open");
    }
}

#[cfg(not(unix))]
fn release_standard_streams() {}

/// Signals, passed on to the server.
#[cfg(unix)]
mod signals {
    use anyhow::{Context, Result};
    use rustix::process::{Pid, Signal, kill_process};
    use tokio::signal::unix::{self, SignalKind, signal};
    use tokio::task::JoinSet;

    pub(super) struct Forwarded(Vec<(unix::Signal, Signal)>);

    impl Forwarded {
        /// From now on they end this process no more.
        pub(super) fn new() -> Result<Self> {
            let kinds = [
                (SignalKind::hangup(), Signal::HUP),
                (SignalKind::interrupt(), Signal::INT),
                (SignalKind::quit(), Signal::QUIT),
                (SignalKind::terminate(), Signal::TERM),
                (SignalKind::user_defined1(), Signal::USR1),
                (SignalKind::user_defined2(), Signal::USR2),
            ];
            let listen = |(kind, sent)| Ok((signal(kind).context("cannot listen for signals")?, sent));
            kinds.into_iter().map(listen).collect::<Result<_>>().map(Self)
        }

        /// Sends them to this process, until the set is dropped.
        pub(super) fn to(self, process: u32) -> JoinSet<()> {
            let mut tasks = JoinSet::new();
            let Some(process) = i32::try_from(process).ok().and_then(Pid::from_raw) else { return tasks };
            for (mut received, sent) in self.0 {
                tasks.spawn(async move {
                    while received.recv().await.is_some() {
                        if let Err(error) = kill_process(process, sent) {
                            tracing::debug!(%error, "a signal was not passed on");
                        }
                    }
                });
            }
            tasks
        }
    }
}

/// Where there are no signals, the server ends with its input.
#[cfg(not(unix))]
mod signals {
    pub(super) struct Forwarded;

    impl Forwarded {
        #[allow(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]
        pub(super) fn new() -> anyhow::Result<Self> {
            Ok(Self)
        }

        pub(super) fn to(self, _: u32) {}
    }
}

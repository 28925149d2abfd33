//! Servers that are started as child processes, over standard input and output.
//!
//! A child leads a process group of its own, which ends with it: first its input is closed, then the group is sent
//! SIGTERM, then SIGKILL. It inherits only environment variables that are no secrets, and those it is given.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::client::TransportError;
use refmcp_transport::pipe::{LineReader, LineWriter};
use tokio::process::Command;

use crate::pipe::{DEFAULT_MAX_MESSAGE_SIZE, PipeContent, PipeTransport, Task};
use crate::redact::{self, Secrets};
use crate::transport::{Connecting, Connector, MessageSink, Transport};

mod environment;
mod group;
mod lookup;
mod start_error;
mod stderr;
mod supervisor;

pub use stderr::StderrLine;

use environment::Environment;
use group::Group;
use start_error::start_error;
use stderr::StderrTail;
use supervisor::Supervisor;

/// Where a server's standard error goes.
#[derive(Clone, Default)]
pub enum StderrTo {
    /// To the standard error of this process, unchanged.
    Inherit,
    /// Line by line to a function, which should return soon.
    Lines(Arc<dyn Fn(StderrLine<'_>) + Send + Sync>),
    /// Nowhere; the last of it is kept, to explain why a server ended.
    #[default]
    Discard,
}

impl fmt::Debug for StderrTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "Inherit",
            Self::Lines(_) => "Lines",
            Self::Discard => "Discard",
        })
    }
}

/// How long a server may take to end.
#[derive(Debug, Clone, Copy)]
struct ShutdownTimeouts {
    /// After its input is closed.
    closed: Duration,
    /// After SIGTERM.
    terminated: Duration,
}

/// A server that is started as a child process.
#[derive(Clone)]
#[must_use]
pub struct ChildProcess {
    program: OsString,
    args: Vec<OsString>,
    environment: Environment,
    directory: Option<PathBuf>,
    stderr: StderrTo,
    quotes_stderr: bool,
    max_message_size: usize,
    shutdown_timeouts: ShutdownTimeouts,
}

impl ChildProcess {
    /// Starts this program, a path or a name in `PATH`, without a shell.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        let grace = Duration::from_secs(2);
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            environment: Environment::default(),
            directory: None,
            stderr: StderrTo::default(),
            quotes_stderr: true,
            max_message_size: DEFAULT_MAX_MESSAGE_SIZE,
            shutdown_timeouts: ShutdownTimeouts { closed: grace, terminated: grace },
        }
    }

    /// One more argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// More arguments.
    pub fn args(mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.set(name.as_ref(), value.as_ref());
        self
    }

    /// Sets environment variables.
    pub fn envs(self, variables: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>) -> Self {
        variables.into_iter().fold(self, |child, (name, value)| child.env(name, value))
    }

    /// Inherits no environment variables, and clears those that were set.
    pub fn env_clear(mut self) -> Self {
        self.environment = Environment::empty();
        self
    }

    /// Inherits these environment variables as well.
    pub fn inherit(mut self, names: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.environment.inherit(names.into_iter().map(|name| name.as_ref().to_owned()));
        self
    }

    /// Inherits all environment variables, with every secret in them.
    pub fn inherit_all(mut self) -> Self {
        self.environment.inherit_all();
        self
    }

    /// Runs it in this directory.
    pub fn current_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Where its standard error goes.
    pub fn stderr(mut self, to: StderrTo) -> Self {
        self.stderr = to;
        self
    }

    /// Whether the error of its end quotes the last lines of its standard error, without the secrets that it was given:
    /// true by default. Turn it off where the lines are shown anyway.
    pub fn quote_stderr(mut self, quotes: bool) -> Self {
        self.quotes_stderr = quotes;
        self
    }

    /// The secrets that it is given: the values of its variables, and what is masked of its arguments.
    pub fn secrets(&self) -> Secrets {
        let secrets = Secrets::default().with_words(&self.words());
        let values = self.environment.given().map(|(_, value)| value.to_string_lossy());
        values.fold(secrets, |secrets, value| secrets.with_value(&value))
    }

    /// Finds the program now, with the environment and the directory that it will have, so that it can be shown: exactly
    /// that one is started. On Windows it stays the name that it is.
    ///
    /// # Errors
    /// It is not there.
    pub fn resolved(mut self) -> Result<Self, TransportError> {
        if cfg!(unix) {
            let variables = self.environment.variables();
            let path = variables.get(OsStr::new("PATH")).map(OsString::as_os_str);
            let found = lookup::find(&self.program, path, self.directory.as_deref());
            self.program = found.ok_or_else(|| start_error(&self, &io::ErrorKind::NotFound.into()))?.into();
        }
        Ok(self)
    }

    /// The program: what was given, or the path that [`resolved`](Self::resolved) has found.
    #[must_use]
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// The directory that it runs in, if it is not the one of this process.
    #[must_use]
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Limits the bytes of a message.
    pub fn max_message_size(mut self, bytes: usize) -> Self {
        self.max_message_size = bytes;
        self
    }

    /// How long it may take to end after its input is closed, and again after SIGTERM.
    pub fn grace(mut self, closed: Duration, terminated: Duration) -> Self {
        self.shutdown_timeouts = ShutdownTimeouts { closed, terminated };
        self
    }

    fn words(&self) -> Vec<Cow<'_, str>> {
        std::iter::once(&self.program).chain(&self.args).map(|word| word.to_string_lossy()).collect()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).env_clear().envs(self.environment.variables());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        command.stderr(if matches!(self.stderr, StderrTo::Inherit) {
            Stdio::inherit()
        } else {
            Stdio::piped()
        });
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        #[cfg(unix)]
        command.process_group(0);
        command
    }

    fn start(&self, sink: Arc<dyn MessageSink>) -> Result<Arc<dyn Transport>, TransportError> {
        let mut child = self.command().spawn().map_err(|error| start_error(self, &error))?;
        let group = Group::led_by(&child);
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            let program = redact::word(&self.program.to_string_lossy());
            return Err(TransportError::Unreachable(format!("{program}: it has no pipes")));
        };
        let ends = (LineReader::new(stdout, self.max_message_size), LineWriter::new(stdin));
        let (transport, pipe) = PipeTransport::begin(ends, &sink, self.max_message_size, PipeContent::Mixed);
        let stderr_tail = Arc::new(StderrTail::new(self.quotes_stderr.then(|| self.secrets())));
        let (stderr, to) = (child.stderr.take(), self.stderr.clone());
        let draining = Task::spawn(stderr::drain(stderr, to, Arc::clone(&stderr_tail), sink.observed()));
        let supervisor = Supervisor {
            child,
            group,
            pipe,
            sink,
            draining,
            stderr_tail,
            shutdown_timeouts: self.shutdown_timeouts,
        };
        tokio::spawn(supervisor.run());
        Ok(transport)
    }
}

impl Connector for ChildProcess {
    fn connect(&self, sink: Arc<dyn MessageSink>) -> Connecting<'_> {
        Box::pin(async move { self.start(sink) })
    }

    fn transport(&self) -> &'static str {
        "stdio"
    }

    fn name(&self) -> String {
        redact::command_line(&self.words())
    }
}

impl fmt::Debug for ChildProcess {
    /// Arguments and variables may hold secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChildProcess")
            .field("program", &redact::word(&self.program.to_string_lossy()))
            .field("args", &self.args.len())
            .field("variables", &self.environment.given().map(|(name, _)| name).collect::<Vec<_>>())
            .field("directory", &self.directory)
            .field("stderr", &self.stderr)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_command_line_without_secrets() {
        let child = ChildProcess::new("npx").args(["-y", "a server", "it's", "", "two\nlines"]);
        assert_eq!(child.name(), r#"npx -y 'a server' 'it'\''s' '' "two\nlines""#);
        let child = ChildProcess::new("KEY=hush").args(["--token", "hush"]);
        assert_eq!(child.name(), "KEY=*** --token ***");
    }

    #[test]
    fn debug_output_has_no_secrets() {
        let child = ChildProcess::new("server").arg("--key=hush").env("TOKEN", "hush");
        let shown = format!("{child:?}");
        assert!(!shown.contains("hush") && shown.contains("TOKEN"), "{shown}");
    }
}

//! A child process, its three streams in threads.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use super::TEST_TIMEOUT;

/// The program with these arguments, not started yet.
pub(crate) fn program(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_refmcp"));
    command.args(args).env_remove("REFMCP_LOG");
    command
}

/// A running child; killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    input: Option<Sender<Vec<u8>>>,
    lines: Receiver<Vec<u8>>,
    unread: Option<(ChildStdout, Sender<Vec<u8>>)>,
    errors: Arc<Mutex<Vec<u8>>>,
    /// Closed by the thread that reads stderr, at its end.
    errors_end: Option<Receiver<()>>,
    /// It is a server of ours, which tells when it breaks a rule itself.
    is_server: bool,
}

/// How a child ended, and all that it wrote after what was read before.
#[derive(Debug)]
pub(crate) struct Exit {
    pub(crate) status: ExitStatus,
    pub(crate) lines: Vec<String>,
    pub(crate) errors: String,
    pub(crate) took: Duration,
}

impl Process {
    /// Starts `refmcp stdio` with these arguments.
    pub(crate) fn stdio(args: &[&str]) -> Self {
        let all: Vec<&str> = ["stdio"].iter().chain(args).copied().collect();
        let is_server = !args.contains(&"--faults");
        let mut process = Self::spawn(program(&all));
        process.is_server = is_server;
        process
    }

    /// Starts a command and reads what it says.
    pub(crate) fn spawn(command: Command) -> Self {
        let mut process = Self::spawn_unread(command);
        process.start_reading();
        process
    }

    /// Starts a command and leaves what it says in the pipe.
    pub(crate) fn spawn_unread(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        Self::spawn_redirected(command)
    }

    /// Starts a command with the streams that it was given.
    pub(crate) fn spawn_redirected(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let (lines_in, lines) = channel();
        let mut process = Self {
            input: None,
            lines,
            unread: child.stdout.take().map(|stdout| (stdout, lines_in)),
            errors: Arc::default(),
            errors_end: None,
            is_server: false,
            child,
        };
        process.start_writing();
        process.collect_errors();
        process
    }

    fn start_writing(&mut self) {
        let Some(mut stdin) = self.child.stdin.take() else { return };
        let (input, bytes) = channel::<Vec<u8>>();
        self.input = Some(input);
        thread::spawn(move || {
            // A child that went away is noticed when its answer is waited for.
            while bytes.recv().is_ok_and(|bytes| stdin.write_all(&bytes).is_ok()) {}
        });
    }

    fn collect_errors(&mut self) {
        let Some(mut stderr) = self.child.stderr.take() else { return };
        let errors = self.errors.clone();
        let (open, end) = channel();
        self.errors_end = Some(end);
        thread::spawn(move || {
            let _open: Sender<()> = open;
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = stderr.read(&mut chunk) {
                errors.lock().unwrap().extend_from_slice(&chunk[..count]);
            }
        });
    }

    /// Reads what the child says from now on.
    pub(crate) fn start_reading(&mut self) {
        let Some((stdout, lines)) = self.unread.take() else { return };
        thread::spawn(move || {
            for line in BufReader::new(stdout).split(b'\n') {
                if !line.is_ok_and(|line| lines.send(line).is_ok()) {
                    break;
                }
            }
        });
    }

    /// Closes the child's output unread.
    pub(crate) fn close_output(&mut self) {
        self.unread = None;
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends bytes as they are.
    pub(crate) fn send(&self, bytes: impl Into<Vec<u8>>) {
        if let Some(input) = &self.input {
            // Fails when the child is gone, which the next wait tells in better words.
            let _ = input.send(bytes.into());
        }
    }

    /// Sends a line.
    pub(crate) fn send_line(&self, line: impl AsRef<[u8]>) {
        let mut bytes = line.as_ref().to_vec();
        bytes.push(b'\n');
        self.send(bytes);
    }

    /// Closes the child's input once everything is written.
    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    /// The next line that the child writes; `None` when it has closed its output.
    pub(crate) fn next_line(&self) -> Option<String> {
        match self.lines.recv_timeout(TEST_TIMEOUT) {
            Ok(line) => Some(String::from_utf8(line).expect("output is UTF-8")),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("nothing said in time; stderr: {}", self.errors()),
        }
    }

    /// What the child has written to stderr so far.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.errors.lock().unwrap()).into_owned()
    }

    /// Sends the child a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        signal(name, self.id());
    }

    /// The child's memory in MiB: now (`VmRSS`) or at its highest (`VmHWM`).
    pub(crate) fn memory(&self, field: &str) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id())).expect("it runs");
        let line = status.lines().find(|line| line.starts_with(field)).expect("the field is there");
        let kib: f64 = line.split_whitespace().nth(1).and_then(|text| text.parse().ok()).expect("a number");
        kib / 1024.0
    }

    /// Waits until the child has ended.
    pub(crate) fn exit(mut self) -> Exit {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("it is our child") {
                break status;
            }
            assert!(start.elapsed() < TEST_TIMEOUT, "does not end; stderr: {}", self.errors());
            thread::sleep(Duration::from_millis(2));
        };
        let took = start.elapsed();
        let mut lines = Vec::new();
        if self.unread.is_none() {
            while let Ok(line) = self.lines.recv_timeout(TEST_TIMEOUT) {
                lines.push(String::from_utf8(line).expect("output is UTF-8"));
            }
        }
        if let Some(end) = &self.errors_end {
            // Nothing is ever sent: this waits until all of stderr is read.
            let _ = end.recv_timeout(TEST_TIMEOUT);
        }
        Exit { status, lines, errors: self.errors(), took }
    }
}

/// Fails the test if the log of a server tells that the server itself broke a rule.
pub(crate) fn check_server_log(log: &str) {
    let broken: Vec<_> = log.lines().filter(|line| line.contains("the server broke a rule")).collect();
    assert!(broken.is_empty() || thread::panicking(), "{broken:#?}");
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if self.is_server {
            check_server_log(&self.errors());
        }
    }
}

/// The state of a process, and its parent; `None` when it is gone.
fn stat(pid: u32) -> Option<(String, u32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut rest = text.rsplit_once(')')?.1.split_whitespace();
    Some((rest.next()?.to_owned(), rest.next()?.parse().ok()?))
}

/// The processes that a process has started and that still run.
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let pids = std::fs::read_dir("/proc").expect("there are processes").flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.filter(|pid| stat(*pid).is_some_and(|(state, of)| state != "Z" && of == parent)).collect()
}

/// Whether a process runs, and does not only wait to be collected.
pub(crate) fn is_running(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _)| state != "Z")
}

/// Sends a process a signal by its name.
pub(crate) fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args(["-s", name, &pid.to_string()]).status();
    assert!(sent.expect("kill runs").success(), "{name}");
}

/// Ends a process at once, and waits until it has ended.
pub(crate) fn kill(pid: u32) {
    signal("KILL", pid);
    wait_until_gone(pid);
}

pub(crate) fn wait_until_gone(pid: u32) {
    wait_until(&format!("the end of process {pid}"), || !is_running(pid));
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    wait_for(what, || is_so().then_some(()));
}

/// Waits until there is something.
pub(crate) fn wait_for<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(start.elapsed() < TEST_TIMEOUT, "not in time: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

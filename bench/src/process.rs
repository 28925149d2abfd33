//! A server under test, and what the system's accounting says of it.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::time::clock_getcpuclockid;
use nix::unistd::Pid;

const STARTS_WITHIN: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_micros(500);

/// How long a server may take to end; under valgrind that is slow.
const ENDS_WITHIN: Duration = Duration::from_secs(60);

/// A server that listens on a port of this machine. If we started it, it ends with this value.
pub struct Server {
    pub port: u16,
    pid: u32,
    child: Option<Child>,
}

impl Server {
    /// Starts a server on a free port, which stands for `{port}` in its arguments, and waits until it listens.
    pub fn start(command: &[String]) -> Result<Self> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let (program, args) = command.split_first().context("no command")?;
        let mut child = Command::new(program)
            .args(args.iter().map(|arg| arg.replace("{port}", &port.to_string())))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {program}"))?;
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(status) = child.try_wait()? {
                bail!("{program} has ended: {status}");
            }
            if begin.elapsed() > STARTS_WITHIN {
                let _ = child.kill();
                bail!("{program} does not listen");
            }
            thread::sleep(POLL);
        }
        Ok(Self { port, pid: child.id(), child: Some(child) })
    }

    /// A server that runs already.
    pub fn running(port: u16, pid: u32) -> Self {
        Self { port, pid, child: None }
    }

    /// Tells the server to stop, and waits until it has: what counts its instructions writes them down at its end.
    pub fn stop(mut self) -> Result<()> {
        let child = self.child.as_mut().context("a server that was not started here is not stopped here")?;
        kill(Pid::from_raw(self.pid.try_into()?), Signal::SIGTERM)?;
        let begin = Instant::now();
        while child.try_wait()?.is_none() {
            if begin.elapsed() > ENDS_WITHIN {
                bail!("the server does not end");
            }
            thread::sleep(POLL);
        }
        self.child = None;
        Ok(())
    }

    /// Its user and system time.
    pub fn cpu_time(&self) -> Result<Duration> {
        cpu_time(self.pid)
    }

    /// Its resident memory, in bytes.
    pub fn memory(&self) -> Result<u64> {
        memory(self.pid)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill(); // it may be gone by now
            let _ = child.wait();
        }
    }
}

/// User and system time of a process: what `/proc/PID/stat` says, but not rounded to hundredths of a second.
pub fn cpu_time(pid: u32) -> Result<Duration> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid.try_into()?))?;
    Ok(clock.now()?.into())
}

/// The resident memory of a process, in bytes.
pub fn memory(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib << 10)
}

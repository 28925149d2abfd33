//! A Redis of its own for a test: on a socket in a folder that goes away, where it also writes what it has.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use std::{env, fs, process, thread};

/// The programs that speak the protocol.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// A server that is killed when it is dropped.
#[derive(Debug)]
pub struct RedisServer {
    folder: PathBuf,
    options: Vec<String>,
    process: Option<Child>,
}

impl RedisServer {
    /// Starts one that writes each change to disk.
    pub fn start() -> Self {
        Self::start_with(&["--appendonly", "yes"])
    }

    /// Starts one with these options.
    ///
    /// # Panics
    ///
    /// When none is installed, or it does not start.
    pub fn start_with(options: &[&str]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("refmcp-redis-{}-{number}", process::id()));
        // Of a test with the same process id, whose process was killed.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let options = options.iter().map(|option| (*option).to_owned()).collect();
        let mut server = Self { folder, options, process: None };
        server.run();
        server
    }

    /// Starts it again, with what it has written to disk.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn run(&mut self) {
        let socket = self.socket();
        // That of a process that was killed.
        let _ = fs::remove_file(&socket);
        let command = |program: &str| {
            let mut command = Command::new(program);
            command.args(["--port", "0", "--save", "", "--daemonize", "no", "--logfile", "redis.log"]);
            command.arg("--unixsocket").arg(&socket).arg("--dir").arg(&self.folder);
            command.args(&self.options).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn()
        };
        let started = PROGRAMS.iter().find_map(|program| command(program).ok());
        let Some(started) = started else {
            panic!("redis-server is not installed: sudo apt-get install redis-server");
        };
        self.process = Some(started);
        for _ in 0..1200 {
            if UnixStream::connect(&socket).is_ok() {
                return;
            }
            thread::sleep(Duration::from_millis(25));
        }
        panic!("redis-server does not listen: {}", self.log());
    }

    /// Kills it at once.
    ///
    /// # Panics
    ///
    /// When it cannot be killed.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let killed = process.kill().and_then(|()| process.wait());
            assert!(killed.is_ok(), "{killed:?}");
        }
    }

    /// The number of its process.
    ///
    /// # Panics
    ///
    /// When it was killed.
    pub fn process_id(&self) -> u32 {
        self.process.as_ref().expect("it runs").id()
    }

    /// Its address, with these parameters.
    pub fn address(&self, parameters: &str) -> String {
        format!("redis+unix://{}{parameters}", self.socket().display())
    }

    /// The folder that it writes to.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.join("redis.log")).unwrap_or_default()
    }

    fn socket(&self) -> PathBuf {
        self.folder.join("redis.sock")
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            let _ = process.kill();
            let _ = process.wait();
        }
        let _ = fs::remove_dir_all(&self.folder);
    }
}

//! A Redis of its own for each test: on a socket in a folder that goes away, writing to disk there.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use refmcp_redis::{RedisBackplane, RedisOptions};
use tempfile::TempDir;

/// The programs that speak the protocol, and where they may be.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

/// A server that is killed when it is dropped.
#[derive(Debug)]
pub(crate) struct RedisServer {
    folder: TempDir,
    more: Vec<String>,
    process: Option<Child>,
}

impl RedisServer {
    /// Starts one that writes each change to disk.
    pub(crate) fn start() -> Self {
        Self::start_with(&["--appendonly", "yes"])
    }

    /// Starts one with these options.
    pub(crate) fn start_with(more: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let more = more.iter().map(|option| (*option).to_owned()).collect();
        let mut server = Self { folder, more, process: None };
        server.run();
        server
    }

    /// Starts it again, with what it has written to disk.
    pub(crate) fn run(&mut self) {
        let socket = self.socket();
        // One of a process that was killed.
        let _ = std::fs::remove_file(&socket);
        let command = |program: &str| {
            let mut command = Command::new(program);
            command.args(["--port", "0", "--save", "", "--daemonize", "no", "--logfile", "redis.log"]);
            command.arg("--unixsocket").arg(&socket).arg("--dir").arg(self.folder.path());
            command.args(&self.more).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn()
        };
        let started = PROGRAMS.iter().find_map(|program| command(program).ok());
        self.process = Some(started.expect("redis-server is installed: apt-get install redis-server"));
        // It listens before it has read its files, and says so meanwhile.
        for _ in 0..600 {
            if std::os::unix::net::UnixStream::connect(&socket).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("redis-server does not listen: {}", self.log());
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("redis.log")).unwrap_or_default()
    }

    /// Kills it at once.
    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// How to reach it.
    pub(crate) fn options(&self) -> RedisOptions {
        RedisOptions::new(&self.address("")).unwrap()
    }

    /// Its address, with these parameters.
    pub(crate) fn address(&self, parameters: &str) -> String {
        format!("redis+unix://{}{parameters}", self.socket().display())
    }

    /// A connection to it.
    pub(crate) async fn connect(&self) -> RedisBackplane {
        RedisBackplane::connect(self.options()).await.unwrap()
    }

    /// A connection for commands.
    pub(crate) async fn commands(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.address("")).unwrap();
        client.get_multiplexed_async_connection().await.unwrap()
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.kill();
    }
}

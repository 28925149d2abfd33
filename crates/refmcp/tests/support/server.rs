//! `refmcp serve` as a process.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::thread;

use super::process::check_server_log;
use super::{REFMCP, TEST_TIMEOUT, signal, wait_for};

/// What opens a session.
pub(crate) const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;

/// A running server; killed when it is dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) output: Option<BufReader<ChildStdout>>,
    /// What it has said so far.
    said: String,
    pub(crate) address: String,
    /// Its log, where the test does not read it.
    log: Option<File>,
}

impl Server {
    /// Sends it a signal, by the name that `kill` has for it.
    pub(crate) fn signal(&self, name: &str) {
        signal(name, self.child.id());
    }

    /// How it ended.
    pub(crate) fn exit(&mut self) -> ExitStatus {
        wait_for("the end of the server", || self.child.try_wait().unwrap())
    }

    pub(crate) fn start(options: &[&str]) -> Self {
        let log = tempfile::tempfile().unwrap();
        let mut server = Self::start_logging(options, log.try_clone().unwrap());
        server.log = Some(log);
        server
    }

    /// The same with its log going somewhere.
    pub(crate) fn start_logging(options: &[&str], log: impl Into<Stdio>) -> Self {
        let mut command = Command::new(REFMCP);
        command.args(["serve", "--port", "0"]).args(options).env_remove("REFMCP_LOG").env_remove("PORT");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log).spawn().unwrap();
        let mut output = BufReader::with_capacity(16, child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("/mcp") {
            assert!(output.read_line(&mut said).unwrap() > 0, "it did not say where it listens");
        }
        let line = said.lines().next_back().unwrap();
        let address = line.trim().strip_prefix("streamable HTTP").unwrap().trim();
        let (_, address) = address.split_once("://").unwrap();
        let address = address.split('/').next().unwrap().to_owned();
        Self { child, output: Some(output), said, address, log: None }
    }

    /// All that it says when it starts.
    pub(crate) fn read_banner(&mut self) -> String {
        let output = self.output.as_mut().unwrap();
        while !self.said.contains("mcpServers") {
            assert!(output.read_line(&mut self.said).unwrap() > 0, "no banner: {}", self.said);
        }
        self.said.clone()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        stream
    }

    /// A request that opens a session, with this line in its head.
    pub(crate) fn opening(&self, line: &str) -> String {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\n{line}Content-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
            self.address,
            INITIALIZE.len()
        )
    }

    /// Opens a session; gives the whole response.
    pub(crate) fn greet(&self) -> String {
        self.ask(&self.opening("Connection: close\r\n"))
    }

    /// The whole response to a GET.
    pub(crate) fn get(&self, path: &str) -> String {
        self.ask(&format!("GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address))
    }

    /// The memory that it uses, in KiB.
    pub(crate) fn resident(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().trim().parse().unwrap()
    }

    fn ask(&self, request: &str) -> String {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(mut log) = self.log.take() {
            let mut text = String::new();
            let read = log.rewind().and_then(|()| log.read_to_string(&mut text));
            eprint!("{text}");
            assert!(read.is_ok() || thread::panicking(), "{read:?}");
            check_server_log(&text);
        }
    }
}

//! The server that the examples speak to.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A running server; killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    /// What it said when it began to listen.
    pub(crate) banner: String,
    pub(crate) port: String,
    /// Kept open, as a terminal would be.
    _output: BufReader<ChildStdout>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_refmcp"));
        command.args(["serve", "--port", "0"]).env_remove("REFMCP_LOG").env_remove("PORT");
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        while !banner.contains("mcpServers") {
            assert!(output.read_line(&mut banner).unwrap() > 0, "it did not say where it listens: {banner}");
        }
        let (_, after) = banner.split_once("http://127.0.0.1:").expect("an address");
        let port = after.chars().take_while(char::is_ascii_digit).collect();
        Self { child, banner, port, _output: output }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

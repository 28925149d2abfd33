//! `refmcp serve --auth` as a process, with what it logs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::secrets::Watch;

/// A running server; killed when it is dropped.
pub(crate) struct Server {
    child: Child,
    log: Option<JoinHandle<String>>,
    watch: Arc<Watch>,
    /// What it said when it began to listen.
    pub(crate) banner: String,
    /// Such as `127.0.0.1:3000`.
    pub(crate) address: String,
    url: String,
}

impl Server {
    /// One whose own authorization server lets everybody in, with more options.
    pub(crate) fn start(options: &[&str]) -> Self {
        let auto = ["serve", "--port", "0", "--auth", "builtin", "--auth-login", "auto"];
        Self::run(&[&auto[..], options].concat())
    }

    /// One with all of these words.
    pub(crate) fn run(words: &[&str]) -> Self {
        Self::run_with(words, &[])
    }

    /// One with all of these words, and these variables. It logs all it can.
    pub(crate) fn run_with(words: &[&str], variables: &[(&str, &str)]) -> Self {
        let watch = Watch::of_this_test();
        watch.sees_words(words);
        let mut command = Command::new(env!("CARGO_BIN_EXE_refmcp"));
        command.args(words).env("REFMCP_LOG", "trace").env_remove("PORT").envs(variables.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let log = thread::spawn(move || {
            let mut log = Vec::new();
            stderr.read_to_end(&mut log).unwrap();
            String::from_utf8_lossy(&log).into_owned()
        });
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        while !banner.contains("mcpServers") {
            if output.read_line(&mut banner).unwrap() == 0 {
                panic!("it does not listen: {banner} {}", log.join().unwrap());
            }
        }
        let (_, after) = banner.split_once("streamable HTTP   ").expect("an address");
        let url = after.lines().next().unwrap().to_owned();
        let (_, after) = url.split_once("://").unwrap();
        let address = after.strip_suffix("/mcp").unwrap().to_owned();
        Self { child, log: Some(log), watch, banner, address, url }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// Ends it; gives all that it has logged.
    pub(crate) fn log(mut self) -> String {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(told.success());
        self.child.wait().unwrap();
        self.logged()
    }

    /// All that it has logged, once it has ended.
    fn logged(&mut self) -> String {
        let log = self.log.take().map(|log| log.join().unwrap()).unwrap_or_default();
        self.watch.hears("the server", &log);
        log
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        self.logged();
    }
}

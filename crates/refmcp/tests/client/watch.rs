//! `watch` says when its server is gone, and ends.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;

use crate::User;
use crate::support::Server;

#[test]
fn a_watch_whose_server_stops_says_so_and_fails() {
    for (version, signal) in [("2026-07-28", "TERM"), ("2026-07-28", "KILL"), ("2025-11-25", "TERM")] {
        let (user, mut server) = (User::new(), Server::start(&[]));
        let url = format!("http://{}/mcp", server.address);
        let mut command = user.command(&["watch", &url, "--protocol-version", version, "--timeout", "5"]);
        let mut watch = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(watch.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "listening\n", "{version}");
        server.signal(signal);
        server.exit();
        let status = watch.wait().unwrap();
        let mut said = String::new();
        watch.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert_eq!(status.code(), Some(4), "{version} {signal}: {said}");
        assert!(said.contains("the connection is lost: "), "{version} {signal}: {said}");
    }
}

//! `refmcp serve` as a process: it says where it listens, outlives whoever reads that, and ends when it is told to.

mod serving;

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use serving::{PATIENCE, Server};

#[test]
fn it_serves_where_it_says() {
    let response = Server::start(&[]).greet();
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    assert!(response.contains("RefMCP-TestServer"), "{response}");
}

#[test]
fn it_outlives_whoever_read_its_banner() {
    for _ in 0..5 {
        let mut server = Server::start(&[]);
        drop(server.output.take());
        assert!(server.greet().starts_with("HTTP/1.1 200 OK"));
    }
}

#[test]
fn it_ends_when_it_is_told_to() {
    let mut server = Server::start(&[]);
    assert!(server.greet().starts_with("HTTP/1.1 200 OK"));
    let told = Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert!(told.success());
    let begin = Instant::now();
    loop {
        if let Some(status) = server.child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "it did not end");
        thread::sleep(Duration::from_millis(10));
    }
}

//! `refmcp serve` as a process: startup, signals, sockets, paths, memory, the files of `deploy`, and proxies in front.

#![cfg(unix)]

mod deploy;
mod listening;
#[cfg(target_os = "linux")]
mod memory;
mod proxies;
mod signals;
mod startup;
#[path = "../support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

/// A file of the project.
fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The status and the body of what curl gets.
fn curl(arguments: &[&str]) -> (String, String) {
    let output = Command::new("curl").args(["-s", "-w", "\n%{http_code}"]).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.to_owned(), body.to_owned())
}

//! `refmcp serve` as those see it who operate it: signals, sockets, paths, what is in `deploy`, and proxies in front.

#![cfg(unix)]

mod deploy;
mod listening;
mod proxies;
#[path = "../serving/mod.rs"]
mod serving;
mod signals;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serving::PATIENCE;

/// A file of the project.
fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    fs::read_to_string(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display()))
}

/// Waits until something is there.
fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(found) = found() {
            return found;
        }
        assert!(begin.elapsed() < PATIENCE, "not in time: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

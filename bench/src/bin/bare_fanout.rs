//! The least it takes to tell something to many: whatever comes on the first connection is written to all others, by
//! one thread. Usage: `bare_fanout PORT`

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let port: u16 = std::env::args().nth(1).context("no port")?.parse()?;
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    drop(listener.accept()?); // the starting process checked that this listens
    let (mut from, _) = listener.accept()?;
    let others = Mutex::new(Vec::<TcpStream>::new());
    thread::scope(|scope| {
        scope.spawn(|| {
            for mut other in listener.incoming().flatten() {
                // So that a client knows that it is connected. If it has gone, writing to it will fail later.
                let _ = other.write_all(b"\n\n");
                others.lock().unwrap_or_else(PoisonError::into_inner).push(other);
            }
        });
        let mut buffer = vec![0; 64 << 10];
        loop {
            let length = from.read(&mut buffer)?;
            for mut other in others.lock().unwrap_or_else(PoisonError::into_inner).iter() {
                other.write_all(&buffer[..length])?;
            }
        }
    })
}

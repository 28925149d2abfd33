//! Ports that are named before something listens there, or where nothing ever does.
//!
//! A port that the system chose, and that was closed again, may be given to another test meanwhile, since tests of several
//! crates run beside each other. The ports here are below those that systems choose from, and each is given out once:
//! whichever process has it keeps the UDP port of the same number, which no other process can have then.

use std::mem;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::ops::Range;

/// Linux chooses from 32768 on, other systems from 49152 on.
const PORTS: Range<u16> = 20_000..32_000;

/// A TCP port of 127.0.0.1 that nothing listens on. No other test gets it before this process ends.
///
/// # Panics
///
/// When there is none.
pub fn free_port() -> u16 {
    let mut ports = PORTS;
    ports.find(|port| take(*port)).unwrap_or_else(|| panic!("none of the ports {PORTS:?} is free"))
}

/// Takes a port until the process ends; `false` when something else has it.
fn take(port: u16) -> bool {
    let Ok(kept) = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)) else { return false };
    let is_free = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok();
    if is_free {
        mem::forget(kept);
    }
    is_free
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::thread;

    use super::*;

    #[test]
    fn no_port_is_given_out_twice() {
        let threads: Vec<_> = (0..4).map(|_| thread::spawn(|| [(); 8].map(|()| free_port()))).collect();
        let ports: BTreeSet<u16> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        assert_eq!(ports.len(), 32);
        assert!(ports.iter().all(|port| PORTS.contains(port)), "{ports:?}");
    }

    #[test]
    fn what_something_listens_on_is_left() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(!take(listener.local_addr().unwrap().port()));
        let port = free_port();
        assert!(!take(port), "it is taken already");
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
    }
}

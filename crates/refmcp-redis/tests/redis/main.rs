//! Against a real server, which each test starts for itself.
#![cfg(unix)]

mod contract;
mod kept;
mod limits;
mod outages;
mod server;
mod startup;
mod time;

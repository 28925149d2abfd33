//! `refmcp bridge` between clients that are not ours and the reference server, over every transport on either side.

#[path = "../support/mod.rs"]
mod support;

mod beyond;
mod broken_servers;
mod faults;
mod from_http;
mod from_stdio;
mod gateway;
mod listener;
mod per_request;
mod restart;
mod rounds;
mod shared;
mod shutdown;
mod tasks;
mod tls;
mod two_bridges;

use support::Server;
use support::{Client, Process, Version, program};

/// The revisions with sessions.
const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// A server that the bridge starts itself.
const CHILD: [&str; 3] = ["--", env!("CARGO_BIN_EXE_refmcp"), "stdio"];

/// Every way to a server.
fn ways(server: &Server) -> Vec<Vec<String>> {
    let at =
        |scheme: &str, path: &str| vec!["--to".to_owned(), format!("{scheme}://{}{path}", server.address)];
    let child = CHILD.map(str::to_owned).to_vec();
    vec![at("http", "/mcp"), at("sse+http", "/sse"), at("ws", "/mcp/ws"), child]
}

/// A bridge from standard input and output, to somewhere.
fn bridge(to: &[impl AsRef<str>]) -> Process {
    let to = to.iter().map(AsRef::as_ref);
    let args: Vec<&str> = ["bridge", "--from", "stdio"].into_iter().chain(to).collect();
    Process::spawn(program(&args))
}

/// Every client with every way to a server that it can use.
fn each(mut meet: impl FnMut(Client, &str)) {
    let server = Server::start(&[]);
    for way in ways(&server) {
        let stateless = (!way[1].starts_with("sse+")).then_some(Version::Stateless);
        for version in SESSIONS.map(Version::Session).into_iter().chain(stateless) {
            meet(Client::with(version, bridge(&way)), &format!("{version:?} {}", way.join(" ")));
        }
    }
}

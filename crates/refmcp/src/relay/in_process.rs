//! Fault injection between the process that started this one and the reference server in this process, over standard input and output.

use std::sync::Arc;

use anyhow::{Context, Result};
use refmcp_client::observer::{Direction, Observed, Observer, Side};
use refmcp_proto::jsonrpc::Limits;
use refmcp_server::{Connection, Server};
use refmcp_transport::clock::Clock;
use refmcp_transport::pipe::{LineReader, LineWriter};
use refmcp_transport::stdio::{cancel_on_signal_or_parent_exit, input, output};
use tokio::io::{duplex, split};
use tokio_util::sync::CancellationToken;

use super::CHUNK;
use super::faults::{SharedFaults, pass_client_lines, pass_lines};
use super::taps::{Content, Tap};

/// Serves until the client or the server has ended, or the connection is cut as planned.
pub(crate) async fn serve_stdio(
    server: Server,
    observer: Arc<dyn Observer>,
    faults: SharedFaults,
) -> Result<()> {
    let observed = Observed::open(observer, Side::Client, "stdio", "the reference server", Clock::new());
    let tap = |direction| Tap::new(observed.clone(), direction, Content::lines());
    let (from_client, to_client) = (input().context("standard input")?, output().context("standard output")?);
    let (near, far) = duplex(CHUNK);
    let (from_server, to_server) = split(near);
    let (read, write) = split(far);
    let stop = CancellationToken::new();
    let signals = tokio::spawn(cancel_on_signal_or_parent_exit(stop.clone()));
    let connection = Connection { transport: "stdio", local: true, ..Connection::default() };
    let pipe = (LineReader::new(read, Limits::default().max_message_size), LineWriter::new(write));
    let serving = server.serve(pipe, connection, stop.clone());
    let sending = pass_client_lines(from_client, to_server, tap(Direction::Sent), &faults);
    let receiving =
        pass_lines(from_server, to_client, tap(Direction::Received), &faults, std::future::pending);
    // The server's end ends what is received, and so does a cut; the client's end is told to the server.
    let served = tokio::select! {
        (served, _) = async { tokio::join!(serving, async { receiving.await; stop.cancel(); }) } => served,
        () = async { sending.await; std::future::pending().await } => return Ok(()),
    };
    signals.abort();
    observed.closed(&"the connection has ended");
    served.context("stdio").map(drop)
}

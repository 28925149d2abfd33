//! A server and its client, with the pipe between them in the test's hands.

use std::io;

use refmcp_proto::revision::Revision;
use refmcp_server::transport::ConnectionEnd;
use refmcp_server::transport::pipe::{LineReader, LineWriter};
use refmcp_server::{Connection, Server};
use tokio::io::{DuplexStream, split};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::{MemoryReader, MemoryWriter, TestClient, all_capabilities};

/// The longest message that is read here.
const MAX_LINE: usize = 64 << 20;

/// A server at one end of a pipe and a client at the other.
#[derive(Debug)]
pub struct Pair {
    /// The client, which has not said anything yet.
    pub client: TestClient,
    /// Tells the server to stop.
    pub stop: CancellationToken,
    /// The server's end of the conversation, and how it ended.
    pub served: JoinHandle<io::Result<ConnectionEnd>>,
}

impl Pair {
    /// A server and a client without authentication.
    pub fn new(server: &Server) -> Self {
        Self::with(server, Connection { transport: "memory", ..Connection::default() }, 64 << 10)
    }

    /// A server and the client of a principal.
    pub fn of(server: &Server, principal: &str) -> Self {
        let principal = Some(principal.into());
        Self::with(server, Connection { transport: "memory", principal, ..Connection::default() }, 64 << 10)
    }

    /// A server and a client whose pipe holds no more than so many bytes in either direction.
    pub fn with(server: &Server, connection: Connection, width: usize) -> Self {
        let (near, far) = tokio::io::duplex(width);
        let (server, stop) = (server.clone(), CancellationToken::new());
        let stopped = stop.clone();
        let served = tokio::spawn(async move { server.serve(ends(near), connection, stopped).await });
        Self { client: TestClient::over(ends(far)), stop, served }
    }

    /// The same, with a client of this revision that can be asked everything.
    pub async fn start(mut self, revision: Revision) -> Self {
        self.client.start(revision, all_capabilities()).await;
        self
    }
}

/// A stream as a pipe of lines.
fn ends(stream: DuplexStream) -> (MemoryReader, MemoryWriter) {
    let (read, write) = split(stream);
    (LineReader::new(read, MAX_LINE), LineWriter::new(write))
}

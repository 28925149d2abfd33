//! Servers to check.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use refmcp_check::{CheckReport, Checker, Options, Target};
use refmcp_client::http::HttpSettings;
use refmcp_client::memory::Memory;
use refmcp_client::transport::{Connecting, Connector, MessageSink};
use refmcp_http::Endpoint;
use refmcp_server::Server;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A server in this process, of which each connection gets a pipe of its own.
pub(crate) struct InMemory(pub(crate) Server);

impl std::fmt::Debug for InMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InMemory")
    }
}

impl Connector for InMemory {
    fn connect(&self, sink: Arc<dyn MessageSink>) -> Connecting<'_> {
        let pipe = self.0.in_memory();
        Box::pin(async move { Memory::new(pipe).connect(sink).await })
    }

    fn name(&self) -> String {
        "own".to_owned()
    }

    fn transport(&self) -> &'static str {
        "stdio"
    }
}

/// Our own server.
pub(crate) fn reference() -> Server {
    refmcp_reference::server(refmcp_reference::Options::default()).unwrap()
}

/// Serves a server on a port of this machine, until the test ends.
pub(crate) async fn listen(server: Server) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let endpoint = Endpoint::builder(server).build();
    tokio::spawn(async move {
        endpoint.serve(listener, CancellationToken::new(), Duration::from_secs(1)).await;
    });
    address
}

pub(crate) fn http(address: SocketAddr) -> Target {
    Target::http(&format!("http://{address}/mcp"), HttpSettings::default(), Vec::new()).unwrap()
}

pub(crate) async fn check(target: Target) -> CheckReport {
    let mut options = Options::default();
    // Other tests keep the machine busy.
    options.timeout = Duration::from_secs(30);
    Checker::new(target, options).run(|_| {}).await
}

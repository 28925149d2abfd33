//! Health, readiness and metrics on a listener of their own, and what is left of them on the public one.

use std::net::SocketAddr;

use refmcp_http::{Endpoint, OpsRoutes, Options};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::{PATIENCE, Site, opening, request};
use crate::tools;
use crate::wire::{Reply, send, send_raw};

const PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// An endpoint whose operators have a listener of their own.
struct Operated {
    site: Site,
    ops: SocketAddr,
    stop_ops: CancellationToken,
    ops_served: JoinHandle<()>,
}

impl Operated {
    async fn open(ops: OpsRoutes) -> Self {
        let endpoint =
            Endpoint::builder(tools::server().0).options(Options { ops, ..Options::default() }).build();
        let bind = async || TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (public, private) = (bind().await, bind().await);
        let (address, ops) = (public.local_addr().unwrap(), private.local_addr().unwrap());
        let (stop, stop_ops) = (CancellationToken::new(), CancellationToken::new());
        let (told, told_ops) = (stop.clone(), stop_ops.clone());
        let of_ops = endpoint.clone();
        let ops_served = tokio::spawn(async move { of_ops.serve_ops(private, told_ops).await });
        let served = tokio::spawn(async move { endpoint.serve(public, told, PATIENCE).await });
        let mut site = Site::found(address, served);
        site.stop = stop;
        Self { site, ops, stop_ops, ops_served }
    }

    async fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Reply {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let headers: Vec<_> = headers.iter().map(owned).collect();
        send(self.ops, method, path, &headers, b"").await
    }
}

#[tokio::test]
async fn they_are_on_their_own_listener_and_nowhere_else() {
    let operated = Operated::open(OpsRoutes::Separate).await;
    operated.site.serves().await;
    for path in PATHS {
        assert_eq!(operated.site.send("GET", path, &[], b"").await.status, 404, "{path}");
        assert_eq!(operated.ask("GET", path, &[]).await.status, 200, "{path}");
        assert_eq!(operated.ask("HEAD", path, &[]).await.status, 200, "{path}");
        let wrong = operated.ask("POST", path, &[]).await;
        assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET, HEAD")), "{path}");
        for stranger in [("Host", "evil.com"), ("Origin", "https://evil.com")] {
            assert_eq!(operated.ask("GET", path, &[stranger]).await.status, 403, "{path} {stranger:?}");
        }
    }
    let initialize = request("initialize", opening("2025-11-25")).to_string();
    for path in ["/mcp", "/sse", "/messages", "/mcp/ws", "/", "/.well-known/oauth-protected-resource"] {
        assert_eq!(send(operated.ops, "POST", path, &[], initialize.as_bytes()).await.status, 404, "{path}");
    }
    let page = operated.ask("GET", "/metrics", &[]).await.text().await;
    assert!(page.contains("\nrefmcp_sessions_opened_total 1\n"), "{page}");
    assert!(page.contains("\nrefmcp_connections 0\n"), "an operator's connection is none of a client's");
}

#[tokio::test]
async fn they_can_be_on_both() {
    let operated = Operated::open(OpsRoutes::Public).await;
    for path in PATHS {
        assert_eq!(operated.site.send("GET", path, &[], b"").await.status, 200, "{path}");
        assert_eq!(operated.ask("GET", path, &[]).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn operators_hear_until_the_end_that_the_server_stops() {
    let operated = Operated::open(OpsRoutes::Separate).await;
    operated.site.stop.cancel();
    operated.site.served.await.unwrap();
    let reply = send(operated.ops, "GET", "/readyz", &[], b"").await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("10")));
    assert_eq!(send(operated.ops, "GET", "/healthz", &[], b"").await.status, 200);
    operated.stop_ops.cancel();
    operated.ops_served.await.unwrap();
    assert!(tokio::net::TcpStream::connect(operated.ops).await.is_err());
}

#[tokio::test]
async fn bad_input_harms_nobody() {
    let operated = Operated::open(OpsRoutes::Separate).await;
    let mut silent = Vec::new();
    for _ in 0..60 {
        silent.push(tokio::net::TcpStream::connect(operated.ops).await.unwrap());
    }
    for bytes in
        [&b"\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0xFF; 100], b"GET / HTTP/1.1\r\n\r\n"]
    {
        let status = send_raw(operated.ops, bytes).await.map(|reply| reply.status);
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{status:?}");
    }
    assert_eq!(operated.ask("GET", "/healthz", &[]).await.status, 200, "others are silent");
    drop(silent);
}

//! Health, readiness and metrics on the operators' listener, and on the public one.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;
use refmcp_http::{Endpoint, OpsRoutes, Options};
use refmcp_testkit::paused::PausedTime;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::http1::{Reply, send, send_raw};
use crate::support::tools;
use crate::support::{SHUTDOWN_TIMEOUT, Site, initialize_params, request};

const PATHS: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// An endpoint with an operators' listener.
struct OpsSite {
    site: Site,
    ops: SocketAddr,
    stop_ops: CancellationToken,
    ops_served: JoinHandle<()>,
}

impl OpsSite {
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
        let served = tokio::spawn(async move { endpoint.serve(public, told, SHUTDOWN_TIMEOUT).await });
        let mut site = Site::served_by(address, served);
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
async fn separate_ops_routes_are_only_on_their_listener() {
    let operated = OpsSite::open(OpsRoutes::Separate).await;
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
    let initialize = request("initialize", initialize_params("2025-11-25")).to_string();
    for path in ["/mcp", "/sse", "/messages", "/mcp/ws", "/", "/.well-known/oauth-protected-resource"] {
        assert_eq!(send(operated.ops, "POST", path, &[], initialize.as_bytes()).await.status, 404, "{path}");
    }
    let page = operated.ask("GET", "/metrics", &[]).await.text().await;
    assert!(page.contains("\nrefmcp_sessions_opened_total 1\n"), "{page}");
    assert!(page.contains("\nrefmcp_connections 0\n"), "an operator's connection is none of a client's");
}

#[tokio::test]
async fn public_ops_routes_are_on_both_listeners() {
    let operated = OpsSite::open(OpsRoutes::Public).await;
    for path in PATHS {
        assert_eq!(operated.site.send("GET", path, &[], b"").await.status, 200, "{path}");
        assert_eq!(operated.ask("GET", path, &[]).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn readyz_is_served_until_the_end() {
    let operated = OpsSite::open(OpsRoutes::Separate).await;
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
async fn malformed_requests_harm_no_other() {
    let time = PausedTime::start();
    let operated = OpsSite::open(OpsRoutes::Separate).await;
    let mut silent = Vec::new();
    for _ in 0..60 {
        silent.push(tokio::net::TcpStream::connect(operated.ops).await.unwrap());
    }
    let malformed =
        [&b"\r\n\r\n"[..], b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0xFF; 100], b"GET / HTTP/1.1\r\n\r\n"];
    // Longer than a head may take.
    let (replies, ()) = tokio::join!(
        join_all(malformed.map(|bytes| send_raw(operated.ops, bytes))),
        time.advance(Duration::from_secs(6))
    );
    for status in replies.into_iter().map(|reply| reply.map(|reply| reply.status)) {
        assert!(status.is_none_or(|status| (400..500).contains(&status)), "{status:?}");
    }
    assert_eq!(operated.ask("GET", "/healthz", &[]).await.status, 200, "others are silent");
    drop(silent);
}

//! Serving on a Unix socket.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use refmcp_http::{Endpoint, Options, Rate, Shutdown, TrustedProxy, UnixSocket, UnixSocketError};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::http2::Peer;
use crate::support::SHUTDOWN_TIMEOUT;
use crate::support::tools;

const DEADLINE: Duration = Duration::from_secs(10);

/// An endpoint on a Unix socket in a temporary folder.
struct UnixSite {
    folder: TempDir,
    shutdown: Shutdown,
    served: tokio::task::JoinHandle<()>,
}

impl UnixSite {
    async fn open(options: Options) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixSocket::bind(folder.path().join("s"), 0o600).await.unwrap();
        let (endpoint, shutdown) =
            (Endpoint::builder(tools::server().0).options(options).build(), Shutdown::new(SHUTDOWN_TIMEOUT));
        let told = shutdown.clone();
        let served = tokio::spawn(async move { endpoint.serve_with_shutdown(socket, &told).await });
        Self { folder, shutdown, served }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("s")
    }

    /// The whole response to a request with these lines in its head.
    async fn get(&self, path: &str, lines: &str) -> String {
        get(&self.path(), path, lines).await
    }
}

async fn get(socket: &Path, path: &str, lines: &str) -> String {
    let mut stream = UnixStream::connect(socket).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut heard = String::new();
    timeout(DEADLINE, stream.read_to_string(&mut heard)).await.expect("in time").unwrap();
    heard
}

#[tokio::test]
async fn the_socket_file_is_removed_with_the_server() {
    let near = UnixSite::open(Options::default()).await;
    let heard = near.get("/healthz", "Host: localhost\r\n").await;
    assert!(heard.starts_with("HTTP/1.1 200 OK") && heard.ends_with("alive\n"), "{heard}");
    assert_eq!(fs::metadata(near.path()).unwrap().permissions().mode() & 0o777, 0o600);
    // Both versions of HTTP are told apart here as well.
    let stream = UnixStream::connect(near.path()).await.unwrap();
    Peer::on(stream, &h2::client::Builder::new(), "http://localhost").await.is_served().await;
    near.shutdown.trigger();
    timeout(DEADLINE, near.served).await.expect("it ends").unwrap();
    assert!(!near.folder.path().join("s").exists());
}

#[tokio::test]
async fn hosts_are_checked_on_a_unix_socket() {
    let near = UnixSite::open(Options { hosts: vec!["mcp.example".to_owned()], ..Options::default() }).await;
    for (lines, status) in [
        ("Host: localhost\r\n", "200"),
        ("Host: mcp.example\r\n", "200"),
        ("Host: evil.example\r\n", "403"),
        ("Host: localhost\r\nOrigin: https://evil.example\r\n", "403"),
        ("", "403"),
    ] {
        let heard = near.get("/healthz", lines).await;
        assert!(heard.starts_with(&format!("HTTP/1.1 {status} ")), "{lines:?} {heard}");
    }
}

#[tokio::test]
async fn forwarding_headers_need_a_trusted_unix_socket() {
    let rate = Some(Rate { per_second: 1, burst: 3 });
    let limited = |trusted: &[TrustedProxy], rate_on_loopback| Options {
        rate,
        rate_on_loopback,
        trusted_proxies: trusted.to_vec(),
        ..Options::default()
    };
    for (options, same, different) in [
        (limited(&[], false), true, true),
        (limited(&[], true), false, false),
        (limited(&[TrustedProxy::UNIX], false), false, true),
    ] {
        let near = UnixSite::open(options.clone()).await;
        for (alike, all) in [(false, different), (true, same)] {
            let mut served = 0;
            for turn in 0..12 {
                let client = if alike { 200 } else { turn };
                let lines = format!("Host: localhost\r\nX-Forwarded-For: 203.0.113.{client}\r\n");
                served += usize::from(near.get("/healthz", &lines).await.starts_with("HTTP/1.1 200"));
            }
            assert_eq!(served == 12, all, "{served} alike: {alike} {:?}", options.trusted_proxies);
        }
    }
}

#[tokio::test]
async fn only_a_dead_socket_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    drop(std::os::unix::net::UnixListener::bind(at("dead")).unwrap());
    assert!(at("dead").exists());
    let first = UnixSocket::bind(at("dead"), 0o660).await.unwrap();
    assert_eq!(fs::metadata(at("dead")).unwrap().permissions().mode() & 0o777, 0o660);
    let again = UnixSocket::bind(at("dead"), 0o600).await.unwrap_err();
    assert!(matches!(again, UnixSocketError::InUse(_)), "{again}");
    assert!(again.to_string().contains("dead: another server is listening there"), "{again}");

    fs::write(at("file"), "precious").unwrap();
    let file = UnixSocket::bind(at("file"), 0o600).await.unwrap_err();
    assert!(matches!(file, UnixSocketError::NoSocket(_)), "{file}");
    assert_eq!(fs::read_to_string(at("file")).unwrap(), "precious");
    // A link to a file is not followed, either.
    std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
    assert!(matches!(UnixSocket::bind(at("link"), 0o600).await.unwrap_err(), UnixSocketError::NoSocket(_)));
    let missing = UnixSocket::bind(at("no/folder"), 0o600).await.unwrap_err();
    assert!(matches!(missing, UnixSocketError::File(..)), "{missing}");
    assert!(matches!(UnixSocket::bind(at(&"x".repeat(200)), 0o600).await, Err(UnixSocketError::File(..))));

    // The socket of another server in the same place is not removed.
    fs::remove_file(at("dead")).unwrap();
    let other = std::os::unix::net::UnixListener::bind(at("dead")).unwrap();
    let before = fs::metadata(at("dead")).unwrap().ino();
    drop(first);
    assert_eq!(fs::metadata(at("dead")).unwrap().ino(), before);
    drop(other);
}

#[tokio::test]
async fn of_two_servers_that_start_at_once_one_listens() {
    let folder = tempfile::tempdir().unwrap();
    for turn in 0..20 {
        let path = folder.path().join(turn.to_string());
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let (one, other) = tokio::join!(UnixSocket::bind(&path, 0o600), UnixSocket::bind(&path, 0o600));
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        assert!(UnixStream::connect(&path).await.is_ok());
    }
}

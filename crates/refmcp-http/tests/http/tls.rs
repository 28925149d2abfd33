//! TLS: both versions of HTTP by ALPN, handshakes in time, certificates that are reloaded.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use h2::client::Builder;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use refmcp_http::{Endpoint, Listener, Options, Tls, TlsError};
use refmcp_testkit::paused::PausedTime;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};
use tokio_util::sync::CancellationToken;

use crate::http2::Peer;
use crate::logs::{logged, refusals};
use crate::support::SHUTDOWN_TIMEOUT;
use crate::support::tools;

const DEADLINE: Duration = Duration::from_secs(10);

/// A certificate for `localhost` in files of its own.
struct Certificate {
    folder: TempDir,
}

impl Certificate {
    fn new() -> Self {
        let certificate = Self { folder: tempfile::tempdir().unwrap() };
        certificate.renew();
        certificate
    }

    /// Puts another one into the files.
    fn renew(&self) {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(self.chain(), cert.pem()).unwrap();
        fs::write(self.key(), signing_key.serialize_pem()).unwrap();
    }

    fn chain(&self) -> PathBuf {
        self.folder.path().join("chain.pem")
    }

    fn key(&self) -> PathBuf {
        self.folder.path().join("key.pem")
    }
}

/// An endpoint over TLS, and its certificate.
struct Secure {
    address: std::net::SocketAddr,
    certificate: Certificate,
    tls: Tls,
    _stop: tokio_util::sync::DropGuard,
}

impl Secure {
    async fn open(options: Options) -> Self {
        let certificate = Certificate::new();
        let tls = Tls::from_files(&certificate.chain(), &certificate.key()).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let endpoint = Endpoint::builder(tools::server().0).options(options).build();
        let stop = CancellationToken::new();
        let (told, listener) = (stop.clone(), Listener::tls(listener, tls.clone()));
        tokio::spawn(async move { endpoint.serve(listener, told, SHUTDOWN_TIMEOUT).await });
        Self { address, certificate, tls, _stop: stop.drop_guard() }
    }

    /// Connects, offering these protocols.
    async fn connect(&self, protocols: &[&str]) -> TlsStream<TcpStream> {
        let chain = fs::read(self.certificate.chain()).unwrap();
        self.connect_trusting(&chain, protocols).await.unwrap()
    }

    /// Waits until this many connections were refused for a reason.
    async fn until_rejected(&self, reason: &str, number: usize) {
        let wanted = format!("refmcp_rejections_total{{reason=\"{reason}\"}} {number}\n");
        let asking = async {
            loop {
                let mut stream = self.connect(&["http/1.1"]).await;
                let asks = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                stream.write_all(asks).await.unwrap();
                let mut heard = Vec::new();
                stream.read_to_end(&mut heard).await.unwrap();
                if String::from_utf8_lossy(&heard).contains(&wanted) {
                    return;
                }
            }
        };
        timeout(DEADLINE, asking).await.expect("they are counted");
    }

    /// The same for a client that trusts this certificate alone.
    async fn connect_trusting(
        &self,
        chain: &[u8],
        protocols: &[&str],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut trusted = RootCertStore::empty();
        trusted.add(PemObject::from_pem_slice(chain).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(trusted).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let socket = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, socket).await
    }

    /// Asks over HTTP/1.1; gives the whole response.
    async fn ask(&self, protocols: &[&str], host: &str) -> String {
        let mut stream = self.connect(protocols).await;
        let asks = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(asks.as_bytes()).await.unwrap();
        let mut heard = String::new();
        timeout(DEADLINE, stream.read_to_string(&mut heard)).await.expect("in time").unwrap();
        heard
    }

    async fn serves(&self) {
        assert!(self.ask(&["http/1.1"], "localhost").await.starts_with("HTTP/1.1 200 OK"));
    }
}

#[tokio::test]
async fn the_client_chooses_the_version() {
    let site = Secure::open(Options::default()).await;
    for protocols in [&["http/1.1"][..], &[]] {
        let heard = site.ask(protocols, "localhost").await;
        assert!(heard.starts_with("HTTP/1.1 200 OK") && heard.ends_with("alive\n"), "{heard}");
    }
    assert!(site.ask(&["http/1.1"], "evil.com").await.starts_with("HTTP/1.1 403 "));
    for protocols in [&["h2"][..], &["h2", "http/1.1"]] {
        let stream = site.connect(protocols).await;
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let peer = Peer::on(stream, &Builder::new(), "https://localhost").await;
        peer.is_served().await;
        assert_eq!(peer.status("GET", "https://evil.com/healthz", &[]).await, 403);
    }
}

#[tokio::test]
async fn a_client_without_a_handshake_is_disconnected() {
    let site = Secure::open(Options { head_timeout: Duration::from_millis(500), ..Options::default() }).await;
    for (what, sent) in [
        ("plain HTTP", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        ("plain HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("nonsense", vec![0xff; 10_000]),
        ("a record without end", vec![0x16, 3, 1, 0x40, 0]),
        ("one byte", vec![0x16]),
        ("nothing", Vec::new()),
    ] {
        let mut socket = TcpStream::connect(site.address).await.unwrap();
        socket.write_all(&sent).await.unwrap();
        let mut heard = Vec::new();
        let _ = timeout(DEADLINE, socket.read_to_end(&mut heard)).await.expect(what);
        assert!(!heard.starts_with(b"HTTP/"), "{what}");
        site.serves().await;
    }
    // A client that sends nothing after the handshake is disconnected too.
    let mut silent = site.connect(&["http/1.1"]).await;
    let _ = timeout(DEADLINE, silent.read_to_end(&mut Vec::new())).await.expect("it is closed");
    site.serves().await;
}

#[tokio::test(flavor = "current_thread")]
async fn failed_handshakes_are_logged() {
    let log = logged("info", async |_| {
        let site = Secure::open(Options::default()).await;
        let mut plain = TcpStream::connect(site.address).await.unwrap();
        plain.write_all(b"GET /the-secret HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let _ = plain.read_to_end(&mut Vec::new()).await;
        let other = Secure::open(Options::default()).await;
        let chain = fs::read(other.certificate.chain()).unwrap();
        assert!(site.connect_trusting(&chain, &[]).await.is_err());
        // The server is told of it by an alert, which may arrive a little later.
        site.until_rejected("handshake", 2).await;
        // A client that only connects is not refused; one that leaves in the middle is.
        drop(TcpStream::connect(site.address).await.unwrap());
        let mut leaves = TcpStream::connect(site.address).await.unwrap();
        leaves.write_all(&[0x16, 3, 1, 0x40, 0]).await.unwrap();
        drop(leaves);
        site.until_rejected("handshake", 3).await;
    })
    .await;
    let refused = refusals(&log);
    assert_eq!(refused.len(), 3, "{log}");
    assert!(refused[2].contains("the client left during the TLS handshake"), "{log}");
    assert!(refused.iter().all(|line| line.contains("reason=\"handshake\"")), "{log}");
    assert!(refused[0].contains("plain HTTP, where TLS is served"), "{log}");
    assert!(!log.contains("status=") && !log.contains("the-secret"), "{log}");
}

#[tokio::test(flavor = "current_thread")]
async fn handshakes_that_take_too_long_are_logged() {
    let log = logged("info", async |_| {
        let time = PausedTime::start();
        let options = Options { head_timeout: Duration::from_secs(5), ..Options::default() };
        let site = Secure::open(options).await;
        let mut sockets = Vec::new();
        for sent in [&b""[..], &[0x16], &[0x16, 3, 1, 0x40, 0]] {
            let mut socket = TcpStream::connect(site.address).await.unwrap();
            socket.write_all(sent).await.unwrap();
            sockets.push(socket);
        }
        time.advance(Duration::from_secs(6)).await;
        drop(time);
        site.until_rejected("handshake", 3).await;
    })
    .await;
    let refused = refusals(&log);
    assert_eq!(refused.len(), 3, "{log}");
    let late = |line: &&str| line.contains("reason=\"handshake\" why=\"the TLS handshake took too long\"");
    assert!(refused.iter().all(late), "{log}");
}

#[tokio::test]
async fn new_connections_get_a_reloaded_certificate() {
    let site = Secure::open(Options::default()).await;
    let old = fs::read(site.certificate.chain()).unwrap();
    let mut open = site.connect(&["http/1.1"]).await;
    let older = site.tls.only_http1();
    site.certificate.renew();
    site.connect_trusting(&old, &[]).await.expect("files alone change nothing");
    // Any of the clones will do, also one for another listener.
    older.reload().unwrap();
    site.serves().await;
    assert!(site.connect_trusting(&old, &[]).await.is_err());
    open.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut heard = String::new();
    timeout(DEADLINE, open.read_to_string(&mut heard)).await.expect("in time").unwrap();
    assert!(heard.starts_with("HTTP/1.1 200 OK"), "connections that are open stay so: {heard}");
}

#[tokio::test]
async fn files_that_cannot_be_used_change_nothing() {
    let site = Secure::open(Options::default()).await;
    let good = fs::read(site.certificate.chain()).unwrap();
    let serves = async || drop(site.connect_trusting(&good, &["h2"]).await.unwrap());
    for broken in ["", "nonsense"] {
        fs::write(site.certificate.chain(), broken).unwrap();
        assert!(matches!(site.tls.reload(), Err(TlsError::Certificate(..))));
        serves().await;
    }
    // Between the writing of the one file and of the other they do not belong together.
    site.certificate.renew();
    fs::write(site.certificate.chain(), &good).unwrap();
    assert!(matches!(site.tls.reload(), Err(TlsError::Pair(_))));
    serves().await;
    fs::remove_file(site.certificate.key()).unwrap();
    assert!(matches!(site.tls.reload(), Err(TlsError::File(..))));
    serves().await;
    // A pipe in place of a file would block, and a device has no end.
    #[cfg(unix)]
    for make in [&["mkfifo"][..], &["ln", "-s", "/dev/zero"]] {
        let made = std::process::Command::new(make[0]).args(&make[1..]).arg(site.certificate.key()).status();
        assert!(made.unwrap().success());
        assert!(matches!(site.tls.reload(), Err(TlsError::File(..))));
        serves().await;
        fs::remove_file(site.certificate.key()).unwrap();
    }
    site.certificate.renew();
    site.tls.reload().unwrap();
    site.serves().await;
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let (good, other) = (Certificate::new(), Certificate::new());
    let write = |name: &str, text: &str| {
        let path = good.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let missing = good.folder.path().join("missing.pem");
    let (empty, nonsense) = (write("empty.pem", ""), write("nonsense.pem", "nonsense"));
    let broken = "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n";
    let broken = write("broken.pem", broken);
    let why = |chain: &Path, key: &Path| Tls::from_files(chain, key).unwrap_err();
    for (chain, key, named) in [
        (&missing, &good.key(), &missing),
        (&good.chain(), &missing, &missing),
        (&empty, &good.key(), &empty),
        (&nonsense, &good.key(), &nonsense),
        (&broken, &good.key(), &broken),
        (&good.key(), &good.key(), &good.key()),
        (&good.chain(), &empty, &empty),
        (&good.chain(), &good.chain(), &good.chain()),
    ] {
        let why = why(chain, key).to_string();
        assert!(why.contains(&*named.to_string_lossy()), "{why}");
    }
    assert!(matches!(why(&missing, &good.key()), TlsError::File(..)));
    assert!(matches!(why(&empty, &good.key()), TlsError::Certificate(..)));
    assert!(matches!(why(&good.chain(), &empty), TlsError::Key(..)));
    assert!(matches!(why(&good.chain(), &other.key()), TlsError::Pair(_)), "of another certificate");
}

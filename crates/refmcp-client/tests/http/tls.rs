//! TLS with a certificate of our own, and HTTP/2 inside of it.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{BasicConstraints, CertificateParams, CertifiedKey, IsCa, KeyPair, generate_simple_self_signed};
use refmcp_client::http::{HttpSettings, StreamableHttp};
use refmcp_proto::engine::client::{ExchangeId, TransportError};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::messages::{ALONE, connect, progress, request, result};
use crate::raw_server::in_time;

/// A body whose pieces come from elsewhere.
struct Pieces(mpsc::Receiver<Bytes>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// A request to the server, and where the pieces of the response go.
struct Asked {
    head: Request<()>,
    answer: mpsc::Sender<Bytes>,
}

/// A server over TLS; every response is a stream of events.
struct Secure {
    address: SocketAddr,
    certificate: Vec<u8>,
    connections: Arc<AtomicUsize>,
    asked: mpsc::Receiver<Asked>,
}

impl Secure {
    async fn start(name: &str, protocols: &[&str]) -> Self {
        Self::start_with(generate_simple_self_signed([name.to_owned()]).unwrap(), protocols).await
    }

    async fn start_with(certified: CertifiedKey<KeyPair>, protocols: &[&str]) -> Self {
        let CertifiedKey { cert, signing_key } = certified;
        let key = PrivateKeyDer::Pkcs8(signing_key.serialize_der().into());
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = config.with_single_cert(vec![cert.der().clone()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = Arc::new(AtomicUsize::new(0));
        let (asks, asked) = mpsc::channel(10);
        tokio::spawn(serve(listener, TlsAcceptor::from(Arc::new(config)), connections.clone(), asks));
        Self { address, certificate: cert.der().to_vec(), connections, asked }
    }

    fn connector(&self) -> StreamableHttp {
        let mut settings = HttpSettings::default();
        settings.ca_certificates = vec![self.certificate.clone()];
        let address = self.address;
        settings.resolver = Some(Arc::new(move |_, _| Ok(vec![address])));
        StreamableHttp::new("https://secure.test/mcp").unwrap().settings(settings)
    }

    async fn next(&mut self) -> Asked {
        in_time("a request", self.asked.recv()).await.unwrap()
    }
}

async fn serve(
    listener: TcpListener,
    acceptor: TlsAcceptor,
    connections: Arc<AtomicUsize>,
    asks: mpsc::Sender<Asked>,
) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (acceptor, asks, connections) = (acceptor.clone(), asks.clone(), connections.clone());
        tokio::spawn(async move {
            // Clients that do not trust the certificate leave, as the tests want it.
            let Ok(stream) = acceptor.accept(stream).await else { return };
            connections.fetch_add(1, Ordering::SeqCst);
            let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
            let service = service_fn(move |request: Request<Incoming>| {
                let asks = asks.clone();
                async move {
                    let (answer, pieces) = mpsc::channel(10);
                    let head = request.map(|_| ());
                    asks.send(Asked { head, answer }).await.unwrap();
                    let response = Response::builder().header("content-type", "text/event-stream");
                    Ok::<_, Infallible>(response.body(Pieces(pieces)).unwrap())
                }
            });
            let io = TokioIo::new(stream);
            // How a connection ends is not what is tested here.
            let _ended = if http2 {
                let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                builder.serve_connection(io, service).await
            } else {
                hyper::server::conn::http1::Builder::new().serve_connection(io, service).await
            };
        });
    }
}

fn piece(json: &str) -> Bytes {
    format!("data: {json}\n\n").into()
}

#[tokio::test]
async fn one_connection_carries_every_request_where_both_know_http2() {
    let mut server = Secure::start("secure.test", &["h2", "http/1.1"]).await;
    let (transport, mut sink) = connect(&server.connector()).await;
    let mut open = Vec::new();
    for number in 0..5 {
        transport.clone().send(request(number, "ping", ALONE));
    }
    for _ in 0..5 {
        let asked = server.next().await;
        assert_eq!(asked.head.version(), Version::HTTP_2);
        assert_eq!(asked.head.uri(), "https://secure.test/mcp");
        assert!(!asked.head.headers().contains_key("host"));
        asked.answer.send(piece(&progress(1))).await.unwrap();
        open.push(asked.answer);
        assert_eq!(sink.message().await.1, progress(1));
    }
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
    drop(transport);
    for answer in open {
        in_time("everything to end with the transport", answer.closed()).await;
    }
}

#[tokio::test]
async fn an_abandoned_request_ends_its_stream_and_no_other() {
    let mut server = Secure::start("secure.test", &["h2"]).await;
    let (transport, mut sink) = connect(&server.connector()).await;
    transport.clone().send(request(1, "tools/call", ALONE));
    let first = server.next().await;
    transport.clone().send(request(2, "tools/call", ALONE));
    let second = server.next().await;
    transport.abandon(ExchangeId(1));
    in_time("the stream to end", first.answer.closed()).await;
    second.answer.send(piece(&result(2))).await.unwrap();
    assert_eq!(sink.message().await, (Some(2), result(2)));
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_older_version_is_spoken_with_those_who_know_no_other() {
    for protocols in [&["http/1.1"][..], &[]] {
        let mut server = Secure::start("secure.test", protocols).await;
        let (transport, mut sink) = connect(&server.connector()).await;
        for number in 0..3 {
            transport.clone().send(request(number, "ping", ALONE));
            let asked = server.next().await;
            assert_eq!(asked.head.version(), Version::HTTP_11);
            assert_eq!(asked.head.headers()["host"], "secure.test");
            asked.answer.send(piece(&result(number))).await.unwrap();
            drop(asked);
            assert_eq!(sink.message().await, (Some(number), result(number)));
        }
    }
}

#[tokio::test]
async fn an_untrusted_certificate_is_refused() {
    let server = Secure::start("secure.test", &["h2"]).await;
    let stranger = Secure::start("secure.test", &["h2"]).await;
    let mut settings = HttpSettings::default();
    settings.ca_certificates = vec![server.certificate.clone()];
    let address = stranger.address;
    settings.resolver = Some(Arc::new(move |_, _| Ok(vec![address])));
    let (transport, mut sink) = connect(&stranger.connector().settings(settings)).await;
    transport.clone().send(request(1, "ping", ALONE));
    let (_, why) = sink.ended().await;
    assert!(matches!(&why, TransportError::Unreachable(why) if why.contains("TLS")), "{why:?}");
    let misnamed = Secure::start("other.test", &["h2"]).await;
    let (transport, mut sink) = connect(&misnamed.connector()).await;
    transport.clone().send(request(1, "ping", ALONE));
    let (_, why) = sink.ended().await;
    assert!(matches!(&why, TransportError::Unreachable(why) if why.contains("TLS")), "{why:?}");
}

#[tokio::test]
async fn what_is_no_certificate_cannot_be_trusted() {
    let server = Secure::start("secure.test", &[]).await;
    let mut settings = HttpSettings::default();
    settings.ca_certificates = vec![b"nonsense".to_vec()];
    let address = server.address;
    settings.resolver = Some(Arc::new(move |_, _| Ok(vec![address])));
    let (transport, mut sink) = connect(&server.connector().settings(settings)).await;
    transport.clone().send(request(1, "ping", ALONE));
    let (_, why) = sink.ended().await;
    assert!(
        matches!(&why, TransportError::Unreachable(why) if why.contains("given to be trusted")),
        "{why:?}"
    );
}

/// A certificate that is its own authority, as `openssl req -x509` makes it.
fn own_authority(name: &str, change: impl FnOnce(&mut CertificateParams)) -> CertifiedKey<KeyPair> {
    let mut params = CertificateParams::new([name.to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    change(&mut params);
    let signing_key = KeyPair::generate().unwrap();
    CertifiedKey { cert: params.self_signed(&signing_key).unwrap(), signing_key }
}

#[tokio::test]
async fn an_authority_that_was_given_may_be_the_server() {
    let mut server = Secure::start_with(own_authority("secure.test", |_| {}), &["http/1.1"]).await;
    let (transport, mut sink) = connect(&server.connector()).await;
    transport.clone().send(request(1, "ping", ALONE));
    let asked = server.next().await;
    asked.answer.send(piece(&result(1))).await.unwrap();
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

#[tokio::test]
async fn an_authority_that_was_given_is_trusted_in_its_own_name_and_time() {
    let expired = own_authority("secure.test", |params| params.not_after = rcgen::date_time_ymd(2020, 1, 1));
    for certified in [own_authority("other.test", |_| {}), expired] {
        let server = Secure::start_with(certified, &["http/1.1"]).await;
        let (transport, mut sink) = connect(&server.connector()).await;
        transport.clone().send(request(1, "ping", ALONE));
        let (_, why) = sink.ended().await;
        assert!(matches!(&why, TransportError::Unreachable(why) if why.contains("TLS")), "{why:?}");
    }
    // Another authority of the same name is a stranger.
    let server = Secure::start_with(own_authority("secure.test", |_| {}), &["http/1.1"]).await;
    let mut stranger = Secure::start_with(own_authority("secure.test", |_| {}), &["http/1.1"]).await;
    stranger.certificate = server.certificate.clone();
    let (transport, mut sink) = connect(&stranger.connector()).await;
    transport.clone().send(request(1, "ping", ALONE));
    let (_, why) = sink.ended().await;
    assert!(matches!(&why, TransportError::Unreachable(why) if why.contains("not trusted here")), "{why:?}");
}

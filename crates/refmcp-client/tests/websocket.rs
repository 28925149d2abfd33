//! Servers over WebSocket, good and bad.
#![cfg(feature = "websocket")]

#[path = "support/recording_sink.rs"]
mod recording_sink;

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use refmcp_client::http::HttpSettings;
use refmcp_client::transport::{Connector, Transport};
use refmcp_client::websocket::WebSocket;
use refmcp_proto::engine::client::TransportError;
use refmcp_testkit::paused::PausedTime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::{WebSocketStream, accept_async};

use recording_sink::{LONG, RecordingSink, SinkEvent, outgoing};

async fn connect(socket: &WebSocket) -> Result<(Arc<dyn Transport>, RecordingSink), TransportError> {
    let (sink, recorded) = RecordingSink::new();
    let transport = timeout(LONG, socket.connect(sink)).await.expect("an answer in time")?;
    Ok((transport, recorded))
}

/// A place to listen at, and how to get there.
async fn listen() -> (TcpListener, WebSocket) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("ws://{}/mcp?key=1", listener.local_addr().unwrap());
    (listener, WebSocket::new(&url).unwrap())
}

/// Connects to a server that behaves.
async fn open(
    socket: impl FnOnce(WebSocket) -> WebSocket,
) -> (Arc<dyn Transport>, RecordingSink, WebSocketStream<TcpStream>) {
    let (listener, to) = listen().await;
    let to = socket(to);
    let accepting = async { accept_async(listener.accept().await.unwrap().0).await.unwrap() };
    let (connected, server) = tokio::join!(connect(&to), accepting);
    let (transport, sink) = connected.unwrap();
    (transport, sink, server)
}

#[tokio::test]
async fn messages_go_both_ways_in_order() {
    let (transport, mut sink, mut server) = open(|socket| socket).await;
    let sending = async {
        for n in 0..500 {
            transport.clone().send(outgoing(format!("{{\"n\":{n}}}")));
        }
    };
    let echoing = async {
        for n in 0..500 {
            let message = server.next().await.unwrap().unwrap();
            assert_eq!(message, Message::Text(format!("{{\"n\":{n}}}").into()));
            server.send(message).await.unwrap();
        }
    };
    tokio::join!(sending, echoing);
    for n in 0..500 {
        assert_eq!(sink.next().await, SinkEvent::Message(None, format!("{{\"n\":{n}}}")));
    }
    let farewell = async { server.next().await.unwrap().unwrap() };
    let (said, ()) =
        tokio::join!(farewell, async { timeout(LONG, transport.clone().close()).await.unwrap() });
    let Message::Close(Some(close)) = said else { panic!("a socket ends with a farewell: {said:?}") };
    assert_eq!(u16::from(close.code), 1000);
    assert_eq!(sink.next().await, SinkEvent::Closed(TransportError::Closed));
}

#[tokio::test]
async fn the_last_message_is_sent_before_the_close_frame() {
    let (transport, _sink, mut server) = open(|socket| socket).await;
    for _ in 0..100 {
        transport.clone().send(outgoing("{}"));
    }
    let counting = async {
        let mut count = 0;
        while let Some(Ok(Message::Text(_))) = server.next().await {
            count += 1;
        }
        count
    };
    let (count, ()) = tokio::join!(counting, transport.close());
    assert_eq!(count, 100);
}

#[tokio::test]
async fn the_request_says_who_asks_and_what_for() {
    let (listener, socket) = listen().await;
    let socket = socket.header("Authorization", "Bearer x").unwrap().header("User-Agent", "mine").unwrap();
    let answering = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let request = read_head(&mut stream).await;
        stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\nnot\x1bhere").await.unwrap();
        request
    };
    let (refused, request) = tokio::join!(connect(&socket), answering);
    let expected = TransportError::Refused {
        status: 404,
        error: None,
        body: "not\\u{1b}here".to_owned(),
        retry_after: None,
    };
    assert_eq!(refused.unwrap_err(), expected);
    assert!(request.starts_with("GET /mcp?key=1 HTTP/1.1\r\n"), "{request}");
    let request = request.to_ascii_lowercase();
    for line in [
        "connection: upgrade",
        "upgrade: websocket",
        "sec-websocket-version: 13",
        "sec-websocket-protocol: mcp",
        "authorization: bearer x",
        "user-agent: mine",
        &format!("host: {}", listener.local_addr().unwrap()),
    ] {
        assert_eq!(request.lines().filter(|other| *other == line).count(), 1, "{line} in {request}");
    }
    assert!(!request.contains("user-agent: refmcp"));
}

async fn read_head(stream: &mut TcpStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// What comes of an answer to the handshake; `ACCEPT` in it becomes the right key.
async fn answered(answer: &str) -> Result<(), TransportError> {
    let (listener, socket) = listen().await;
    let answering = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
        let answer = answer.replace("ACCEPT", &derive_accept_key(key.as_bytes()));
        stream.write_all(answer.as_bytes()).await.unwrap();
    };
    let (connected, ()) = tokio::join!(connect(&socket), answering);
    connected.map(drop)
}

#[tokio::test]
async fn every_answer_but_the_right_one_is_refused() {
    const UPGRADE: &str = "HTTP/1.1 101 Switching Protocols\r\nConnection: keep-alive, Upgrade\r\n";
    let good = format!("{UPGRADE}Upgrade: WebSocket\r\nSec-WebSocket-Accept: ACCEPT\r\n");
    answered(&format!("{good}\r\n")).await.unwrap();
    answered(&format!("{good}Sec-WebSocket-Protocol: mcp\r\n\r\n")).await.unwrap();
    let table = [
        (format!("{good}Sec-WebSocket-Protocol: chat\r\n\r\n"), "a subprotocol that was not offered"),
        (
            format!("{good}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"),
            "an extension that was not offered",
        ),
        (format!("{UPGRADE}Upgrade: h2c\r\nSec-WebSocket-Accept: ACCEPT\r\n\r\n"), "another protocol"),
        (
            format!("{UPGRADE}Upgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n"),
            "the key of the WebSocket is wrong",
        ),
        (format!("{UPGRADE}Upgrade: websocket\r\n\r\n"), "the key of the WebSocket is wrong"),
        ("SSH-2.0-OpenSSH_9\r\n\r\n".to_owned(), "its answer is not HTTP"),
    ];
    for (answer, expected) in table {
        match answered(&answer).await.unwrap_err() {
            TransportError::Misbehaved(why) => assert!(why.contains(expected), "{why}"),
            other => panic!("{answer}: {other}"),
        }
    }
    let challenge = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n";
    let expected = |reason: Option<&str>| TransportError::Unauthorized {
        status: 401,
        challenge: Some("Bearer".to_owned()),
        reason: reason.map(Into::into),
    };
    assert_eq!(answered(challenge).await.unwrap_err(), expected(None));
    let told = challenge.replace("0\r\n\r\n", "15\r\n\r\n{\"detail\":\"no\"}");
    assert_eq!(answered(&told).await.unwrap_err(), expected(Some("no")));
    let moved = answered("HTTP/1.1 302 Found\r\nLocation: ws://evil/\r\nContent-Length: 0\r\n\r\n").await;
    assert!(matches!(moved, Err(TransportError::Refused { status: 302, .. })), "{moved:?}");
    let ok = answered("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi").await;
    assert!(matches!(ok, Err(TransportError::Refused { status: 200, .. })), "{ok:?}");
    let silent = answered("").await;
    assert!(matches!(silent, Err(TransportError::Unreachable(_))), "{silent:?}");
}

#[tokio::test]
async fn a_refused_connection_is_unreachable() {
    let (listener, socket) = listen().await;
    let place = listener.local_addr().unwrap().to_string();
    drop(listener);
    match connect(&socket).await.unwrap_err() {
        TransportError::Unreachable(why) => assert!(why.contains(&place), "{why}"),
        other => panic!("{other}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_the_handshake_is_left() {
    let (listener, socket) = listen().await;
    let began = Instant::now();
    let (refused, _stream) = tokio::join!(socket.connect(RecordingSink::new().0), listener.accept());
    assert!(
        matches!(refused, Err(TransportError::Unreachable(why)) if why.contains("did not open the WebSocket within 60s"))
    );
    assert_eq!(began.elapsed().as_secs(), 60);
}

#[tokio::test]
async fn a_server_that_goes_away_is_noticed() {
    let (_transport, mut sink, server) = open(|socket| socket).await;
    drop(server);
    assert!(!sink.why_broken().await.is_empty());
    let (_transport, mut sink, mut server) = open(|socket| socket).await;
    server.close(None).await.unwrap();
    assert_eq!(sink.why_broken().await, "the server closed it");
}

#[tokio::test]
async fn a_server_that_answers_no_ping_is_gone() {
    let (transport, mut sink, server) = open(|socket| socket.ping_every(Duration::from_millis(50))).await;
    let why = sink.why_broken().await;
    assert_eq!(why, "no answer to a ping");
    transport.clone().send(outgoing("{}"));
    timeout(LONG, transport.close()).await.unwrap();
    drop(server);
}

#[tokio::test]
async fn a_server_that_answers_pings_may_be_silent() {
    let (_transport, mut sink, mut server) =
        open(|socket| socket.ping_every(Duration::from_millis(20))).await;
    let mut pings = 0;
    while pings < 20 {
        let frame = timeout(LONG, server.next()).await.unwrap().unwrap().unwrap();
        pings += usize::from(matches!(frame, Message::Ping(_)));
    }
    assert!(sink.is_empty(), "nothing was said, and nothing has ended");
}

#[tokio::test]
async fn a_server_that_reads_nothing_delays_a_close_for_a_bounded_time() {
    let (transport, mut sink, server) = open(|socket| socket).await;
    for _ in 0..40 {
        transport.clone().send(outgoing("x".repeat(1 << 20)));
    }
    let room = transport.ready().expect("far too much is queued");
    assert!(timeout(Duration::from_millis(100), room).await.is_err());
    let time = PausedTime::start();
    let closing = tokio::spawn(transport.clone().close());
    for _ in 0..5 {
        time.advance(Duration::from_secs(1)).await;
    }
    assert!(closing.is_finished(), "it takes five seconds at most");
    drop(time);
    assert_eq!(sink.next().await, SinkEvent::Closed(TransportError::Closed));
    drop(server);
}

#[tokio::test]
async fn a_violation_of_websocket_ends_the_connection() {
    let settings = || {
        let mut settings = HttpSettings::default();
        settings.max_message_size = 1000;
        settings
    };
    let long = Message::Text("x".repeat(1001).into());
    for (message, expected) in
        [(Message::Binary(vec![1].into()), "messages are text"), (long, "the message is too long")]
    {
        let (_transport, mut sink, mut server) = open(|socket| socket.settings(settings())).await;
        server.send(message).await.unwrap();
        assert_eq!(sink.why_broken().await, expected);
        let Some(Ok(Message::Close(Some(_)))) = server.next().await else { panic!("it is told why") };
    }
}

#[tokio::test]
async fn a_transport_that_is_dropped_closes_its_socket() {
    let (transport, _sink, mut server) = open(|socket| socket).await;
    drop(transport);
    let frame = timeout(LONG, server.next()).await.unwrap();
    assert!(matches!(frame, Some(Ok(Message::Close(_)))), "{frame:?}");
}

#[tokio::test]
async fn tls_is_spoken_to_whom_is_trusted_alone() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (listener, _) = listen().await;
    let url = format!("https://localhost:{}/", listener.local_addr().unwrap().port());
    let mut settings = HttpSettings::default();
    settings.ca_certificates = vec![certificate.to_vec()];
    let address = listener.local_addr().unwrap();
    settings.resolver = Some(Arc::new(move |_, _| Ok(vec![address])));
    let trusting = WebSocket::new(&url).unwrap().settings(settings.clone());
    let accepting = async {
        let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
        let mut server = accept_async(stream).await.unwrap();
        server.send(Message::Text("{}".into())).await.unwrap();
        server
    };
    let (connected, server) = tokio::join!(connect(&trusting), accepting);
    let (_transport, mut sink) = connected.unwrap();
    assert_eq!(sink.next().await, SinkEvent::Message(None, "{}".to_owned()));
    drop(server);
    // Another certificate is trusted, so that there is one wherever this runs.
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    settings.ca_certificates = vec![other.cert.der().to_vec()];
    let wary = WebSocket::new(&url).unwrap().settings(settings);
    let accepting = async { acceptor.accept(listener.accept().await.unwrap().0).await.is_err() };
    let (refused, failed) = tokio::join!(connect(&wary), accepting);
    assert!(matches!(refused, Err(TransportError::Unreachable(why)) if why.contains("TLS")));
    assert!(failed);
}

#[tokio::test]
async fn fragments_are_put_together_again() {
    let (listener, socket) = listen().await;
    let serving = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let head = read_head(&mut stream).await;
        let key = head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
        let accept = derive_accept_key(key.as_bytes());
        let answer = format!(
            "HTTP/1.1 101 x\r\nConnection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        // The first frames come in the same packet as the answer: not a byte of them may be lost.
        let mut bytes = answer.into_bytes();
        bytes.extend_from_slice(&[0x01, 1, b'{', 0x80, 1, b'}']);
        stream.write_all(&bytes).await.unwrap();
        WebSocketStream::from_raw_socket(stream, Role::Server, None).await
    };
    let (connected, _server) = tokio::join!(connect(&socket), serving);
    assert_eq!(connected.unwrap().1.next().await, SinkEvent::Message(None, "{}".to_owned()));
}

#[tokio::test]
async fn an_observer_sees_the_handshake_and_the_messages() {
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let (listener, to) = listen().await;
    let (sink, mut recorded, observer) = RecordingSink::observed();
    let accepting = async { accept_async(listener.accept().await.unwrap().0).await.unwrap() };
    let (transport, mut server) = tokio::join!(to.connect(sink), accepting);
    let transport = transport.unwrap();
    transport.clone().send(outgoing(ping));
    let message = server.next().await.unwrap().unwrap();
    server.send(message).await.unwrap();
    recorded.message().await;
    server.send(Message::Text("junk".into())).await.unwrap();
    recorded.message().await;
    let lines = observer.lines();
    let (sent, received) = (format!("sent {ping}"), format!("received {ping}"));
    assert_eq!(lines[1..5], ["sent GET /mcp?key=1", "received status 101", &sent, &received]);
    assert!(lines[5].starts_with("received invalid \"junk\": not JSON"), "{lines:?}");
}

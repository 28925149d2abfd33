//! The client library against `refmcp serve`: what only shows over real connections.

#![cfg(unix)]

#[path = "../support/mod.rs"]
mod support;

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use refmcp_client::http::StreamableHttp;
use refmcp_client::model::{ServerNotification, SubscriptionFilter};
use refmcp_client::transport::Connector;
use refmcp_client::websocket::WebSocket;
use refmcp_client::{
    CallError, Client, ClientBuilder, Error, Event, Host, Lifecycle, Revision, TransportError, VersionPolicy,
};
use refmcp_testkit::ports::free_port;
use serde_json::json;
use support::{Server, TEST_TIMEOUT};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A client, and what happens without being asked for.
fn builder() -> (ClientBuilder, mpsc::UnboundedReceiver<Event>) {
    let (tell, told) = mpsc::unbounded_channel();
    let host = Host::new().on_event(move |event| {
        // A test that has seen enough does not listen.
        let _ = tell.send(event.clone());
    });
    (Client::builder("test", "1").host(host), told)
}

/// Waits for a message of the server that is this one.
async fn until(told: &mut mpsc::UnboundedReceiver<Event>, is: impl Fn(&ServerNotification) -> bool) {
    let waiting = async {
        loop {
            match told.recv().await.expect("the client is gone") {
                Event::Notification(notification) if is(&notification) => return,
                _ => {}
            }
        }
    };
    timeout(TEST_TIMEOUT, waiting).await.expect("the server did not say it");
}

fn http(server: &Server) -> StreamableHttp {
    StreamableHttp::new(&format!("http://{}/mcp", server.address)).unwrap()
}

/// Starts a server on this port, and waits until it listens.
fn start_on(port: u16) -> Child {
    let mut server = Command::new(env!("CARGO_BIN_EXE_refmcp"));
    server.args(["serve", "--port", &port.to_string()]).env_remove("REFMCP_LOG");
    let server = server.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "it does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    server
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_opened_anew() {
    let port = free_port();
    let mut server = start_on(port);
    let (builder, mut told) = builder();
    let url = format!("http://127.0.0.1:{port}/mcp");
    let client = builder
        .version_policy(VersionPolicy::Legacy)
        .connect(StreamableHttp::new(&url).unwrap())
        .await
        .unwrap();
    client.ping().await.unwrap();
    server.kill().unwrap();
    server.wait().unwrap();
    let gone = client.ping().await.unwrap_err();
    assert!(matches!(gone, Error::Call(CallError::Transport(_))), "{gone}");
    let mut server = start_on(port);
    let forgotten = client.ping().await.unwrap_err();
    assert_eq!(forgotten, Error::Call(CallError::Transport(TransportError::SessionLost)));
    client.ping().await.unwrap();
    let reopened = async { while !matches!(told.recv().await.unwrap(), Event::Reopened(_)) {} };
    timeout(TEST_TIMEOUT, reopened).await.unwrap();
    client.close().await;
    server.kill().unwrap();
    server.wait().unwrap();
}

#[tokio::test]
async fn a_server_that_knows_only_the_older_transport_is_found() {
    let server = Server::start(&[]);
    let older = StreamableHttp::new(&format!("http://{}/sse", server.address)).unwrap();
    let client = builder().0.connect(older).await.unwrap();
    assert_eq!(client.server().revision.lifecycle(), Lifecycle::Handshake);
    let result = client.call_tool("sum", json!({ "a": 1, "b": 2 })).await.unwrap();
    assert_eq!(result.structured_content, Some(json!({ "total": 3 })));
    client.close().await;
}

#[tokio::test]
async fn changes_are_heard_in_every_revision() {
    let server = Server::start(&[]);
    let (uri, mut number) = ("file:///notes/todo.txt", 0);
    for revision in Revision::ALL {
        for socket in [false, true] {
            number += 1;
            let connector: Arc<dyn Connector> = match socket {
                true => Arc::new(WebSocket::new(&format!("ws://{}/mcp/ws", server.address)).unwrap()),
                false if revision == Revision::ALL[0] => continue,
                false => Arc::new(http(&server)),
            };
            let (builder, mut told) = builder();
            let client =
                builder.version_policy(VersionPolicy::Exactly(revision)).connect_to(connector).await.unwrap();
            let listening = if revision.lifecycle() == Lifecycle::PerRequest {
                let filter = SubscriptionFilter {
                    tools_list_changed: Some(true),
                    resource_subscriptions: Some(vec![uri.to_owned()]),
                    ..SubscriptionFilter::default()
                };
                let listening = tokio::spawn(client.listen(&filter).into_future());
                until(&mut told, |it| matches!(it, ServerNotification::SubscriptionsAcknowledged(_))).await;
                Some(listening)
            } else {
                client.subscribe(uri).await.unwrap();
                None
            };
            client.call_tool("touch_resource", json!({ "uri": uri })).await.unwrap();
            until(&mut told, |it| matches!(it, ServerNotification::ResourceUpdated(it) if it.uri == uri))
                .await;
            client.call_tool("add_tool", json!({ "name": format!("added{number}") })).await.unwrap();
            until(&mut told, |it| matches!(it, ServerNotification::ToolsListChanged(_))).await;
            if let Some(listening) = listening {
                listening.abort();
            }
            client.close().await;
        }
    }
}

#[tokio::test]
async fn many_calls_at_once_each_get_their_own_answer() {
    let server = Server::start(&[]);
    let socket = WebSocket::new(&format!("ws://{}/mcp/ws", server.address)).unwrap();
    let connectors: [Arc<dyn Connector>; 2] = [Arc::new(http(&server)), Arc::new(socket)];
    for connector in connectors {
        let client = builder().0.connect_to(connector).await.unwrap();
        let calls: Vec<_> = (0..300)
            .map(|number| {
                let message = format!("message {number} {}", "x".repeat(number * 10));
                let call = client.call_tool("echo", json!({ "message": message }));
                tokio::spawn(async move { (message, call.await) })
            })
            .collect();
        for call in calls {
            let (message, result) = call.await.unwrap();
            assert_eq!(result.unwrap().content[0].as_text(), Some(message.as_str()));
        }
        client.close().await;
    }
}

#[tokio::test]
async fn a_stream_that_the_server_ends_is_taken_up_again() {
    let server = Server::start(&[]);
    for revision in [Revision::ALL[1], Revision::ALL[2], Revision::ALL[3]] {
        let client = builder()
            .0
            .version_policy(VersionPolicy::Exactly(revision))
            .connect(http(&server))
            .await
            .unwrap();
        let call = client.call_tool("close_stream", json!({ "after_ms": 200 })).on_progress(|_| ());
        let result = timeout(TEST_TIMEOUT, call.into_future()).await.unwrap();
        assert!(result.is_ok(), "{revision}: {result:?}");
        client.close().await;
    }
}

//! Redirections: within the origin some, to anywhere else none.

use refmcp_client::http::StreamableHttp;
use refmcp_proto::engine::client::TransportError;

use crate::messages::{ALONE, connect, request, result};
use crate::raw_server::Server;

#[tokio::test]
async fn within_the_origin_the_request_goes_on_as_it_is() {
    let server = Server::start().await;
    let connector = StreamableHttp::new(&server.url()).unwrap().header("Authorization", "Bearer t").unwrap();
    let (transport, mut sink) = connect(&connector).await;
    transport.clone().send(request(1, "ping", ALONE));
    let (mut peer, first) = server.request().await;
    peer.respond(307, "Location: /mcp/\r\n", "").await;
    let second = peer.request().await;
    assert_eq!((second.method.as_str(), second.path.as_str()), ("POST", "/mcp/"));
    assert_eq!(second.body, first.body);
    assert_eq!(second.header("authorization"), Some("Bearer t"));
    peer.respond(308, &format!("Location: {}/elsewhere\r\n", server.origin()), "").await;
    assert_eq!(peer.request().await.path, "/elsewhere");
    peer.json(&result(1)).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

async fn refused(status: u16, location: &str) -> String {
    let server = Server::start().await;
    let (transport, mut sink) = connect(&StreamableHttp::new(&server.url()).unwrap()).await;
    transport.clone().send(request(1, "ping", ALONE));
    let (mut peer, _) = server.request().await;
    peer.respond(status, &format!("Location: {location}\r\n"), "").await;
    let (_, why) = sink.ended().await;
    let TransportError::Refused { status: told, error: None, body, .. } = why else { panic!("{why:?}") };
    assert_eq!(told, status);
    assert!(body.contains("redirection to"), "{body}");
    body
}

#[tokio::test]
async fn to_elsewhere_or_as_something_else_it_does_not() {
    let elsewhere = Server::start().await;
    let to = elsewhere.url();
    assert!(refused(307, &to).await.contains(&to));
    assert!(refused(308, "https://evil.example/").await.contains("evil.example"));
    refused(307, "//evil.example/mcp").await;
    refused(302, "/mcp/").await;
    refused(301, "/mcp/").await;
    refused(303, "/mcp/").await;
    refused(307, "http://[").await;
    let long = format!("https://evil.example/{}", "x".repeat(1000));
    assert!(refused(307, &long).await.len() < 400);
    assert!(elsewhere.is_left_alone(std::time::Duration::from_millis(20)).await);
}

#[tokio::test]
async fn in_circles_it_goes_three_times() {
    let server = Server::start().await;
    let (transport, mut sink) = connect(&StreamableHttp::new(&server.url()).unwrap()).await;
    transport.clone().send(request(1, "ping", ALONE));
    let (mut peer, _) = server.request().await;
    for _ in 0..3 {
        peer.respond(307, "Location: /mcp\r\n", "").await;
        peer.request().await;
    }
    peer.respond(307, "Location: /mcp\r\n", "").await;
    let (_, why) = sink.ended().await;
    assert!(matches!(&why, TransportError::Refused { body, .. } if body.contains("too many")), "{why:?}");
}

//! Responses that are no answers, and no responses at all.

use std::time::Duration;

use refmcp_client::http::{HttpSettings, StreamableHttp};
use refmcp_proto::engine::client::TransportError;

use crate::messages::{ALONE, SESSIONS, connect, connect_to, connect_with, notification, request, result};
use crate::raw_server::Server;

/// What a request ends with when it gets this response.
async fn outcome(response: &str) -> TransportError {
    let server = Server::start().await;
    let (transport, mut sink) = connect_with(&server, |settings| settings.max_message_size = 1000).await;
    transport.clone().send(request(1, "tools/call", ALONE));
    let (mut peer, _) = server.request().await;
    peer.write(response).await;
    drop(peer);
    let (exchange, why) = sink.ended().await;
    assert_eq!(exchange, 1);
    why
}

#[tokio::test]
async fn an_authorization_error_has_the_challenge() {
    let why = outcome(
        "HTTP/1.1 401 X\r\nWWW-Authenticate: Bearer resource_metadata=\"https://x/y\"\r\n\
         WWW-Authenticate: Basic\r\nContent-Length: 2\r\n\r\nno",
    )
    .await;
    let challenge = Some("Bearer resource_metadata=\"https://x/y\", Basic".to_owned());
    let reason = Some("no".into());
    assert_eq!(why, TransportError::Unauthorized { status: 401, challenge, reason });
}

/// Some servers tell in the body alone why they refuse, each in its own way.
#[tokio::test]
async fn the_reason_is_read_from_the_body() {
    let long = "x".repeat(200);
    for (body, told) in [
        (r#"{"error":"invalid_token","error_description":"The token has expired"}"#, "The token has expired"),
        (r#"{"error":"no key"}"#, "no key"),
        (r#"{"error":{"code":7,"message":"no key"}}"#, "no key"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"no key"}}"#, "no key"),
        (r#"{"type":"about:blank","title":"Unauthorized","detail":"no key"}"#, "no key"),
        (r#"{"message":"no\u001b[2J\nkey"}"#, "no\\u{1b}[2J\\nkey"),
        (" no key\r\n", "no key"),
        (r#""no key""#, "no key"),
        (&long, &format!("{}…", "x".repeat(100))),
    ] {
        let length = body.len();
        let why = outcome(&format!("HTTP/1.1 401 X\r\nContent-Length: {length}\r\n\r\n{body}")).await;
        let reason = Some(told.into());
        assert_eq!(why, TransportError::Unauthorized { status: 401, challenge: None, reason }, "{body}");
        let why = outcome(&format!("HTTP/1.1 403 X\r\nContent-Length: {length}\r\n\r\n{body}")).await;
        assert!(matches!(&why, TransportError::Refused { body, .. } if body == told), "{body}: {why:?}");
        assert!(why.to_string().contains(told), "{why}");
    }
    for body in ["", "<html>no key</html>", "{}", "[1]", r#"{"error":true}"#, r#"{"error":"#, "7"] {
        let length = body.len();
        let why = outcome(&format!("HTTP/1.1 401 X\r\nContent-Length: {length}\r\n\r\n{body}")).await;
        let expected = TransportError::Unauthorized { status: 401, challenge: None, reason: None };
        assert_eq!(why, expected, "{body}");
    }
}

#[tokio::test]
async fn a_403_without_a_challenge_is_no_authorization_error() {
    let why = outcome("HTTP/1.1 403 X\r\nContent-Length: 14\r\n\r\nno such origin").await;
    assert_eq!(
        why,
        TransportError::Refused {
            status: 403,
            error: None,
            body: "no such origin".to_owned(),
            retry_after: None
        }
    );
}

#[tokio::test]
async fn errors_of_the_protocol_are_read_from_refusals() {
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32022,"message":"no such revision","data":{"supported":[]}}}"#;
    let why = outcome(&format!("HTTP/1.1 400 X\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
    let TransportError::Refused { status: 400, error: Some(error), .. } = why else { panic!("{why:?}") };
    assert_eq!((error.code, error.data.is_some()), (-32022, true));
}

#[tokio::test]
async fn other_refusals_are_shown_in_short_and_clean() {
    let body = format!("\u{1b}[31mboom{}", "x".repeat(500));
    let why = outcome(&format!("HTTP/1.1 500 X\r\nContent-Length: {}\r\n\r\n{body}", body.len())).await;
    let TransportError::Refused { status: 500, error: None, body, .. } = why else { panic!("{why:?}") };
    assert!(body.starts_with("\\u{1b}[31mboomxx") && body.chars().count() < 120, "{body}");
}

#[tokio::test]
async fn a_page_is_no_answer() {
    let page = "<html><body>Sign in</body></html>";
    let length = page.len();
    let why = outcome(&format!(
        "HTTP/1.1 200 X\r\nContent-Type: text/html\r\nContent-Length: {length}\r\n\r\n{page}"
    ))
    .await;
    let TransportError::Misbehaved(why) = why else { panic!("{why:?}") };
    assert!(why.contains("text/html") && why.contains("Sign in"), "{why}");
}

#[tokio::test]
async fn a_request_needs_more_than_an_acknowledgement() {
    for response in ["HTTP/1.1 202 X\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 X\r\n\r\n"] {
        let why = outcome(response).await;
        assert!(
            matches!(&why, TransportError::Misbehaved(why) if why.contains("without content")),
            "{why:?}"
        );
    }
    let why =
        outcome("HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n\r\n").await;
    assert!(matches!(&why, TransportError::Misbehaved(why) if why.contains("empty")), "{why:?}");
}

#[tokio::test]
async fn a_content_coding_is_refused() {
    let why = outcome(
        "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    )
    .await;
    assert!(matches!(&why, TransportError::Misbehaved(why) if why.contains("gzip")), "{why:?}");
}

#[tokio::test]
async fn a_body_over_the_limit_is_not_kept() {
    let why =
        outcome("HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: 1001\r\n\r\n{").await;
    assert!(matches!(&why, TransportError::Misbehaved(why) if why.contains("1000 bytes")), "{why:?}");
    let piece = "x".repeat(400);
    let pieces = format!("190\r\n{piece}\r\n").repeat(3);
    let head = "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
    let why = outcome(&format!("{head}{pieces}")).await;
    assert!(matches!(&why, TransportError::Misbehaved(why) if why.contains("1000 bytes")), "{why:?}");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_message() {
    let head = "HTTP/1.1 200 X\r\nContent-Type: application/json\r\n";
    for rest in
        ["Content-Length: 100\r\n\r\n{\"jsonrpc\"", "Transfer-Encoding: chunked\r\n\r\n4\r\n{\"js\r\n"]
    {
        let why = outcome(&format!("{head}{rest}")).await;
        assert!(matches!(&why, TransportError::Broken(_)), "{why:?}");
    }
}

#[tokio::test]
async fn something_else_than_http_is_not_understood() {
    for response in ["SSH-2.0-OpenSSH_9.6\r\n", "HTTP/1.1 2000 X\r\n\r\n", "", "\0\0\0\0\0\0\0\0"] {
        let why = outcome(response).await;
        assert!(matches!(&why, TransportError::Broken(_)), "{response:?}: {why:?}");
    }
}

#[tokio::test]
async fn a_refused_notification_is_told() {
    let server = Server::start().await;
    let (transport, mut sink) = connect_to(&server).await;
    transport.clone().send(notification(7, "notifications/initialized", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.respond(500, "", "no").await;
    let (exchange, why) = sink.ended().await;
    assert_eq!(
        (exchange, why),
        (7, TransportError::Refused { status: 500, error: None, body: "no".to_owned(), retry_after: None })
    );
}

#[tokio::test]
async fn a_refused_connection_is_unreachable() {
    let server = Server::start().await;
    let connector = StreamableHttp::new(&server.url()).unwrap();
    drop(server);
    let (transport, mut sink) = connect(&connector).await;
    transport.clone().send(request(1, "ping", None));
    let (_, why) = sink.ended().await;
    assert!(matches!(&why, TransportError::Unreachable(why) if why.contains("127.0.0.1")), "{why:?}");
}

#[tokio::test]
async fn a_name_that_cannot_be_looked_up() {
    let mut settings = HttpSettings::default();
    settings.resolver =
        Some(std::sync::Arc::new(|host, port| Err(std::io::Error::other(format!("no {host} {port}")))));
    let connector = StreamableHttp::new("http://nowhere.test:81/").unwrap().settings(settings);
    let (transport, mut sink) = connect(&connector).await;
    transport.clone().send(request(1, "ping", None));
    let (_, why) = sink.ended().await;
    assert!(
        matches!(&why, TransportError::Unreachable(why) if why.contains("no nowhere.test 81")),
        "{why:?}"
    );
}

#[tokio::test]
async fn a_host_with_several_addresses_is_reached_at_one() {
    let server = Server::start().await;
    let port = server.origin().rsplit(':').next().unwrap().parse::<u16>().unwrap();
    let dead = Server::start().await;
    let dead_port = dead.origin().rsplit(':').next().unwrap().parse::<u16>().unwrap();
    drop(dead);
    let mut settings = HttpSettings::default();
    settings.resolver = Some(std::sync::Arc::new(move |_, _| {
        Ok(vec![([127, 0, 0, 1], dead_port).into(), ([127, 0, 0, 1], port).into()])
    }));
    let connector = StreamableHttp::new("http://several.test/mcp").unwrap().settings(settings);
    let (transport, mut sink) = connect(&connector).await;
    transport.clone().send(request(1, "ping", None));
    let (mut peer, seen) = server.request().await;
    assert_eq!(seen.header("host"), Some("several.test"));
    peer.json(&result(1)).await;
    assert_eq!(sink.message().await.0, Some(1));
}

#[tokio::test]
async fn an_acknowledgement_that_never_comes() {
    let server = Server::start().await;
    let (transport, mut sink) =
        connect_with(&server, |settings| settings.head_timeout = Duration::from_millis(50)).await;
    transport.clone().send(notification(1, "notifications/x", SESSIONS));
    let (mut peer, _) = server.request().await;
    peer.write("HTTP/1.1 202 OK\r\nContent-Type: ").await;
    let (_, why) = sink.ended().await;
    assert!(matches!(&why, TransportError::Broken(why) if why.contains("50ms")), "{why:?}");
    peer.gone().await;
}

#[tokio::test]
async fn an_answer_may_take_longer_than_an_acknowledgement() {
    let server = Server::start().await;
    let (transport, mut sink) =
        connect_with(&server, |settings| settings.head_timeout = Duration::from_millis(20)).await;
    transport.clone().send(request(1, "tools/call", ALONE));
    let (mut peer, _) = server.request().await;
    assert!(server.is_left_alone(Duration::from_millis(60)).await);
    peer.json(&result(1)).await;
    assert_eq!(sink.message().await, (Some(1), result(1)));
}

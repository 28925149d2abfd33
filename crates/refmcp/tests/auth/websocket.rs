//! The token of a web page's WebSocket, which can send no header of its own.

use serde_json::Value;

use crate::requests::{initialize, socket, token};
use crate::server::Server;

#[test]
fn a_web_page_sends_its_token_as_a_subprotocol() {
    let server = Server::start(&["--auth-client", "robot:hush", "--log", "trace"]);
    let address = server.address.clone();
    let token = token(&address, &server.url());
    let offers = format!("mcp, mcp.bearer.{token}");
    let (reply, socket) = socket(&address, &[("Sec-WebSocket-Protocol", &offers)]);
    assert_eq!(reply.status, 101, "{}", reply.head);
    assert_eq!(reply.header("Sec-WebSocket-Protocol"), Some("mcp"));
    assert!(!reply.head.contains(&token), "{}", reply.head);
    let mut socket = socket.unwrap();
    socket.say(&initialize());
    let answer: Value = serde_json::from_str(&socket.heard().unwrap()).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "RefMCP-TestServer", "{answer}");
    let log = server.log();
    assert!(!log.contains(&token) && log.contains("/mcp/ws"), "{log}");
}

#[test]
fn connections_without_a_valid_token_are_refused() {
    let server = Server::start(&["--auth-client", "robot:hush"]);
    let address = &server.address;
    let good = token(address, &server.url());
    let (bad, altered) =
        ("mcp, mcp.bearer.nonsense".to_owned(), format!("mcp, mcp.bearer.{}x", &good[..good.len() - 1]));
    let refused = |headers: &[(&str, &str)]| {
        let (reply, socket) = socket(address, headers);
        assert!(socket.is_none());
        assert_eq!(reply.header("Sec-WebSocket-Protocol"), None);
        (reply.status, reply.header("WWW-Authenticate").map(str::to_owned))
    };
    for headers in [&[][..], &[("Sec-WebSocket-Protocol", "mcp")]] {
        let (status, challenge) = refused(headers);
        let challenge = challenge.unwrap();
        assert_eq!(status, 401, "{challenge}");
        assert!(challenge.contains("resource_metadata=") && !challenge.contains("error="), "{challenge}");
    }
    for offers in [&bad, &altered] {
        let (status, challenge) = refused(&[("Sec-WebSocket-Protocol", offers)]);
        let challenge = challenge.unwrap();
        assert_eq!(status, 401, "{challenge}");
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        let offered = offers.rsplit('.').next().unwrap();
        assert!(!challenge.contains(offered), "{challenge}");
    }
    // Nor twice, however good it is: which of them would count?
    let (once, bearer) = (format!("mcp, mcp.bearer.{good}"), format!("Bearer {good}"));
    let (status, _) = refused(&[("Sec-WebSocket-Protocol", &once), ("Authorization", &bearer)]);
    assert_eq!(status, 400);
}

//! WebSocket: a session over text frames.

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::support::{LATEST_SESSION, Site, initialize_params, request, text_of};

pub(crate) type Socket = WebSocketStream<TcpStream>;

pub(crate) async fn connect(
    site: &Site,
    path: &str,
    headers: &[(&'static str, &str)],
) -> Result<Socket, Error> {
    let mut request = format!("ws://{}{path}", site.address).into_client_request().unwrap();
    for (name, value) in headers {
        request.headers_mut().insert(*name, value.parse().unwrap());
    }
    let (socket, response) = client_async(request, TcpStream::connect(site.address).await.unwrap()).await?;
    let offered = headers.iter().any(|(name, _)| *name == "sec-websocket-protocol");
    assert_eq!(response.headers().get("sec-websocket-protocol").is_some(), offered);
    Ok(socket)
}

pub(crate) async fn say(socket: &mut Socket, message: &Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

pub(crate) async fn hear(socket: &mut Socket) -> Value {
    let message = timeout(Duration::from_secs(60), socket.next()).await.unwrap().unwrap().unwrap();
    serde_json::from_str(message.to_text().unwrap()).unwrap()
}

pub(crate) async fn open(site: &Site, path: &str) -> Socket {
    let mut socket = connect(site, path, &[("sec-websocket-protocol", "mcp")]).await.unwrap();
    say(&mut socket, &request("initialize", initialize_params(LATEST_SESSION))).await;
    assert_eq!(hear(&mut socket).await["result"]["protocolVersion"], LATEST_SESSION);
    say(&mut socket, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    socket
}

#[tokio::test]
async fn a_session_lives_on_a_socket() {
    let site = Site::usual().await;
    for path in ["/mcp", "/mcp/ws"] {
        let mut socket = open(&site, path).await;
        let arguments = json!({ "n": 2, "ms": 1 });
        let params = json!({ "name": "steps", "arguments": arguments, "_meta": { "progressToken": 1 } });
        say(&mut socket, &request("tools/call", params)).await;
        assert_eq!(hear(&mut socket).await["params"]["progress"].as_f64(), Some(1.0));
        assert_eq!(hear(&mut socket).await["params"]["progress"].as_f64(), Some(2.0));
        assert_eq!(text_of(&hear(&mut socket).await), "2 steps ");
    }
    connect(&site, "/mcp", &[]).await.expect("no subprotocol has to be offered");
}

#[tokio::test]
async fn calls_end_with_their_socket() {
    let site = Site::usual().await;
    let mut socket = open(&site, "/mcp").await;
    let params =
        json!({ "name": "steps", "arguments": { "n": 100_000, "ms": 5 }, "_meta": { "progressToken": 1 } });
    say(&mut socket, &request("tools/call", params)).await;
    hear(&mut socket).await;
    drop(socket);
    site.until_ended(1).await;
}

#[tokio::test]
async fn foreign_origins_are_refused_before_the_upgrade() {
    let site = Site::usual().await;
    for path in ["/mcp", "/mcp/ws"] {
        for stranger in [("origin", "https://evil.com"), ("origin", "null"), ("host", "evil.com")] {
            match connect(&site, path, &[stranger]).await {
                Err(Error::Http(response)) => assert_eq!(response.status(), 403, "{path} {stranger:?}"),
                other => panic!("{path} {stranger:?}: {other:?}"),
            }
        }
    }
}

//! Servers that send without end: deadlines hold, and other tasks go on. Time moves by hand, so that a client which looks at
//! nothing but its stream never ends.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use refmcp_client::http::{HttpSse, StreamableHttp};
use refmcp_client::transport::Connector;
use refmcp_client::{CallError, Client, Error, VersionPolicy};
use refmcp_testkit::paused::PausedTime;
use serde_json::{Value, json};

const NOTIFICATION: &str = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
const TIMEOUT: Duration = Duration::from_secs(60);

/// The response to `initialize`.
fn opened(message: &Value) -> String {
    let result = json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": { "name": "f", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }).to_string()
}

/// Sends this until the client has gone.
fn flood(stream: &mut TcpStream, piece: &[u8]) {
    let piece = piece.repeat(1000);
    while stream.write_all(&piece).is_ok() {}
}

/// Reads a request: its first line and the message in its body.
fn request(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).ok()?;
    Some((head, serde_json::from_slice(&body).unwrap_or_default()))
}

/// Does this with each connection, in threads: the runtime of the test is the client's alone.
fn serve(each: impl Fn(TcpStream) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let each = Arc::new(each);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let each = each.clone();
            thread::spawn(move || each(stream));
        }
    });
    address
}

fn streamable_http() -> StreamableHttp {
    let address = serve(|stream| {
        let mut stream = BufReader::new(stream);
        while let Some((head, message)) = request(&mut stream) {
            let to = stream.get_mut();
            match (head.starts_with("POST"), message["method"].as_str()) {
                (true, Some("initialize")) => {
                    let body = opened(&message);
                    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
                    let _ = write!(to, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
                }
                (true, Some("never/answered")) => {
                    let _ = to.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
                    return flood(to, format!("data: {NOTIFICATION}\n\n").as_bytes());
                }
                (true, _) => drop(to.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n")),
                (false, _) => drop(to.write_all(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")),
            }
        }
    });
    StreamableHttp::new(&format!("http://{address}/mcp")).unwrap()
}

fn http_sse() -> HttpSse {
    let answers: Mutex<Option<TcpStream>> = Mutex::new(None);
    let address = serve(move |stream| {
        let mut stream = BufReader::new(stream);
        while let Some((head, message)) = request(&mut stream) {
            let to = stream.get_mut();
            if head.starts_with("GET") {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
                let _ = write!(to, "{head}event: endpoint\ndata: /messages\n\n");
                *answers.lock().unwrap() = to.try_clone().ok();
                continue;
            }
            let _ = to.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
            match message["method"].as_str() {
                Some("initialize") => {
                    let answer = opened(&message);
                    let _ = write!(answers.lock().unwrap().as_mut().unwrap(), "data: {answer}\n\n");
                }
                Some("never/answered") => {
                    // The second finds it under way.
                    let Some(mut stream) = answers.lock().unwrap().take() else { continue };
                    flood(&mut stream, format!("data: {NOTIFICATION}\n\n").as_bytes());
                }
                _ => {}
            }
        }
    });
    HttpSse::new(&format!("http://{address}/sse")).unwrap()
}

#[cfg(feature = "websocket")]
fn websocket() -> refmcp_client::websocket::WebSocket {
    use tokio_tungstenite::tungstenite::{Message, accept};

    let address = serve(|stream| {
        let mut socket = accept(stream).unwrap();
        while let Ok(Message::Text(text)) = socket.read() {
            let message: Value = serde_json::from_str(&text).unwrap();
            match message["method"].as_str() {
                Some("initialize") => socket.send(Message::text(opened(&message))).unwrap(),
                Some("never/answered") => {
                    let length = u8::try_from(NOTIFICATION.len()).unwrap();
                    let frame = [&[0x81, length], NOTIFICATION.as_bytes()].concat();
                    return flood(socket.get_mut(), &frame);
                }
                _ => {}
            }
        }
    });
    refmcp_client::websocket::WebSocket::new(&format!("ws://{address}/mcp")).unwrap()
}

async fn deadlines_and_closing_hold(connector: impl Connector) {
    let builder = Client::builder("test", "1").version_policy(VersionPolicy::Legacy);
    let client = builder.connect(connector).await.unwrap();
    let time = PausedTime::start();
    let call = |client: &Client| {
        let call = client.raw("never/answered", serde_json::Map::new());
        tokio::spawn(async move { call.timeout(TIMEOUT).total_timeout(TIMEOUT).await })
    };
    let answered = call(&client);
    time.advance(TIMEOUT - Duration::from_secs(1)).await;
    assert!(!answered.is_finished(), "time has not passed");
    time.advance(Duration::from_secs(2)).await;
    let error = answered.await.unwrap().unwrap_err();
    assert!(matches!(error, Error::Call(CallError::TimedOut { .. })), "{error:?}");
    // What Ctrl-C does: another task drops the call, and closes.
    let dropped = call(&client);
    time.settle().await;
    dropped.abort();
    assert!(dropped.await.unwrap_err().is_cancelled());
    drop(time);
    client.close().await;
}

#[tokio::test]
async fn deadlines_hold_while_streamable_http_is_flooded() {
    deadlines_and_closing_hold(streamable_http()).await;
}

#[tokio::test]
async fn deadlines_hold_while_http_sse_is_flooded() {
    deadlines_and_closing_hold(http_sse()).await;
}

#[cfg(feature = "websocket")]
#[tokio::test]
async fn deadlines_hold_while_a_websocket_is_flooded() {
    deadlines_and_closing_hold(websocket()).await;
}

//! Servers that send without end: time limits and signals hold, and memory does not grow.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use refmcp_transport::websocket::derive_accept_key;
use serde_json::{Value, json};

use crate::User;
use crate::support::Process;
use crate::support::http::{Request, listening};

/// How much longer than its time a command may take, on a machine that does other things as well.
const SLACK: Duration = Duration::from_secs(5);

/// How often a command is started until its handshake ends within its time.
const ATTEMPTS: usize = 5;

const LOG: &str =
    r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}"#;
const UNKNOWN: &str = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":99999,"result":{}}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#;

/// The answer to a request; `None` to a call, which gets a flood.
fn answer(message: &Value) -> Option<String> {
    let result =
        match message["method"].as_str()? {
            "initialize" => json!({
                "protocolVersion": "2025-06-18", "capabilities": {"tools": {}, "logging": {}},
                "serverInfo": {"name": "f", "version": "1"},
            }),
            "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
            "tools/call" => return None,
            _ => return Some(
                json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}})
                    .to_string(),
            ),
        };
    Some(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string())
}

/// Starts a server that floods: its URL, and the beginning of the flood.
type FloodingServer<'a> = &'a dyn Fn() -> (String, Receiver<()>);

/// Sends this without end, and tells of the beginning.
fn flood(stream: &mut TcpStream, piece: &[u8], begun: &Sender<()>) {
    let piece = piece.repeat(2_000);
    // The test may not wait for it.
    let _ = begun.send(());
    while stream.write_all(&piece).is_ok() {}
}

/// A server over HTTP that floods the stream of a call with this.
fn http(events: String) -> (String, Receiver<()>) {
    let (begun, beginning) = channel();
    let address = listening(move |stream| {
        let mut stream = BufReader::new(stream);
        while let Ok(request) = Request::read(&mut stream) {
            let message = request.message();
            let to = stream.get_mut();
            if !request.head.starts_with("POST") {
                let _ = to.write_all(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n");
            } else if message.get("id").is_none() || message.get("method").is_none() {
                // What is no request is taken, but never acknowledged.
                if message.get("method").is_some() {
                    let _ = to.write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
                }
            } else if let Some(answer) = answer(&message) {
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
                let _ = write!(to, "{head}Content-Length: {}\r\n\r\n{answer}", answer.len());
            } else {
                let _ = to.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
                return flood(to, events.as_bytes(), &begun);
            }
        }
    });
    (format!("http://{address}/mcp"), beginning)
}

/// A server over HTTP+SSE that floods the stream of its session with this, once there is a call.
fn http_sse(events: String) -> (String, Receiver<()>) {
    let (begun, beginning) = channel();
    // Requests come over connections of their own, and their answers over the first.
    let answers: Mutex<Option<TcpStream>> = Mutex::new(None);
    let address = listening(move |stream| {
        let mut stream = BufReader::new(stream);
        while let Ok(request) = Request::read(&mut stream) {
            if request.head.starts_with("GET") {
                let to = stream.get_mut();
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
                let _ = write!(to, "{head}event: endpoint\ndata: /messages\n\n");
                *answers.lock().unwrap() = to.try_clone().ok();
                continue;
            }
            let _ = stream.get_mut().write_all(b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n");
            let message = request.message();
            let mut answers = answers.lock().unwrap();
            let Some(to) = answers.as_mut().filter(|_| message.get("id").is_some()) else { continue };
            match answer(&message) {
                Some(answer) => write!(to, "data: {answer}\n\n").unwrap(),
                None => return flood(to, events.as_bytes(), &begun),
            }
        }
    });
    (format!("sse+http://{address}/sse"), beginning)
}

/// A server over WebSocket that floods a call with these frames and reads nothing more.
fn websocket(frames: Vec<u8>) -> (String, Receiver<()>) {
    let (begun, beginning) = channel();
    let address = listening(move |stream| {
        let mut stream = BufReader::new(stream);
        let Ok(request) = Request::read(&mut stream) else { return };
        let key = request.head.lines().find_map(|line| line.strip_prefix("sec-websocket-key: ")).unwrap();
        let accept = derive_accept_key(key.as_bytes());
        let head = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n";
        let _ = write!(stream.get_mut(), "{head}Sec-WebSocket-Accept: {accept}\r\n\r\n");
        while let Some(text) = read_frame(&mut stream) {
            let message: Value = serde_json::from_slice(&text).unwrap_or_default();
            if message.get("id").is_none() {
                continue;
            }
            match answer(&message) {
                Some(answer) => stream.get_mut().write_all(&frame(1, answer.as_bytes())).unwrap(),
                None => return flood(stream.get_mut(), &frames, &begun),
            }
        }
    });
    (format!("ws://{address}/mcp"), beginning)
}

/// A frame of a server.
fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap();
    let head = match u8::try_from(length) {
        Ok(short @ ..126) => vec![0x80 | kind, short],
        _ => [&[0x80 | kind, 126][..], &length.to_be_bytes()].concat(),
    };
    [head.as_slice(), content].concat()
}

/// The content of a frame of a client, which is masked.
fn read_frame(stream: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut bytes = |count: usize| {
        let mut bytes = vec![0; count];
        stream.read_exact(&mut bytes).ok().map(|()| bytes)
    };
    let length = match bytes(2)?[1] & 0x7f {
        126 => bytes(2)?.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)),
        short => usize::from(short),
    };
    let mask = bytes(4)?;
    Some(bytes(length)?.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask).collect())
}

/// A program that floods a call with this line and reads nothing more.
fn program(line: &str) -> String {
    let cases = ["initialize", "tools/list", "server/discover"].map(|method| {
        let request = json!({"method": method, "id": 0});
        let answer = answer(&request).unwrap().replacen("\"id\":0", "\"id\":%s", 1);
        format!("*'\"method\":\"{method}\"'*) printf '{answer}\\n' \"$id\" ;;\n")
    });
    format!(
        r#"while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
  {}
  *tools/call*) exec yes '{line}' ;;
  esac
done"#,
        cases.concat()
    )
}

#[test]
fn time_limits_hold_whatever_a_server_sends() {
    let user = User::new();
    let limits = ["--timeout", "2", "--total-timeout", "2"];
    let check = |what: &str, run: &dyn Fn() -> crate::support::Ended| {
        // On a busy machine the handshake alone may take as long, and then there was no flood.
        let ended = (0..ATTEMPTS)
            .map(|_| run())
            .find(|ended| !ended.err.contains("the server did not answer within"))
            .expect("a handshake within the time limit");
        assert_eq!((ended.code, ended.out.as_str()), (4, ""), "{what}: {}", ended.code);
        let last = ended.err.lines().last().unwrap_or_default();
        assert!(last.contains("no answer within 2 s"), "{what}: {last}");
        assert!(ended.took >= Duration::from_secs(2), "{what}: {:?}", ended.took);
        assert!(ended.took < Duration::from_secs(2) + SLACK, "{what}: {:?}", ended.took);
    };
    let check_url = |what: &str, server: FloodingServer<'_>| {
        check(what, &|| user.run(&[&["call", &server().0, "t"], &limits[..]].concat()));
    };
    for message in [LOG, UNKNOWN, ANSWER] {
        check_url(message, &|| http(format!("data: {message}\n\n")));
        check_url(message, &|| http_sse(format!("data: {message}\n\n")));
        check_url(message, &|| websocket(frame(1, message.as_bytes())));
        check(message, &|| user.with_script(&[&["call", "t"], &limits[..]].concat(), &program(message)));
    }
    check_url("comments", &|| http(":\n".to_owned()));
    for (what, kind, content) in [("pings", 9, &[b'x'; 120][..]), ("empty pings", 9, b""), ("pongs", 10, b"")]
    {
        check_url(what, &|| websocket(frame(kind, content)));
    }
}

#[test]
fn a_server_that_asks_and_takes_no_response_is_left() {
    let user = User::new();
    let check = |ended: crate::support::Ended| {
        assert_eq!(ended.code, 4, "{ended:?}");
        let told = ended.err.contains("does not read the responses")
            || ended.err.contains("faster than it takes the responses");
        assert!(told, "{ended:?}");
    };
    let (url, _) = http(format!("data: {PING}\n\n"));
    check(user.run(&["call", &url, "t"]));
    let (url, _) = websocket(frame(1, PING.as_bytes()));
    check(user.run(&["call", &url, "t"]));
    check(user.with_script(&["call", "t"], &program(PING)));
}

/// How often a signal is sent at most, until a command ends in time: a busy machine may make some of them late.
const SIGNALS: usize = 12;

/// How late the command may react to one of them, with the end of the process.
const LATENESS: Duration = Duration::from_millis(100);

#[test]
fn a_signal_ends_a_command_that_is_flooded() {
    let user = User::new();
    let begun = user.path("begun");
    let script = program(UNKNOWN).replace("exec yes", &format!("touch '{}'; exec yes", begun.display()));
    let interrupted = |words: &[&str], begun: &dyn Fn()| {
        let process = Process::spawn(user.command(words));
        begun();
        let sent = Instant::now();
        process.signal("INT");
        let exit = process.exit();
        assert_eq!(exit.status.code(), Some(130), "{words:?}: {}", exit.errors);
        sent.elapsed()
    };
    let check = |what: &str, closing: Duration, interrupted: &dyn Fn() -> Duration| {
        let mut late = Vec::new();
        while late.len() < SIGNALS {
            let took = interrupted();
            if took < closing + LATENESS {
                return;
            }
            late.push(took);
        }
        panic!("{what}: {late:?}");
    };
    // A WebSocket that does not take part in the closing handshake is waited for.
    let handshake = Duration::from_secs(1);
    let servers: [(&str, Duration, FloodingServer<'_>); 4] = [
        ("HTTP", Duration::ZERO, &|| http(format!("data: {UNKNOWN}\n\n"))),
        ("HTTP+SSE", Duration::ZERO, &|| http_sse(format!("data: {UNKNOWN}\n\n"))),
        ("WebSocket", handshake, &|| websocket(frame(1, UNKNOWN.as_bytes()))),
        ("pings", handshake, &|| websocket(frame(9, &[b'x'; 120]))),
    ];
    for (what, closing, server) in servers {
        check(what, closing, &|| {
            let (url, beginning) = server();
            interrupted(&["call", &url, "t"], &|| beginning.recv_timeout(Duration::from_secs(30)).unwrap())
        });
    }
    // So is a program that does not end with its input.
    check("stdio", Duration::from_secs(2), &|| {
        let lateness = interrupted(&["call", "t", "--", "sh", "-c", &script], &|| {
            let by = Instant::now() + Duration::from_secs(30);
            while !begun.exists() {
                assert!(Instant::now() < by, "the flood has not begun");
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        std::fs::remove_file(&begun).unwrap();
        lateness
    });
}

//! Clients and servers that try to make the relay say to the other side what it was not told, or to hold on to it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};

use crate::Trace;
use crate::http::{Relay, server_of_bytes};
use crate::support::http::{Response, listening, send};
use crate::support::{Process, TEST_TIMEOUT, program};

const EMPTY: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Sends these bytes, with the relay's own name for `HOST`, and gives the response.
fn say(relay: &Relay, request: &str) -> Response {
    let mut stream = TcpStream::connect(&relay.address).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    stream.write_all(request.replace("HOST", &relay.address).as_bytes()).unwrap();
    Response::read(stream)
}

/// What a relay makes of a server that answers with this, whatever is requested.
fn answered(answer: &'static [u8]) -> Response {
    let (url, _requests) = server_of_bytes("\r\n\r\n", answer);
    say(&Relay::open(&url, &[]), "GET / HTTP/1.1\r\nHost: HOST\r\nConnection: close\r\n\r\n")
}

#[test]
fn a_length_beside_chunks_is_not_passed_on() {
    let (url, requests) = server_of_bytes("0\r\n\r\n", EMPTY);
    let relay = Relay::open(&url, &[]);
    for head in
        ["Content-Length: 3\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 3"]
    {
        let request =
            format!("POST / HTTP/1.1\r\nHost: HOST\r\n{head}\r\n\r\n5\r\nGET /\r\n5\r\nadmin\r\n0\r\n\r\n");
        assert_eq!(say(&relay, &request).status, 200, "{head}");
        let got = requests.recv_timeout(TEST_TIMEOUT).unwrap();
        assert!(!got.to_ascii_lowercase().contains("content-length"), "{got}");
        let (_, body) = got.split_once("\r\n\r\n").unwrap();
        let data: String = body.split("\r\n").skip(1).step_by(2).collect();
        assert_eq!(data, "GET /admin", "{got}");
    }
    let both = answered(
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
    );
    assert_eq!(both.header("content-length"), None, "{}", both.head);
    assert!(both.text().contains("body"));
}

#[test]
fn requests_that_two_parsers_read_differently_are_refused() {
    let (url, requests) = server_of_bytes("\r\n\r\n", EMPTY);
    let relay = Relay::open(&url, &[]);
    for (head, status) in [
        ("Content-Length: 1\r\nContent-Length: 2\r\n", 400),
        ("Content-Length: 1, 2\r\n", 400),
        ("Content-Length: +1\r\n", 400),
        ("Transfer-Encoding: chunked, identity\r\n", 400),
        ("Transfer-Encoding: gzip, chunked\r\n", 501),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", 501),
        ("Transfer-Encoding : chunked\r\n", 400),
        ("X-Folded: a\r\n Transfer-Encoding: chunked\r\n", 400),
        ("X-Bare: a\rX-More: b\r\n", 400),
        ("X-Null: a\0b\r\n", 400),
    ] {
        let refused = say(&relay, &format!("POST / HTTP/1.1\r\nHost: HOST\r\n{head}\r\n0\r\n\r\n"));
        assert_eq!(refused.status, status, "{head:?}");
    }
    for line in ["GET /a\rb HTTP/1.1", "GET /a b HTTP/1.1", "GET http://evil.example/ HTTP/1.1"] {
        let refused = say(&relay, &format!("{line}\r\nHost: HOST\r\n\r\n")).status;
        assert!(refused == 400 || refused == 403, "{line:?}: {refused}");
    }
    assert_eq!(say(&relay, "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: 127.0.0.1:22\r\n\r\n").status, 400);
    assert_eq!(say(&relay, "GET / HTTP/1.1\r\nHost: HOST\r\nHost: evil.example\r\n\r\n").status, 403);
    let large = format!("X-Large: {}\r\n", "a".repeat(1 << 20));
    let many: String = (0..200).map(|number| format!("X-{number}: 1\r\n")).collect();
    for head in [large, many] {
        let mut stream = TcpStream::connect(&relay.address).unwrap();
        stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
        // The relay may close the connection while this is written.
        let _ = write!(stream, "GET / HTTP/1.1\r\nHost: localhost\r\n{head}\r\n");
        let mut status = String::new();
        let read = BufReader::new(stream).read_line(&mut status);
        assert!(read.is_err() || status.starts_with("HTTP/1.1 431"), "{status}");
    }
    assert!(requests.try_recv().is_err(), "nothing of this reaches the server");
}

#[test]
fn answers_that_two_parsers_read_differently_are_refused() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"[..],
        b"HTTP/1.1 200 OK\r\nX-Folded: a\r\n Set-Cookie: b=c\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX-Null: a\0b\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"no HTTP at all\r\n\r\n",
    ] {
        let refused = answered(answer);
        assert_eq!(refused.status, 502, "{}", String::from_utf8_lossy(answer));
        assert!(refused.text().starts_with("refmcp relay: "));
    }
    let moved = answered(
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    );
    assert_eq!((moved.status, moved.header("location")), (307, Some("http://127.0.0.1:1/")));
}

#[test]
fn a_body_that_breaks_off_does_not_look_whole() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf"[..],
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
    ] {
        let broken = answered(answer);
        let wants_more = broken.header("content-length") == Some("10");
        let text = broken.text();
        assert!(wants_more && text == "half" || !wants_more && !text.ends_with("0\r\n\r\n"), "{text}");
    }
}

#[test]
fn credentials_for_a_proxy_stop_here() {
    let answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n";
    let (url, requests) = server_of_bytes("\r\n\r\n", answer);
    let relay = Relay::open(&url, &[]);
    let response =
        send(&relay.address, "GET /", &[("Proxy-Authorization", "Basic aHVzaDpodXNo"), ("X", "1")], "");
    assert_eq!((response.status, response.header("proxy-authenticate")), (407, None));
    let got = requests.recv_timeout(TEST_TIMEOUT).unwrap();
    assert!(got.contains("X: 1") && !got.to_ascii_lowercase().contains("proxy-"), "{got}");
    relay.trace.wait("the head", |line| line["headers"]["proxy-authorization"] == "***");
    assert!(!relay.trace.text().contains("aHVzaDpodXNo"));
}

#[test]
fn the_protocol_changes_to_websocket_alone() {
    let (url, requests) = server_of_bytes("\r\n\r\n", EMPTY);
    let relay = Relay::open(&url, &[]);
    let request = "GET / HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade, HTTP2-Settings\r\n\
                   Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n";
    assert_eq!(say(&relay, request).status, 200);
    let got = requests.recv_timeout(TEST_TIMEOUT).unwrap().to_ascii_lowercase();
    assert!(!got.contains("h2c") && !got.contains("http2-settings"), "{got}");
}

#[test]
fn a_connection_that_changed_the_protocol_is_one_until_its_end() {
    let address = listening(|stream| {
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && stream.read_line(&mut head).unwrap() > 0 {}
        let change = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n";
        stream.get_mut().write_all(change).unwrap();
        stream.get_mut().write_all(b"\x81\x02{}").unwrap();
        // Until the client leaves.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let relay = Relay::open(&format!("http://{address}"), &[]);
    let mut changed =
        say(&relay, "GET / HTTP/1.1\r\nHost: HOST\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
    assert_eq!(changed.status, 101);
    changed.stream.read_exact(&mut [0; 4]).unwrap();
    relay.trace.wait("the message", |line| line["text"] == "{}" || line["message"].is_object());
    let is_end = |event: &serde_json::Value| event["event"] == "closed";
    assert!(!relay.trace.lines().iter().any(is_end), "{}", relay.trace.text());
    drop(changed);
    relay.trace.wait("the end", is_end);
}

#[test]
fn a_trace_is_private_and_goes_through_no_link() {
    let trace = Trace::new();
    let other = trace.folder.path().join("other");
    fs::write(&other, "").unwrap();
    symlink(&other, trace.path()).unwrap();
    let relay =
        || Process::spawn(program(&["relay", "--record", trace.path().to_str().unwrap(), "--", "true"]));
    let refused = relay().exit();
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(refused.errors.contains("is a link"), "{refused:?}");
    assert_eq!(fs::read(&other).unwrap(), b"");
    fs::remove_file(trace.path()).unwrap();

    // A file that others could read is theirs no more.
    fs::write(trace.path(), "").unwrap();
    fs::set_permissions(trace.path(), fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(relay().exit().status.code(), Some(0));
    assert_eq!(fs::metadata(trace.path()).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(trace.text().contains("opened"));
    let told = Process::spawn(program(&["relay", "--record", "/dev/stderr", "--", "true"])).exit();
    assert!(told.errors.contains("\"opened\""), "{told:?}");
}

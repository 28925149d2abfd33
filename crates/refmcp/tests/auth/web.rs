//! An HTTP server on this machine that answers as a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::Value;

/// What is asked: the path, and the body.
pub(crate) struct Asked {
    pub(crate) path: String,
    pub(crate) body: String,
}

/// Answers every request from now on with a status and JSON; the origin is `http://127.0.0.1:PORT`.
pub(crate) fn answering(answer: impl Fn(&Asked, &str) -> (&'static str, Value) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let own = origin.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            // A client that left has no use for the answer.
            let _ = converse(&mut stream.unwrap(), |asked| answer(asked, &own));
        }
    });
    origin
}

fn converse(
    stream: &mut TcpStream,
    answer: impl FnOnce(&Asked) -> (&'static str, Value),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end();
        if let Some(number) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = number.trim().parse().unwrap_or(0);
        }
        match line.split(' ').nth(1) {
            Some(target) if path.is_empty() => path = target.to_owned(),
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let asked = Asked { path, body: String::from_utf8_lossy(&body).into_owned() };
    let (status, document) = answer(&asked);
    let text = document.to_string();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

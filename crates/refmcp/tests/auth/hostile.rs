//! A server that wants to have something opened that is no page: nothing is started for it, or a browser with one
//! address.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use serde_json::json;

use crate::user::User;

/// A server that is its own authorization server, where people are to log in at this address.
fn sending_people_to(endpoint: &str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let (url, endpoint) = (format!("{origin}/mcp"), endpoint.replace("ORIGIN", &origin));
    thread::spawn(move || {
        for stream in listener.incoming() {
            // Whoever left has no answer to wait for.
            let _ = answer(&mut stream.unwrap(), &origin, &endpoint);
        }
    });
    url
}

fn answer(stream: &mut TcpStream, origin: &str, endpoint: &str) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut path, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(number) = line.strip_prefix("content-length:") {
            length = number.trim().parse().unwrap_or(0);
        }
        match line.split(' ').nth(1) {
            Some(target) if path.is_empty() => path = target.to_owned(),
            _ if line.is_empty() => break,
            _ => {}
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    let (status, body) = match path.as_str() {
        "/.well-known/oauth-protected-resource/mcp" => {
            ("200 OK", json!({ "resource": format!("{origin}/mcp"), "authorization_servers": [origin] }))
        }
        "/.well-known/oauth-authorization-server" => (
            "200 OK",
            json!({
                "issuer": origin,
                "authorization_endpoint": endpoint,
                "token_endpoint": format!("{origin}/token"),
                "registration_endpoint": format!("{origin}/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
            }),
        ),
        "/register" => ("201 Created", json!({ "client_id": "c" })),
        _ => ("401 Unauthorized\r\nWWW-Authenticate: Bearer", json!({})),
    };
    let body = body.to_string();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn only_pages_are_opened_and_each_is_one_word() {
    let long = format!("ORIGIN/{}", "a".repeat(100 << 10));
    for (endpoint, opened) in [
        ("file:///etc/passwd", false),
        ("javascript:alert(1)", false),
        ("data:text/html,x", false),
        ("cmd:calc", false),
        ("--flag", false),
        ("", false),
        ("http://x.example/$(calc)", false),
        (&long, false),
        ("ORIGIN/$(touch pwned)", true),
        ("ORIGIN/`touch pwned`;touch pwned", true),
        ("ORIGIN/\r\n--flag", true),
        ("ORIGIN/\0--flag", true),
        ("ORIGIN/ --flag", true),
    ] {
        let user = User::new();
        user.browser("exit 0");
        let url = sending_people_to(endpoint);
        user.fails(3, &["auth", "login", &url, "--login-timeout", "1"]);
        let visited = user.visited();
        let lines: Vec<&str> = visited.lines().collect();
        match lines[..] {
            [] => {}
            ["1", page] => {
                assert!(opened, "{endpoint:?}: {page}");
                let origin = url.strip_suffix("/mcp").unwrap();
                assert!(page.starts_with(origin), "{page}");
                assert!(page.bytes().all(|byte| matches!(byte, b'!'..=b'~')), "{page}");
            }
            _ => panic!("{endpoint:?} was more than one word: {visited}"),
        }
        assert!(!user.path("pwned").exists(), "{endpoint:?}");
    }
}

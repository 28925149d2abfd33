//! What a token has opened ends with it: a stream, and a WebSocket.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::requests::{CLOSE, Socket, initialize, session, socket, token};
use crate::server::Server;
use crate::support::TEST_TIMEOUT;
use crate::support::http::{Response, send};
use crate::user::User;

/// What stays open.
struct Open {
    stream: Response,
    socket: Socket,
}

impl Open {
    fn with(address: &str, token: &str) -> Self {
        let bearer = format!("Bearer {token}");
        let begun = session(address, token);
        assert_eq!(begun.status, 200, "{begun:?}");
        let headers = [
            CLOSE,
            ("Accept", "text/event-stream"),
            ("MCP-Protocol-Version", "2025-11-25"),
            ("Mcp-Session-Id", begun.header("Mcp-Session-Id").unwrap()),
            ("Authorization", &bearer),
        ];
        let stream = send(address, "GET /mcp", &headers, "");
        assert_eq!(stream.status, 200, "{stream:?}");
        let (reply, socket) = socket(address, &[("Authorization", &bearer)]);
        let mut socket = socket.unwrap_or_else(|| panic!("{reply:?}"));
        socket.say(&initialize());
        assert!(socket.heard().unwrap().contains("serverInfo"));
        Self { stream, socket }
    }

    /// Waits until both have ended.
    fn ends(mut self) {
        assert_eq!(self.socket.heard(), Err(3000), "only the close code");
        self.stream.text();
    }
}

#[test]
fn streams_and_websockets_end_when_their_token_expires() {
    let options = ["--auth-client", "robot:hush", "--auth-token-lifetime", "4"];
    let server = Server::start(&options);
    let address = &server.address;
    // Tokens count whole seconds, and so does their end.
    let before = Instant::now();
    let token = token(address, &server.url());
    Open::with(address, &token).ends();
    let lasted = before.elapsed();
    assert!((3..9).contains(&lasted.as_secs()), "{lasted:?}");
    assert_eq!(session(address, &token).status, 401);
}

#[test]
fn streams_and_websockets_end_soon_after_their_token_is_revoked() {
    let (user, server) = (User::new(), Server::start(&["--auth-introspect", "--auth-introspect-every", "1"]));
    let (address, url) = (&server.address, &server.url());
    user.does(&["auth", "login", url]);
    let token = user.kept()["grants"][0]["value"]["token"].as_str().unwrap().to_owned();
    let open = Open::with(address, &token);
    user.does(&["auth", "logout", url]);
    let before = Instant::now();
    open.ends();
    // Asked again every second, about an answer that is believed for a second.
    assert!(before.elapsed() < Duration::from_secs(6), "{:?}", before.elapsed());
    assert_eq!(session(address, &token).status, 401);
}

#[test]
fn a_watch_continues_with_the_next_token() {
    let (user, server) = (User::new(), Server::start(&["--auth-token-lifetime", "4"]));
    let url = &server.url();
    user.does(&["auth", "login", url, "--scope", "mcp:write"]);
    let mut command = user.command(&["watch", url, "--protocol-version", "modern"]);
    let mut watch = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (said, heard) = mpsc::channel();
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    // The receiver is gone when the test has failed.
    thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| said.send(line)));
    let hears = |what: &str| assert_eq!(heard.recv_timeout(TEST_TIMEOUT).as_deref(), Ok(what));
    hears("listening");
    let before = user.kept();
    hears("listening");
    assert_ne!(user.kept(), before, "the token was renewed");
    user.does(&["call", url, "add_tool", "name=hello", "--yes"]);
    hears("the tools have changed");
    watch.kill().unwrap();
    watch.wait().unwrap();
}

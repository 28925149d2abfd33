//! Unix sockets and paths, through the program.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::support::wait_for;
use crate::support::{INITIALIZE, Server, TEST_TIMEOUT};

/// A server on a Unix socket; killed when it is dropped.
struct Near(Child);

impl Near {
    fn start(socket: &Path, options: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_refmcp"));
        command.args(["serve", "--unix"]).arg(socket).args(options).env_remove("REFMCP_LOG");
        // As on platforms that tell programs their port.
        command.env("PORT", "1");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        wait_for("the socket", || UnixStream::connect(socket).ok());
        Self(child)
    }
}

impl Drop for Near {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The whole response to a request that opens a session.
fn greet(socket: &Path, path: &str, host: &str) -> String {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{INITIALIZE}",
        INITIALIZE.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

fn fails(options: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_refmcp")).arg("serve").args(options).output().unwrap();
    assert!(!output.status.success(), "{options:?}");
    output
}

#[test]
fn a_socket_is_left_to_the_next_server_even_by_one_that_was_killed() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("refmcp.sock");
    let first = Near::start(&socket, &[]);
    let taken = fails(&["--unix", socket.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&taken.stderr).into_owned();
    assert!(said.contains("another server is listening there"), "{said}");
    assert!(greet(&socket, "/mcp", "localhost").starts_with("HTTP/1.1 200 OK"));
    drop(first);
    assert!(socket.exists(), "who is killed cannot remove it");
    let second = Near::start(&socket, &["--path", "/tools", "--allow-host", "mcp.example"]);
    assert!(greet(&socket, "/tools", "mcp.example").starts_with("HTTP/1.1 200 OK"));
    assert!(greet(&socket, "/tools", "evil.example").starts_with("HTTP/1.1 403 "));
    let ended = Command::new("kill").args(["-TERM", &second.0.id().to_string()]).status().unwrap();
    assert!(ended.success());
    wait_for("the socket is gone", || (!socket.exists()).then_some(()));
}

#[test]
fn contradicting_options_are_explained() {
    for (options, hint) in [
        (&["--unix", "s", "--host", "0.0.0.0"][..], "cannot be used with"),
        (&["--unix", "s", "--tls-cert", "c", "--tls-key", "k"], "cannot be used with"),
        (&["--unix", "s", "--auth", "builtin"], "--unix needs --public-url"),
        (&["--unix-mode", "660"], "--unix <PATH>"),
        (&["--host", "unix:/run/s"], "say --unix /run/s"),
        (&["--host", "http://0.0.0.0"], "no URL"),
        (&["--unix", "s", "--port", "3000"], "leave out --port"),
        (&["--port", "0", "--trusted-proxy", "unix"], "add --unix PATH"),
        (&["--port", "0", "--allow-host", "http://foo.example"], "write foo.example"),
        (&["--port", "0", "--allow-origin", "foo.example"], "write https://foo.example"),
        (&["--port", "0", "--public-url", "mcp.example.com"], "write https://mcp.example.com"),
        (&["--path", "mcp"], "begins with /"),
        (&["--path", "/sse"], "/sse is taken"),
        (&["--port", "0", "--path", "/token", "--auth", "builtin"], "authorization server is at /token"),
        (&["--trusted-proxy", "10.0.0.0/99"], "a network such as"),
        (&["--port", "0", "--public-url", "https://mcp.example/elsewhere"], "--public-url is a scheme"),
    ] {
        let said = String::from_utf8(fails(options).stderr).unwrap();
        assert!(said.contains(hint), "{options:?}: {said}");
    }
}

#[test]
fn everything_that_names_a_path_follows_it() {
    let server = Server::start(&["--path", "/api/mcp", "--auth", "builtin"]);
    let get = |path: &str| server.get(path);
    let document = get("/.well-known/oauth-protected-resource/api/mcp");
    assert!(document.contains(&format!("\"resource\":\"http://{}/api/mcp\"", server.address)), "{document}");
    assert!(get("/.well-known/oauth-protected-resource/mcp").starts_with("HTTP/1.1 404 "));
    let refused = get("/api/mcp");
    let place = format!("http://{}/.well-known/oauth-protected-resource/api/mcp", server.address);
    assert!(refused.starts_with("HTTP/1.1 401 ") && refused.contains(&place), "{refused}");
    assert!(get("/mcp").starts_with("HTTP/1.1 404 "));
    let open = Server::start(&["--path", "/api/mcp"]);
    assert!(open.get("/metrics").contains("route=\"/api/mcp/ws\""));
}

#[test]
fn clients_behind_a_trusted_proxy_are_told_the_address_that_they_used() {
    let trusting = ["--trusted-proxy", "127.0.0.1", "--allow-host", "mcp.example", "--path", "/api/mcp"];
    let server = Server::start(&trusting);
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.txt");
    let wary = Server::start_logging(&trusting[2..], std::fs::File::create(&log).unwrap());
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"metadata/get","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let asked = |server: &Server| {
        let mut stream = server.connect();
        let head = format!(
            "POST /api/mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: metadata/get\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: mcp.example\r\n\
             X-Forwarded-For: 203.0.113.9\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    };
    let told = asked(&server);
    for endpoint in ["https://mcp.example/api/mcp", "wss://mcp.example/api/mcp/ws", "https://mcp.example/sse"]
    {
        assert!(told.contains(&format!("\"{endpoint}\"")), "{told}");
    }
    let told = asked(&wary);
    assert!(told.contains(&format!("\"http://{}/api/mcp\"", wary.address)), "{told}");
    assert!(!told.contains("mcp.example"), "{told}");
    let hint = "name it as a trusted proxy (--trusted-proxy)";
    asked(&wary);
    let said = wait_for(hint, || std::fs::read_to_string(&log).ok().filter(|text| text.contains(hint)));
    assert_eq!(said.matches(hint).count(), 1, "once is enough: {said}");
}

#[test]
fn clients_are_told_the_public_address() {
    let server = Server::start(&["--path", "/api/mcp", "--public-url", "https://mcp.example:8443"]);
    let url = format!("http://{}/api/mcp", server.address);
    let mut asked = Command::new(env!("CARGO_BIN_EXE_refmcp"));
    let folder = tempfile::tempdir().unwrap();
    let output =
        asked.args(["raw", &url, "metadata/get"]).env("REFMCP_STATE_DIR", folder.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    for endpoint in [
        "https://mcp.example:8443/api/mcp",
        "wss://mcp.example:8443/api/mcp/ws",
        "https://mcp.example:8443/sse",
    ] {
        assert!(said.contains(endpoint), "{said} {}", String::from_utf8_lossy(&output.stderr));
    }
}

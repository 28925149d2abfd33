//! Servers over HTTP that break the protocol, or that refuse a client.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::bridge;
use crate::support::Server;
use crate::support::http::{Answer, Request, answering};
use crate::support::{Client, Process, Version, program};

/// A bridge to a server that opens sessions and answers everything else with this.
fn after_the_welcome(status: &'static str, head: &'static str, body: &'static str) -> Process {
    let origin = answering(move |request, _| {
        let message = request.message();
        match message["method"].as_str() {
            Some("initialize") => {
                let result = json!({
                    "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
                    "serverInfo": { "name": "strange", "version": "1" },
                });
                let welcome = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
                let head = "Mcp-Session-Id: strange\r\nContent-Type: application/json\r\n";
                Answer("200 OK", head, welcome.to_string())
            }
            Some(method) if method.starts_with("notifications/") => Answer::empty("202 Accepted"),
            None => Answer::empty("405 Method Not Allowed"),
            Some(_) => Answer(status, head, body.to_owned()),
        }
    });
    bridge(&["--to".to_owned(), format!("{origin}/mcp")])
}

#[test]
fn a_lost_session_ends_the_bridge() {
    let mut client = Client::with(Version::Session("2025-11-25"), after_the_welcome("404 Not Found", "", ""));
    // A session that is lost is opened once more.
    for _ in 0..2 {
        let answer = client.ask("tools/list", &json!({}));
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains("no longer knows the session"), "{answer}");
    }
    let exit = client.process.exit();
    assert_eq!(exit.status.code(), Some(4), "{exit:?}");
    assert!(exit.errors.contains("no longer knows the session"), "{exit:?}");
}

#[test]
fn an_error_that_comes_with_a_status_is_passed_on() {
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"enough","data":7}}"#;
    let strange = after_the_welcome("400 Bad Request", "Content-Type: application/json\r\n", body);
    let mut client = Client::with(Version::Session("2025-11-25"), strange);
    for _ in 0..2 {
        let answer = client.ask("tools/list", &json!({}));
        assert_eq!(answer["error"], json!({ "code": -32000, "message": "enough", "data": 7 }), "{answer}");
    }
}

#[test]
fn an_error_without_an_id_is_given_that_of_the_request() {
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"what?"}}"#;
    let strange = after_the_welcome("200 OK", "Content-Type: application/json\r\n", body);
    let mut client = Client::with(Version::Session("2025-11-25"), strange);
    assert_eq!(client.ask("tools/list", &json!({}))["error"]["message"], "what?");
}

#[test]
fn nonsense_is_blamed_on_the_server() {
    for (head, body) in [
        ("Content-Type: text/html\r\n", "<html>"),
        ("Content-Type: application/json\r\n", "nonsense"),
        ("Content-Type: text/event-stream\r\n", "data: nonsense\n\n"),
        ("", ""),
    ] {
        let mut client =
            Client::with(Version::Session("2025-11-25"), after_the_welcome("200 OK", head, body));
        let answer = client.ask("tools/list", &json!({}));
        assert_eq!(answer["error"]["code"], -32603, "{body}: {answer}");
    }
}

#[test]
fn a_server_that_needs_authorization_ends_the_bridge() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = ["--to".to_owned(), format!("http://{}/mcp", listener.local_addr().unwrap())];
    let process = bridge(&to);
    process.send_line(Client::initialize("2025-11-25"));
    let mut stream = BufReader::new(listener.accept().unwrap().0);
    assert_eq!(Request::read(&mut stream).unwrap().message()["method"], "initialize");
    let response = "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Length: 0\r\n\r\n";
    stream.get_mut().write_all(response.as_bytes()).unwrap();
    let answer: Value = serde_json::from_str(&process.next_line().unwrap()).unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains("not authorized"), "{answer}");
    let exit = process.exit();
    assert_eq!(exit.status.code(), Some(3), "{exit:?}");
}

#[test]
fn a_server_with_sessions_serves_clients_without_and_with() {
    let process = after_the_welcome("400 Bad Request", "", "what?");
    process.send_line(Version::Stateless.request("probe", "server/discover", &json!({})));
    let answer: Value = serde_json::from_str(&process.next_line().unwrap()).unwrap();
    assert_eq!(answer["id"], "probe", "{answer}");
    assert_eq!(answer["result"]["capabilities"], json!({ "tools": {} }), "{answer}");
    process.send_line(Version::Stateless.request("list", "tools/list", &json!({})));
    let answer: Value = serde_json::from_str(&process.next_line().unwrap()).unwrap();
    assert!(answer["error"]["message"].as_str().unwrap().contains("what?"), "{answer}");
    let mut client = Client::with(Version::Session("2025-11-25"), process);
    assert!(client.ask("tools/list", &json!({}))["error"].is_object());
}

#[test]
fn a_server_that_speaks_neither_transport_is_out_of_reach() {
    let server = Server::start(&[]);
    let process = bridge(&["--to".to_owned(), format!("http://{}/healthz", server.address)]);
    process.send_line(Client::initialize("2025-11-25"));
    let answer: Value = serde_json::from_str(&process.next_line().unwrap()).unwrap();
    assert_eq!(answer["id"], "init", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("older transport"), "{answer}");
    let exit = process.exit();
    assert_eq!(exit.status.code(), Some(4), "{exit:?}");
}

#[test]
fn a_server_that_floods_a_client_that_does_not_read_costs_no_more_than_the_limit() {
    // Two hundred notifications of a megabyte, and then the result.
    let script = r#"read -r line
        id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-06-18","serverInfo":{"name":"s","version":"1"},"capabilities":{"tools":{},"logging":{}}}}'
        read -r line; read -r line
        id=$(echo "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        data=$(head -c 1000000 /dev/zero | tr '\0' x)
        for n in $(seq 200); do
            printf '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"%s"}}\n' "$data"
        done
        echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[]}}'; echo flooded >&2; read -r line"#;
    let mut command =
        program(&["bridge", "--from", "stdio", "--protocol-version", "legacy", "--", "sh", "-c", script]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let version = Version::Session("2025-06-18");
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let list = version.request(2, "tools/list", &json!({}));
    write!(stdin, "{}\n{initialized}\n{list}\n", Client::initialize("2025-06-18")).unwrap();
    // The server is never held up, although the client reads nothing.
    let mut errors = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(errors.any(|line| line.unwrap().contains("flooded")));
    let mut notified = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let message: Value = serde_json::from_str(&line.unwrap()).unwrap();
        notified += usize::from(message["method"] == "notifications/message");
        if message["id"] == 2 {
            assert!(message["result"].is_object(), "{message}");
            break;
        }
    }
    assert!((1..150).contains(&notified), "{notified} of 200 were kept");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}

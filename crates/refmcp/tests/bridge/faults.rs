//! What a client is told when there is no server, or not any more.

use refmcp_testkit::ports::free_port;
use serde_json::{Value, json};

use crate::support::Server;
use crate::support::{Client, Version};
use crate::{CHILD, bridge, ways};

/// An address without a listener.
fn nowhere() -> String {
    format!("127.0.0.1:{}", free_port())
}

fn error_in(line: &str) -> Value {
    let answer: Value = serde_json::from_str(line).unwrap();
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("refmcp bridge: "), "{answer}");
    answer["id"].clone()
}

#[test]
fn a_server_that_is_not_there() {
    let address = nowhere();
    let at = |scheme: &str| vec!["--to".to_owned(), format!("{scheme}://{address}/mcp")];
    let missing = vec!["--".to_owned(), "/there/is/no/such/program".to_owned()];
    for to in [at("http"), at("sse+http"), at("ws"), missing] {
        let process = bridge(&to);
        process.send_line(Client::initialize("2025-11-25"));
        assert_eq!(error_in(&process.next_line().unwrap()), "init", "{to:?}");
        let exit = process.exit();
        assert_eq!(exit.status.code(), Some(4), "{to:?}: {exit:?}");
        assert!(exit.errors.contains("cannot reach the server"), "{to:?}: {exit:?}");
    }
}

#[test]
fn a_server_that_goes_away_while_it_works() {
    let mut server = Server::start(&[]);
    let ways = ways(&server);
    // Streams of sessions that broke are resumed for a while, if they can be.
    let versions = [Version::Stateless, Version::Session("2025-11-25"), Version::Session("2025-11-25")];
    let mut clients: Vec<_> =
        ways.iter().zip(versions).map(|(way, version)| Client::with(version, bridge(way))).collect();
    for client in &mut clients {
        let params = json!({
            "name": "long_task", "arguments": { "steps": 10_000, "step_ms": 20 }, "_meta": { "progressToken": 1 },
        });
        client.process.send_line(client.version.request(5, "tools/call", &params));
        client.notification("notifications/progress");
    }
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    for client in &mut clients {
        let answer = client.answer_to(&json!(5));
        assert_eq!(error_in(&answer.to_string()), 5);
    }
}

#[test]
fn a_child_that_dies_while_it_works() {
    let to = ["--", "sh", "-c", "read line; echo noise; exit 3"];
    let process = bridge(&to);
    process.send_line(Client::initialize("2025-11-25"));
    assert_eq!(error_in(&process.next_line().unwrap()), "init");
    let exit = process.exit();
    assert!(!exit.status.success() && exit.errors.contains("noise"), "{exit:?}");
}

#[test]
fn what_is_no_message_is_refused_and_the_rest_passes() {
    let mut client = Client::with(Version::Session("2025-11-25"), bridge(&CHILD));
    for (line, code) in [("nonsense", -32700), ("{}", -32600), ("[]", -32600)] {
        client.process.send_line(line);
        let answer = client.next();
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&Value::Null, &json!(code)),
            "{line}: {answer}"
        );
    }
    client.is_served();
}

#[test]
fn messages_in_an_array_are_answered_in_one() {
    let mut client = Client::with(Version::Session("2025-03-26"), bridge(&CHILD));
    let calls: Vec<String> = (0..3)
        .map(|call| client.version.call(call, "echo", &json!({ "message": call.to_string() })))
        .collect();
    client.process.send_line(format!("[{}]", calls.join(",")));
    let answers = client.next();
    let mut texts: Vec<&str> = answers.as_array().unwrap().iter().map(crate::support::text_of).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["0", "1", "2"]);
}

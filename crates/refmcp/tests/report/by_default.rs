//! What `refmcp serve` and `stdio` judge without an option, and the verdict that clients read.

use serde_json::{Value, json};

use crate::piped;
use crate::support::{Client, Process, REFMCP, STATELESS, Server, User, Version, text_of};

const ANSWER: &str = "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}\n";

#[test]
fn a_server_tells_which_rule_its_client_breaks() {
    let ended = piped(&User::new(), &["stdio"], &ANSWER.repeat(3));
    let lines: Vec<_> = ended.err.lines().filter(|line| line.contains("RPC-05")).collect();
    assert_eq!(lines.len(), 1, "{}", ended.err);
    assert!(lines[0].contains("WARN") && lines[0].contains("the client broke a rule: "), "{}", ended.err);
}

#[test]
fn a_conversation_is_summed_up_at_its_end() {
    let ended = piped(&User::new(), &["stdio", "--log", "info"], ANSWER);
    assert!(ended.err.contains("kept 4 rules and broke RPC-05 in 1 message over stdio"), "{}", ended.err);
}

#[test]
fn without_an_audit_nothing_is_judged() {
    let ended = piped(&User::new(), &["stdio", "--no-audit", "--log", "info"], ANSWER);
    assert!(!ended.err.contains("refmcp::audit"), "{}", ended.err);
    assert!(ended.err.contains("was never asked"), "the server itself notices it: {}", ended.err);
    let ended = piped(&User::new(), &["stdio", "--no-audit", "--audit"], "");
    assert!(ended.code != 0 && ended.err.contains("--no-audit"), "{ended:?}");
}

/// The verdict that a client reads.
fn verdict(client: &mut Client) -> Value {
    let read = client.ask("resources/read", &json!({ "uri": "refmcp://verdict" }));
    serde_json::from_str(read["result"]["contents"][0]["text"].as_str().unwrap()).unwrap()
}

#[test]
fn the_beginning_of_a_conversation_is_judged() {
    let mut client = Client::start(Version::Session("2025-06-18"), &["--log", "info"]);
    client.process.send_line(ANSWER.trim());
    for _ in 0..150 {
        client.is_served();
    }
    let verdict = verdict(&mut client);
    assert_eq!((&verdict["complete"], &verdict["messages"]), (&json!(false), &json!(256)), "{verdict}");
    assert_eq!(verdict["broken"][0]["rule"], "RPC-05", "{verdict}");
    client.process.send_line(ANSWER.trim());
    client.is_served();
    client.process.close_input();
    let log = client.process.exit().errors;
    assert!(log.contains("that was the beginning of the conversation, and --audit judges all"), "{log}");
    assert_eq!(log.lines().filter(|line| line.contains("RPC-05\"")).count(), 1, "{log}");
}

#[test]
fn a_client_sees_what_it_broke_in_a_tool_too() {
    for (args, version) in [(&["--audit"][..], Version::Session("2025-11-25")), (&[][..], Version::Stateless)]
    {
        let mut client = Client::with(version, Process::stdio(args));
        client.process.send_line(ANSWER.trim());
        let about: Value = serde_json::from_str(text_of(&client.call("about_me", &json!({})))).unwrap();
        let broken = &about["verdict"]["broken"][0];
        assert!(broken["rule"].is_string() && broken["expected"].is_string(), "{about}");
        assert!(broken["message"].as_str().unwrap().contains("\"id\":7"), "{about}");
        assert_eq!(verdict(&mut client)["broken"][0], *broken);
        client.process.close_input();
    }
    let mut client = Client::start(Version::Stateless, &["--no-audit"]);
    assert_eq!(verdict(&mut client)["judged"], false);
}

#[test]
fn a_client_reads_its_verdict_in_every_revision_over_every_transport() {
    let (user, server) = (User::new(), Server::start(&[]));
    let address = &server.address;
    let urls =
        [format!("http://{address}/mcp"), format!("ws://{address}/mcp"), format!("http://{address}/sse")];
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", STATELESS] {
        let read = ["read", "refmcp://verdict", "--protocol-version", revision];
        let over_stdio = user.with(&read, &[REFMCP, "stdio"]);
        let over_network = urls.iter().filter(|url| !url.ends_with("/sse") || revision == "2024-11-05");
        let over_network = over_network.map(|url| {
            let words = [&["read", url.as_str()][..], &read[1..]].concat();
            user.run(&words)
        });
        for ended in over_network.chain([over_stdio]) {
            let verdict: Value = serde_json::from_str(&ended.out).unwrap_or_else(|_| panic!("{ended:?}"));
            let (judged, broken) = (&verdict["judged"], &verdict["broken"]);
            assert_eq!((judged, broken), (&json!(true), &json!([])), "{revision} {verdict:#}");
            assert!(verdict["kept"].as_u64().unwrap() > 2, "{revision} {verdict:#}");
        }
    }
}

//! Lines: too long, blank, ended in odd ways; and nothing but messages on stdout.

use serde_json::{Value, json};

use crate::support::{Client, Process, Version, program, text_of};

const SESSION: Version = Version::Session("2025-06-18");
const LIMIT: usize = 4 << 20;

#[test]
fn a_line_over_the_limit_is_answered_and_skipped() {
    for version in [SESSION, Version::Stateless] {
        let mut client = Client::start(version, &[]);
        let wrapping = version.call(7, "echo", &json!({ "message": "" })).len();
        let message = "x".repeat(LIMIT - wrapping);
        client.process.send_line(version.call(7, "echo", &json!({ "message": message })));
        assert_eq!(text_of(&client.answer_to(&json!(7))).len(), message.len(), "exactly as long as allowed");
        client.process.send_line(version.call(8, "echo", &json!({ "message": format!("{message}x") })));
        let answer = client.next();
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
        assert!(answer["error"]["message"].to_string().contains("longer than 4194304"), "{answer}");
        assert_ne!(answer["id"], 8, "it was not read");
        client.hears_nothing("one answer");
    }
}

#[test]
fn input_without_an_end_takes_no_memory() {
    let mut client = Client::start(SESSION, &[]);
    // The pages of the program itself are no matter of its input.
    let before = client.process.memory("VmHWM");
    for _ in 0..64 {
        client.process.send(vec![b'x'; 1 << 20]);
    }
    client.process.send("\n");
    let answer = client.next();
    assert!(answer["error"]["message"].to_string().contains("longer"), "{answer}");
    client.hears_nothing("one answer");
    let more = client.process.memory("VmHWM") - before;
    assert!(more < 20.0, "{more} MiB more");
}

#[test]
fn line_ends_and_blank_lines() {
    let mut client = Client::start(SESSION, &[]);
    let request = |id: u64| SESSION.call(id, "echo", &json!({ "message": "x" }));
    let sent = format!("\n\r\n  \n{}\r\n\n{}\n\r\r\n{} \t\r\n", request(1), request(2), request(3));
    client.process.send(sent);
    for id in 1..=3 {
        assert_eq!(text_of(&client.answer_to(&json!(id))), "x");
    }
    client.hears_nothing("blank lines are nothing");
}

#[test]
fn a_message_may_come_byte_by_byte() {
    let mut client = Client::start(SESSION, &[]);
    let sent = format!("{}\n", SESSION.call(7, "echo", &json!({ "message": "größer" })));
    for byte in sent.bytes() {
        client.process.send([byte]);
    }
    assert_eq!(text_of(&client.answer_to(&json!(7))), "größer");
}

/// Line breaks and separators inside of results never break a line, whatever else goes on.
#[test]
fn stdout_carries_messages_only() {
    for version in [SESSION, Version::Session("2025-11-25"), Version::Stateless] {
        let mut client = Client::with(version, Process::spawn(program(&["--log", "trace", "stdio"])));
        let sources = json!({ "message": "a\nb\r\nc\u{2028}d\u{0}e\u{1b}[2J\u{7f}" });
        for round in 0..20 {
            client.process.send_line(version.call(format!("e{round}"), "echo", &sources));
            client.process.send_line(version.call(format!("l{round}"), "log_all", &json!({})));
            client.process.send_line(version.call(format!("f{round}"), "fail", &json!({})));
            client.process.send_line(version.call(format!("p{round}"), "protocol_error", &json!({})));
            client.process.send_line(version.call(format!("m{round}"), "mixed", &json!({})));
            client.process.send_line("no message");
            let params = json!({
                "name": "long_task", "arguments": { "steps": 3, "step_ms": 1 }, "_meta": { "progressToken": round },
            });
            client.process.send_line(version.request(format!("t{round}"), "tools/call", &params));
        }
        for round in 0..20 {
            for kind in ["e", "l", "f", "p", "m", "t"] {
                let answer = client.answer_to(&json!(format!("{kind}{round}")));
                assert_eq!(answer["jsonrpc"], "2.0");
            }
        }
        client.process.close_input();
        let exit = client.process.exit();
        for line in &exit.lines {
            let message: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("noise: {line}"));
            assert_eq!(message["jsonrpc"], "2.0", "{line}");
        }
        assert_eq!(exit.status.code(), Some(0));
        assert!(exit.errors.contains("refmcp::calls"), "the log is on stderr: {}", exit.errors);
        assert!(!exit.errors.contains('\u{1b}'), "no colours where there is no terminal: {}", exit.errors);
    }
}

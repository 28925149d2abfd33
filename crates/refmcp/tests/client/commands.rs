//! Every command over every transport and revision: results, exit codes, consent, traces.

use std::fs;
use std::process::Stdio;

use crate::support::Server;
use crate::support::http::{Answer, answering};
use crate::support::{REFMCP, User};
use refmcp_testkit::ports::free_port;
use serde_json::{Value, json};

#[test]
fn every_command_reaches_every_transport() {
    let (user, server) = (User::new(), Server::start(&[]));
    let address = &server.address;
    let targets = [
        format!("http://{address}/mcp"),
        format!("sse+http://{address}/sse"),
        format!("ws://{address}/mcp/ws"),
    ];
    for target in &targets {
        for (words, expected) in [
            (&["call", target, "sum", "a=1", "b=2.5"][..], "{\"total\":3.5}\n"),
            (&["read", target, "file:///notes/todo.txt"], "- [ ] water the plants\n"),
            (&["prompt", target, "code_review", "code=x"], "Please review this Python code:\nx\n"),
            (&["complete", "--prompt", "code_review", target, "language=ru"], "rust\n"),
            (&["list", "tools", target], "sum  Sum\n"),
            (&["list", target], "PROMPTS\n"),
            (&["info", target], "RefMCP-TestServer"),
            (&["raw", target, "tools/list"], "\"tools\": ["),
            (&["call", target, "long_task", "steps=2", "step_ms=1"], "done: 2 of 2 steps\n"),
        ] {
            let came = user.run(words);
            assert_eq!((came.code, came.out.contains(expected)), (0, true), "{words:?}: {came:?}");
        }
    }
}

#[test]
fn every_revision_can_be_asked_for() {
    let user = User::new();
    for (version, revision) in [
        ("auto", "2026-07-28"),
        ("modern", "2026-07-28"),
        ("legacy", "2025-11-25"),
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
    ] {
        let came = user.with_stdio(&["info", "--output", "json", "--protocol-version", version]);
        let document: Value = serde_json::from_str(&came.out).unwrap_or_else(|_| panic!("{came:?}"));
        assert_eq!(document["protocolVersion"], revision, "{version}");
    }
}

#[test]
fn a_requested_version_is_not_remembered() {
    let user = User::new();
    for (version, spoken) in [("2025-06-18", "2025-06-18"), ("auto", "2026-07-28")] {
        let info = user.with_stdio(&["info", "--protocol-version", version, "--output", "json"]);
        let info: Value = serde_json::from_str(&info.out).unwrap();
        assert_eq!(info["protocolVersion"], spoken, "--protocol-version {version}");
    }
}

#[test]
fn the_exit_code_says_what_happened() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    let nowhere = format!("http://127.0.0.1:{}/mcp", free_port());
    let wants_token = answering(|_, _| Answer::empty("401 Unauthorized\r\nWWW-Authenticate: Bearer"));
    let wants_token = format!("{wants_token}/mcp");
    let gives_reasons = answering(|request, _| {
        let status = if request.path == "/mcp" { "401 Unauthorized" } else { "403 Forbidden" };
        Answer::json(
            status,
            &json!({ "error": "denied", "error_description": "the key\u{1b}[2J is too old" }),
        )
    });
    let (no_token, forbidden) = (format!("{gives_reasons}/mcp"), format!("{gives_reasons}/other"));
    let no_socket = no_token.replace("http", "ws");
    for (words, code, said) in [
        (&["call", &url, "echo", "message=hi"][..], 0, ""),
        (&["call", &url, "echo"], 1, "message: missing"),
        (&["call", &url, "sum", "a=x", "b=1"], 1, "expected a number"),
        (&["call", &url, "ecco"], 1, "has no tool \"ecco\""),
        (&["call", &url, "protocol_error"], 1, "(1001)"),
        (&["read", &url, "file:///nothing"], 1, "-32602"),
        (&["frobnicate"], 1, "frobnicate"),
        (&["list", "unknown"], 1, "no server is called \"unknown\""),
        (&["list", &nowhere], 4, "cannot reach the server"),
        (&["list", "--", "/no/such/program"], 4, "/no/such/program"),
        (&["list", "--", "false"], 4, "exit status"),
        (&["list", &wants_token], 3, "to log in: refmcp auth login http://"),
        (&["list", &no_token], 3, "; the server says: the key\\u{1b}[2J is too old; to log in"),
        (&["list", &no_socket], 3, "; the server says: the key\\u{1b}[2J is too old; to log in"),
        (
            &["list", &no_token, "-H", "Authorization: Bearer x"],
            3,
            "(status 401): the key\\u{1b}[2J is too old; to log in",
        ),
        (&["list", &forbidden], 4, "refused with status 403: the key\\u{1b}[2J is too old"),
        (&["call", &url, "fail"], 5, ""),
    ] {
        let came = user.run(words);
        assert_eq!(came.code, code, "{words:?}: {came:?}");
        assert!(came.err.contains(said), "{words:?}: {came:?}");
    }
}

#[test]
fn results_come_as_one_document_or_as_every_message() {
    let user = User::new();
    let came = user.with_stdio(&["call", "sum", "a=1", "b=2", "--output", "json"]);
    let document: Value = serde_json::from_str(&came.out).unwrap();
    assert_eq!(document["structuredContent"], json!({ "total": 3 }));
    let trace = user.word("trace.jsonl");
    let came = user.with_stdio(&["call", "sum", "a=1", "b=2", "--output", "jsonl", "--record", &trace]);
    let trace = fs::read_to_string(&trace).unwrap();
    let messages = trace.lines().filter(|line| line.contains(r#""event":"message""#));
    assert_eq!(came.out, messages.map(|line| format!("{line}\n")).collect::<String>(), "both say the same");
    let lines: Vec<Value> = came.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sent: Vec<&Value> = lines.iter().filter(|line| line["direction"] == "sent").collect();
    let methods: Vec<&str> = sent.iter().map(|line| line["message"]["method"].as_str().unwrap()).collect();
    assert_eq!(methods, ["server/discover", "tools/list", "tools/call"]);
    let answered = lines.iter().filter(|line| line["direction"] == "received").count();
    assert_eq!(answered, 3);
    assert!(lines.iter().all(|line| line["at"].is_u64()), "{lines:?}");
}

#[test]
fn a_trace_has_heads_and_messages_and_masks_credentials() {
    use std::os::unix::fs::PermissionsExt;
    let (user, server) = (User::new(), Server::start(&[]));
    let trace = user.word("trace.jsonl");
    for target in
        [format!("http://{}/mcp?key=hush", server.address), format!("ws://{}/mcp/ws", server.address)]
    {
        let words = ["call", &target, "echo", "message=hé", "-H", "X-Api-Key: hush", "--record", &trace];
        let came = user.run(&words);
        assert_eq!(came.code, 0, "{came:?}");
    }
    assert_eq!(fs::metadata(&trace).unwrap().permissions().mode() & 0o777, 0o600, "arguments can be secrets");
    let trace = fs::read_to_string(&trace).unwrap();
    assert!(!trace.contains("hush"), "{trace}");
    let lines: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    let opened: Vec<&Value> = of("opened").iter().map(|line| &line["transport"]).collect();
    assert_eq!(opened, ["http", "websocket"]);
    let heads = of("head");
    let post = heads.iter().find(|head| head["method"] == "POST").unwrap();
    assert_eq!((&post["target"], &post["direction"]), (&json!("/mcp?key=***"), &json!("sent")));
    assert_eq!(post["headers"]["x-api-key"], "***");
    assert!(heads.iter().any(|head| head["status"] == 200 && head["stream"] == post["stream"]), "{trace}");
    assert!(heads.iter().any(|head| head["status"] == 101), "{trace}");
    let calls: Vec<&&Value> = heads.iter().filter(|head| head["target"] == "/mcp/ws").collect();
    assert_eq!(calls.len(), 1);
    let sent =
        of("message").iter().filter(|line| line["message"]["params"]["arguments"]["message"] == "hé").count();
    assert_eq!(sent, 2);
    assert_eq!(of("closed").len(), 2);
}

#[test]
fn the_inspectors_flags_are_understood() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    for (words, pointer, expected) in [
        (&["--cli", &url, "--method", "tools/list"][..], "/tools/1/name", json!("echo")),
        (
            &[
                "--cli",
                REFMCP,
                "stdio",
                "--method",
                "tools/call",
                "--tool-name",
                "echo",
                "--tool-arg",
                "message=hi",
            ],
            "/content/0/text",
            json!("hi"),
        ),
        (
            &[
                "--cli",
                &url,
                "--method",
                "tools/call",
                "--tool-name",
                "echo",
                "--tool-arg",
                "message=hi",
                "--metadata",
                "a=1",
                "--tool-metadata",
                "b=2",
            ],
            "/content/0/text",
            json!("hi"),
        ),
        (
            &["--cli", &url, "--method", "resources/read", "--uri", "file:///data/custom.json"],
            "/contents/0/uri",
            json!("file:///data/custom.json"),
        ),
        (
            &[
                "--cli",
                &url,
                "--method",
                "prompts/get",
                "--prompt-name",
                "refactor",
                "--prompt-args",
                "code=x",
            ],
            "/messages/0/role",
            json!("user"),
        ),
    ] {
        let came = user.run(words);
        let document: Value =
            serde_json::from_str(&came.out).unwrap_or_else(|_| panic!("{words:?}: {came:?}"));
        assert_eq!(document.pointer(pointer), Some(&expected), "{words:?}");
    }
}

#[test]
fn nothing_is_started_without_consent() {
    let user = User::new();
    let config = json!({ "mcpServers": {
        "ours": { "command": REFMCP, "args": ["stdio"] },
        "off": { "command": REFMCP, "disabled": true },
    } });
    let file = user.write("mcp.json", &config.to_string());
    let came = user.run(&["call", "ours", "echo", "message=hi"]);
    assert_eq!(came.code, 1, "{came:?}");
    assert!(came.err.contains("would start") && came.err.contains("stdio"), "{came:?}");
    assert_eq!(user.run(&["call", "--yes", "ours", "echo", "message=hi"]).out, "hi\n");
    let came = user.run(&["trust", "allow", "ours", "--config", &file]);
    assert_eq!(came.code, 0, "{came:?}");
    assert_eq!(user.run(&["call", "ours", "echo", "message=hi"]).out, "hi\n");
    assert!(user.run(&["trust", "list"]).out.contains("stdio"));
    assert!(user.run(&["call", "off", "echo"]).err.contains("disabled"));
    fs::write(&file, config.to_string().replace("stdio", "stdio\",\"--name\",\"changed")).unwrap();
    assert_eq!(
        user.run(&["call", "ours", "echo", "message=hi"]).code,
        1,
        "another command needs another decision"
    );
}

#[test]
fn calls_are_logged() {
    let user = User::new();
    user.with_stdio(&["call", "echo", "message=first"]);
    user.with_stdio(&["call", "fail"]);
    user.with_stdio(&["call", "echo", "message=secret", "--mask-arguments"]);
    let came = user.run(&["log", "--json"]);
    let lines: Vec<Value> = came.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kept: Vec<_> =
        lines.iter().map(|line| (&line["tool"], &line["outcome"], &line["arguments"])).collect();
    assert_eq!(
        kept,
        [
            (&json!("echo"), &json!("ok"), &json!({ "message": "first" })),
            (&json!("fail"), &json!("tool_error"), &json!({})),
            (&json!("echo"), &json!("ok"), &json!({ "message": "***" })),
        ]
    );
    assert!(!came.out.contains("secret"));
}

#[test]
fn requests_of_servers_are_answered_without_a_terminal_where_allowed() {
    let user = User::new();
    let refused = user.with_stdio(&["call", "ask_user", "form=all"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    let sampled = user.with_stdio(&["call", "ask_model", "prompt=hm", "--sampler", "echo 'four times two'"]);
    assert!(sampled.out.contains("four times two"), "{sampled:?}");
    let roots = user.with_stdio(&["call", "list_roots", "--root", "/tmp"]);
    assert!(roots.out.contains("file:///tmp"), "{roots:?}");
}

#[test]
fn a_server_leaves_nothing_behind() {
    let user = User::new();
    let script = "exec 3>&1; sleep 1000 & exec \"$0\" stdio";
    let came = user.run(&["call", "echo", "message=hi", "--", "sh", "-c", script, REFMCP]);
    assert_eq!(came.out, "hi\n", "{came:?}");
    let mark = user.word("state");
    let left = fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter(|entry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(&mark)
    });
    assert_eq!(left.map(|entry| entry.path()).collect::<Vec<_>>(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn output_that_is_not_read_is_no_error() {
    let user = User::new();
    let mut child = user
        .command(&["call", "big_result", "bytes=2000000", "--", REFMCP, "stdio"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn at_info_every_request_is_logged_without_its_arguments() {
    let user = User::new();
    let ended = user.with_stdio(&["call", "echo", "message=hush", "--log", "info"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "hush\n"), "{ended:?}");
    let logged = |line: &&str| line.contains("refmcp::calls");
    let lines: Vec<&str> = ended.err.lines().filter(logged).collect();
    let [list, call] = lines[..] else { panic!("{ended:?}") };
    assert!(list.contains(r#"method="tools/list" seconds="#), "{list}");
    assert!(call.contains(r#"method="tools/call" subject="echo" seconds="#), "{call}");
    assert!(call.contains(r#"ending="done""#) && !ended.err.contains("hush"), "{call}");
    let ended = user.with_stdio(&["raw", "no/such", "--log", "refmcp::calls=info"]);
    assert!(
        ended.err.contains(r#"method="no/such""#) && ended.err.contains(r#"ending="failed""#),
        "{ended:?}"
    );
}

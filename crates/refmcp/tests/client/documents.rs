//! `--output json`: one document from every command, and errors as documents too.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use super::support::Server;
use super::support::{Ended, REFMCP, User};

fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn every_command_has_a_document() {
    let user = User::new();
    user.with_stdio(&["call", "echo", "message=hi"]);
    for (words, pointer, expected) in [
        (&["info"][..], "/serverInfo/name", json!("RefMCP-TestServer")),
        (&["list", "tools"], "/tools/1/name", json!("echo")),
        (&["call", "sum", "a=1", "b=2"], "/structuredContent/total", json!(3)),
        (&["read", "file:///notes/todo.txt"], "/contents/0/uri", json!("file:///notes/todo.txt")),
        (&["prompt", "code_review", "code=x"], "/messages/0/role", json!("user")),
        (&["complete", "--prompt", "code_review", "language=ru"], "/completion/values/1", json!("rust")),
        (&["raw", "tools/list"], "/tools/1/name", json!("echo")),
    ] {
        let words = [words, &["-o", "json"]].concat();
        let came = user.with_stdio(&words);
        assert_eq!(document(&came.out).pointer(pointer), Some(&expected), "{words:?}: {came:?}");
    }
    for (words, pointer, expected) in [
        (&["trust", "allow", "--tool", "t", "http://h/"][..], "/subject", json!("t of http://h/")),
        (&["trust", "disable", "--tool", "t", "--", "x", "--key", "y"], "/decision", json!("disabled")),
        (&["trust", "list"], "/tools/0/decision", json!("allowed")),
        (&["trust", "revoke", "--tool", "t", "http://h/"], "/found", json!(true)),
        (&["trust", "revoke", "--tool", "t", "http://h/"], "/found", json!(false)),
        (&["log"], "/0/tool", json!("echo")),
        (&["auth", "status"], "", json!([])),
        (&["auth", "keyring"], "/sealed", json!(false)),
        (&["auth", "logout", "http://h/"], "/forgotten", json!(0)),
    ] {
        let words = [words, &[]].concat();
        let at = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let words = [&words[..at], &["-o", "json"], &words[at..]].concat();
        let came = user.run(&words);
        assert_eq!(document(&came.out).pointer(pointer), Some(&expected), "{words:?}: {came:?}");
    }
    for words in [&["trust", "list", "-o", "jsonl"][..], &["log", "-o", "jsonl"]] {
        let came = user.run(words);
        assert!(came.out.lines().count() >= 1 && came.out.lines().all(|line| document(line).is_object()));
    }
}

#[test]
fn errors_are_documents_where_results_are() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    for (words, code, reason, said) in [
        (&["call", &url, "protocol_error", "-o", "json"][..], 1, "failed", "(1001)"),
        (&["call", &url, "echo", "-o", "json"], 1, "usage", "message: missing"),
        (&["list", "-o", "json", "--", "false"], 4, "unreachable", "exit status 1"),
        (&["list", "-o", "jsonl", "--", "false"], 4, "unreachable", "exit status 1"),
        (&["frobnicate", "--output=json"], 1, "usage", "frobnicate"),
        (&["list", "-o", "json"], 1, "usage", "missing: the target"),
        (&["trust", "allow", "unknown", "-o", "json"], 1, "usage", "unknown"),
        (&["auth", "status", &url, "-o", "json"], 3, "authorization", "not logged in"),
    ] {
        let came = user.run(words);
        let last = came.err.lines().last().unwrap_or_default();
        let error = &document(last)["error"];
        assert_eq!(
            (came.code, &error["exitCode"], &error["reason"]),
            (code, &json!(code), &json!(reason)),
            "{came:?}"
        );
        assert!(error["message"].as_str().unwrap().contains(said), "{words:?}: {came:?}");
    }
    let came = user.run(&["call", &url, "protocol_error", "-o", "json"]);
    assert_eq!(document(&came.err).pointer("/error/rpc/code"), Some(&json!(1001)), "{came:?}");
    let came = user.run(&["call", &url, "protocol_error"]);
    assert!(came.err.starts_with("refmcp: "), "{came:?}");
    let came = user.run(&["--cli", &url, "--method", "nothing/like/it"]);
    assert!(came.err.starts_with("refmcp: "), "the Inspector's flags bring no JSON errors: {came:?}");
}

#[test]
fn arguments_come_from_standard_input() {
    let user = User::new();
    for (words, input, expected) in [
        (&["call", "sum", "b=5", "--json", "-"][..], r#"{"a": 1, "b": 2}"#, "{\"total\":6}\n"),
        (&["prompt", "code_review", "--json", "-"], r#"{"code": "let x"}"#, "let x"),
        (&["raw", "tools/call", "-"], r#"{"name": "echo", "arguments": {"message": "raw"}}"#, "\"raw\""),
    ] {
        let words: Vec<&str> = words.iter().copied().chain(["--", REFMCP, "stdio"]).collect();
        let mut command = user.command(&words);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let came = Ended::from(child.wait_with_output().unwrap());
        assert!(came.code == 0 && came.out.contains(expected), "{words:?}: {came:?}");
    }
}

#[test]
fn where_a_server_listens_is_a_document() {
    let user = User::new();
    let mut command = user.command(&["serve", "--port", "0", "-o", "json"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let endpoints = document(&line)["endpoints"].clone();
    let came = user.run(&["call", endpoints["webSocket"].as_str().unwrap(), "echo", "message=hi"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(came.out, "hi\n", "{came:?}");
    assert!(endpoints["streamableHttp"].as_str().unwrap().ends_with("/mcp"), "{endpoints}");
}

#[test]
fn where_a_bridge_listens_is_a_document() {
    let user = User::new();
    let words = ["bridge", "--from", "http://127.0.0.1:0/mcp", "-o", "json", "--", REFMCP, "stdio"];
    let mut child = user.command(&words).stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut line).unwrap();
    let listening = document(&line)["listening"].clone();
    let came = user.run(&["call", listening.as_str().unwrap(), "echo", "message=hi"]);
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(came.out, "hi\n", "{came:?}");
}

#[test]
fn what_a_server_writes_to_stderr_can_be_hidden_or_kept() {
    let user = User::new();
    let server = |script: &str| ["--", "sh", "-c", script, REFMCP].map(str::to_owned);
    let run = |options: &[&str], script: &str| {
        let server = server(script);
        let words = [&["call", "echo", "message=hi"], options].concat();
        let words: Vec<&str> = words.into_iter().chain(server.iter().map(String::as_str)).collect();
        user.run(&words)
    };
    let talks = "echo chatter >&2; exec \"$0\" stdio";
    assert!(run(&[], talks).err.contains("chatter"));
    assert!(run(&["--server-stderr", "show"], talks).err.contains("chatter"));
    let came = run(&["--server-stderr", "hide"], talks);
    assert_eq!((came.out.as_str(), came.err.as_str()), ("hi\n", ""));
    let file = user.word("stderr.log");
    for _ in 0..2 {
        let came = run(&["--server-stderr", &file], talks);
        assert_eq!((came.out.as_str(), came.err.as_str()), ("hi\n", ""));
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "chatter\nchatter\n");
    // Why it failed is told in any case.
    let fails = "echo no database >&2; exit 3";
    for options in [&["--server-stderr", "hide"][..], &["--server-stderr", &file]] {
        let came = run(options, fails);
        assert_eq!(came.code, 4, "{came:?}");
        assert_eq!(came.err.matches("it last wrote: no database").count(), 1, "{came:?}");
    }
    let hangs = "echo waiting for godot >&2; exec sleep 100";
    let came = run(&["--server-stderr", "hide", "--timeout", "1"], hangs);
    assert!(came.code == 4 && came.err.contains("it last wrote: waiting for godot"), "{came:?}");
    let came = run(&["--server-stderr", "/no/such/folder/file"], talks);
    assert!(came.code == 1 && came.err.contains("/no/such/folder/file"), "{came:?}");
}

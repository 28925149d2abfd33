//! What can be typed: help, mistakes, and what each option does.

use serde_json::{Value, json};

use crate::support::{Client, Exit, Process, Version, program};

const SESSION: Version = Version::Session("2025-06-18");

fn run(args: &[&str]) -> Exit {
    let mut process = Process::spawn(program(args));
    process.close_input();
    process.exit()
}

#[test]
fn help_and_version_go_to_stdout() {
    for args in [&["--help"][..], &["-h"], &["help"], &["stdio", "--help"]] {
        let exit = run(args);
        assert_eq!(exit.status.code(), Some(0), "{args:?}: {exit:?}");
        assert!(exit.errors.is_empty() && exit.lines.join("\n").contains("Usage:"), "{args:?}: {exit:?}");
    }
    let exit = run(&["--version"]);
    assert_eq!((exit.status.code(), exit.errors.as_str()), (Some(0), ""));
    assert_eq!(exit.lines, [format!("refmcp {}", env!("CARGO_PKG_VERSION"))]);
}

#[test]
fn mistakes_go_to_stderr() {
    for (args, word) in [
        (&["--unknown"][..], "--unknown"),
        (&["stdio", "--unknown"], "--unknown"),
        (&["unknown"], "unknown"),
        (&["stdio", "extra"], "extra"),
        (&["stdio", "--page-size", "0"], "--page-size"),
        (&["stdio", "--page-size", "x"], "--page-size"),
        (&["stdio", "--profile", "x"], "conformance"),
        (&["stdio", "--grace", "-1"], "-1"),
        (&["stdio", "--grace", "x"], "number of seconds"),
        (&["stdio", "--policy"], "--policy"),
        (&[], "Usage:"),
    ] {
        let exit = run(args);
        assert_eq!(exit.status.code(), Some(1), "{args:?}: {exit:?}");
        assert!(exit.lines.is_empty() && exit.errors.contains(word), "{args:?}: {exit:?}");
    }
}

/// What cannot be done is said in one line.
#[test]
fn errors_are_one_line() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("file");
    std::fs::write(&file, "x").expect("written");
    let (file, missing) = (file.to_str().expect("UTF-8"), dir.path().join("missing"));
    let missing = missing.to_str().expect("UTF-8");
    for (args, word) in [
        (["stdio", "--resources", missing], missing),
        (["stdio", "--resources", file], file),
        (["stdio", "--prompts", missing], missing),
        (["stdio", "--prompts", file], file),
        (["stdio", "--log", "a=b=c"], "--log"),
        (["stdio", "--log", "refmcp=loud"], "--log"),
    ] {
        let exit = run(&args);
        assert_eq!(exit.status.code(), Some(1), "{args:?}: {exit:?}");
        assert!(exit.lines.is_empty(), "{exit:?}");
        let said = exit.errors.trim_end();
        assert!(said.starts_with("refmcp: ") && said.contains(word) && said.lines().count() == 1, "{said}");
        assert!(said.matches("os error").count() <= 1, "the system's words stand there once: {said}");
    }
}

#[test]
fn the_log_can_be_set_by_the_environment() {
    let mut command = program(&["stdio"]);
    command.env("REFMCP_LOG", "info");
    let mut client = Client::with(SESSION, Process::spawn(command));
    client.is_served();
    client.process.close_input();
    let exit = client.process.exit();
    assert!(exit.errors.contains("subject=\"echo\""), "{exit:?}");
    assert!(!exit.errors.contains("still here"), "arguments are not logged: {exit:?}");
    let lines: Vec<&str> = exit.errors.lines().collect();
    let [start, .., stop] = lines[..] else { panic!("{exit:?}") };
    assert!(start.contains("INFO refmcp::stdio: serving on standard input and output"), "{start}");
    assert!(stop.contains("INFO refmcp::stdio: stopped end=Closed"), "{stop}");
}

#[test]
fn pages_have_the_size_that_was_asked_for() {
    for (size, method, list) in
        [("1", "prompts/list", "prompts"), ("7", "tools/list", "tools"), ("7", "resources/list", "resources")]
    {
        let mut whole = Client::start(SESSION, &[]);
        let all = whole.ask(method, &json!({}))["result"][list].clone();
        let mut client = Client::start(SESSION, &["--page-size", size]);
        let most: usize = size.parse().expect("a number");
        let (mut seen, mut cursor) = (Vec::new(), None::<Value>);
        loop {
            let params = cursor.take().map_or(json!({}), |cursor| json!({ "cursor": cursor }));
            let page = client.ask(method, &params)["result"].clone();
            let items = page[list].as_array().expect("a list").clone();
            assert!(items.len() <= most, "{method}: {}", items.len());
            seen.extend(items);
            match page.get("nextCursor") {
                Some(next) => cursor = Some(next.clone()),
                None => break,
            }
        }
        assert_eq!(Value::Array(seen), all, "{method}");
    }
}

#[test]
fn profiles_offer_what_they_say() {
    for (profile, reference, fixtures) in
        [("reference", true, false), ("conformance", false, true), ("all", true, true)]
    {
        let mut client = Client::start(SESSION, &["--profile", profile]);
        let tools = client.ask("tools/list", &json!({})).to_string();
        assert_eq!(tools.contains("\"echo\""), reference, "{profile}");
        assert_eq!(tools.contains("\"test_simple_text\""), fixtures, "{profile}");
        let prompts = client.ask("prompts/list", &json!({})).to_string();
        assert_eq!(prompts.contains("\"code_review\""), reference, "{profile}");
        assert_eq!(prompts.contains("\"test_simple_prompt\""), fixtures, "{profile}");
        let resources = client.ask("resources/list", &json!({})).to_string();
        assert_eq!(resources.contains("file:///notes/todo.txt"), reference, "{profile}");
        assert_eq!(resources.contains("test://"), fixtures, "{profile}");
        let models = client.ask("models/list", &json!({}));
        assert_eq!(models["result"].is_object(), reference, "{profile}: {models}");
    }
}

#[test]
fn the_name_can_be_changed() {
    let process = Process::stdio(&["--name", "Other"]);
    process.send_line(Client::initialize("2025-06-18"));
    let answer: Value = serde_json::from_str(&process.next_line().expect("an answer")).expect("JSON");
    assert_eq!(answer["result"]["serverInfo"]["name"], "Other");
}

#[test]
fn the_version_can_be_changed_and_is_the_same_everywhere() {
    let mut client = Client::start(SESSION, &["--name", "Other", "--server-version", "7.8.9-rc.1"]);
    let metadata = client.ask("metadata/get", &json!({}))["result"].clone();
    assert_eq!((&metadata["name"], &metadata["version"]), (&json!("Other"), &json!("7.8.9-rc.1")));
    let process = Process::stdio(&["--server-version", "7.8.9-rc.1"]);
    process.send_line(Client::initialize("2025-06-18"));
    let answer: Value = serde_json::from_str(&process.next_line().expect("an answer")).expect("JSON");
    assert_eq!(
        answer["result"]["serverInfo"],
        json!({
            "name": "RefMCP-TestServer",
            "title": answer["result"]["serverInfo"]["title"],
            "version": "7.8.9-rc.1",
        })
    );
    let mut own = Client::start(SESSION, &[]);
    assert_eq!(own.ask("metadata/get", &json!({}))["result"]["version"], env!("CARGO_PKG_VERSION"));
}

#[test]
fn a_lenient_server_serves_early_requests() {
    let process = Process::stdio(&["--policy", "lenient"]);
    process.send_line(Client::initialize("2025-06-18"));
    process.send_line(SESSION.call(7, "echo", &json!({ "message": "early" })));
    process.next_line().expect("an answer");
    assert!(process.next_line().expect("an answer").contains("early"));
}

#[test]
fn a_client_that_answers_no_ping_is_left() {
    let mut client = Client::start(SESSION, &["--ping-after", "0.2", "--ping-timeout", "0.3"]);
    client.notification("ping");
    let exit = client.process.exit();
    assert_eq!((exit.status.code(), exit.errors.as_str()), (Some(0), ""), "{exit:?}");
}

#[test]
fn a_client_that_answers_pings_stays() {
    let mut client = Client::start(SESSION, &["--ping-after", "0.2", "--ping-timeout", "0.5"]);
    for _ in 0..4 {
        let ping = client.notification("ping");
        client.process.send_line(json!({ "jsonrpc": "2.0", "id": ping["id"], "result": {} }).to_string());
    }
    client.is_served();
}

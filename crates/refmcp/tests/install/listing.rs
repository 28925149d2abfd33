//! `refmcp servers`: what is configured, where, and whether it may be started.

use serde_json::{Value, json};

use super::User;

fn listed(user: &User) -> Value {
    serde_json::from_str(&user.done(&["servers", "--output", "json"])).unwrap()
}

fn names(listing: &Value) -> Vec<(&str, &str, Option<&str>)> {
    let text = |server: &'_ Value, member: &str| server[member].as_str().map(str::to_owned);
    let all = listing["servers"].as_array().unwrap();
    all.iter()
        .map(|server| {
            assert!(text(server, "file").is_some());
            (
                server["name"].as_str().unwrap(),
                server["transport"].as_str().unwrap(),
                server["start"].as_str(),
            )
        })
        .collect()
}

#[test]
fn servers_of_every_usual_file_are_listed() {
    let user = User::at_work();
    assert_eq!(user.done(&["servers"]), "no configuration file names a server\n");
    for (host, scope, name) in [
        ("vscode", None, "a"),
        ("vscode", Some("--user"), "b"),
        ("claude-desktop", None, "c"),
        ("claude-code", None, "d"),
        ("claude-code", Some("--user"), "e"),
        ("cursor", None, "f"),
        ("cursor", Some("--user"), "g"),
    ] {
        let words = ["install", host, "--yes", "--name", name].into_iter().chain(scope);
        user.done(&words.chain(["--", "run", name]).collect::<Vec<_>>());
    }
    let listing = listed(&user);
    let mut found = names(&listing);
    found.sort_unstable();
    let expected = ["a", "b", "c", "d", "e", "f", "g"].map(|name| (name, "stdio", Some("ask")));
    assert_eq!(found, expected);
    let text = user.done(&["servers"]);
    let rows: Vec<&str> = text.lines().collect();
    assert!(rows[0].starts_with("NAME  TRANSPORT  TARGET  START       FILE"), "{text}");
    assert!(rows.contains(&"a     stdio      run a   asks first  ./.vscode/mcp.json"), "{text}");
}

#[test]
fn secrets_are_not_shown() {
    let user = User::at_work();
    let text = json!({"mcpServers": {
        "one": {"command": "run", "args": ["--token", "HUSH", "--key=HUSH"], "env": {"KEY": "HUSH"}},
        "two": {"url": "https://me:HUSH@h/mcp?key=HUSH#HUSH", "headers": {"Authorization": "HUSH"}},
        "three": {"type": "sse", "url": "https://h/sse", "disabled": true},
        "four": {"url": "ws://h/"},
    }});
    user.write("work/mcp.json", &text.to_string());
    let out = user.done(&["servers", "-o", "json"]);
    assert!(!out.contains("HUSH"), "{out}");
    assert!(!user.done(&["servers"]).contains("HUSH"));
    let listing = listed(&user);
    let server = |name: &str| {
        let all = listing["servers"].as_array().unwrap();
        all.iter().find(|server| server["name"] == name).unwrap().clone()
    };
    assert_eq!(server("one")["target"], "run --token *** --key=***");
    assert_eq!(server("one")["env"], json!(["KEY"]));
    assert_eq!(server("two")["target"], "https://***@h/mcp?key=***#***");
    assert_eq!(server("two")["headers"], json!(["Authorization"]));
    assert_eq!((&server("three")["transport"], &server("three")["disabled"]), (&json!("sse"), &json!(true)));
    assert_eq!((&server("four")["transport"], &server("four")["start"]), (&json!("websocket"), &Value::Null));
}

#[test]
fn decisions_are_shown() {
    let user = User::at_work();
    user.write(
        "work/.mcp.json",
        r#"{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}, "c": {"command": "c"}}}"#,
    );
    user.done(&["trust", "allow", "a"]);
    user.done(&["trust", "disable", "b"]);
    let listing = listed(&user);
    let expected =
        [("a", "stdio", Some("allowed")), ("b", "stdio", Some("disabled")), ("c", "stdio", Some("ask"))];
    assert_eq!(names(&listing), expected);
    // A change of the file is asked about again.
    user.done(&["install", "claude-code", "--yes", "--name", "z", "http://z/"]);
    let listing = listed(&user);
    assert_eq!(names(&listing)[..2], [("a", "stdio", Some("changed")), ("b", "stdio", Some("disabled"))]);
    let text = user.done(&["servers", "--config", ".mcp.json"]);
    assert!(text.contains("changed since; asks again"), "{text}");
    // What it was before is allowed again.
    user.done(&["install", "claude-code", "--undo", "--yes"]);
    assert_eq!(names(&listed(&user))[0], ("a", "stdio", Some("allowed")));
}

#[test]
fn a_name_in_two_files_is_no_warning_at_every_command() {
    let user = User::at_work();
    for host in ["vscode", "cursor"] {
        user.done(&["install", host, "--yes"]);
    }
    assert_eq!(user.done(&["call", "--yes", "refmcp", "sum", "a=1", "b=2"]), "{\"total\":3}\n");
    assert!(user.done(&["servers"]).contains("not used: the name is taken"));
}

#[test]
fn a_broken_file_does_not_hide_the_others() {
    let user = User::at_work();
    user.write("work/.mcp.json", "{ broken");
    user.write("work/.vscode/mcp.json", r#"{"servers": {"a": {"command": "a"}, "bad": {"command": 1}}}"#);
    user.write("work/.cursor/mcp.json", r#"{"mcpServers": {"a": {"url": "http://far/"}}}"#);
    user.write("home/.claude.json", r#"{"theme": "dark"}"#);
    let came = user.run(&["servers"]);
    assert_eq!(came.code, 0, "{came:?}");
    assert!(came.err.contains("./.mcp.json: is not valid JSON"), "{came:?}");
    assert!(came.err.contains("server \"bad\": \"command\": must be a string"), "{came:?}");
    assert!(!came.err.contains("claude.json"), "{came:?}");
    assert!(came.out.contains("http://far/  not used: the name is taken"), "{came:?}");
    let listing: Value = serde_json::from_str(&user.run(&["servers", "-o", "json"]).out).unwrap();
    assert_eq!(names(&listing), [("a", "stdio", Some("ask")), ("a", "http", None)]);
    assert_eq!(listing["problems"].as_array().unwrap().len(), 2);
    assert_eq!(listing["problems"][0]["severity"], "error");
    assert_eq!(listing["servers"][1]["shadowed"], true);
    let came = user.run(&["servers", "--config", "none.json"]);
    assert!(came.code == 1 && came.err.contains("there is no file none.json"), "{came:?}");
}

#[test]
fn files_that_cannot_be_used_fail_where_nothing_else_is_there() {
    let user = User::at_work();
    user.write("work/mcp.json", "{");
    let ended = user.run(&["servers"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    let (said, shown) = (ended.err, ended.out);
    assert!(said.contains("mcp.json: is not valid JSON"), "{said}");
    assert_eq!(shown, "no configuration file can be used\n");
    user.write("work/mcp.json", r#"{"mcpServers":{"a":{"command":"refmcp stdio"}}}"#);
    let ended = user.run(&["servers"]);
    assert_eq!(ended.code, 0, "{ended:?}");
    let said = ended.err;
    assert!(
        said.contains("server \"a\": \"command\": has blanks in it: arguments stand in \"args\""),
        "{said}"
    );
    let ended = user.run(&["list", "a", "--yes"]);
    let said = ended.err;
    assert!(said.contains("a configuration file has in \"args\""), "{said}");
}

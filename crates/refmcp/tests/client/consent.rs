//! Consent to what a configuration file has started, and to what it has sent.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::support::Terminal;
use crate::support::http::{Answer, answering};
use crate::{REFMCP, User};

/// A server that is started in place of another program.
fn program(user: &User, path: &str, marker: &str) -> String {
    let path = user
        .write(path, &format!("#!/bin/sh\necho started >> '{}'\nexec {REFMCP} stdio\n", user.word(marker)));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn configured(user: &User, entry: &Value) {
    user.write("mcp.json", &json!({"mcpServers": {"s": entry}}).to_string());
}

const CALL: [&str; 4] = ["call", "s", "echo", "message=hi"];

#[cfg(target_os = "linux")]
#[test]
fn consent_shows_the_program_that_is_found_its_directory_and_its_variables() {
    let user = User::new();
    let found = program(&user, "evil/tool", "marker");
    fs::create_dir(user.path("below")).unwrap();
    user.write("vars", "FROM_FILE=yes\nLD_PRELOAD_X=no\n");
    let env = json!({"PATH": user.word("evil") + ":/bin:/usr/bin", "API_KEY": "hush-hush-hush", "NODE_OPTIONS": "--require x"});
    configured(
        &user,
        &json!({"command": "tool", "args": ["a b"], "cwd": "below", "envFile": "vars", "env": env}),
    );
    let mut terminal = Terminal::start(user.command(&CALL).env("TERM", "xterm"), 200);
    let shown = terminal.expect("Start it? [yes, always, show its secrets, No]");
    for line in [
        format!("  {found} 'a b'\n"),
        format!("  in {}\n", user.word("below")),
        format!("  with PATH={}:/bin:/usr/bin, which changes what runs\n", user.word("evil")),
        "  with 'NODE_OPTIONS=--require x', which changes what runs\n".to_owned(),
        "  with LD_PRELOAD_X=no, which changes what runs\n".to_owned(),
        "  with API_KEY=***\n".to_owned(),
        "  with FROM_FILE=yes\n".to_owned(),
        format!("  from ./mcp.json and {}\n", fs::canonicalize(user.path("vars")).unwrap().display()),
    ] {
        assert!(shown.contains(&line), "{line:?} in\n{shown}");
    }
    assert!(!shown.contains("hush"), "{shown}");
    terminal.enter("s");
    terminal.expect("with API_KEY=hush-hush-hush");
    terminal.expect("Start it? [yes, always, No]");
    terminal.enter("n");
    assert!(!terminal.ended().success());
    assert!(!user.path("marker").exists(), "nothing was started");
}

#[test]
fn a_file_or_program_that_has_changed_is_asked_about_again() {
    let user = User::new();
    let first = program(&user, "second/tool", "marker");
    let vars = user.write("vars", "A=1\n");
    let path = format!("{}:{}:/bin:/usr/bin", user.word("first"), user.word("second"));
    configured(&user, &json!({"command": "tool", "envFile": "vars", "env": {"PATH": path}}));
    let refused = |why: &str, path: &str| {
        let ended = user.run(&CALL);
        assert_eq!((ended.code, ended.out.as_str()), (1, ""), "{why}: {ended:?}");
        let would = format!("s would start `{path}`, with PATH changed, and the user cannot be asked");
        assert!(ended.err.contains(&would), "{why}: {ended:?}");
        user.done(&["trust", "allow", "s"]);
        assert_eq!(user.done(&CALL), "hi\n", "{why}");
    };
    refused("at first", &first);
    fs::write(&vars, "A=1\nLD_PRELOAD=/evil.so\n").unwrap();
    assert!(user.done(&["trust", "list"]).contains("changed since"));
    let ended = user.run(&CALL);
    assert!(ended.code == 1 && ended.err.contains("with LD_PRELOAD, PATH changed"), "{ended:?}");
    fs::write(&vars, "A=2\n").unwrap();
    refused("another envFile", &first);
    let other = program(&user, "first/tool", "other");
    refused("another program", &other);
    assert!(user.path("other").exists());
    // What is not there is not asked about.
    configured(&user, &json!({"command": "no-such-tool"}));
    let ended = user.run(&CALL);
    assert!(ended.code == 4 && ended.err.contains("there is no such command in PATH"), "{ended:?}");
}

#[test]
fn values_of_the_environment_are_not_sent_unasked() {
    let user = User::new();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let origin = answering(move |request, _| {
        log.lock().unwrap().push(format!("{} {}", request.path, request.head));
        Answer::empty("404 Not Found")
    });
    let run =
        |words: &[&str]| user.command(words).env("SECRET", "hush-hush").env("OTHER", "x").output().unwrap();
    let err = |output: &std::process::Output| String::from_utf8_lossy(&output.stderr).into_owned();
    let requests = || std::mem::take(&mut *seen.lock().unwrap());
    for entry in [
        json!({"url": format!("{origin}/mcp"), "headers": {"X-Key": "a ${env:SECRET}"}}),
        json!({"url": format!("{origin}/${{SECRET}}")}),
        json!({"type": "sse", "url": format!("{origin}/${{SECRET:-no}}")}),
        json!({"url": format!("{}/${{SECRET}}", origin.replace("http", "ws"))}),
    ] {
        configured(&user, &entry);
        for words in [&CALL[..], &["info", "s"], &["auth", "login", "s"]] {
            let ended = run(words);
            let would = format!(
                "s would send the values of SECRET to {}",
                entry["url"].as_str().unwrap().split("/mcp").next().unwrap().split("/$").next().unwrap()
            );
            assert!(err(&ended).contains(&would), "{words:?} {entry}: {}", err(&ended));
            assert!(err(&ended).contains("refmcp trust allow s"), "{}", err(&ended));
            assert_eq!(ended.status.code(), Some(1), "{ended:?}");
            assert_eq!(requests(), [""; 0], "{words:?} {entry}");
        }
        run(&["info", "s", "--yes"]);
        assert!(requests().concat().contains("hush-hush"), "{entry}");
        let allowed = run(&["trust", "allow", "s"]);
        assert!(String::from_utf8_lossy(&allowed.stdout).starts_with("allowed: SECRET to "), "{allowed:?}");
        run(&["info", "s"]);
        assert!(requests().concat().contains("hush-hush"), "{entry}");
        // One more variable, and the same file with other servers in it.
        user.write("mcp.json", &json!({"mcpServers": {"s": entry, "t": {"url": "http://h/"}}}).to_string());
        run(&["info", "s"]);
        assert_eq!(requests(), [""; 0], "{entry}");
    }
    configured(&user, &json!({"url": format!("{origin}/mcp"), "headers": {"X-Key": "written"}}));
    run(&["info", "s"]);
    assert!(!requests().is_empty(), "a server that is sent nothing of the environment is not asked about");
}

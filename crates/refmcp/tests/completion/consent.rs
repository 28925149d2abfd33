//! What completing a line never does: start what was not agreed to, log in, write a trace.

use super::User;
use super::support::Server;

fn configured(user: &User, command: &str) {
    let text = serde_json::json!({"mcpServers": {"mine": {"command": command}}});
    user.write(".mcp.json", &text.to_string());
}

#[test]
fn only_a_server_that_is_trusted_is_started() {
    let user = User::new();
    configured(&user, &user.server());
    for words in [
        &["call", "mine", ""][..],
        &["call", "--yes", "mine", ""],
        &["read", "-y", "mine", "file"],
        &["prompt", "mine", "code_review", "language=r"],
        &["trust", "allow", "mine", "--tool", ""],
    ] {
        assert!(user.fish(words).is_empty(), "{words:?}");
    }
    assert!(!user.was_started());
    user.run(&["trust", "allow", "mine"]);
    assert_eq!(user.fish(&["call", "mine", "su"]), ["sum"]);
    assert!(user.was_started());
    user.wait_until_ended();
    // What is remembered is not shown either once it is not trusted any more.
    user.run(&["trust", "revoke", "mine"]);
    assert!(user.fish(&["call", "mine", "su"]).is_empty());
}

#[test]
fn a_server_that_does_not_answer_is_ended() {
    let user = User::new();
    configured(&user, &user.program("sleep 1000"));
    user.run(&["trust", "allow", "mine"]);
    let took = user.given_up("mine");
    assert!(took.as_secs() < 6, "{took:?}");
    assert!(user.was_started());
    user.wait_until_ended();
}

#[test]
fn a_locked_state_file_does_not_block() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    std::fs::create_dir(user.path("state")).unwrap();
    let lock = std::fs::File::create(user.path("state/lock")).unwrap();
    lock.lock().unwrap();
    let begin = std::time::Instant::now();
    assert_eq!(user.fish(&["call", &url, "su"]), ["sum"]);
    assert!(begin.elapsed().as_secs() < 5, "{:?}", begin.elapsed());
}

#[test]
fn a_command_on_the_line_is_not_started() {
    let user = User::new();
    let command = user.server();
    assert_eq!(user.fish(&["call", "echo", "--", &command, ""]), [":files"]);
    assert!(user.fish(&["call", &command, ""]).is_empty());
    assert!(!user.was_started());
}

#[test]
fn a_file_that_has_changed_is_not_trusted() {
    let user = User::new();
    configured(&user, &user.server());
    user.run(&["trust", "allow", "mine"]);
    let text = std::fs::read_to_string(user.path(".mcp.json")).unwrap();
    user.write(".mcp.json", &format!("{text}\n"));
    assert!(user.fish(&["call", "mine", "su"]).is_empty());
    assert!(!user.was_started());
}

#[test]
fn no_login_is_begun() {
    let (user, server) = (User::new(), Server::start(&["--auth", "builtin"]));
    let browser = user.server();
    let url = format!("http://{}/mcp", server.address);
    let mut command = std::process::Command::new(super::REFMCP);
    command.args(["__complete", "fish", "--", "refmcp", "call", &url, ""]);
    let output = user.place(command).env("BROWSER", browser).output().unwrap();
    assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    assert!(!user.was_started());
}

#[test]
fn no_trace_is_written() {
    let (user, server) = (User::new(), Server::start(&[]));
    let url = format!("http://{}/mcp", server.address);
    assert_eq!(user.fish(&["call", "--record", "t", "-o", "jsonl", "--explain", &url, "su"]), ["sum"]);
    assert!(!user.path("t").exists());
}

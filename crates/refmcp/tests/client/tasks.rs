//! Tasks on the command line: followed by the command that begins them, and taken up again by another one.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use crate::support::{Server, User, signal};

const KINDS: [&str; 2] = ["2025-11-25", "2026-07-28"];

#[test]
fn a_task_is_followed_by_its_call_or_by_another_command() {
    let (user, server) = (User::new(), Server::start(&[]));
    let target = format!("http://{}/mcp", server.address);
    for version in KINDS {
        let run = |words: &[&str]| user.run(&[words, &["--protocol-version", version]].concat());
        let required = run(&["call", &target, "failing_job"]);
        assert_eq!(
            (required.code, required.out.as_str()),
            (5, "the job failed on purpose\n"),
            "{required:?}"
        );

        let followed = run(&["call", &target, "slow_compute", "seconds=0.2", "--task"]);
        assert_eq!((followed.code, followed.out.as_str()), (0, " computed in 0.2 s\n"), "{followed:?}");
        assert!(followed.err.starts_with("task "), "{followed:?}");

        let begun = run(&["call", &target, "slow_compute", "seconds=0.7", "--detach"]);
        let id = begun.out.trim();
        assert!(
            begun.code == 0 && begun.err.contains(&format!("refmcp task result {target} {id}")),
            "{begun:?}"
        );
        let watched = run(&["task", "watch", &target, id]);
        assert_eq!((watched.code, watched.out.as_str()), (0, "working\ncompleted\n"), "{watched:?}");
        let result = run(&["task", "result", &target, id]);
        assert_eq!((result.code, result.out.as_str()), (0, " computed in 0.7 s\n"), "{result:?}");
        let got = run(&["task", "get", &target, id, "-o", "json"]);
        let got: Value = serde_json::from_str(&got.out).unwrap();
        assert_eq!((&got["taskId"], &got["status"]), (&id.into(), &"completed".into()), "{got}");
    }
}

#[test]
fn what_a_task_asks_is_answered_by_the_command_that_follows_it() {
    let (user, server) = (User::new(), Server::start(&[]));
    let target = format!("http://{}/mcp", server.address);
    for version in KINDS {
        let run = |words: &[&str]| user.run(&[words, &["--protocol-version", version, "--yes"]].concat());
        let plain = run(&["call", &target, "confirm_delete", "filename=a"]);
        let begun = run(&["call", &target, "confirm_delete", "filename=a", "--detach"]);
        let result = run(&["task", "result", &target, begun.out.trim()]);
        assert_eq!((plain.code, &plain.out), (result.code, &result.out), "{plain:?} {result:?}");
    }
}

#[test]
fn a_task_can_be_cancelled() {
    let (user, server) = (User::new(), Server::start(&[]));
    let target = format!("http://{}/mcp", server.address);
    for version in KINDS {
        let run = |words: &[&str]| user.run(&[words, &["--protocol-version", version]].concat());
        let begun = run(&["call", &target, "slow_compute", "seconds=60", "--detach"]);
        let id = begun.out.trim();
        assert_eq!(run(&["task", "cancel", &target, id]).code, 0);
        let result = run(&["task", "result", &target, id]);
        assert_eq!(result.code, 1, "{result:?}");
        assert!(result.err.contains("the task was cancelled"), "{result:?}");
        let unknown = run(&["task", "get", &target, "unknown"]);
        assert_eq!(unknown.code, 1, "{unknown:?}");
        assert!(unknown.err.contains("the server knows no task unknown"), "{unknown:?}");
    }
}

#[test]
fn interrupting_a_call_cancels_its_task() {
    let (user, server) = (User::new(), Server::start(&[]));
    let target = format!("http://{}/mcp", server.address);
    let words = ["call", &target, "slow_compute", "seconds=60", "-o", "jsonl"];
    let mut command = user.command(&words);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    signal("INT", child.id());
    let ended = child.wait_with_output().unwrap();
    let out = String::from_utf8(ended.stdout).unwrap();
    let created = out.lines().find_map(|line| line.split_once(r#""taskId":""#)).unwrap();
    let id = created.1.split('"').next().unwrap();
    let task = user.done(&["task", "get", &target, id]);
    assert!(task.contains("cancelled"), "{task}");
}

#[test]
fn tools_say_whether_they_run_as_tasks() {
    let user = User::new();
    let listed = user.with_stdio(&["list", "tools", "--protocol-version", "2025-11-25"]);
    assert!(
        listed.out.contains("runs as a task only") && listed.out.contains("can run as a task"),
        "{listed:?}"
    );
    let refused =
        user.with_stdio(&["call", "sum", "a=1", "b=2", "--task", "--protocol-version", "2025-11-25"]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(refused.err.contains("sum does not run as a task"), "{refused:?}");
    let list = user.with_stdio(&["task", "list", "--protocol-version", "2025-11-25", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&list.out).unwrap(), serde_json::json!({ "tasks": [] }));
    let list = user.with_stdio(&["task", "list", "--protocol-version", "2026-07-28"]);
    assert!(list.code == 1 && list.err.contains("tasks are known by their ids alone"), "{list:?}");
}

#[test]
fn what_a_server_asks_is_run_as_a_task_where_it_wants_that() {
    let (user, server) = (User::new(), Server::start(&[]));
    let target = format!("http://{}/mcp", server.address);
    let run = |words: &[&str], version: &str| {
        user.run(&[words, &["--protocol-version", version, "--yes"]].concat())
    };
    let asked = run(&["call", &target, "ask_user", "form=confirm", "task=true"], "2025-11-25");
    assert_eq!(asked.code, 0, "{asked:?}");
    assert!(asked.out.starts_with("The user accepted"), "{asked:?}");
    let words = ["call", &target, "ask_model", "prompt=Hi", "task=true", "--sampler", "echo 42"];
    let sampled = run(&words, "2025-11-25");
    assert_eq!((sampled.code, sampled.out.as_str()), (0, "echo answered: 42\n"), "{sampled:?}");
    for version in ["2025-06-18", "2026-07-28"] {
        let refused = run(&words, version);
        assert_eq!(refused.code, 5, "{version}: {refused:?}");
        assert!(
            refused.out.contains("does not run sampling/createMessage as a task"),
            "{version}: {refused:?}"
        );
    }
}

//! Tasks through the bridge: passed on where both sides have the same kind, and followed by the bridge otherwise.

use crate::support::{REFMCP, Server, User};

const KINDS: [&str; 2] = ["2025-11-25", "2026-07-28"];

#[test]
fn tools_that_run_as_tasks_are_called_from_every_revision() {
    let (user, server) = (User::new(), Server::start(&[]));
    let target = format!("http://{}/mcp", server.address);
    for behind in KINDS {
        let bridge = [REFMCP, "bridge", "--from", "stdio", "--to", &target, "--protocol-version", behind];
        for client in ["2024-11-05", "2025-06-18", "2025-11-25", "2026-07-28"] {
            let what = format!("{client} to {behind}");
            let call = |words: &[&str]| {
                let options = ["--yes", "--protocol-version", client];
                user.with(&[&["call"], words, &options[..]].concat(), &bridge)
            };
            let failed = call(&["failing_job"]);
            let said = (failed.code, failed.out.as_str());
            assert_eq!(said, (5, "the job failed on purpose\n"), "{what}: {failed:?}");
            assert!(!failed.err.contains("rule"), "{what}: {failed:?}");
            // Older clients cannot be asked.
            if client >= "2025-06-18" {
                let asked = call(&["confirm_delete", "filename=x"]);
                assert_eq!((asked.code, asked.out.as_str()), (0, "x stays\n"), "{what}: {asked:?}");
            }
            if client == behind {
                let task = call(&["slow_compute", "seconds=0.2", "--task"]);
                assert!(task.code == 0 && task.err.contains("task "), "{what}: {task:?}");
                let begun = call(&["slow_compute", "--detach"]);
                let words = ["task", "result", begun.out.trim(), "--protocol-version", client];
                let result = user.with(&words, &bridge);
                assert_eq!(result.code, 0, "{what}: {result:?}");
            }
        }
    }
}

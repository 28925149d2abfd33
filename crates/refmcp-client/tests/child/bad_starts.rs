//! Programs that cannot be started; the error names the program and what is wrong.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use refmcp_client::child::ChildProcess;

use crate::support::refusal;

#[tokio::test]
async fn what_cannot_be_started_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    };
    let plain = file("plain", "#!/bin/sh\n", 0o644);
    let script = file("script", "#!/no/such/interpreter\n", 0o755);
    let table = [
        (ChildProcess::new("no-such-command"), "no-such-command", "no such command in PATH"),
        (ChildProcess::new(""), "\"\"", "no such command in PATH"),
        (ChildProcess::new("/no/such/file"), "/no/such/file", "there is no such file"),
        (ChildProcess::new(&plain), "plain", "it is not executable"),
        (ChildProcess::new(directory.path()), "", "it is a directory"),
        (ChildProcess::new(&script), "script", "the interpreter that it names is not there"),
        (ChildProcess::new("nul\0"), "nul\\0", "its name has a NUL in it"),
        (ChildProcess::new("sh").args(["-c", "a\0b"]), "sh", "its argument 2 has a NUL in it"),
        (
            ChildProcess::new("sh").env("KEY", "a\0b"),
            "sh",
            "its environment variable \"KEY\" has a NUL in it",
        ),
        (ChildProcess::new("sh").env("KEY", "x".repeat(8 << 20)), "sh", "more than the system allows"),
        (ChildProcess::new("sh").arg("x".repeat(8 << 20)), "sh", "more than the system allows"),
        (
            ChildProcess::new("sh").current_dir("/no/such/place"),
            "sh",
            "its working directory \"/no/such/place\"",
        ),
    ];
    for (child, program, cause) in table {
        let why = refusal(&child).await;
        assert!(why.contains(program) && why.contains(cause), "{why}");
        assert!(why.len() < 300, "nothing long is repeated: {} bytes", why.len());
    }
}

#[tokio::test]
async fn a_path_is_looked_up_where_the_child_will_be() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("bin")).unwrap();
    let why = refusal(&ChildProcess::new("./bin").current_dir(directory.path())).await;
    assert!(why.contains("it is a directory"), "{why}");
}

//! What a server sees of us.

use refmcp_client::child::ChildProcess;

use crate::support::{script, start};

async fn told(child: &ChildProcess) -> String {
    let mut running = start(child).await;
    let message = running.message().await;
    running.close().await;
    message
}

#[tokio::test]
async fn a_server_sees_only_what_it_is_given() {
    // Every test runner has these, and no server needs them.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    let text = r#"echo "{\"$GIVEN\":\"$CARGO_MANIFEST_DIR\",\"path\":\"${PATH:+set}\"}""#;
    let child = script(text).env("GIVEN", "mine");
    assert_eq!(told(&child).await, r#"{"mine":"","path":"set"}"#);
    let package = env!("CARGO_MANIFEST_DIR");
    let inheriting = child.clone().inherit(["CARGO_MANIFEST_DIR"]);
    assert_eq!(told(&inheriting).await, format!(r#"{{"mine":"{package}","path":"set"}}"#));
    assert_eq!(told(&child.clone().inherit_all()).await, format!(r#"{{"mine":"{package}","path":"set"}}"#));
    // A shell without PATH has one of its own, which it does not hand on.
    let nothing = ChildProcess::new("/bin/sh").args(["-c", "echo \"{$(/usr/bin/env | /bin/grep -c HOME)}\""]);
    assert_eq!(told(&nothing.env_clear()).await, "{0}");
}

#[tokio::test]
async fn a_server_runs_where_it_is_told_to() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().canonicalize().unwrap();
    let child = script(r#"echo "{\"$(pwd -P)\":1}""#).current_dir(&place);
    assert_eq!(told(&child).await, format!(r#"{{"{}":1}}"#, place.display()));
}

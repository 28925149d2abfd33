//! What a server does wrong is told on stderr, and what can be used of it is shown all the same.

use std::io::Write;
use std::process::Stdio;

use crate::{User, scripted};

#[test]
fn structured_content_without_content_is_shown_as_a_finding() {
    let user = User::new();
    let list = r#""result":{"tools":[{"name":"count","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
    let call = r#""result":{"structuredContent":{"total":3},"isError":false}"#;
    let server = scripted(r#"{"tools":{}}"#, &[("tools/list", list), ("tools/call", call)]);
    for output in ["text", "json"] {
        let came = user.with_script(&["call", "count", "--yes", "-o", output], &server);
        assert_eq!(came.code, 0, "{came:?}");
        assert!(came.out.contains("\"total\": 3"), "{came:?}");
        let told: Vec<&str> = came.err.lines().collect();
        assert!(
            matches!(told[..], [line] if line.starts_with("refmcp: the server: ")
                && line.ends_with("repeat the data as text in content (rule TOOL-07)")),
            "{came:?}"
        );
    }
    let quiet = user.with_script(&["call", "count", "--yes", "--log", "error"], &server);
    assert_eq!((quiet.code, quiet.err.as_str()), (0, ""), "{quiet:?}");
    let logged = user.with_script(&["call", "count", "--yes", "--log-format", "json"], &server);
    let line: serde_json::Value = serde_json::from_str(&logged.err).unwrap_or_else(|_| panic!("{logged:?}"));
    assert_eq!((&line["level"], &line["rule"]), (&"WARN".into(), &"TOOL-07".into()), "{line}");
}

/// A rule that is broken again and again is told once, and in the shell too.
#[test]
fn each_finding_is_told_once() {
    let user = User::new();
    let list = r#""result":{"tools":[{"name":"count","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}"#;
    let call = r#""result":{"structuredContent":{"total":3}}"#;
    let server = scripted(r#"{"tools":{}}"#, &[("tools/list", list), ("tools/call", call)]);
    let mut command = user.command(&["shell", "--", "sh", "-c", &server]);
    let mut shell =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    shell.stdin.take().unwrap().write_all(b"count\ncount\ncount\n").unwrap();
    let output = shell.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("(rule TOOL-07)").count(), 1, "{said}");
    assert!(!said.contains("the server: "), "one of several servers has a name: {said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout).matches("\"total\": 3").count(), 3);
}

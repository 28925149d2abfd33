//! What a relay refuses at its start: options without effect, and what is no server.

use refmcp_testkit::ports::free_port;

use crate::Trace;
use crate::support::{Process, program};

fn refused(args: &[&str]) -> String {
    let trace = Trace::new();
    let path = trace.path();
    let exit =
        Process::spawn(program(&[&["relay", "--record", path.to_str().unwrap()], args].concat())).exit();
    assert_eq!(exit.status.code(), Some(1), "{args:?}: {exit:?}");
    exit.errors
}

#[test]
fn options_without_effect_are_refused() {
    for option in [
        ["--port", "1"],
        ["--host", "::1"],
        ["--allow-host", "a"],
        ["--allow-origin", "https://a"],
        ["--cacert", "f"],
    ] {
        let told = refused(&[&option[..], &["--", "cat"]].concat());
        assert!(told.contains(option[0]) && told.contains("cannot be used with"), "{told}");
    }
    assert!(refused(&["--cacert", "f", "http://127.0.0.1:1/"]).contains("--cacert has no effect"));
    for unknown in ["--timeout", "--header", "--env", "--yes", "--output"] {
        let told = refused(&[unknown, "x", "--", "cat"]);
        assert!(told.contains("unexpected argument"), "{unknown}: {told}");
    }
}

#[test]
fn there_is_one_server_and_a_recording_or_an_audit() {
    assert!(refused(&[]).contains("missing: the server's URL, or a command after `--`"));
    assert!(refused(&["http://a/", "--", "cat"]).contains("cannot be used with"));
    assert!(refused(&["weather"]).contains("expected the server's URL"));
    assert!(refused(&["http://a/?key=hush"]).contains("leave out what follows the path"));
    assert!(refused(&["http://u:hush@a/"]).contains("user name or a password"));
    let exit = Process::spawn(program(&["relay", "--", "cat"])).exit();
    assert!(exit.errors.contains("--record FILE, --audit or --faults PLAN"), "{exit:?}");
}

#[test]
fn a_relay_is_not_its_own_server() {
    let port = free_port().to_string();
    for host in ["127.0.0.1", "0.0.0.0"] {
        let told = refused(&["--host", host, "--port", &port, &format!("http://localhost:{port}/mcp")]);
        assert!(told.contains("its own server"), "{host}: {told}");
    }
}

#[test]
fn a_server_that_cannot_be_started_is_unreachable() {
    let trace = Trace::new();
    let path = trace.path();
    let exit =
        Process::spawn(program(&["relay", "--record", path.to_str().unwrap(), "--", "/no/such/server"]))
            .exit();
    assert_eq!(exit.status.code(), Some(4), "{exit:?}");
    assert!(exit.errors.contains("/no/such/server: it cannot be started"), "{exit:?}");
}

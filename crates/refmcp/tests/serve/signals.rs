//! What signals do.

use std::fs::{self, File};
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, generate_simple_self_signed};

use crate::support::Server;
use crate::support::wait_for;

/// Waits until `/readyz` has this status.
fn until_readiness(server: &Server, status: &str) {
    wait_for(status, || server.get("/readyz").starts_with(&format!("HTTP/1.1 {status} ")).then_some(()));
}

#[test]
fn a_drain_is_not_ready_and_serves() {
    let mut server = Server::start(&["--drain", "2"]);
    until_readiness(&server, "200");
    let begin = Instant::now();
    server.signal("TERM");
    until_readiness(&server, "503");
    assert!(server.greet().starts_with("HTTP/1.1 200 OK"), "sessions are opened as before");
    assert!(server.get("/healthz").starts_with("HTTP/1.1 200 OK"));
    assert_eq!(server.exit().code(), Some(0));
    assert!(begin.elapsed() >= Duration::from_secs(2));
}

#[test]
fn each_further_signal_skips_a_step() {
    let mut server = Server::start(&["--drain", "600", "--shutdown-timeout", "600"]);
    // A call that lasts: its connection is there until it is cut.
    let mut busy = server.connect();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","arguments":{"ms":60000},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: slow\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    std::io::Write::write_all(&mut busy, (head + body).as_bytes()).unwrap();
    wait_for("the call", || server.get("/metrics").contains("refmcp_requests_in_flight 1").then_some(()));
    server.signal("TERM");
    until_readiness(&server, "503");
    server.signal("INT");
    wait_for("nothing new is accepted", || std::net::TcpStream::connect(&server.address).err());
    assert!(server.child.try_wait().unwrap().is_none(), "the call may go on");
    server.signal("TERM");
    assert_eq!(server.exit().code(), Some(0));
}

#[test]
fn a_hangup_reads_the_certificate_again() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (chain, key, log) = (at("chain.pem"), at("key.pem"), at("log.txt"));
    renew(&chain, &key);
    let options = ["--tls-cert", &chain, "--tls-key", &key, "--log", "info"];
    let server = Server::start_logging(&options, File::create(&log).unwrap());
    let has = |certificate: &str| {
        let asked = std::process::Command::new("curl")
            .args(["-s", "--cacert", certificate, &format!("https://{}/healthz", server.address)])
            .output()
            .expect("curl is installed");
        asked.stdout == b"alive\n"
    };
    let old = at("old.pem");
    fs::copy(&chain, &old).unwrap();
    assert!(has(&old));
    renew(&chain, &key);
    assert!(has(&old) && !has(&chain));
    server.signal("HUP");
    wait_for("the new certificate", || has(&chain).then_some(()));
    assert!(!has(&old));
    let new = at("new.pem");
    fs::copy(&chain, &new).unwrap();
    fs::write(&key, "nonsense").unwrap();
    server.signal("HUP");
    let why = "the old one stays in use";
    let said = wait_for(why, || fs::read_to_string(&log).ok().filter(|text| text.contains(why)));
    assert!(said.contains("ERROR") && said.contains("key.pem has no readable private key"), "{said}");
    assert!(has(&new));
}

#[test]
fn a_hangup_without_a_certificate_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log.txt");
    let mut server = Server::start_logging(&[], File::create(&log).unwrap());
    server.signal("HUP");
    let why = "no certificate to read again";
    wait_for(why, || fs::read_to_string(&log).ok().filter(|text| text.contains(why)));
    assert!(server.greet().starts_with("HTTP/1.1 200 OK"));
    server.signal("TERM");
    assert_eq!(server.exit().code(), Some(0));
}

fn renew(chain: &str, key: &str) {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    fs::write(chain, cert.pem()).unwrap();
    fs::write(key, signing_key.serialize_pem()).unwrap();
}

//! A bridge that listens with a certificate, and clients that trust it.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use crate::CHILD;
use crate::listener::Listener;
use crate::support::{Exit, Process, TEST_TIMEOUT, program};

/// A certificate for this machine in files of its own.
struct Certificate {
    chain: String,
    key: String,
    folder: TempDir,
}

impl Certificate {
    fn new() -> Self {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        let certificate = Self { chain: at("chain.pem"), key: at("key.pem"), folder };
        fs::write(&certificate.chain, cert.pem()).unwrap();
        fs::write(&certificate.key, signing_key.serialize_pem()).unwrap();
        certificate
    }

    /// How a client fares that does or does not trust the certificate.
    fn client(&self, listener: &Listener, trusts: bool) -> Exit {
        let mut command = program(&["call", &listener.url, "echo", "message=over TLS"]);
        command.env("REFMCP_STATE_DIR", self.folder.path().join("state"));
        if trusts {
            command.env("SSL_CERT_FILE", &self.chain);
        }
        Process::spawn(command).exit()
    }

    fn options(&self) -> Vec<&str> {
        let options = ["--tls-cert", &self.chain, "--tls-key", &self.key];
        options.into_iter().chain(CHILD).collect()
    }
}

#[test]
fn every_listener_can_use_tls() {
    let certificate = Certificate::new();
    for from in ["https://127.0.0.1:0/mcp", "wss://127.0.0.1:0/mcp", "sse+https://127.0.0.1:0/sse"] {
        let listener = Listener::open(from, &certificate.options());
        assert_eq!(listener.url.split("://").next(), from.split("://").next());
        let trusting = certificate.client(&listener, true);
        assert_eq!(trusting.lines, ["over TLS"], "{from}: {}", trusting.errors);
        let wary = certificate.client(&listener, false);
        assert!(!wary.status.success() && wary.errors.contains("certificate"), "{from}: {}", wary.errors);
    }
}

#[test]
fn a_connection_without_tls_does_not_block_others() {
    let certificate = Certificate::new();
    let listener = Listener::open("https://127.0.0.1:0/mcp", &certificate.options());
    let mut plain = TcpStream::connect(&listener.address).unwrap();
    plain.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    plain.write_all(b"GET /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut said = Vec::new();
    plain.read_to_end(&mut said).unwrap();
    assert!(!said.starts_with(b"HTTP/"), "{said:?}");
    let silent = TcpStream::connect(&listener.address).unwrap();
    let trusting = certificate.client(&listener, true);
    assert_eq!(trusting.lines, ["over TLS"], "{}", trusting.errors);
    drop(silent);
}

#[test]
fn a_certificate_belongs_to_an_address_that_needs_one() {
    let certificate = Certificate::new();
    let pair = ["--tls-cert", certificate.chain.as_str(), "--tls-key", certificate.key.as_str()];
    for (from, options, complaint) in [
        ("https://127.0.0.1:0/mcp", &[][..], "needs --tls-cert FILE and --tls-key FILE"),
        ("http://127.0.0.1:0/mcp", &pair, "has no use for a certificate; https:// has"),
        ("ws://127.0.0.1:0/mcp", &pair, "has no use for a certificate; wss:// has"),
        ("stdio", &pair, "there is no listener"),
        ("https://127.0.0.1:0/mcp", &pair[..2], "--tls-key <FILE>"),
    ] {
        let args: Vec<&str> =
            ["bridge", "--from", from].into_iter().chain(options.iter().copied()).chain(CHILD).collect();
        let exit = Process::spawn(program(&args)).exit();
        assert_eq!(exit.status.code(), Some(1), "{from}: {}", exit.errors);
        assert!(exit.errors.contains(complaint), "{from}: {}", exit.errors);
    }
}

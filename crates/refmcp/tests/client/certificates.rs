//! `--cacert`: certificates that the system does not know.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use crate::{REFMCP, User};

/// `refmcp serve` with a certificate as `openssl req -x509` makes it.
pub(crate) struct SecureServer {
    child: Child,
    pub(crate) address: String,
    certificate: String,
}

impl SecureServer {
    pub(crate) fn start(user: &User) -> Self {
        Self::start_with(user, &[])
    }

    fn start_with(user: &User, options: &[&str]) -> Self {
        let (key, certificate) = (user.write("key.pem", ""), user.write("cert.pem", ""));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "30", "-keyout", &key])
            .args(["-out", &certificate, "-subj", "/CN=localhost"])
            .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
            .stderr(Stdio::null())
            .status();
        assert!(made.unwrap().success());
        let mut child = Command::new(REFMCP)
            .args(["serve", "--port", "0", "--tls-cert", &certificate, "--tls-key", &key])
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("https://") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "it did not say where it listens");
        }
        let address = line.split("https://").nth(1).unwrap().trim().trim_end_matches("/mcp").to_owned();
        Self { child, address, certificate }
    }
}

impl Drop for SecureServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_certificate_that_was_given_is_trusted() {
    let user = User::new();
    let server = SecureServer::start(&user);
    let (address, certificate) = (&server.address, server.certificate.as_str());
    for url in [
        format!("https://{address}/mcp"),
        format!("wss://{address}/mcp/ws"),
        format!("sse+https://{address}/sse"),
    ] {
        let ended = user.run(&["call", "--cacert", certificate, &url, "echo", "message=hi"]);
        assert_eq!((ended.code, ended.out.as_str()), (0, "hi\n"), "{url}: {ended:?}");
        let ended = user.run(&["call", &url, "echo", "message=hi"]);
        assert_eq!((ended.code, ended.err.contains("--cacert FILE")), (4, true), "{url}: {ended:?}");
    }
    // It is good for its own names only, and another one is no reason to trust it.
    let port = address.rsplit(':').next().unwrap();
    let ended = user.run(&["list", "--cacert", certificate, &format!("https://127.0.0.2:{port}/mcp")]);
    assert_eq!(ended.code, 4, "{ended:?}");
    let other = SecureServer::start(&User::new());
    let ended = user.run(&["list", "--cacert", certificate, &format!("https://{}/mcp", other.address)]);
    assert!(ended.code == 4 && ended.err.contains("TLS"), "{ended:?}");
}

#[test]
fn a_file_without_certificates_is_refused() {
    let user = User::new();
    let file = user.write("empty.pem", "nothing\n");
    let ended = user.run(&["list", "--cacert", &file, "https://127.0.0.1:1/mcp"]);
    assert_eq!((ended.code, ended.err.contains("has no certificate in it")), (1, true), "{ended:?}");
    let ended = user.run(&["list", "--cacert", "/no/such/file", "https://127.0.0.1:1/mcp"]);
    assert_eq!((ended.code, ended.err.contains("/no/such/file cannot be read")), (1, true), "{ended:?}");
}

#[test]
fn a_login_trusts_the_same_certificates() {
    let user = User::new();
    let server = SecureServer::start_with(&user, &["--auth", "builtin", "--auth-client", "robot:a-secret"]);
    let url = format!("https://{}/mcp", server.address);
    let login = ["auth", "login", &url, "--cacert", &server.certificate, "--grant", "client-credentials"];
    let mut command = user.command(&login);
    command.args(["--client-id", "robot", "--client-secret-env", "ROBOT"]).env("ROBOT", "a-secret");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let ended = user.run(&["call", "--cacert", &server.certificate, &url, "echo", "message=hi"]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "hi\n"), "{ended:?}");
}

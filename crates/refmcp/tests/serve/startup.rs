//! The start of `refmcp serve`: its banner, warnings, the listener for operators; and its end.

use std::fs;
use std::process::Command;

use crate::curl;
use crate::support::wait_for;
use crate::support::{INITIALIZE, Server};

#[test]
fn it_serves_at_the_address_of_its_banner() {
    let response = Server::start(&[]).greet();
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    assert!(response.contains("RefMCP-TestServer"), "{response}");
}

#[test]
fn it_outlives_the_reader_of_its_banner() {
    for _ in 0..5 {
        let mut server = Server::start(&[]);
        drop(server.output.take());
        assert!(server.greet().starts_with("HTTP/1.1 200 OK"));
    }
}

#[test]
fn it_ends_when_it_is_told_to() {
    let mut server = Server::start(&[]);
    assert!(server.greet().starts_with("HTTP/1.1 200 OK"));
    server.signal("TERM");
    assert!(server.exit().success());
}

/// A server whose banner and log are read.
struct Logged {
    server: Server,
    banner: String,
    log: tempfile::NamedTempFile,
}

impl Logged {
    fn start(options: &[&str]) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut server = Server::start_logging(options, log.reopen().unwrap());
        let banner = server.read_banner();
        Self { server, banner, log }
    }

    /// The URL at the end of a line of the banner.
    fn url(&self, name: &str) -> &str {
        let line = self.banner.lines().find_map(|line| line.trim().strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {}", self.banner)).trim()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.log.path()).unwrap()
    }
}

#[test]
fn operators_have_an_address_of_their_own() {
    let mut server = Logged::start(&["--ops-addr", "127.0.0.1:0", "--log", "info"]);
    let metrics = server.url("operations").to_owned();
    let ops = metrics.strip_suffix("/metrics").unwrap().to_owned();
    let public = server.url("streamable HTTP").strip_suffix("/mcp").unwrap().to_owned();
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(curl(&[&format!("{ops}{path}")]).0, "200", "{path}");
        assert_eq!(curl(&[&format!("{public}{path}")]).0, "404", "{path}");
    }
    let page = curl(&[&metrics]).1;
    assert!(page.contains("refmcp_tool_calls_total{tool=\"echo\",ending=\"done\"} 0"), "{page}");
    server.server.signal("TERM");
    assert!(server.server.exit().success());
    let log = server.log();
    let at = |text: &str| log.find(text).unwrap_or_else(|| panic!("no {text} in {log}"));
    assert!(at("listening address=127.0.0.1:") < at("refused address=127.0.0.1"), "{log}");
    assert!(at("refused address=127.0.0.1") < at("stopping") && at("stopping") < at("stopped"), "{log}");

    for bad in ["nowhere", "127.0.0.1:x", ":1"] {
        let output =
            Command::new(env!("CARGO_BIN_EXE_refmcp")).args(["serve", "--ops-addr", bad]).output().unwrap();
        assert!(!output.status.success(), "{bad}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("expected HOST:PORT"), "{bad}");
    }
}

#[test]
fn with_tokens_health_and_metrics_take_one() {
    let server = Logged::start(&["--auth", "builtin"]);
    let public = server.url("streamable HTTP").strip_suffix("/mcp").unwrap().to_owned();
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(curl(&[&format!("{public}{path}")]).0, "401", "{path}");
    }
    assert_eq!(server.log(), "", "a client without a token is no news");
    let wrong = ["-H", "Authorization: Bearer not-of-this-server", &format!("{public}/metrics")];
    assert_eq!(curl(&wrong).0, "401");
    wait_for("the refusal in the log", || server.log().contains("refused address=127.0.0.1").then_some(()));
    assert!(
        server.log().contains("WARN") && !server.log().contains("not-of-this-server"),
        "{}",
        server.log()
    );

    let form = "grant_type=client_credentials&client_id=someone&client_secret=not-their-secret";
    assert_eq!(curl(&["-d", form, &format!("{public}/token")]).0, "401");
    wait_for("the client in the log", || server.log().contains("path=\"/token\" status=401").then_some(()));
    assert_eq!(server.log().matches("WARN").count(), 2, "{}", server.log());
    assert!(!server.log().contains("not-their-secret"), "{}", server.log());

    let server = Logged::start(&["--auth", "builtin", "--ops-addr", "127.0.0.1:0"]);
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(curl(&[&server.url("operations").replace("/metrics", path)]).0, "200", "{path}");
    }
}

#[test]
fn beyond_this_machine_it_warns_and_shows_an_address_that_works() {
    let server = Logged::start(&["--host", "0.0.0.0", "--allow-host", "mcp.example"]);
    assert!(server.banner.starts_with("refmcp 0.1.0 is listening on every address of this machine, port "));
    let url = server.url("streamable HTTP");
    assert!(url.starts_with("http://mcp.example:"), "{}", server.banner);
    assert!(server.banner.contains(&format!("\"url\": \"{url}\"")), "{}", server.banner);
    assert!(server.log().contains("without --auth"), "{}", server.log());
    let port = url.strip_suffix("/mcp").unwrap().rsplit_once(':').unwrap().1;
    let local = format!("http://127.0.0.1:{port}/healthz");
    assert_eq!(curl(&[&local, "-H", &format!("Host: mcp.example:{port}")]).0, "200");
    let (status, said) = curl(&[&local, "-H", "Host: other.example"]);
    assert_eq!((&*status, &*said), ("403", "this Host is not served here; --allow-host NAME serves it\n"));
    let (status, said) = curl(&[&local, "-H", "Origin: https://other.example"]);
    let wanted = "this Origin is not allowed here; --allow-origin ORIGIN allows it\n";
    assert_eq!((&*status, &*said), ("403", wanted));

    let server = Logged::start(&["--host", "0.0.0.0"]);
    assert!(!server.banner.contains("0.0.0.0"), "{}", server.banner);
    let reached = curl(&[&server.url("streamable HTTP").replace("/mcp", "/healthz")]);
    assert_eq!(reached.0, "200", "{}", server.banner);

    let server = Logged::start(&[]);
    assert_eq!(server.log(), "");
    let public = ["--host", "0.0.0.0", "--auth", "builtin", "--public-url", "https://mcp.example"];
    let server = Logged::start(&public);
    assert!(server.banner.contains("\"url\": \"https://mcp.example/mcp\""), "{}", server.banner);
    assert!(!server.log().contains("without --auth"), "{}", server.log());
}

#[test]
fn operators_beyond_this_machine_are_warned_of_and_shown_an_address_that_works() {
    let server = Logged::start(&["--ops-addr", "0.0.0.0:0"]);
    assert!(!server.banner.contains("0.0.0.0"), "{}", server.banner);
    assert_eq!(curl(&[server.url("operations")]).0, "200", "{}", server.banner);
    let log = server.log();
    assert!(log.contains("WARN") && log.contains("--ops-addr listens beyond this machine"), "{log}");
    assert!(!log.contains("without --auth"), "{log}");
}

#[test]
fn proxies_that_are_every_client_are_warned_of() {
    for every in ["0.0.0.0/0", "::/0", "::ffff:0:0/96"] {
        let server = Logged::start(&["--trusted-proxy", "10.0.0.1", "--trusted-proxy", every]);
        let log = server.log();
        assert!(log.contains("believes the forwarding headers of every client"), "{every}: {log}");
        assert_eq!(log.lines().count(), 1, "{log}");
    }
    assert_eq!(Logged::start(&["--trusted-proxy", "10.0.0.0/8"]).log(), "");
}

#[test]
fn the_lenient_policy_serves_requests_without_accept() {
    let ask = |options: &[&str]| {
        let server = Logged::start(options);
        curl(&[
            server.url("streamable HTTP"),
            "-H",
            "Accept:",
            "-H",
            "Content-Type: application/json",
            "-d",
            INITIALIZE,
        ])
    };
    let (status, said) = ask(&[]);
    assert!(status == "406" && said.ends_with("--policy lenient serves it\n"), "{status} {said}");
    let (status, said) = ask(&["--policy", "lenient"]);
    assert!(status == "200" && said.contains("RefMCP-TestServer"), "{status} {said}");
}

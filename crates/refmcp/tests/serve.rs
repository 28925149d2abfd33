//! `refmcp serve` as a process: it says where it listens, outlives whoever reads that, and ends when it is told to.

mod serving;

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serving::{PATIENCE, Server};

#[test]
fn it_serves_where_it_says() {
    let response = Server::start(&[]).greet();
    assert!(response.starts_with("HTTP/1.1 200 OK"), "{response}");
    assert!(response.contains("RefMCP-TestServer"), "{response}");
}

#[test]
fn it_outlives_whoever_read_its_banner() {
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
    let told = Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert!(told.success());
    let begin = Instant::now();
    loop {
        if let Some(status) = server.child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "it did not end");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A server whose banner and log are read.
struct Watched {
    child: Child,
    banner: String,
    log: tempfile::NamedTempFile,
}

impl Watched {
    fn start(options: &[&str]) -> Self {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_refmcp"));
        command.args(["serve", "--port", "0"]).args(options).env_remove("REFMCP_LOG").env_remove("PORT");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log.reopen().unwrap());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut banner = String::new();
        while !banner.contains("mcpServers") {
            assert!(output.read_line(&mut banner).unwrap() > 0, "no banner: {banner}");
        }
        Self { child, banner, log }
    }

    /// The URL at the end of a line of the banner.
    fn url(&self, name: &str) -> &str {
        let line = self.banner.lines().find_map(|line| line.trim().strip_prefix(name));
        line.unwrap_or_else(|| panic!("no {name} in {}", self.banner)).trim()
    }

    fn log(&self) -> String {
        let mut text = String::new();
        File::open(self.log.path()).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    fn stop(&mut self) {
        let told = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(told.success() && self.child.wait().unwrap().success());
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The status and the body of what curl gets.
fn curl(arguments: &[&str]) -> (String, String) {
    let output = Command::new("curl").args(["-s", "-w", "\n%{http_code}"]).args(arguments).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap();
    (status.to_owned(), body.to_owned())
}

#[test]
fn operators_have_an_address_of_their_own() {
    let mut server = Watched::start(&["--ops-addr", "127.0.0.1:0", "--log", "info"]);
    let metrics = server.url("operations").to_owned();
    let ops = metrics.strip_suffix("/metrics").unwrap().to_owned();
    let public = server.url("streamable HTTP").strip_suffix("/mcp").unwrap().to_owned();
    for path in ["/healthz", "/readyz", "/metrics"] {
        assert_eq!(curl(&[&format!("{ops}{path}")]).0, "200", "{path}");
        assert_eq!(curl(&[&format!("{public}{path}")]).0, "404", "{path}");
    }
    let page = curl(&[&metrics]).1;
    assert!(page.contains("refmcp_tool_calls_total{tool=\"echo\",ending=\"done\"} 0"), "{page}");
    server.stop();
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
fn with_tokens_the_metrics_take_one_and_health_does_not() {
    let server = Watched::start(&["--auth", "builtin"]);
    let public = server.url("streamable HTTP").strip_suffix("/mcp").unwrap().to_owned();
    assert_eq!(curl(&[&format!("{public}/healthz")]).0, "200");
    assert_eq!(curl(&[&format!("{public}/readyz")]).0, "200");
    assert_eq!(curl(&[&format!("{public}/metrics")]).0, "401");
    assert_eq!(server.log(), "", "a client without a token is no news");
    let wrong = ["-H", "Authorization: Bearer not-of-this-server", &format!("{public}/metrics")];
    assert_eq!(curl(&wrong).0, "401");
    let begin = Instant::now();
    while !server.log().contains("refused address=127.0.0.1") {
        assert!(begin.elapsed() < PATIENCE, "{}", server.log());
        thread::sleep(Duration::from_millis(10));
    }
    assert!(
        server.log().contains("WARN") && !server.log().contains("not-of-this-server"),
        "{}",
        server.log()
    );

    let server = Watched::start(&["--auth", "builtin", "--ops-addr", "127.0.0.1:0"]);
    assert_eq!(curl(&[server.url("operations")]).0, "200");
}

#[test]
fn beyond_this_machine_it_warns_and_shows_an_address_that_works() {
    let server = Watched::start(&["--host", "0.0.0.0", "--allow-host", "mcp.example"]);
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

    let server = Watched::start(&["--host", "0.0.0.0"]);
    assert!(!server.banner.contains("0.0.0.0"), "{}", server.banner);
    let reached = curl(&[&server.url("streamable HTTP").replace("/mcp", "/healthz")]);
    assert_eq!(reached.0, "200", "{}", server.banner);

    let server = Watched::start(&[]);
    assert_eq!(server.log(), "");
    let public = ["--host", "0.0.0.0", "--auth", "builtin", "--public-url", "https://mcp.example"];
    let server = Watched::start(&public);
    assert!(server.banner.contains("\"url\": \"https://mcp.example/mcp\""), "{}", server.banner);
    assert!(!server.log().contains("without --auth"), "{}", server.log());
}

#[test]
fn the_lenient_policy_serves_requests_without_accept() {
    let ask = |options: &[&str]| {
        let server = Watched::start(options);
        curl(&[
            server.url("streamable HTTP"),
            "-H",
            "Accept:",
            "-H",
            "Content-Type: application/json",
            "-d",
            serving::INITIALIZE,
        ])
    };
    let (status, said) = ask(&[]);
    assert!(status == "406" && said.ends_with("--policy lenient serves it\n"), "{status} {said}");
    let (status, said) = ask(&["--policy", "lenient"]);
    assert!(status == "200" && said.contains("RefMCP-TestServer"), "{status} {said}");
}

//! The proxies of `docs/operating.md`, run with the configurations that are shown there: streams come through as they are
//! sent, WebSockets and resumed streams too, and the server knows the client.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{CertifiedKey, generate_simple_self_signed};
use refmcp_testkit::ports::free_port;
use tempfile::TempDir;

use crate::read;
use crate::support::Server;
use crate::support::wait_for;

/// The name of the site in the configurations.
const NAME: &str = "mcp.example.com";

/// What the server says to a request that reached it and names no session.
const SERVED: &str = "no Mcp-Session-Id header";

/// A proxy with a server behind it; both end with it.
struct Site {
    proxy: Child,
    port: u16,
    folder: TempDir,
    /// Where the server answers operators.
    ops: String,
    _server: Server,
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.proxy.kill();
        let _ = self.proxy.wait();
    }
}

/// The first block of the guide that is marked with this word.
fn block(word: &str) -> String {
    let guide = read("docs/operating.md");
    let (_, after) =
        guide.split_once(&format!("```{word}\n")).unwrap_or_else(|| panic!("no block of {word}"));
    after.split_once("```").unwrap().0.to_owned()
}

/// A program that is installed, or the sentence that says how.
fn installed(program: &str, package: &str) -> PathBuf {
    let folders = ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"];
    let found = folders.iter().map(|folder| Path::new(folder).join(program)).find(|path| path.exists());
    found.unwrap_or_else(|| {
        panic!("{program} is needed for this test and is not installed: apt-get install {package}")
    })
}

/// The text with this replaced, which is there.
fn with(text: &str, shown: &str, used: &str) -> String {
    assert!(text.contains(shown), "the guide has no {shown:?}: {text}");
    text.replace(shown, used)
}

impl Site {
    /// Starts the server as the guide says, and in front of it what `start` makes of the port to listen on, the folder
    /// with the certificate, the address of the server, and its port for operators.
    fn open(options: &[&str], start: impl FnOnce(u16, &Path, &str, &str) -> Command) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let names = [NAME.to_owned(), "127.0.0.1".to_owned()];
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(names).unwrap();
        let (cert, key) = (cert.pem(), signing_key.serialize_pem());
        fs::write(folder.path().join("chain.pem"), &cert).unwrap();
        fs::write(folder.path().join("key.pem"), &key).unwrap();
        fs::write(folder.path().join("both.pem"), cert + &key).unwrap();
        let guide = read("docs/operating.md");
        let line = guide.lines().find_map(|line| line.strip_prefix("refmcp serve --trusted-proxy "));
        let ops_port = free_port().to_string();
        let ops = format!("127.0.0.1:{ops_port}");
        let line = with(line.expect("how to start the server"), "127.0.0.1:9090", &ops);
        let shown = format!("--trusted-proxy {line}");
        let log = File::create(folder.path().join("log.txt")).unwrap();
        let logging = ["--log", "refmcp::http=debug"];
        let all: Vec<&str> = shown.split(' ').chain(logging).chain(options.iter().copied()).collect();
        let server = Server::start_logging(&all, log);
        let port = free_port();
        let mut command = start(port, folder.path(), &server.address, &ops_port);
        let errors = File::create(folder.path().join("proxy.txt")).unwrap();
        command.stdin(Stdio::null()).stdout(errors.try_clone().unwrap()).stderr(errors);
        let proxy = command.spawn().unwrap();
        let site = Self { proxy, port, folder, ops, _server: server };
        wait_for("the proxy", || site.get("/mcp").contains(SERVED).then_some(()));
        site
    }

    fn nginx() -> Self {
        let program = installed("nginx", "nginx-light");
        Self::open(&[], |port, folder, server, _| nginx(&program, port, folder, &format!("server {server}")))
    }

    fn haproxy() -> Self {
        let program = installed("haproxy", "haproxy");
        Self::open(&[], |port, folder, server, ops_port| {
            let shown = with(&block("haproxy"), "127.0.0.1:3000", server);
            let shown = with(&shown, "port 9090", &format!("port {ops_port}"));
            let shown = with(&shown, "bind :443", &format!("bind 127.0.0.1:{port}"));
            let both = folder.join("both.pem");
            let shown = with(&shown, "/etc/haproxy/mcp.example.com.pem", both.to_str().unwrap());
            fs::write(folder.join("haproxy.cfg"), shown).unwrap();
            let mut command = Command::new(program);
            command.args(["-db", "-f"]).arg(folder.join("haproxy.cfg"));
            command
        })
    }

    /// curl, which knows the site by its name and trusts its certificate.
    fn curl(&self, path: &str, more: &[&str]) -> Command {
        let mut command = Command::new("curl");
        command.args(["-sN", "--max-time", "20", "--cacert"]).arg(self.folder.path().join("chain.pem"));
        command.args(["--resolve", &format!("{NAME}:{}:127.0.0.1", self.port)]);
        command.args(more).arg(format!("https://{NAME}:{}{path}", self.port));
        command
    }

    fn asked(&self, path: &str, more: &[&str]) -> String {
        let output = self.curl(path, more).output().expect("curl is installed");
        String::from_utf8(output.stdout).unwrap()
    }

    fn get(&self, path: &str) -> String {
        self.asked(path, &[])
    }

    /// Posts a message with these headers.
    fn posted<'a>(headers: &[&'a str], body: &'a str) -> Vec<&'a str> {
        let usual = ["Content-Type: application/json", "Accept: application/json, text/event-stream"];
        let headers = headers.iter().copied().chain(usual).flat_map(|header| ["-H", header]);
        headers.chain(["-d", body]).collect()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log.txt")).unwrap()
    }

    /// Calls a tool by the client of the program.
    fn called(&self, url: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_refmcp"));
        command.args(["call", url, "echo", "message=through the proxy"]);
        command.env("SSL_CERT_FILE", self.folder.path().join("chain.pem"));
        let output = command.env("REFMCP_STATE_DIR", self.folder.path().join("state")).output().unwrap();
        assert!(output.status.success(), "{url}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn passes_everything_on(&self) {
        self.events_arrive_when_they_are_sent();
        self.streams_are_resumed();
        self.every_transport_comes_through();
        self.the_client_is_known();
        for path in ["/metrics", "/healthz", "/readyz"] {
            assert_eq!(self.get(path), "there is nothing here; MCP is at /mcp\n", "{path} is for the inside");
        }
        let inside =
            Command::new("curl").args(["-s", &format!("http://{}/metrics", self.ops)]).output().unwrap();
        assert!(String::from_utf8_lossy(&inside.stdout).contains("refmcp_build_info"), "{inside:?}");
    }

    fn events_arrive_when_they_are_sent(&self) {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"long_task","arguments":{"steps":4,"step_ms":500},"_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
        let headers = ["MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: long_task"];
        let mut curl = self.curl("/mcp", &Self::posted(&headers, body));
        let mut curl = curl.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(curl.stdout.take().unwrap()).lines();
        let messages = lines.map_while(Result::ok).filter(|line| line.starts_with("data: {"));
        let arrived: Vec<(Instant, String)> = messages.map(|line| (Instant::now(), line)).collect();
        assert!(curl.wait().unwrap().success());
        let [(first, one), .., (last, answer)] = &arrived[..] else { panic!("{arrived:?}") };
        assert!(one.contains("\"progress\":1") && answer.contains("4 of 4 steps"), "{arrived:?}");
        let apart = last.duration_since(*first);
        assert!(apart > Duration::from_millis(1000), "they came together, {apart:?} apart: {arrived:?}");
    }

    fn streams_are_resumed(&self) {
        let opened =
            self.asked("/mcp", &[&["-i"][..], &Self::posted(&[], crate::support::INITIALIZE)].concat());
        let id = opened.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect(&opened);
        let session = format!("Mcp-Session-Id: {}", id.trim());
        let headers = [&*session, "MCP-Protocol-Version: 2025-11-25"];
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(self.asked("/mcp", &Self::posted(&headers, ready)), "");
        let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"close_stream","arguments":{}}}"#;
        let broken = self.asked("/mcp", &Self::posted(&headers, call));
        let event = broken.lines().find_map(|line| line.strip_prefix("id: ")).expect(&broken);
        assert!(!broken.contains("result"), "{broken}");
        let last = format!("Last-Event-ID: {event}");
        let more: Vec<&str> = [headers[0], headers[1], &last, "Accept: text/event-stream"]
            .into_iter()
            .flat_map(|header| ["-H", header])
            .collect();
        let rest = self.asked("/mcp", &more);
        assert!(rest.contains("\"id\":2,\"result\""), "{rest}");
    }

    fn every_transport_comes_through(&self) {
        for (scheme, path) in [("https", "/mcp"), ("wss", "/mcp/ws"), ("wss", "/mcp"), ("sse+https", "/sse")]
        {
            let url = format!("{scheme}://127.0.0.1:{}{path}", self.port);
            assert_eq!(self.called(&url), "through the proxy\n", "{url}");
        }
    }

    fn the_client_is_known(&self) {
        // What a client says of itself is not believed, in whatever header.
        let lies =
            ["-H", "X-Forwarded-For: 203.0.113.9", "-H", "Forwarded: for=203.0.113.10;host=evil.example"];
        let more =
            [&lies[..], &["-H", "X-Forwarded-Host: evil.example", "--interface", "127.0.0.2"]].concat();
        let said = self.asked("/mcp", &more);
        assert!(said.contains(SERVED), "{said}");
        let log = wait_for("the log", || Some(self.log()).filter(|log| log.contains("client=127.0.0.2")));
        assert!(!log.contains("203.0.113."), "{log}");
    }
}

/// nginx with the configuration of the guide, in front of this server, in one process that writes nowhere else.
fn nginx(program: &Path, port: u16, folder: &Path, upstream: &str) -> Command {
    let shown = with(&block("nginx"), "server 127.0.0.1:3000", upstream);
    let shown = with(&shown, "listen 443 ssl", &format!("listen 127.0.0.1:{port} ssl"));
    let shown = with(&shown, "/etc/ssl/mcp.example.com", folder.to_str().unwrap());
    let around = "daemon off;\nmaster_process off;\npid nginx.pid;\nevents {}\nhttp {\naccess_log off;\n\
                  client_body_temp_path body;\nproxy_temp_path proxy;\nfastcgi_temp_path fastcgi;\n\
                  uwsgi_temp_path uwsgi;\nscgi_temp_path scgi;\n";
    fs::write(folder.join("nginx.conf"), format!("{around}{shown}}}\n")).unwrap();
    let mut command = Command::new(program);
    command.arg("-p").arg(folder).args(["-c", "nginx.conf", "-e", "error.txt"]);
    command
}

#[test]
fn nginx_passes_everything_on() {
    Site::nginx().passes_everything_on();
}

#[test]
fn haproxy_passes_everything_on() {
    Site::haproxy().passes_everything_on();
}

#[test]
fn nginx_speaks_to_a_unix_socket() {
    let program = installed("nginx", "nginx-light");
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("refmcp.sock");
    // The server on a port is there as well, and is not asked.
    let mut near = Command::new(env!("CARGO_BIN_EXE_refmcp"));
    near.args(["serve", "--unix"]).arg(&socket).args(["--trusted-proxy", "unix", "--allow-host", NAME]);
    near.args(["--log", "refmcp::http=debug"]).stdout(Stdio::null());
    let near_log = folder.path().join("near.txt");
    let mut near = near.stderr(File::create(&near_log).unwrap()).spawn().unwrap();
    wait_for("the socket", || std::os::unix::net::UnixStream::connect(&socket).ok());
    let upstream = format!("server unix:{}", socket.display());
    let site = Site::open(&[], |port, folder, _, _| nginx(&program, port, folder, &upstream));
    assert_eq!(site.asked("/healthz", &["--interface", "127.0.0.3"]), "alive\n");
    assert_eq!(site.called(&format!("wss://127.0.0.1:{}/mcp/ws", site.port)), "through the proxy\n");
    wait_for("the log", || fs::read_to_string(&near_log).ok().filter(|log| log.contains("client=127.0.0.3")));
    drop(site);
    near.kill().unwrap();
    near.wait().unwrap();
}

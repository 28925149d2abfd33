//! The files of `deploy`: HAProxy sends requests to either process, with the configuration that is there, and the processes
//! take the options that are there.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use refmcp_testkit::ports::free_port;
use serde_json::json;

use crate::support::{Server, http, wait_for};
use crate::{BOTH, CLOSE, Replicas, SESSION};

fn read(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A proxy that is killed when it is dropped.
struct Proxy(Child);

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn haproxy_sends_requests_to_either_process() {
    let replicas = Replicas::start();
    let port = free_port();
    let mut configuration = read("haproxy.cfg").replace("bind :3000", &format!("bind 127.0.0.1:{port}"));
    for (number, server) in replicas.servers.iter().enumerate() {
        let shown = format!("refmcp{}:3000 check port 9090", number + 1);
        assert!(configuration.contains(&shown), "{configuration}");
        configuration = configuration.replace(&shown, &format!("{} check", server.address));
    }
    let file = replicas.redis.folder().join("haproxy.cfg");
    fs::write(&file, configuration).unwrap();
    let mut haproxy = Command::new("/usr/sbin/haproxy");
    haproxy.arg("-f").arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let _proxy = Proxy(haproxy.spawn().expect("haproxy is installed: apt-get install haproxy"));
    let address = format!("127.0.0.1:{port}");
    wait_for("the proxy", || {
        std::net::TcpStream::connect(&address)
            .is_ok()
            .then(|| (http::send(&address, "GET /healthz", &[CLOSE], "").status == 200).then_some(()))?
    });

    let plain = [CLOSE, ("Content-Type", "application/json"), ("Accept", BOTH)];
    let client = json!({ "name": "c", "version": "1" });
    let params = json!({ "protocolVersion": SESSION, "capabilities": {}, "clientInfo": client });
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let opened = http::send(&address, "POST /mcp", &plain, &initialize.to_string());
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let mut headers = plain.to_vec();
    headers.extend([("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", SESSION)]);
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(http::send(&address, "POST /mcp", &headers, &ready.to_string()).status, 202);
    for id in 2..12 {
        let call = crate::call(id, "sum", &json!({ "a": id, "b": 1 }));
        let answer = http::send(&address, "POST /mcp", &headers, &call.to_string()).json();
        assert_eq!(answer["result"]["structuredContent"]["total"], id + 1, "{answer}");
    }
    for server in &replicas.servers {
        let metrics = http::send(&server.address, "GET /metrics", &[CLOSE], "").text();
        let calls = metrics.lines().find(|line| line.starts_with("refmcp_") && line.contains("tools/call"));
        assert!(calls.is_some(), "each process has served some calls: {metrics}");
    }
}

#[test]
fn the_processes_take_the_options_of_compose() {
    let replicas = Replicas::start();
    let compose = read("compose.yaml");
    let listed: Vec<&str> = compose.lines().filter_map(|line| line.trim().strip_prefix("- --")).collect();
    assert!(listed.len() > 5, "{compose}");
    let key = replicas.redis.folder().join("state.key").display().to_string();
    let mut options = Vec::new();
    for option in listed {
        let (name, value) = option.split_once('=').unwrap();
        options.push(format!("--{name}"));
        options.push(match name {
            "host" => "127.0.0.1".to_owned(),
            "port" => "0".to_owned(),
            "ops-addr" => format!("127.0.0.1:{}", free_port()),
            "backplane" => replicas.redis.address(""),
            "state-key-file" => key.clone(),
            _ => value.to_owned(),
        });
    }
    // The last port counts.
    let port = options.iter().position(|option| option == "--port").unwrap();
    options.drain(port..port + 2);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    assert!(Server::start(&options).greet().starts_with("HTTP/1.1 200 OK"), "{options:?}");
}

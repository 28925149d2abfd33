//! The suite as a client of our authorization server. It prints a URL for a browser; here curl opens it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::suite::Suite;
use super::{checks, empty, show};
use crate::leaks::Secrets;
use crate::server::{Server, Transport};
use crate::{Build, Tally, shell};

/// The revisions that the suite has scenarios for.
const REVISIONS: [&str; 4] = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// The scenarios of each.
const SCENARIOS: [&str; 2] = ["authorization-server-metadata-endpoint", "authorization-code-grant"];

/// Seconds that opening a URL may take.
const OPEN_TIMEOUT: &str = "20";

pub(super) fn run(suite: &Suite, build: &Build, out: &Path) -> Result<Tally> {
    empty(out)?;
    let log = out.join("server.log");
    let options = ["--auth", "builtin", "--auth-login", "auto", "--log", "trace"];
    let server = Server::start(&build.refmcp(), &options, Transport::StreamableHttp, &log)?;
    let mut secrets = Secrets::default();
    let issuer = server.url.strip_suffix("/mcp").context("the server is not where it should be")?;
    let mut tally = Tally::default();
    for revision in REVISIONS {
        let results = out.join(revision);
        fs::create_dir_all(&results).with_context(|| format!("cannot make {}", results.display()))?;
        let port = free_port()?;
        let client = register(issuer, port)?;
        secrets.add_addresses(&run_scenarios(suite, issuer, &client, port, revision, &results)?);
        let mut passed = 0;
        for scenario in SCENARIOS {
            let parsed = folder(&results, scenario).and_then(|folder| checks::faults(&folder, &[]));
            let faults = parsed.unwrap_or_else(|error| vec![format!("{error:#}")]);
            show("authorization server", revision, scenario, &faults);
            passed += usize::from(faults.is_empty());
        }
        println!("authorization server, {revision}: {passed} of {} scenarios", SCENARIOS.len());
        tally += Tally { passed, failed: SCENARIOS.len() - passed };
    }
    drop(server);
    let logged = fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))?;
    ensure!(secrets.len() >= REVISIONS.len() && logged.contains(" DEBUG "), "there is nothing to search");
    if let Some(leak) = secrets.leak(&logged) {
        println!("{} authorization server: {leak}", shell::red("FAILED"));
        tally.failed += 1;
    }
    Ok(tally)
}

/// A port without a listener.
fn free_port() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0").context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

/// Makes the suite known; its id.
fn register(issuer: &str, port: u16) -> Result<String> {
    let client = json!({
        "client_name": "conformance",
        "redirect_uris": [format!("http://127.0.0.1:{port}/callback")],
        "token_endpoint_auth_method": "none",
    });
    let mut curl = Command::new("curl");
    curl.args(["-sS", "--fail-with-body", "-m", OPEN_TIMEOUT, "-H", "Content-Type: application/json", "-d"]);
    let answer = shell::output(curl.arg(client.to_string()).arg(format!("{issuer}/register")))?;
    let answer: Value = serde_json::from_str(&answer).context("the registration is not JSON")?;
    let id = answer.get("client_id").and_then(Value::as_str).context("the registration has no client_id")?;
    Ok(id.to_owned())
}

/// Runs the scenarios of a revision, and opens the URL that is to be opened; the URLs that were fetched.
fn run_scenarios(
    suite: &Suite,
    issuer: &str,
    client: &str,
    port: u16,
    revision: &str,
    results: &Path,
) -> Result<String> {
    let resource = format!("{issuer}/mcp");
    let args = ["authorization", "--url", issuer, "--client-id", client, "--resource", &resource, "-p"];
    let mut command = suite.command(&args);
    command.arg(port.to_string()).args(["--spec-version", revision, "-o"]).arg(results);
    let mut running = Running(command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?);
    let said = running.0.stdout.take().context("no output")?;
    let mut fetched = String::new();
    for line in BufReader::new(said).lines() {
        let line = line?;
        if line.starts_with(&format!("{issuer}/authorize?")) {
            let mut curl = Command::new("curl");
            curl.args(["-sS", "-L", "--fail-with-body", "-m", OPEN_TIMEOUT, "-o"]).arg(results.join("page"));
            let end = shell::output(curl.args(["-w", "%{url_effective}\n", &line]))?;
            let page = fs::read(results.join("page")).unwrap_or_default();
            ensure!(!page.is_empty(), "nothing came of {line}");
            fetched += &format!("{line}\n{end}");
        }
    }
    running.0.wait()?;
    ensure!(!fetched.is_empty(), "{revision}: the suite printed no URL, so no code was granted");
    Ok(fetched)
}

/// The suite, for as long as this lives.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already; what counts is that it is gone.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The folder that the suite has made for a scenario.
fn folder(results: &Path, scenario: &str) -> Result<std::path::PathBuf> {
    let all = fs::read_dir(results).with_context(|| format!("no results in {}", results.display()))?;
    for folder in all {
        let folder = folder?;
        if folder.file_name().to_string_lossy().contains(scenario) {
            return Ok(folder.path());
        }
    }
    anyhow::bail!("the suite did not run {scenario}")
}

//! Clients that others wrote, behind a login: they get in by what their SDKs know of it. `interop/…/login.mjs` and
//! `login.py` take `REVISION URL URL SECONDS`, the second server being one whose tokens last so many seconds, and print a
//! line of JSON about each check. A browser is not needed: the server says yes by itself. What they have seen that opens
//! something must not be in what the servers log, which is all they can.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Paths;
use super::client::{CLIENTS, Client, Language};
use super::secrets::{RecordedSecrets, VARIABLE};
use crate::install::in_venv;
use crate::server::{Server, Transport};
use crate::{Build, REVISIONS, Tally, parallel, shell};

/// The longest that one run may take; each check in it has a limit of its own.
const LIMIT: Duration = Duration::from_secs(180);

/// What is checked by every client, in the order of the scripts.
const CHECKS: [&str; 9] = [
    "without a token",
    "login",
    "step-up",
    "step-up with a refresh token",
    "refresh",
    "DPoP",
    "client credentials",
    "a revoked token",
    "another server's token",
];

/// A client that the server knows from the start, for the length of a run.
const CLIENT: (&str, &str) = ("interop", "not-so-secret");

/// How long the tokens of the second server last, in seconds.
const BRIEF: &str = "5";

/// What a script says of a check.
#[derive(Debug, Clone, Deserialize, PartialEq)]
struct Check {
    name: String,
    ok: bool,
    /// The SDK cannot do it; its words are the detail.
    unsupported: bool,
    detail: String,
}

/// One client, one transport, one revision.
struct LoginRun {
    client: &'static Client,
    transport: Transport,
    revision: &'static str,
}

/// What came of a run.
#[derive(Debug, Default)]
struct LoginReport {
    name: String,
    checks: Vec<Check>,
    /// What went wrong beside the checks.
    problems: Vec<String>,
}

/// Lets the SDKs' clients log in to our server, and our client to servers on SDKs; counts the checks.
pub(crate) fn run(build: &Build) -> Result<Tally> {
    let paths = Paths::new(build)?;
    let results = paths.out.join("results");
    fs::create_dir_all(&results).with_context(|| format!("cannot make {}", results.display()))?;

    let mut reports = Vec::new();
    let mut runs = Vec::new();
    for client in CLIENTS.iter().filter(|client| script(client).is_some()) {
        match client.prepare(&paths) {
            Ok(()) => runs.extend(login_runs(client)),
            Err(error) => reports.push(LoginReport {
                name: client.name.to_owned(),
                problems: vec![format!("cannot be set up: {error:#}")],
                ..LoginReport::default()
            }),
        }
    }
    reports.extend(parallel::map(&runs, |run| run.execute(&paths)));

    let kept = paths.out.join("logins.md");
    fs::write(&kept, markdown(&reports)).with_context(|| format!("cannot write {}", kept.display()))?;
    let mut tally = Tally::default();
    for report in &reports {
        tally.passed += report.passed();
        for error in report.faults() {
            println!("{} login: {}: {error}", shell::red("FAILED"), report.name);
            tally.failed += 1;
        }
    }
    println!("logins of others: {tally}; the table is kept in {}", kept.display());
    tally += super::servers::logins::run(&paths)?;
    Ok(tally)
}

/// The script of a client whose SDK knows logins and is driven here.
fn script(client: &Client) -> Option<&'static str> {
    match client.language {
        Language::TypeScript => Some("login.mjs"),
        Language::Python => Some("login.py"),
        Language::Rust => None,
    }
}

/// The newest revision with sessions over both transports, and what has none where the SDK speaks it.
fn login_runs(client: &'static Client) -> Vec<LoginRun> {
    let [.., sessions, newest] = REVISIONS;
    let login_run = |transport, revision| LoginRun { client, transport, revision };
    let mut login_runs =
        vec![login_run(Transport::StreamableHttp, sessions), login_run(Transport::HttpSse, sessions)];
    if client.name.ends_with("-v2") {
        login_runs.push(login_run(Transport::StreamableHttp, newest));
    }
    login_runs
}

impl LoginRun {
    fn name(&self) -> String {
        format!("{} {} {}", self.client.name, self.transport.name(), self.revision)
    }

    fn execute(&self, paths: &Paths) -> LoginReport {
        let begin = Instant::now();
        let mut report = LoginReport { name: self.name(), ..LoginReport::default() };
        if let Err(error) = self.fill(paths, &mut report) {
            report.problems.push(format!("{error:#}"));
        }
        println!(
            "login          {:<35} {} of {}  ({})",
            report.name,
            report.passed(),
            CHECKS.len(),
            shell::duration(begin.elapsed())
        );
        report
    }

    /// Runs the client against two servers that are there for this run only.
    fn fill(&self, paths: &Paths, report: &mut LoginReport) -> Result<()> {
        let name = format!("login-{}", self.name().replace(' ', "-"));
        let file = |ending: &str| paths.out.join("results").join(format!("{name}.{ending}"));
        let known = format!("{}:{}", CLIENT.0, CLIENT.1);
        // What is revoked is noticed by who asks.
        let mut usual = vec!["--auth", "builtin", "--auth-login", "auto", "--auth-introspect"];
        usual.extend(["--auth-client", &known, "--log", "trace"]);
        let logs = [file("server.log"), file("brief.log")];
        let [log, brief_log] = &logs;
        let lasting = Server::start(&paths.server, &usual, self.transport, log)?;
        usual.extend(["--auth-token-lifetime", BRIEF]);
        let brief = Server::start(&paths.server, &usual, self.transport, brief_log)?;
        let recorded = RecordedSecrets::new(file("secrets"))?;

        let lines = file("jsonl");
        let mut command = self.command(paths);
        command.args([self.revision, &lasting.url, &brief.url, BRIEF]);
        command.env("CLIENT_ID", CLIENT.0).env("CLIENT_SECRET", CLIENT.1).env(VARIABLE, recorded.path());
        let ended = shell::run_logged(&mut command, &lines, LIMIT)?;
        let printed =
            fs::read_to_string(&lines).with_context(|| format!("cannot read {}", lines.display()))?;
        report.checks = checks(&printed);
        if !fits(&report.checks, ended.is_some_and(|status| status.success())) {
            let end = ended.map_or_else(|| "did not end".to_owned(), |status| format!("ended with {status}"));
            report.problems.push(format!("the script {end}; see {}", lines.display()));
        }
        let stopped = [lasting, brief].map(Server::stop);
        report.problems.extend(stopped.into_iter().filter_map(Result::err).map(|error| format!("{error:#}")));
        report.problems.extend(recorded.problems(CLIENT.1, &logs)?);
        Ok(())
    }

    fn command(&self, paths: &Paths) -> Command {
        let script: PathBuf =
            self.client.folder(&paths.sources).join(script(self.client).unwrap_or_default());
        let mut command = match self.client.language {
            Language::Python => Command::new(in_venv(&self.client.built(&paths.out), "python")),
            Language::TypeScript | Language::Rust => Command::new("node"),
        };
        command.arg(script).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }
}

impl LoginReport {
    fn passed(&self) -> usize {
        self.checks.iter().filter(|check| check.ok).count()
    }

    fn faults(&self) -> Vec<String> {
        let failed = self.checks.iter().filter(|check| !check.ok);
        let faults = failed.map(|check| format!("{}: {}", check.name, check.detail));
        faults.chain(self.problems.iter().cloned()).collect()
    }

    fn cell(&self, name: &str) -> &'static str {
        match self.checks.iter().find(|check| check.name == name) {
            Some(check) if check.unsupported => "unsupported",
            Some(check) if check.ok => "ok",
            _ => "FAILED",
        }
    }
}

/// The checks among the lines; the others are what the SDKs say besides.
fn checks(printed: &str) -> Vec<Check> {
    printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// True if every check was made, and the lines and the exit code agree.
fn fits(checks: &[Check], succeeded: bool) -> bool {
    let made = checks.iter().map(|check| check.name.as_str());
    made.eq(CHECKS) && succeeded == checks.iter().all(|check| check.ok)
}

/// A row for each run, and below what the cells do not say.
fn markdown(reports: &[LoginReport]) -> String {
    let mut text = format!("| | {} |\n|---{}|\n", CHECKS.join(" | "), "|---".repeat(CHECKS.len()));
    let mut details = String::new();
    for report in reports {
        let cells = CHECKS.map(|name| report.cell(name));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "| {} | {} |", report.name, cells.join(" | "));
        for check in report.checks.iter().filter(|check| !check.detail.is_empty()) {
            let _ =
                writeln!(details, "- {}, {}: {}", report.name, check.name, check.detail.replace('\n', " "));
        }
    }
    format!("# Logins of others\n\n{text}\n{details}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bad: &str) -> String {
        let line = |name: &&str| {
            let (ok, unsupported) = (*name != bad, *name == "step-up");
            format!(r#"{{"name":"{name}","ok":{ok},"unsupported":{unsupported},"detail":"so"}}"#)
        };
        CHECKS.iter().map(line).collect::<Vec<_>>().join("\nthe SDK warns\n")
    }

    #[test]
    fn a_script_that_breaks_off_or_leaves_something_out_is_noticed() {
        let all = checks(&lines(""));
        assert!(fits(&all, true) && !fits(&all, false));
        assert!(!fits(all.split_last().unwrap().1, true));
        let one = checks(&lines("login"));
        assert!(fits(&one, false) && !fits(&one, true));
        assert!(!fits(&checks("Traceback"), false));
    }

    #[test]
    fn what_failed_is_told_and_what_cannot_be_done_is_no_fault() {
        let report = LoginReport {
            name: "it".to_owned(),
            checks: checks(&lines("refresh")),
            ..LoginReport::default()
        };
        assert_eq!((report.passed(), report.faults()), (8, vec!["refresh: so".to_owned()]));
        assert_eq!(
            ["login", "step-up", "refresh"].map(|name| report.cell(name)),
            ["ok", "unsupported", "FAILED"]
        );
        assert_eq!(LoginReport::default().cell("login"), "FAILED");
        let table = markdown(&[report]);
        assert!(table.contains("| it | ok | ok | unsupported | ok | FAILED |"), "{table}");
        assert!(table.contains("- it, refresh: so\n"), "{table}");
    }

    #[test]
    fn every_sdk_logs_in_over_both_transports() {
        let driven: Vec<_> = CLIENTS.iter().filter(|client| script(client).is_some()).collect();
        assert_eq!(driven.len(), 4);
        assert_eq!(driven.iter().map(|client| login_runs(client).len()).collect::<Vec<_>>(), [2, 3, 2, 3]);
    }
}

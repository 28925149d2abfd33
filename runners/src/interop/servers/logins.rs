//! Our command line at servers behind a login that others wrote: `interop/servers/python-auth` on both Python SDKs, with
//! the authorization server that comes with them. The browser is a program that goes wherever a page leads.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::super::Paths;
use super::super::client::{CLIENTS, Client};
use super::process::{self, ServerProcess};
use super::step::Check::{self, Complains, Hides, Prints, Says};
use super::step::CommandOutput;
use crate::install::in_venv;
use crate::leaks::Secrets;
use crate::{Tally, shell};

/// How long the tokens of the second server last, and how long it takes until they have surely ended.
const BRIEF: &str = "5";
const ENDED: Duration = Duration::from_secs(7);

/// The Python SDKs, and the endpoints to reach a server on them: the word for it, and the address.
const SDKS: [&str; 2] = ["python-v1", "python-v2"];
const ENDPOINTS: [(&str, &str); 2] =
    [("http", "http://127.0.0.1:PORT/mcp"), ("sse", "sse+http://127.0.0.1:PORT/sse")];

/// A command line, what it exits with and what is to be seen of it. `URL` stands for the server.
struct Step {
    name: &'static str,
    words: &'static [&'static str],
    exit: i32,
    checks: &'static [Check],
}

const fn step(
    name: &'static str,
    words: &'static [&'static str],
    exit: i32,
    checks: &'static [Check],
) -> Step {
    Step { name, words, exit, checks }
}

const ECHO: &[&str] = &["call", "URL", "echo", "message=hello"];
const TOUCH: &[&str] = &["call", "URL", "touch_resource", "uri=file:///notes/todo.txt"];
const LOGIN: &[&str] = &["auth", "login", "URL"];
const NOT_LOGGED_IN: i32 = 3;
const HINT: &[Check] = &[Complains("refmcp auth login")];
const MORE: &[Check] = &[Complains("refmcp auth login"), Complains("--scope")];
const HELLO: &[Check] = &[Prints("hello\n")];

/// How every code and every token of these servers begins. Nothing that is printed has one in it.
const SECRETS: &[Check] = &[Hides("hush-")];

/// What is done at a server whose tokens last.
const STEPS: [Step; 9] = [
    step("without a login, the error names the command", ECHO, NOT_LOGGED_IN, HINT),
    step("a login", LOGIN, 0, &[]),
    step("a call", ECHO, 0, HELLO),
    step("where one is logged in", &["auth", "status"], 0, &[Says("127.0.0.1"), Says("mcp:read")]),
    step("a tool that needs more is refused", TOUCH, NOT_LOGGED_IN, MORE),
    step(
        "a login for more",
        &["auth", "login", "URL", "--scope", "mcp:read", "--scope", "mcp:write"],
        0,
        &[],
    ),
    step("a tool that needs more", TOUCH, 0, &[Says("touched file:///notes/todo.txt")]),
    step("a logout", &["auth", "logout", "URL"], 0, &[]),
    step("after a logout, a call needs a login", ECHO, NOT_LOGGED_IN, HINT),
];

/// What is done at a server whose tokens do not last, before they end and afterwards.
const BEFORE: [Step; 1] = [step("a login for a short time", LOGIN, 0, &[])];
const AFTERWARDS: [Step; 1] = [step("a call with a token that is a new one", ECHO, 0, HELLO)];

/// Logs in to all of them; counts the steps.
pub(in crate::interop) fn run(paths: &Paths) -> Result<Tally> {
    let mut tally = Tally::default();
    for name in SDKS {
        let client = CLIENTS.iter().find(|client| client.name == name).context("no such SDK")?;
        client.prepare(paths).with_context(|| format!("{name} cannot be set up"))?;
        for (transport, url) in ENDPOINTS {
            let begin = Instant::now();
            let login_run = LoginRun { paths, client, transport, url };
            let mut report = LoginReport::default();
            if let Err(error) = login_run.execute(&mut report) {
                report.faults.push(format!("{error:#}"));
            }
            let took = shell::duration(begin.elapsed());
            println!("our login      server {name} {transport:<14} {} steps  ({took})", report.passed);
            for error in &report.faults {
                println!("{} our login: {name} {transport}: {error}", shell::red("FAILED"));
            }
            tally += Tally { passed: report.passed, failed: report.faults.len() };
        }
    }
    println!("our logins at others: {tally}");
    Ok(tally)
}

/// One server over one transport.
struct LoginRun<'a> {
    paths: &'a Paths,
    client: &'static Client,
    transport: &'static str,
    url: &'static str,
}

#[derive(Default)]
struct LoginReport {
    passed: usize,
    /// What was in the pages that a person is to login_run.
    secrets: Secrets,
    faults: Vec<String>,
}

impl LoginRun<'_> {
    fn execute(&self, report: &mut LoginReport) -> Result<()> {
        let state =
            self.paths.out.join("results").join(format!("our-login-{}-{}", self.client.name, self.transport));
        if state.exists() {
            fs::remove_dir_all(&state).with_context(|| format!("cannot remove {}", state.display()))?;
        }
        fs::create_dir_all(&state).with_context(|| format!("cannot make {}", state.display()))?;
        let (brief, short) = self.start(&state.join("brief.log"), &[BRIEF])?;
        self.run_steps(&BEFORE, &short, &state, report)?;
        let begun = Instant::now();
        let (lasting, url) = self.start(&state.join("server.log"), &[])?;
        self.run_steps(&STEPS, &url, &state, report)?;
        thread::sleep(ENDED.saturating_sub(begun.elapsed()));
        self.run_steps(&AFTERWARDS, &short, &state, report)?;
        lasting.stop()?;
        brief.stop()?;
        Ok(())
    }

    /// A server, and where it is.
    fn start(&self, log: &Path, more: &[&str]) -> Result<(ServerProcess, String)> {
        let port = process::free_port()?.to_string();
        let python = in_venv(&self.client.built(&self.paths.out), "python");
        let mut words = vec![python, self.script("server.py"), self.transport.into(), port.clone().into()];
        words.extend(more.iter().map(PathBuf::from));
        let running = ServerProcess::start(&words, port.parse()?, log)
            .with_context(|| format!("see {}", log.display()))?;
        Ok((running, self.url.replace("PORT", &port)))
    }

    fn script(&self, name: &str) -> PathBuf {
        self.paths.sources.join("servers/python-auth").join(name)
    }

    /// Takes the steps until one is not as it should be: those after it need it.
    fn run_steps(&self, steps: &[Step], url: &str, state: &Path, report: &mut LoginReport) -> Result<()> {
        for step in steps {
            let mut command = Command::new(&self.paths.server);
            command.args(step.words.iter().map(|word| if *word == "URL" { url } else { word }));
            // Nothing of what the person who runs this has decided or set may matter.
            command.current_dir(state).env("REFMCP_STATE_DIR", state.join("kept")).env("NO_COLOR", "1");
            for set in ["REFMCP_LOG_FORMAT", "REFMCP_MASK_ARGUMENTS"] {
                command.env_remove(set);
            }
            command.env("REFMCP_LOG", "trace").env("BROWSER", self.script("browser.py"));
            let output = process::run(&mut command).with_context(|| step.name)?;
            let error = output.fault(step.exit, step.checks).or_else(|| output.fault(step.exit, SECRETS));
            let error = error.or_else(|| leak(&output, &mut report.secrets));
            ensure!(error.is_none(), "{}: {}", step.name, error.unwrap_or_default());
            report.passed += 1;
        }
        Ok(())
    }
}

/// A secret in the output of a command. Only the URL of the login page may be printed, and only to the user.
fn leak(output: &CommandOutput, secrets: &mut Secrets) -> Option<String> {
    let (pages, rest): (Vec<&str>, Vec<&str>) =
        output.err.split_inclusive('\n').partition(|line| line.starts_with("  http"));
    secrets.add_addresses(&pages.concat());
    secrets.leak(&(rest.concat() + &output.out))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_may_be_told_and_what_is_in_it_may_not() {
        let page = "login_run this page:\n  http://h/authorize?state=S0123456789abcdef\n";
        let output = |err: &str| CommandOutput { exit: Some(0), out: String::new(), err: err.to_owned() };
        let mut secrets = Secrets::default();
        assert_eq!(leak(&output(page), &mut secrets), None);
        assert!(leak(&output("the state S0123456789abcdef output back\n"), &mut secrets).is_some());
    }

    #[test]
    fn every_step_but_auth_status_names_the_server() {
        for step in BEFORE.iter().chain(&STEPS).chain(&AFTERWARDS) {
            assert!(step.words.contains(&"URL") || step.words == ["auth", "status"], "{}", step.name);
        }
    }

    #[test]
    fn every_sdk_is_known() {
        assert!(SDKS.iter().all(|name| CLIENTS.iter().any(|client| client.name == *name)));
    }
}

//! Pages in a real browser: the consent page of the built-in authorization server, and the apps of the reference server in
//! hosts. `interop/browser` pins a Chromium that comes as a package, and what drives it; a script for each prints a line for
//! each check.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Paths;
use crate::server::{Server, Transport};
use crate::{Build, Tally, install, shell};

/// How long the checks of a script may take, unpacking the browser included. The script gives up before.
const LIMIT: Duration = Duration::from_secs(180);

/// What a browser goes through.
struct Page {
    /// What it is called in the output.
    name: &'static str,
    script: &'static str,
    /// Options of the server that has it.
    options: &'static [&'static str],
    /// What the script is told of the server: its URL, or the origin alone.
    path: &'static str,
}

const PAGES: [Page; 2] = [
    Page { name: "consent", script: "consent.mjs", options: &["--auth", "builtin"], path: "" },
    Page { name: "apps", script: "apps.mjs", options: &[], path: "/mcp" },
];

/// What the script says of a check.
#[derive(Debug, Deserialize, PartialEq)]
struct Check {
    name: String,
    ok: bool,
    detail: String,
}

/// Goes through every page.
pub(crate) fn run(build: &Build) -> Result<Tally> {
    let paths = Paths::new(build)?;
    let scripts = prepare(&paths).context("the browser cannot be set up")?;
    let mut tally = Tally::default();
    for page in &PAGES {
        tally += page.run(&paths, &scripts)?;
    }
    Ok(tally)
}

impl Page {
    /// Goes through the page of a server that has it.
    fn run(&self, paths: &Paths, scripts: &Path) -> Result<Tally> {
        let folder = paths.out.join("browser").join(self.name);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let log = folder.join("server.log");
        let server = Server::start(&paths.server, self.options, Transport::StreamableHttp, &log)?;
        let base = server.url.strip_suffix("/mcp").context("the server has no /mcp")?;

        let lines = folder.join("checks.jsonl");
        let mut script = Command::new("node");
        script.arg(scripts.join(self.script)).arg(format!("{base}{}", self.path)).arg(&folder);
        let ended = shell::run_logged(&mut script, &lines, LIMIT)?;
        let printed =
            fs::read_to_string(&lines).with_context(|| format!("cannot read {}", lines.display()))?;
        let checks = checks(&printed);
        let mut faults: Vec<String> = checks.iter().filter_map(fault).collect();
        let succeeded = ended.is_some_and(|status| status.success());
        if !fits(&checks, succeeded) {
            let end = ended.map_or_else(|| "did not end".to_owned(), |status| format!("ended with {status}"));
            faults.push(format!("the script {end} and printed\n{printed}"));
        }
        if let Err(error) = server.stop() {
            faults.push(format!("{error:#}"));
        }
        for fault in &faults {
            println!("{} {}: {fault}", shell::red("FAILED"), self.name);
        }
        let passed = checks.iter().filter(|check| check.ok).count();
        println!("{} in a browser: {passed} checks passed; see {}", self.name, lines.display());
        Ok(Tally { passed, failed: faults.len() })
    }
}

/// Installs the browser, once for each state of its lock file; gives the folder of the scripts.
fn prepare(paths: &Paths) -> Result<PathBuf> {
    let folder = paths.sources.join("browser");
    install::npm(&folder)?;
    Ok(folder)
}

/// The checks among the lines; the others are what Node says when it is in trouble.
fn checks(printed: &str) -> Vec<Check> {
    printed.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn fault(check: &Check) -> Option<String> {
    (!check.ok).then(|| format!("{}: {}", check.name, check.detail))
}

/// True if the lines and the exit code agree: a script that breaks off must not pass for one with few checks.
fn fits(checks: &[Check], succeeded: bool) -> bool {
    !checks.is_empty() && succeeded == checks.iter().all(|check| check.ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"name":"the page opens","ok":true,"detail":""}"#;
    const BAD: &str = r#"{"name":"Allow gives a code","ok":false,"detail":"the browser did not come back"}"#;

    #[test]
    fn checks_are_found_among_other_lines() {
        let found = checks(&format!("(node:7) Warning: old\n{GOOD}\n{BAD}\n"));
        assert_eq!(found.len(), 2);
        let faults: Vec<_> = found.iter().filter_map(fault).collect();
        assert_eq!(faults, ["Allow gives a code: the browser did not come back"]);
    }

    #[test]
    fn a_script_that_breaks_off_is_noticed() {
        assert!(fits(&checks(GOOD), true));
        assert!(fits(&checks(BAD), false));
        assert!(!fits(&checks(GOOD), false));
        assert!(!fits(&checks(BAD), true));
        assert!(!fits(&checks("no line of JSON"), true));
    }
}

//! The suite as the server of our client, which it starts for one scenario after the other: all at once, as it would
//! by itself, is too much for a scenario that measures time.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::checks::{self, ExpectedFailure};
use super::suite::{self, EXTENSION, Suite, of_revision};
use super::{empty, show};
use crate::leaks::{Secrets, level};
use crate::{Build, Tally, shell};

/// The revisions that the suite has scenarios for, with how many: a scenario that goes missing is noticed.
const REVISIONS: [(&str, usize); 5] =
    [("2025-03-26", 2), ("2025-06-18", 5), ("2025-11-25", 19), ("2026-07-28", 33), (EXTENSION, 10)];

/// Scenarios in which a server behaves so that a client has to turn away, and say so.
const REJECTED_SERVERS: [&str; 10] = [
    "auth/scope-retry-limit",
    "auth/resource-mismatch",
    "auth/iss-supported-missing",
    "auth/iss-wrong-issuer",
    "auth/iss-unexpected",
    "auth/iss-normalized",
    "auth/metadata-issuer-mismatch",
    "sep-2640-client-verify-digest",
    "sep-2640-client-verify-size",
    "sep-2640-client-verify-frontmatter",
];

/// Checks that cannot go well.
const EXPECTED_FAILURES: [ExpectedFailure; 2] = [
    ExpectedFailure {
        scenario: "http-standard-headers",
        check: "ClientMcpMethodHeader_initialize",
        status: "SKIPPED",
        because: "the revision of the scenario has no initialize",
    },
    ExpectedFailure {
        scenario: "http-standard-headers",
        check: "ClientMcpMethodHeader_notifications_initialized",
        status: "SKIPPED",
        because: "the revision of the scenario has no notifications/initialized",
    },
];

/// How the tokens, codes and secrets begin that the suite gives to clients. The client logs all it can, and none of these.
const SECRETS: [&str; 5] =
    ["test-token", "test-auth-code", "test-client-secret", "test-secret", "test-xaa-secret"];

/// More than the suite gives a client.
const LIMIT: Duration = Duration::from_secs(60);

/// The client, from the folder that it is built to: the suite takes a blank in a path for the end of it.
const PROGRAM: &str = "./refmcp-conformance-client";

pub(super) fn run(suite: &Suite, build: &Build, out: &Path) -> Result<Tally> {
    let listing = shell::output(&mut suite.command(&["list", "--client"]))?;
    empty(out)?;
    let mut tally = Tally::default();
    for (revision, scenarios) in REVISIONS {
        let names: Vec<&str> = of_revision(&listing, revision).collect();
        let mut passed = 0;
        for scenario in &names {
            let results = out.join(revision).join(scenario);
            let outcome = run_scenario(suite, build, scenario, revision, &results);
            let faults = outcome.unwrap_or_else(|error| vec![format!("{error:#}")]);
            show("client", revision, scenario, &faults);
            passed += usize::from(faults.is_empty());
        }
        println!("client, {revision}: {passed} of {scenarios} scenarios");
        tally.passed += passed;
        tally.failed += names.len() - passed + scenarios.saturating_sub(names.len());
    }
    Ok(tally)
}

/// Plays one scenario; what is wrong in it.
fn run_scenario(
    suite: &Suite,
    build: &Build,
    scenario: &str,
    revision: &str,
    results: &Path,
) -> Result<Vec<String>> {
    empty(results)?;
    let log = results.with_extension("log");
    let mut command = suite.command(&["client", "--command", PROGRAM, "--scenario", scenario]);
    if revision != EXTENSION {
        command.args(["--spec-version", revision]);
    }
    command.env("REFMCP_LOG", "trace").arg("--output-dir");
    let ended = suite::run(command.arg(results).current_dir(build.folder()), &log, LIMIT)?;

    let folder = folder(results, scenario)?;
    let expected: Vec<_> =
        EXPECTED_FAILURES.into_iter().filter(|failure| failure.scenario == scenario).collect();
    let parsed = checks::faults(&folder, &expected);
    let mut faults = parsed.unwrap_or_else(|error| vec![format!("{error:#}")]);
    let said = fs::read_to_string(folder.join("stderr.txt")).context("no output of the client")?;
    let complaint: Vec<&str> = said.lines().filter(|line| !is_logged(line)).collect();
    faults.extend(leak(&said));
    if scenario.starts_with("auth/") && !said.contains(" DEBUG ") {
        faults.push("the client does not log all it can".to_owned());
    }
    match (REJECTED_SERVERS.contains(&scenario), complaint.join("\n").trim()) {
        (true, "") => faults.push("the client does not say why it turned away".to_owned()),
        (false, said) if !said.is_empty() => faults.push(format!("the client says: {said}")),
        _ => {}
    }
    if !ended.success() && faults.is_empty() {
        faults.push(format!("the suite failed: {ended}, see {}", log.display()));
    }
    Ok(faults)
}

/// Whether a line is one of the log, or the second one of a step in it.
fn is_logged(line: &str) -> bool {
    level(line).is_some() || line.starts_with("  → ")
}

/// What a client says that opens something.
fn leak(said: &str) -> Option<String> {
    let mut secrets = Secrets::default();
    SECRETS.iter().for_each(|secret| secrets.add(secret));
    secrets.leak(said)
}

/// The folder that the suite has made for a scenario, whose name may have a slash in it.
fn folder(results: &Path, scenario: &str) -> Result<PathBuf> {
    let parent = results.join(scenario).parent().context("no folder")?.to_owned();
    let made: Vec<_> = fs::read_dir(&parent)
        .and_then(Iterator::collect)
        .with_context(|| format!("no results in {}", parent.display()))?;
    ensure!(made.len() == 1, "{} results in {}", made.len(), parent.display());
    made.first().map(fs::DirEntry::path).context("no results")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "Client scenarios (test against a client):\n  - initialize [2025-06-18,2025-11-25]\n  \
                           - auth/basic [2025-11-25]\n  - auth/dpop [extension]\n  - sep-2640-x [extension]\n  \
                           - tools_call [2026-07-28]\n";

    #[test]
    fn scenarios_are_read_from_the_listing() {
        let names = |revision| of_revision(LISTING, revision).collect::<Vec<_>>();
        assert_eq!(names("2025-06-18"), ["initialize"]);
        assert_eq!(names("2025-11-25"), ["initialize", "auth/basic"]);
        assert_eq!(names("2026-07-28"), ["tools_call"]);
        assert_eq!(names(EXTENSION), ["auth/dpop", "sep-2640-x"]);
        assert_eq!(names("2024-11-05"), [""; 0]);
    }

    #[test]
    fn what_a_client_logs_is_no_complaint_and_has_no_secrets() {
        let logged = "2026-01-01T00:00:00.000000Z DEBUG a: b";
        assert!(is_logged(logged) && is_logged("  → c") && !is_logged("it turned away"));
        assert_eq!(leak(logged), None);
        assert!(leak("the token is test-token-17").is_some());
    }

    #[test]
    fn a_scenario_with_a_slash_has_its_folder_in_another() {
        let results = std::env::temp_dir().join(format!("xtask-conformance-{}", std::process::id()));
        let made = results.join("auth/basic-then");
        fs::create_dir_all(&made).unwrap();
        let found = folder(&results, "auth/basic");
        let missing = folder(&results, "other/basic");
        fs::remove_dir_all(&results).unwrap();
        assert_eq!(found.unwrap(), made);
        assert!(missing.is_err());
    }
}

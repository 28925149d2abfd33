//! The system's keyring, by way of a program that speaks to it: one of those that Docker keeps its passwords with
//! (`docker-credential-secretservice`, `-osxkeychain`, `-wincred`, `-pass`, …). They are there for every keyring, take
//! secrets on standard input and no other way, and cost no dependency.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ui::text::one_line;

/// How long a helper may take: somebody may have to unlock the keyring.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long between two looks whether it is done.
const LOOK: Duration = Duration::from_millis(5);

/// Bytes of what it says; what is longer makes it wait in vain.
const MOST_BYTES: u64 = 32 << 10;

/// A helper, by its name after `docker-credential-`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Helper(String);

impl Helper {
    /// The one of this system's own keyring.
    pub(crate) fn of_this_system() -> Self {
        let name = match std::env::consts::OS {
            "macos" => "osxkeychain",
            "windows" => "wincred",
            _ => "secretservice",
        };
        Self(name.to_owned())
    }

    /// What is started.
    pub(crate) fn program(&self) -> String {
        format!("docker-credential-{}", self.0)
    }

    /// Has a secret kept under a name.
    ///
    /// # Errors
    ///
    /// The helper cannot be started, takes too long or refuses; so for the others.
    pub(super) fn keep(&self, name: &str, secret: &str) -> Result<()> {
        let entry = json!({ "ServerURL": name, "Username": "refmcp", "Secret": secret });
        self.run("store", &entry.to_string()).map(drop)
    }

    /// The secret that is kept under a name.
    pub(super) fn get(&self, name: &str) -> Result<String> {
        let said = self.run("get", name)?;
        let entry: Value = serde_json::from_slice(&said).unwrap_or_default();
        // What it said is full of secrets, if it is anything.
        let secret =
            entry["Secret"].as_str().with_context(|| format!("{} gave no secret", self.program()))?;
        Ok(secret.to_owned())
    }

    /// Has what is kept under a name forgotten.
    pub(super) fn erase(&self, name: &str) -> Result<()> {
        self.run("erase", name).map(drop)
    }

    fn run(&self, action: &str, input: &str) -> Result<Vec<u8>> {
        run(&self.program(), action, input, PATIENCE)
    }
}

impl TryFrom<String> for Helper {
    type Error = anyhow::Error;

    /// A name, and no path: what is started is looked for where programs are.
    fn try_from(name: String) -> Result<Self> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        ensure!(
            !name.is_empty() && name.chars().all(is_name),
            "{} is no name of a helper: it is what follows `docker-credential-`, such as secretservice",
            one_line(&name)
        );
        Ok(Self(name))
    }
}

impl From<Helper> for String {
    fn from(helper: Helper) -> Self {
        helper.0
    }
}

/// What a program says that is to do something, if it does.
fn run(program: &str, action: &str, input: &str, patience: Duration) -> Result<Vec<u8>> {
    let mut command = Command::new(program);
    command.arg(action).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
    let ended = speak(&mut child, input, patience).with_context(|| format!("{program} {action}"));
    if ended.is_err() {
        // It may be gone already.
        let _ = child.kill();
        let _ = child.wait();
    }
    let (is_fine, said) = ended?;
    if !is_fine {
        let why = String::from_utf8_lossy(&said);
        bail!("{program} {action} failed: {}", one_line(why.trim()));
    }
    Ok(said)
}

/// Tells a helper what it is to do, and waits for its end: whether it did, and what it said.
fn speak(child: &mut Child, input: &str, patience: Duration) -> Result<(bool, Vec<u8>)> {
    let end = Instant::now() + patience;
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input.as_bytes()) {
            // One that does not read says why, or does not need to.
            Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.context("cannot be spoken to")?,
        }
    }
    let status = loop {
        match child.try_wait().context("cannot be waited for")? {
            Some(status) => break status,
            None if Instant::now() >= end => bail!("did not end within {} s", patience.as_secs()),
            None => std::thread::sleep(LOOK),
        }
    };
    let mut said = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MOST_BYTES).read_to_end(&mut said).context("cannot be read")?;
    }
    Ok((status.success(), said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_names_and_no_paths() {
        for name in ["secretservice", "osxkeychain", "pass", "a-b_c.d1"] {
            let helper = Helper::try_from(name.to_owned()).unwrap();
            assert_eq!(helper.program(), format!("docker-credential-{name}"));
        }
        for name in ["", "a/b", "/bin/sh", "a b", "a;b", "a\0b", "\u{1b}[2J", "ä"] {
            let fault = Helper::try_from(name.to_owned()).unwrap_err().to_string();
            assert!(fault.contains("is no name of a helper") && !fault.contains('\u{1b}'), "{fault}");
            assert!(serde_json::from_value::<Helper>(json!(name)).is_err(), "{name}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn whatever_a_helper_does_has_an_end() {
        use std::fs;
        use std::os::unix::fs::PermissionsExt;

        let folder = tempfile::tempdir().unwrap();
        let does = |script: &str, patience: u64| {
            let path = folder.path().join("helper");
            // A file that is written to cannot be started, also while another test forks.
            let beside = folder.path().join("beside");
            fs::write(&beside, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
            fs::copy(&beside, &path).unwrap();
            run(path.to_str().unwrap(), "get", &"x".repeat(200_000), Duration::from_millis(patience))
        };
        assert_eq!(does("cat >/dev/null; echo \"$1\"", 20_000).unwrap(), b"get\n");
        assert_eq!(does("echo early", 20_000).unwrap(), b"early\n");
        let refused =
            format!("{:#}", does("cat >/dev/null; printf 'no\\033[2J\\n'; exit 1", 20_000).unwrap_err());
        assert!(refused.contains("get failed: no") && !refused.contains('\u{1b}'), "{refused}");
        for stuck in ["cat >/dev/null; exec sleep 60", "cat >/dev/null; exec yes"] {
            let fault = format!("{:#}", does(stuck, 200).unwrap_err());
            assert!(fault.contains("did not end within"), "{stuck}: {fault}");
        }
        let fault = format!("{:#}", run("/nowhere/helper", "get", "", PATIENCE).unwrap_err());
        assert!(fault.contains("cannot start /nowhere/helper"), "{fault}");
    }
}

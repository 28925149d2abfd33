//! The system's keyring, through a credential helper of Docker (`docker-credential-secretservice`, `-osxkeychain`,
//! `-wincred`, `-pass`, …). Helpers exist for every keyring, take secrets on standard input only, and cost no dependency.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use refmcp_proto::jsonrpc::excerpt;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::ui::text::one_line;

/// How long a helper may take: its user may have to unlock the keyring.
const TIMEOUT: Duration = Duration::from_secs(60);

/// How long between two looks whether the helper has ended.
const POLL: Duration = Duration::from_millis(5);

/// How long its last output may take to arrive once it has ended.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);

/// Bytes of its output that are read.
const MAX_OUTPUT: u64 = 32 << 10;

/// The output of every helper for a name that it does not know.
const NOT_FOUND: &str = "credentials not found";

/// A helper, by its name after `docker-credential-`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct CredentialHelper(String);

impl CredentialHelper {
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

    /// Stores a secret under a name.
    pub(super) fn store(&self, name: &str, secret: &str) -> Result<()> {
        let entry = json!({ "ServerURL": name, "Username": "refmcp", "Secret": secret });
        self.run("store", &entry.to_string())?.done().map(drop)
    }

    /// The secret of a name, if there is one.
    pub(super) fn get(&self, name: &str) -> Result<Option<String>> {
        let ended = self.run("get", name)?;
        if !ended.status.success() && String::from_utf8_lossy(&ended.output).contains(NOT_FOUND) {
            return Ok(None);
        }
        // The output is not quoted: it holds the secret, if anything.
        let entry: Value = serde_json::from_slice(&ended.done()?).unwrap_or_default();
        let secret =
            entry["Secret"].as_str().with_context(|| format!("{} gave no secret", self.program()))?;
        Ok(Some(secret.to_owned()))
    }

    /// Erases the secret of a name.
    pub(super) fn erase(&self, name: &str) -> Result<()> {
        self.run("erase", name)?.done().map(drop)
    }

    fn run(&self, action: &str, input: &str) -> Result<Ended> {
        Ended::run(&self.program(), action, input, TIMEOUT)
    }
}

impl TryFrom<String> for CredentialHelper {
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

impl From<CredentialHelper> for String {
    fn from(helper: CredentialHelper) -> Self {
        helper.0
    }
}

/// A helper that has ended.
struct Ended {
    /// The program and its action, for errors.
    what: String,
    status: ExitStatus,
    output: Vec<u8>,
}

impl Ended {
    fn run(program: &str, action: &str, input: &str, timeout: Duration) -> Result<Self> {
        let what = format!("{program} {action}");
        let mut command = Command::new(program);
        command.arg(action).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        let ended = communicate(&mut child, input, timeout).with_context(|| what.clone());
        if ended.is_err() {
            // It may be gone already.
            let _ = child.kill();
            let _ = child.wait();
        }
        let (status, output) = ended?;
        Ok(Self { what, status, output })
    }

    /// Its output, if it succeeded.
    fn done(self) -> Result<Vec<u8>> {
        let Self { what, status, output } = self;
        if status.success() {
            return Ok(output);
        }
        let why = String::from_utf8_lossy(&output);
        let why = if why.contains("Secret") { "for a reason that is not to be shown" } else { why.trim() };
        bail!("{what} failed ({status}): {}", one_line(&excerpt(why)));
    }
}

/// Writes the input of a helper and waits for its end: its status and its output.
fn communicate(child: &mut Child, input: &str, timeout: Duration) -> Result<(ExitStatus, Vec<u8>)> {
    let end = Instant::now() + timeout;
    let chunks = child.stdout.take().map(read_chunks).context("has no output")?;
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input.as_bytes()) {
            // One that does not read its input says why, or does not need it.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.context("takes no input")?,
        }
    }
    let mut output = Vec::new();
    let status = loop {
        match child.try_wait().context("cannot be waited for")? {
            Some(status) => break status,
            None if Instant::now() >= end => bail!("did not end within {} s", timeout.as_secs()),
            None => {}
        }
        match chunks.recv_timeout(POLL) {
            Ok(bytes) => output.extend(bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => thread::sleep(POLL),
        }
    };
    // A process that it has started may keep its output open for ever.
    while let Ok(bytes) = chunks.recv_timeout(OUTPUT_TIMEOUT) {
        output.extend(bytes);
    }
    Ok((status, output))
}

/// Output as it comes, up to a limit; a helper that writes more gets a broken pipe.
fn read_chunks(stdout: ChildStdout) -> Receiver<Vec<u8>> {
    let (sender, chunks) = mpsc::channel();
    thread::spawn(move || {
        let mut stdout = stdout.take(MAX_OUTPUT);
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stdout.read(&mut bytes) {
            if sender.send(bytes[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helpers_are_names_and_no_paths() {
        for name in ["secretservice", "osxkeychain", "pass", "a-b_c.d1"] {
            let helper = CredentialHelper::try_from(name.to_owned()).unwrap();
            assert_eq!(helper.program(), format!("docker-credential-{name}"));
        }
        for name in ["", "a/b", "/bin/sh", "a b", "a;b", "a\0b", "\u{1b}[2J", "ä"] {
            let error = CredentialHelper::try_from(name.to_owned()).unwrap_err().to_string();
            assert!(error.contains("is no name of a helper") && !error.contains('\u{1b}'), "{error}");
            assert!(serde_json::from_value::<CredentialHelper>(json!(name)).is_err(), "{name}");
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
            let beside = folder.path().join("beside");
            fs::write(&beside, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
            // A file that is open for writing cannot be started, and a fork elsewhere keeps it open for a moment.
            assert!(Command::new("cp").args([&beside, &path]).status().unwrap().success());
            Ended::run(path.to_str().unwrap(), "get", &"x".repeat(200_000), Duration::from_millis(patience))?
                .done()
        };
        assert_eq!(does("cat >/dev/null; echo \"$1\"", 20_000).unwrap(), b"get\n");
        assert_eq!(does("echo early", 20_000).unwrap(), b"early\n");
        let refused =
            format!("{:#}", does("cat >/dev/null; printf 'no\\033[2J\\n'; exit 1", 20_000).unwrap_err());
        assert!(
            refused.contains("get failed (exit status: 1): no") && !refused.contains('\u{1b}'),
            "{refused}"
        );
        // What it leaves behind holds its output open.
        let left = does("cat >/dev/null; sleep 60 & echo \"$! done\"", 20_000).unwrap();
        let left = String::from_utf8(left).unwrap();
        let (sleeper, said) = left.split_once(' ').unwrap();
        assert_eq!(said, "done\n");
        assert!(Command::new("kill").arg(sleeper).status().unwrap().success());
        let told = does("cat >/dev/null; echo '{\"Secret\":\"hush\"}'; exit 1", 20_000).unwrap_err();
        assert!(format!("{told:#}").ends_with("for a reason that is not to be shown"), "{told:#}");
        let babble = format!("{:#}", does("cat >/dev/null; exec yes", 20_000).unwrap_err());
        assert!(babble.contains("): y") && babble.len() < 1000, "{babble}");
        for stuck in ["cat >/dev/null; exec sleep 60", "cat >/dev/null; exec >&-; exec sleep 60"] {
            let error = format!("{:#}", does(stuck, 200).unwrap_err());
            assert!(error.contains("did not end within"), "{stuck}: {error}");
        }
        let error = format!("{:#}", Ended::run("/nowhere/helper", "get", "", TIMEOUT).err().unwrap());
        assert!(error.contains("cannot start /nowhere/helper"), "{error}");
    }
}

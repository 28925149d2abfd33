//! The system's keyring, by way of a program that speaks to it: one of those that Docker keeps its passwords with
//! (`docker-credential-secretservice`, `-osxkeychain`, `-wincred`, `-pass`, …). They are there for every keyring, take
//! secrets on standard input and no other way, and cost no dependency.

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

/// How long a helper may take: somebody may have to unlock the keyring.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long between two looks whether it is done.
const LOOK: Duration = Duration::from_millis(5);

/// How long what it said last may take to arrive once it has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Bytes of what it says.
const MOST_BYTES: u64 = 32 << 10;

/// What every helper says of a name that it does not know.
const NOT_FOUND: &str = "credentials not found";

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
        self.run("store", &entry.to_string())?.done().map(drop)
    }

    /// The secret that is kept under a name, if there is one.
    pub(super) fn get(&self, name: &str) -> Result<Option<String>> {
        let ended = self.run("get", name)?;
        if !ended.status.success() && String::from_utf8_lossy(&ended.said).contains(NOT_FOUND) {
            return Ok(None);
        }
        let said = ended.done()?;
        let entry: Value = serde_json::from_slice(&said).unwrap_or_default();
        // What it said is full of secrets, if it is anything.
        let secret =
            entry["Secret"].as_str().with_context(|| format!("{} gave no secret", self.program()))?;
        Ok(Some(secret.to_owned()))
    }

    /// Has what is kept under a name forgotten.
    pub(super) fn erase(&self, name: &str) -> Result<()> {
        self.run("erase", name)?.done().map(drop)
    }

    fn run(&self, action: &str, input: &str) -> Result<Ended> {
        Ended::of(&self.program(), action, input, PATIENCE)
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

/// A program that was to do something and has ended.
struct Ended {
    what: String,
    status: ExitStatus,
    said: Vec<u8>,
}

impl Ended {
    fn of(program: &str, action: &str, input: &str, patience: Duration) -> Result<Self> {
        let what = format!("{program} {action}");
        let mut command = Command::new(program);
        command.arg(action).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {program}"))?;
        let ended = speak(&mut child, input, patience).with_context(|| what.clone());
        if ended.is_err() {
            // It may be gone already.
            let _ = child.kill();
            let _ = child.wait();
        }
        let (status, said) = ended?;
        Ok(Self { what, status, said })
    }

    /// What it said, if it did what it was to do.
    fn done(self) -> Result<Vec<u8>> {
        let Self { what, status, said } = self;
        if status.success() {
            return Ok(said);
        }
        let why = String::from_utf8_lossy(&said);
        // One that only repeats what it keeps says nothing that anybody may see.
        let why = if why.contains("Secret") { "for a reason that is not to be shown" } else { why.trim() };
        bail!("{what} failed ({status}): {}", one_line(&excerpt(why)));
    }
}

/// Tells a helper what it is to do, and waits for its end: how it ended, and what it said.
fn speak(child: &mut Child, input: &str, patience: Duration) -> Result<(ExitStatus, Vec<u8>)> {
    let end = Instant::now() + patience;
    let heard = child.stdout.take().map(listen).context("says nothing")?;
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input.as_bytes()) {
            // One that does not read says why, or does not need to.
            Err(fault) if fault.kind() == io::ErrorKind::BrokenPipe => {}
            written => written.context("cannot be spoken to")?,
        }
    }
    let mut said = Vec::new();
    let status = loop {
        match child.try_wait().context("cannot be waited for")? {
            Some(status) => break status,
            None if Instant::now() >= end => bail!("did not end within {} s", patience.as_secs()),
            None => {}
        }
        match heard.recv_timeout(LOOK) {
            Ok(bytes) => said.extend(bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => thread::sleep(LOOK),
        }
    };
    // Its last words are on their way. Whoever it has started may keep its output open for ever.
    while let Ok(bytes) = heard.recv_timeout(LAST_WORDS) {
        said.extend(bytes);
    }
    Ok((status, said))
}

/// What is said, as it comes, until its end or until it is too much; whoever says more is cut off.
fn listen(stdout: ChildStdout) -> Receiver<Vec<u8>> {
    let (tell, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut stdout = stdout.take(MOST_BYTES);
        let mut bytes = [0; 4096];
        while let Ok(count @ 1..) = stdout.read(&mut bytes) {
            if tell.send(bytes[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    heard
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
            let beside = folder.path().join("beside");
            fs::write(&beside, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
            // A file that is open for writing cannot be started, and whoever forks here keeps it open for a moment.
            assert!(Command::new("cp").args([&beside, &path]).status().unwrap().success());
            Ended::of(path.to_str().unwrap(), "get", &"x".repeat(200_000), Duration::from_millis(patience))?
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
            let fault = format!("{:#}", does(stuck, 200).unwrap_err());
            assert!(fault.contains("did not end within"), "{stuck}: {fault}");
        }
        let fault = format!("{:#}", Ended::of("/nowhere/helper", "get", "", PATIENCE).err().unwrap());
        assert!(fault.contains("cannot start /nowhere/helper"), "{fault}");
    }
}

//! A user with a folder, a state and a browser of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;

use crate::secrets::Watch;

pub(crate) struct User {
    folder: TempDir,
    watch: Arc<Watch>,
}

/// Where each visit of a browser notes where it is sent, and which cookies it is given.
const HEADS: &str = "heads";

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl User {
    /// A user whose browser follows every redirect, and writes the pages down.
    pub(crate) fn new() -> Self {
        let user = Self { folder: tempfile::tempdir().unwrap(), watch: Watch::of_this_test() };
        fs::create_dir(user.path(HEADS)).unwrap();
        fs::create_dir(user.path("bin")).unwrap();
        let curl = format!("PATH=\"${{PATH#*:}}\"; exec curl -D '{}'/$$ \"$@\"", user.path(HEADS).display());
        user.script("bin/curl", &curl);
        user.browser("exec curl -sS -L --max-redirs 5 --noproxy '*' -o page.html \"$1\"");
        user
    }

    /// Gives them another browser: what a shell does with the address in `$1`.
    pub(crate) fn browser(&self, script: &str) {
        let noted = r#"PATH="$PWD/bin:$PATH"; printf '%s\n' "$#" "$@" >>visited"#;
        self.script("browser", &format!("cd '{}'\n{noted}\n{script}", self.path("").display()));
    }

    /// Gives them a program by a name.
    pub(crate) fn program(&self, name: &str, script: &str) {
        fs::create_dir_all(self.path("programs")).unwrap();
        self.script(&format!("programs/{name}"), script);
    }

    fn script(&self, name: &str, text: &str) {
        let beside = self.path("script");
        fs::write(&beside, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&beside, fs::Permissions::from_mode(0o755)).unwrap();
        // A file that is open for writing cannot be started, and a fork by another test keeps it open for a moment.
        let copied = Command::new("cp").args([beside, self.path(name)]).status().unwrap();
        assert!(copied.success(), "{name}");
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Where their tokens are kept.
    pub(crate) fn tokens(&self) -> PathBuf {
        self.path("state/tokens.json")
    }

    /// What is kept.
    pub(crate) fn kept(&self) -> Value {
        serde_json::from_slice(&fs::read(self.tokens()).unwrap()).unwrap()
    }

    /// The pages that the browser was sent to.
    pub(crate) fn visited(&self) -> String {
        fs::read_to_string(self.path("visited")).unwrap_or_default()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.path(name), text).unwrap();
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Makes a certificate for this machine in `cert.pem`, with its key in `key.pem`; gives the path of the first.
    pub(crate) fn certificate(&self) -> String {
        let words = "req -x509 -newkey rsa:2048 -nodes -days 30 -keyout key.pem -out cert.pem -subj /CN=localhost \
                     -addext subjectAltName=DNS:localhost,IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE";
        let made = Command::new("openssl").args(words.split_whitespace()).current_dir(self.path("")).output();
        let made = made.unwrap();
        assert!(made.status.success(), "{made:?}");
        self.path("cert.pem").to_str().unwrap().to_owned()
    }

    /// Tells the test's watch the secrets that this user has by now.
    fn tell(&self) {
        if let Ok(kept) = fs::read(self.tokens())
            && let Ok(kept) = serde_json::from_slice(&kept)
        {
            self.watch.sees_kept(&kept);
        }
        self.watch.sees_addresses(&self.visited());
        for head in fs::read_dir(self.path(HEADS)).unwrap() {
            let head = fs::read_to_string(head.unwrap().path()).unwrap();
            self.watch.sees_addresses(&head);
            for line in head.lines().filter(|line| line.to_ascii_lowercase().starts_with("set-cookie:")) {
                let value = line.split([';', '=']).nth(1).unwrap_or_default();
                self.watch.sees(value);
            }
        }
    }

    /// A command of theirs that logs all it can; its output belongs into [`came`].
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        self.tell();
        self.watch.sees_words(words);
        let mut command = Command::new(env!("CARGO_BIN_EXE_refmcp"));
        let programs = std::env::var("PATH").unwrap();
        command
            .args(words)
            .env("PATH", format!("{}:{programs}", self.path("programs").display()))
            .current_dir(self.folder.path())
            .env("REFMCP_STATE_DIR", self.path("state"))
            .env("HOME", self.folder.path())
            .env("BROWSER", self.path("browser"))
            .env("REFMCP_LOG", "trace")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Came {
        let came = came_of(&format!("refmcp {}", words.join(" ")), self.command(words).output().unwrap());
        self.tell();
        came
    }

    /// Runs a command that works.
    pub(crate) fn does(&self, words: &[&str]) -> String {
        let came = self.run(words);
        assert_eq!(came.code, 0, "{words:?}: {came:?}");
        came.out
    }

    /// Runs a command that fails with this code; gives what it says.
    pub(crate) fn fails(&self, code: i32, words: &[&str]) -> String {
        let came = self.run(words);
        assert_eq!(came.code, code, "{words:?}: {came:?}");
        came.err
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.tell();
    }
}

/// What came of a command, without what is only logged because a test listens.
pub(crate) fn came(output: Output) -> Came {
    came_of("a command", output)
}

fn came_of(command: &str, output: Output) -> Came {
    let watch = Watch::of_this_test();
    let out = String::from_utf8(output.stdout).unwrap();
    watch.hears(command, &out);
    let err = watch.hears(command, &String::from_utf8(output.stderr).unwrap());
    Came { code: output.status.code().unwrap_or(-1), out, err }
}

/// The response to a refresh of this grant.
pub(crate) fn renewal_of(grant: &Value) -> String {
    let field = |name: &str| grant[name].as_str().unwrap().to_owned();
    let form = format!("grant_type=refresh_token&client_id={}", field("client_id"));
    let form = format!("{form}&refresh_token={}", field("refresh_token"));
    let curl = ["-sS", "--noproxy", "*", "-d", &form, &field("token_endpoint")];
    came(Command::new("curl").args(curl).output().unwrap()).out
}

//! Somebody with a folder, a state and a browser of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) struct User {
    folder: TempDir,
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Came {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl User {
    /// Somebody whose browser goes wherever it is sent, and writes down where that was.
    pub(crate) fn new() -> Self {
        let user = Self { folder: tempfile::tempdir().unwrap() };
        user.browser("exec curl -sS -L --max-redirs 5 --noproxy '*' -o page.html \"$1\"");
        user
    }

    /// Gives them another browser: what a shell does with the address in `$1`.
    pub(crate) fn browser(&self, script: &str) {
        let path = self.path("browser");
        let text = format!(
            "#!/bin/sh\ncd '{}'\nprintf '%s\\n' \"$#\" \"$@\" >>visited\n{script}\n",
            self.path("").display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
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

    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_refmcp"));
        command
            .args(words)
            .current_dir(self.folder.path())
            .env("REFMCP_STATE_DIR", self.path("state"))
            .env("HOME", self.folder.path())
            .env("BROWSER", self.path("browser"))
            .env_remove("REFMCP_LOG")
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, words: &[&str]) -> Came {
        came(self.command(words).output().unwrap())
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

pub(crate) fn came(output: Output) -> Came {
    Came {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// What is answered to somebody who renews this grant.
pub(crate) fn renewal_of(grant: &Value) -> String {
    let field = |name: &str| grant[name].as_str().unwrap().to_owned();
    let form = format!("grant_type=refresh_token&client_id={}", field("client_id"));
    let form = format!("{form}&refresh_token={}", field("refresh_token"));
    let curl = ["-sS", "--noproxy", "*", "-d", &form, &field("token_endpoint")];
    came(Command::new("curl").args(curl).output().unwrap()).out
}

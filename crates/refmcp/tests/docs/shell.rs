//! A shell that is typed into, one command after the other, each with an output of its own: what a command leaves
//! running goes on printing there.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use super::terminal::Terminal;

/// How long one command may take.
const LIMIT: Duration = Duration::from_secs(30);

/// How long the output of one that was left running is waited for.
const TEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A running shell, in a folder of its own; ended when it is dropped, with everything it started.
pub(crate) struct Shell {
    child: Child,
    input: ChildStdin,
    /// A line for each command that has ended.
    ended: Receiver<String>,
    /// Where it begins.
    home: PathBuf,
    outputs: PathBuf,
    count: usize,
    _folder: tempfile::TempDir,
}

impl Shell {
    /// Starts one that finds programs in this folder first.
    pub(crate) fn start(programs: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (home, outputs) = (folder.path().join("home"), folder.path().join("outputs"));
        for folder in [&home, &outputs] {
            fs::create_dir(folder).unwrap();
        }
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        // The configuration of the developer for curl or the server must not change what the examples do.
        for variable in ["PORT", "CLAUDE_CONFIG_DIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"] {
            command.env_remove(variable);
        }
        for variable in ["REFMCP_LOG", "REFMCP_LOG_FORMAT", "REFMCP_MASK_ARGUMENTS", "REFMCP_STATE_DIR"] {
            command.env_remove(variable);
        }
        command.env("NO_COLOR", "1").env("TERM", "xterm");
        command.env("PATH", format!("{}:{path}", programs.display()));
        command.env("HOME", &home).env("CURL_HOME", &home).env("NO_PROXY", "*").env("no_proxy", "*");
        command.current_dir(&home).process_group(0);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (tell, ended) = mpsc::channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        Self { child, input, ended, home, outputs, count: 0, _folder: folder }
    }

    /// Puts a file where it begins.
    pub(crate) fn put(&self, name: &str, content: &str) {
        let path = self.home.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Runs a command; one that ends with `&` is left running once it has printed something.
    pub(crate) fn run(&mut self, command: &str) -> Result<Output, String> {
        let output = self.next_output();
        let script = format!("{{ {command}\n}} >'{}' 2>&1 </dev/null\necho ended\n", output.path.display());
        let died = || "the shell has ended".to_owned();
        self.input.write_all(script.as_bytes()).map_err(|_| died())?;
        self.ended.recv_timeout(LIMIT).map_err(|error| match error {
            mpsc::RecvTimeoutError::Timeout => format!("it did not end in {LIMIT:?}"),
            mpsc::RecvTimeoutError::Disconnected => format!("{}: {}", died(), output.text()),
        })?;
        if command.ends_with('&') {
            output.wait_until(|text| !text.is_empty());
        }
        Ok(output)
    }

    /// Runs a command at a terminal, with answers from the transcript.
    pub(crate) fn run_on_terminal(&mut self, command: &str, transcript: &str) -> Result<Output, String> {
        let output = self.next_output();
        let mut terminal = Terminal::open();
        let (at, command) = (terminal.path().display(), command.replace('\'', r"'\''"));
        // In a session of its own, so that the terminal of the test runner is left alone.
        let script = format!("setsid --ctty --wait sh -c '{command}' <'{at}' >'{at}' 2>&1\necho ended\n");
        self.input.write_all(script.as_bytes()).map_err(|_| "the shell has ended".to_owned())?;
        let shown = terminal.answer(transcript, || self.ended.try_recv().is_ok())?;
        fs::write(&output.path, shown).unwrap();
        Ok(output)
    }

    fn next_output(&mut self) -> Output {
        self.count += 1;
        let path = self.outputs.join(self.count.to_string());
        File::create(&path).unwrap();
        Output { path }
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        let _ = self.child.wait();
    }
}

/// What a command has printed up to now.
pub(crate) struct Output {
    path: PathBuf,
}

impl Output {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&fs::read(&self.path).unwrap()).into_owned()
    }

    /// Waits until the text is as wanted, for a limited time; gives the text.
    pub(crate) fn wait_until(&self, wanted: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let text = self.text();
            if wanted(&text) || begin.elapsed() > TEST_TIMEOUT {
                return text;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
#[cfg(target_os = "linux")]
fn questions_on_a_terminal_are_answered() {
    let mut shell = Shell::start(Path::new("/nowhere"));
    shell.run("A=one; export A").unwrap();
    let command = r#"printf 'Well: '; read x </dev/tty; echo "$x $A"; test -t 2 && echo 'it'\''s one'"#;
    let output = shell.run_on_terminal(command, "Well: done\ndone one\n").unwrap();
    assert_eq!(output.text(), "Well: done\ndone one\nit's one\n");
    assert_eq!(shell.run("echo next").unwrap().text(), "next\n");
}

#[test]
fn variables_functions_and_jobs_are_carried_over() {
    let mut shell = Shell::start(Path::new("/nowhere"));
    shell.run("A=one").unwrap();
    shell.run("say() { echo \"$@\"; }").unwrap();
    assert_eq!(shell.run("say $A \\\n  two").unwrap().text(), "one two\n");
    let waiting = shell.run("{ echo begun; cat later; } &").unwrap();
    assert_eq!(waiting.text().lines().next(), Some("begun"));
    assert_eq!(shell.run("echo err >&2").unwrap().text(), "err\n");
    assert_eq!(shell.run("false").unwrap().text(), "");
    assert_eq!(shell.run("cat").unwrap().text(), "", "there is nothing to read");
    assert!(shell.run("exit 3").is_err());
}

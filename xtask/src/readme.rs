//! The commands of the README, word for word, in a fresh clone of what is committed: the server is built, started, called
//! and stopped.

#[path = "../../crates/refmcp/tests/docs/console.rs"]
mod console;

use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, fs, iter, thread};

use anyhow::{Context, Result, bail, ensure};
use refmcp_runners::{Build, PACKAGES, interop, shell};

use console::{Example, difference, examples};

/// Where the server of the README listens.
const ADDRESS: &str = "127.0.0.1:3000";

/// How long the server may take to be built and to listen.
const BUILT_WITHIN: Duration = Duration::from_secs(20 * 60);
/// How long a call may take.
const CALLED_WITHIN: Duration = Duration::from_secs(60);
/// How long the server may take to stop.
const STOPPED_WITHIN: Duration = Duration::from_secs(20);

/// A foreign client, which calls the same tool.
const FOREIGN: &str = "typescript-v1";
const FOREIGN_CALL: &str = r#"
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
const client = new Client({ name: "readme", version: "1.0" });
await client.connect(new StreamableHTTPClientTransport(new URL("http://127.0.0.1:3000/mcp")));
const result = await client.callTool({ name: "sum", arguments: { a: 1, b: 2 } });
console.log(JSON.stringify(result.structuredContent));
await client.close();
"#;

/// A fresh clone of what is committed, and where it is built.
#[derive(Debug)]
pub(crate) struct Checkout {
    /// The clone, what is built of it and what is printed.
    folder: PathBuf,
    /// Where everything else is built.
    target: PathBuf,
    /// Whether the working tree has nothing that the clone has not.
    is_tree: bool,
}

impl Checkout {
    /// Clones what is committed, in place of the clone that is there.
    pub(crate) fn fresh() -> Result<Self> {
        let target = shell::target_directory()?;
        let folder = target.join("readme");
        let is_tree = clone(&folder)?;
        Ok(Self { folder, target, is_tree })
    }

    /// Whether what is built of it is what the working tree would give.
    pub(crate) fn is_tree(&self) -> bool {
        self.is_tree
    }

    /// The clone.
    pub(crate) fn folder(&self) -> PathBuf {
        self.folder.join("checkout")
    }

    /// The environment of its builds: dependencies that were compiled before are used again; the programs do not replace
    /// those of the working tree.
    pub(crate) fn environment(&self) -> [(&'static str, PathBuf); 2] {
        [("CARGO_BUILD_BUILD_DIR", self.target.clone()), ("CARGO_TARGET_DIR", self.folder.join("target"))]
    }

    /// Builds its release build, which is also the one that the README's commands find built.
    pub(crate) fn build_release(&self) -> Result<Build> {
        let mut build = shell::cargo(["build", "--release"]);
        build.args(PACKAGES).current_dir(self.folder()).envs(self.environment());
        shell::run(&mut build)?;
        Ok(self.build())
    }

    /// Its release build, which need not be built yet.
    pub(crate) fn build(&self) -> Build {
        Build::in_folder(self.folder.join("target/release"))
    }
}

/// Runs the README's commands in a clone.
pub(crate) fn run(clone: &Checkout) -> Result<()> {
    let (folder, checkout) = (&clone.folder, clone.folder());
    let readme = fs::read_to_string(checkout.join("README.md")).context("the clone has no README.md")?;
    let commands = Commands::of(&readme)?;
    for example in &commands.left_out {
        println!("left out: `{}`, of which this is a part", example.command);
    }
    let client = interop::prepared(FOREIGN, &clone.build())?;
    // Bound and let go again: the server binds it next.
    TcpListener::bind(ADDRESS)
        .with_context(|| format!("the README's server wants {ADDRESS}, which something else has taken"))?;
    let mut server = Server::start(&commands.server.command, clone)?;
    for example in &commands.calls {
        println!("$ {}", example.command);
        let mut shell = Command::new("sh");
        shell.args(["-c", &example.command]).current_dir(&checkout);
        // As the README says, the program that was built is in the `PATH`.
        shell.env("PATH", with_programs(clone)?).env("REFMCP_STATE_DIR", folder.join("state"));
        let printed = printed(&mut shell, folder)?;
        if let Some(difference) = difference(&example.expected, &printed) {
            bail!("README.md:{}: the output is not what it says\n{difference}", example.line);
        }
    }
    call_as_others_do(&client, folder)?;
    server.stop()
}

/// Puts what is committed into a folder of its own; true when that is all that the working tree has.
fn clone(folder: &Path) -> Result<bool> {
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.args(args).current_dir(shell::root());
        shell::output(&mut command).context("the README is tried in a clone, which needs git and a checkout")
    };
    let commit = git(&["rev-parse", "--short", "HEAD"])?;
    let commit = commit.trim();
    let is_tree = git(&["status", "--porcelain"])?.trim().is_empty();
    if !is_tree {
        println!("there are uncommitted changes; only what is committed, {commit}, is tried");
    }
    let checkout = folder.join("checkout");
    if checkout.exists() {
        fs::remove_dir_all(&checkout).with_context(|| format!("cannot remove {}", checkout.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let mut clone = Command::new("git");
    shell::run(clone.args(["clone", "--quiet"]).arg(shell::root()).arg(&checkout))?;
    Ok(is_tree)
}

/// The `PATH`, with what the README's server was built to before everything else.
fn with_programs(clone: &Checkout) -> Result<OsString> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = iter::once(clone.build().folder().to_owned()).chain(env::split_paths(&path));
    env::join_paths(folders).context("the PATH cannot be extended")
}

/// The commands of the README.
#[derive(Debug)]
struct Commands {
    server: Example,
    calls: Vec<Example>,
    left_out: Vec<Example>,
}

impl Commands {
    /// Each must be of a kind that is known here, so that none is forgotten.
    fn of(readme: &str) -> Result<Self> {
        let (mut servers, mut calls, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
        for example in examples(readme) {
            match example.command.split_whitespace().collect::<Vec<_>>()[..] {
                ["cargo", "run", ..] => servers.push(example),
                ["curl" | "refmcp", ..] => calls.push(example),
                ["cargo", "xtask", "test"] => left_out.push(example),
                _ => bail!("README.md:{}: `{}` is not tried by anything", example.line, example.command),
            }
        }
        ensure!(!calls.is_empty(), "the README has no call with curl");
        let server = servers.pop().context("the README has no command that starts the server")?;
        ensure!(servers.is_empty(), "the README starts more than one server");
        Ok(Self { server, calls, left_out })
    }
}

/// The server, from the command that builds and starts it; killed when it is dropped.
struct Server {
    child: Child,
}

impl Server {
    fn start(command: &str, clone: &Checkout) -> Result<Self> {
        println!("$ {command}");
        let mut shell = Command::new("sh");
        // In place of the shell, so that the signal reaches the server itself.
        shell.args(["-c", &format!("exec {command}")]).current_dir(clone.folder());
        shell::forget_package(&mut shell);
        shell.env_remove("PORT").env_remove("REFMCP_LOG").env_remove("REFMCP_LOG_FORMAT");
        shell.envs(clone.environment());
        let mut child =
            shell.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().context("cannot start a shell")?;
        let output = child.stdout.take().context("no output")?;
        let server = Self { child };
        let (sender, lines) = mpsc::channel();
        // It reads to the end, so that the server never finds its output closed.
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                println!("{line}");
                let _ = sender.send(line);
            }
        });
        let begin = Instant::now();
        loop {
            match lines.recv_timeout(BUILT_WITHIN.saturating_sub(begin.elapsed())) {
                Ok(line) if line.contains(ADDRESS) => return Ok(server),
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    bail!("`{command}` did not listen within {}", shell::duration(BUILT_WITHIN))
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    bail!("`{command}` ended without saying that it listens on {ADDRESS}")
                }
            }
        }
    }

    /// Stops it with SIGTERM; it must end with success.
    fn stop(&mut self) -> Result<()> {
        println!("$ kill -TERM the server");
        shell::output(Command::new("kill").args(["-TERM", &self.child.id().to_string()]))?;
        let begin = Instant::now();
        while begin.elapsed() < STOPPED_WITHIN {
            if let Some(status) = self.child.try_wait()? {
                ensure!(status.success(), "the server ended with {status}");
                return Ok(());
            }
            thread::sleep(Duration::from_millis(20));
        }
        bail!("the server did not end within {}", shell::duration(STOPPED_WITHIN))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already; what counts is that it is gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Has a client that is not ours call a tool.
fn call_as_others_do(client: &Path, folder: &Path) -> Result<()> {
    println!("a call by {FOREIGN}");
    let mut node = Command::new("node");
    node.args(["--input-type=module", "--eval", FOREIGN_CALL]).current_dir(client);
    let printed = printed(&mut node, folder)?;
    ensure!(printed.trim() == r#"{"total":3}"#, "{FOREIGN} got\n{printed}");
    Ok(())
}

/// What a command prints, which must end in time and well.
fn printed(command: &mut Command, folder: &Path) -> Result<String> {
    let log = folder.join("output.txt");
    let status = shell::run_logged(command, &log, CALLED_WITHIN)?;
    let text = fs::read_to_string(&log).context("cannot read what was printed")?;
    print!("{text}{}", if text.ends_with('\n') { "" } else { "\n" });
    match status {
        Some(status) if status.success() => Ok(text),
        Some(status) => bail!("the call failed: {status}"),
        None => bail!("the call did not end within {}", shell::duration(CALLED_WITHIN)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_command_of_the_readme_is_forgotten() {
        let readme = fs::read_to_string(shell::root().join("README.md")).unwrap();
        let commands = Commands::of(&readme).unwrap();
        assert_eq!(commands.server.command, "cargo run --release -- serve");
        assert_eq!((commands.calls.len(), commands.left_out.len()), (4, 1));
    }

    #[test]
    fn a_command_of_another_kind_is_noticed() {
        let block = |commands: &str| format!("```console\n{commands}```\n");
        let both = "$ cargo run -- serve\n$ curl -s x\n";
        assert!(Commands::of(&block(both)).is_ok());
        for bad in [
            "$ cargo run -- serve\n".to_owned(),
            "$ curl -s x\n".to_owned(),
            format!("{both}$ make\n"),
            format!("{both}$ cargo run -- stdio\n"),
        ] {
            assert!(Commands::of(&block(&bad)).is_err(), "{bad}");
        }
    }
}

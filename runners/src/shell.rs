//! Runs commands, and prints what is run.

use std::env;
use std::fs::File;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

const POLL: Duration = Duration::from_millis(20);

/// The folder of the workspace.
pub fn root() -> PathBuf {
    let here = env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").to_owned());
    Path::new(&here).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// The folder that cargo builds to.
///
/// # Errors
/// `cargo metadata` fails.
pub fn target_directory() -> Result<PathBuf> {
    #[derive(Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let text = output(&mut cargo(["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: Metadata =
        serde_json::from_str(&text).context("the output of cargo metadata cannot be read")?;
    Ok(metadata.target_directory)
}

/// The cargo that runs us, to be run in the workspace.
pub fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    forget_package(&mut command);
    command
}

/// Removes the variables that cargo sets for xtask: they would make cargo build other packages anew.
pub fn forget_package(command: &mut Command) {
    for (name, _) in env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
}

/// Shows the command, runs it with our own streams and fails when it does.
pub fn run(command: &mut Command) -> Result<()> {
    let shown = show(command);
    println!("{}", dim(&format!("$ {shown}")));
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// The same, for a command that must not take longer than this: one that hangs is ended, with everything it started, and
/// what it printed last says where.
pub fn run_within(command: &mut Command, limit: Duration) -> Result<()> {
    let shown = show(command);
    println!("{}", dim(&format!("$ {shown}")));
    // Ctrl-c at a terminal has to reach the command as well, which it does only in our own process group.
    let grouped = !std::io::stdin().is_terminal();
    if grouped {
        own_group(command);
    }
    let mut child = command.spawn().with_context(|| format!("cannot start `{shown}`"))?;
    match wait(&mut child, limit)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => bail!("`{shown}` failed: {status}"),
        None => {
            end(&mut child)?;
            bail!("`{shown}` was still running after {} and was ended", duration(limit))
        }
    }
}

/// What the command prints; fails when it does.
pub fn output(command: &mut Command) -> Result<String> {
    let shown = show(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    if !output.status.success() {
        bail!("`{shown}` failed: {}", output.status);
    }
    String::from_utf8(output.stdout).with_context(|| format!("`{shown}` printed something that is not text"))
}

/// Runs the command without input, its output going to a file. `None`: it was still running after `limit`, and has
/// been ended with everything it started.
pub fn run_logged(command: &mut Command, log: &Path, limit: Duration) -> Result<Option<ExitStatus>> {
    let shown = show(command);
    let file = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    own_group(command);
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .spawn()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let ended = wait(&mut child, limit)?;
    if ended.is_none() {
        end(&mut child)?;
    }
    Ok(ended)
}

/// Waits for the child, for so long.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        match child.try_wait()? {
            None if begin.elapsed() <= limit => thread::sleep(POLL),
            ended => return Ok(ended),
        }
    }
}

#[cfg(unix)]
fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(not(unix))]
fn own_group(_: &mut Command) {}

/// Ends the child, and where there are process groups its children too.
fn end(child: &mut Child) -> Result<()> {
    if cfg!(unix) {
        let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
    }
    let _ = child.kill(); // it may be gone by now
    child.wait()?;
    Ok(())
}

fn show(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args()).map(|word| word.to_string_lossy());
    words.collect::<Vec<_>>().join(" ")
}

/// Prints a headline.
pub fn section(title: &str) {
    println!("\n{}", bold(&format!("== {title}")));
}

/// `2.4 s`, `3 min 12 s`.
pub fn duration(time: Duration) -> String {
    let seconds = time.as_secs();
    if seconds < 100 {
        format!("{:.1} s", time.as_secs_f64())
    } else {
        format!("{} min {:02} s", seconds / 60, seconds % 60)
    }
}

/// Green text.
pub fn green(text: &str) -> String {
    paint("32", text)
}

/// Red, bold text.
pub fn red(text: &str) -> String {
    paint("31;1", text)
}

fn bold(text: &str) -> String {
    paint("1", text)
}

fn dim(text: &str) -> String {
    paint("2", text)
}

/// Colours are for people: only on a terminal, and not when `NO_COLOR` is set.
pub fn colours() -> bool {
    static COLOURS: LazyLock<bool> =
        LazyLock::new(|| std::io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none());
    *COLOURS
}

fn paint(code: &str, text: &str) -> String {
    if colours() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        assert_eq!(duration(Duration::from_millis(2_449)), "2.4 s");
        assert_eq!(duration(Duration::from_secs(192)), "3 min 12 s");
    }

    #[test]
    #[cfg(unix)]
    fn a_command_that_hangs_is_ended_with_its_children() {
        let log = env::temp_dir().join(format!("xtask-shell-{}", std::process::id()));
        let mut hang = Command::new("sh");
        hang.args(["-c", "sleep 60 & echo $!; wait"]);
        let begin = Instant::now();
        let ended = run_logged(&mut hang, &log, Duration::from_millis(300)).unwrap();
        assert!(ended.is_none());
        assert!(begin.elapsed() < Duration::from_secs(10));
        let sleeper = std::fs::read_to_string(&log).unwrap();
        std::fs::remove_file(&log).unwrap();
        let alive =
            || Command::new("kill").args(["-0", sleeper.trim()]).stderr(Stdio::null()).status().unwrap();
        // An ended orphan stays until its new parent reaps it.
        let gone = (0..50).any(|_| {
            thread::sleep(POLL);
            !alive().success() || is_zombie(sleeper.trim())
        });
        assert!(gone, "process {sleeper} is still alive");
    }

    #[cfg(unix)]
    fn is_zombie(pid: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
    }
}

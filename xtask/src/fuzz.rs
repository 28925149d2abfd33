//! cargo-fuzz: libFuzzer feeds the targets of `fuzz/`.
//!
//! The stable compiler can do it when it is told to take flags of the nightly one. New inputs go to a folder under
//! `target/`; `--minimize` brings what reaches more code than the corpus into the corpus.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use refmcp_runners::shell;

const VERSION: &str = "0.13.2";

/// How long a target is fed unless a number of seconds is named.
const SECONDS: u64 = 60;

/// How long building and feeding one target may take, besides the seconds it is fed.
const BUILD: Duration = Duration::from_secs(60 * 60);

/// Feeds one target or all, for so long each: `[TARGET] [SECONDS]`, or `--minimize [TARGET]`.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let fuzzer = Fuzzer::prepare()?;
    match arguments {
        ["--minimize"] => fuzzer.all()?.iter().try_for_each(|target| fuzzer.minimize(target)),
        ["--minimize", target] => fuzzer.minimize(&fuzzer.named(target)?),
        [] => fuzzer.feed(&fuzzer.all()?, SECONDS),
        [seconds] if seconds.parse::<u64>().is_ok() => fuzzer.feed(&fuzzer.all()?, seconds.parse()?),
        [target] => fuzzer.feed(&[fuzzer.named(target)?], SECONDS),
        [target, seconds] => {
            let seconds = seconds.parse().with_context(|| format!("{seconds} is no number of seconds"))?;
            fuzzer.feed(&[fuzzer.named(target)?], seconds)
        }
        _ => bail!("usage: cargo xtask fuzz [TARGET] [SECONDS], or cargo xtask fuzz --minimize [TARGET]"),
    }
}

struct Fuzzer {
    program: PathBuf,
    /// The folder of the targets and their corpora.
    folder: PathBuf,
    /// Where it builds, and keeps new inputs and logs.
    work: PathBuf,
}

impl Fuzzer {
    fn prepare() -> Result<Self> {
        let target = shell::target_directory()?;
        let tools = target.join("tools");
        let program = tools.join("bin").join(format!("cargo-fuzz{}", std::env::consts::EXE_SUFFIX));
        if !program.exists() {
            println!("cargo-fuzz is built once, which takes some minutes");
            let mut install =
                shell::cargo(["install", "cargo-fuzz", "--locked", "--version", VERSION, "--root"]);
            shell::run(install.arg(&tools))?;
        }
        Ok(Self { program, folder: shell::root().join("fuzz"), work: target.join("fuzz") })
    }

    /// The names of all targets, sorted.
    fn all(&self) -> Result<Vec<String>> {
        let folder = self.folder.join("fuzz_targets");
        let files = fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
        let mut names = Vec::new();
        for file in files {
            let path = file?.path();
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
        names.sort();
        Ok(names)
    }

    fn named(&self, name: &str) -> Result<String> {
        let all = self.all()?;
        if !all.iter().any(|known| known == name) {
            bail!("there is no target {name}; there are {}", all.join(", "));
        }
        Ok(name.to_owned())
    }

    /// Feeds targets one after the other and prints what came of each; fails when one has findings.
    fn feed(&self, targets: &[String], seconds: u64) -> Result<()> {
        let mut failed = Vec::new();
        for target in targets {
            let log = self.log(target)?;
            let options = [&*format!("-max_total_time={seconds}"), "-print_final_stats=1", "-timeout=10"];
            let mut command = self.command(target, &options)?;
            let begun = Instant::now();
            let ended = shell::run_logged(&mut command, &log, BUILD + Duration::from_secs(seconds))?;
            let said = fs::read_to_string(&log).with_context(|| format!("cannot read {}", log.display()))?;
            let executions = executions(&said).unwrap_or(0);
            let took = shell::duration(begun.elapsed());
            if ended.is_some_and(|status| status.success()) {
                println!("{target:16} {executions:>9} executions in {took}, no finding");
            } else {
                let what = finding(&said).unwrap_or("it did not run");
                println!("{target:16} {executions:>9} executions in {took}: {what}");
                println!("{:16} see {}, and fuzz/artifacts/{target}", "", log.display());
                failed.push(target.as_str());
            }
        }
        if failed.is_empty() { Ok(()) } else { bail!("findings in {}", failed.join(", ")) }
    }

    /// Adds the new inputs that reach more code to the corpus of a target.
    fn minimize(&self, target: &str) -> Result<()> {
        let log = self.log(target)?;
        let corpus = self.folder.join("corpus").join(target);
        let before = size(&corpus)?;
        // The first folder gets what the second has beyond it.
        let mut command = self.fuzz_run(target, [corpus.clone(), self.new_inputs(target)?]);
        command.args(["--", "-merge=1", "-set_cover_merge=1"]);
        let ended = shell::run_logged(&mut command, &log, BUILD)?;
        if !ended.is_some_and(|status| status.success()) {
            bail!("the corpus of {target} was not minimized; see {}", log.display());
        }
        println!("{target:16} {before} bytes of corpus before, {} now", size(&corpus)?);
        Ok(())
    }

    fn command(&self, target: &str, options: &[&str]) -> Result<Command> {
        let corpora = [self.new_inputs(target)?, self.folder.join("corpus").join(target)];
        let mut command = self.fuzz_run(target, corpora);
        command.arg("--").args(options);
        Ok(command)
    }

    fn fuzz_run(&self, target: &str, corpora: [PathBuf; 2]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(["fuzz", "run", "--sanitizer", "none", "--fuzz-dir"]).arg(&self.folder);
        command.arg("--target-dir").arg(&self.work).arg(target).args(corpora);
        command.env("RUSTC_BOOTSTRAP", "1").current_dir(shell::root());
        shell::forget_package(&mut command);
        command
    }

    fn new_inputs(&self, target: &str) -> Result<PathBuf> {
        let folder = self.work.join("corpus").join(target);
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(folder)
    }

    fn log(&self, target: &str) -> Result<PathBuf> {
        fs::create_dir_all(&self.work).with_context(|| format!("cannot create {}", self.work.display()))?;
        Ok(self.work.join(format!("{target}.log")))
    }
}

/// The number of executions that libFuzzer reports at its end.
fn executions(log: &str) -> Option<u64> {
    let line = log.lines().rev().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?;
    line.trim().parse().ok()
}

/// The line that says what went wrong.
fn finding(log: &str) -> Option<&str> {
    let is_finding = |line: &&str| {
        line.contains("panicked at") || line.contains("ERROR: libFuzzer") || line.starts_with("error")
    };
    log.lines().find(is_finding).map(str::trim)
}

/// The bytes of all files of a folder.
fn size(folder: &Path) -> Result<u64> {
    let files = fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    files.map(|file| Ok(file?.metadata()?.len())).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_of_a_run_is_read() {
        let log = "#2 INITED\nDone 12 runs\nstat::number_of_executed_units: 12\nstat::peak_rss_mb: 40\n";
        assert_eq!((executions(log), finding(log)), (Some(12), None));
        let log = "thread '<unnamed>' panicked at src/a.rs:1:2:\nno\n==1== ERROR: libFuzzer: deadly signal\n";
        assert_eq!(executions(log), None);
        assert_eq!(finding(log), Some("thread '<unnamed>' panicked at src/a.rs:1:2:"));
    }
}

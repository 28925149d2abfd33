//! Programs that the Rust tests run: what is missing is installed where that can be done without asking.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, bail};
use refmcp_runners::shell;

/// Programs, and the packages of Debian that have them.
const NEEDED: [(&str, &str); 6] = [
    ("nginx", "nginx-light"),
    ("haproxy", "haproxy"),
    ("redis-server", "redis-server"),
    ("bash", "bash"),
    ("zsh", "zsh"),
    ("fish", "fish"),
];

/// Where programs are, also those that are not for everybody.
const FOLDERS: [&str; 6] =
    ["/usr/sbin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/local/bin", "/opt/homebrew/bin"];

/// Installs what is missing, as root on Debian; elsewhere says what to install.
pub(crate) fn install() -> Result<()> {
    let missing: Vec<(&str, &str)> = NEEDED.into_iter().filter(|(program, _)| !is_there(program)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    if !Path::new("/etc/debian_version").exists() || !is_root() {
        bail!("{}", what_to_install(&missing));
    }
    let install = [&["install", "-qy", "--no-install-recommends"][..], &packages].concat();
    if let Err(error) = shell::run(&mut apt(&install)) {
        println!("{error:#}; the list of packages may be old");
        shell::run(&mut apt(&["update", "-q"]))?;
        shell::run(&mut apt(&install))?;
    }
    match missing.into_iter().filter(|(program, _)| !is_there(program)).collect::<Vec<_>>() {
        still if still.is_empty() => Ok(()),
        still => bail!("{}", what_to_install(&still)),
    }
}

fn what_to_install(missing: &[(&str, &str)]) -> String {
    let (programs, packages): (Vec<&str>, Vec<&str>) = missing.iter().copied().unzip();
    format!(
        "the tests run programs that are not installed ({}): sudo apt-get install {}, or what your system has for it",
        programs.join(", "),
        packages.join(" ")
    )
}

fn apt(words: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    // Keeps packages from starting the services that they install.
    command.args(words).env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
    command
}

fn is_there(program: &str) -> bool {
    FOLDERS.iter().any(|folder| Path::new(folder).join(program).exists())
}

fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|id| id.stdout.trim_ascii() == b"0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named_with_its_package() {
        assert!(is_there("env") && !is_there("no-such-program"));
        let said = what_to_install(&NEEDED);
        assert!(
            said.contains("(nginx, haproxy, redis-server, bash, zsh, fish)")
                && said.contains("apt-get install nginx-light haproxy redis-server bash zsh fish,"),
            "{said}"
        );
    }
}

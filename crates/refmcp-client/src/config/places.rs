//! Where configuration files are, and reading them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::problem::Problem;
use super::{Servers, parse};

/// Bytes of the longest configuration file that is read.
const LONGEST_FILE: u64 = 4 << 20;

/// The places where hosts keep their servers, the nearest first: those of a directory, then those of a person.
#[must_use]
pub fn discover(directory: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let near = ["mcp.json", ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"];
    let mut places: Vec<_> = near.iter().map(|place| directory.join(place)).collect();
    if let Some(home) = home {
        places.push(home.join(".cursor/mcp.json"));
        places.push(home.join(CLAUDE_DESKTOP));
    }
    places
}

const CLAUDE_DESKTOP: &str = if cfg!(target_os = "macos") {
    "Library/Application Support/Claude/claude_desktop_config.json"
} else if cfg!(windows) {
    "AppData/Roaming/Claude/claude_desktop_config.json"
} else {
    ".config/Claude/claude_desktop_config.json"
};

/// Reads those of these files that are there. Where two name the same server, the first counts.
#[must_use]
pub fn read_all<P: AsRef<Path>>(files: &[P]) -> Servers {
    let mut all = Servers::default();
    for file in files.iter().map(AsRef::as_ref) {
        if file.symlink_metadata().is_ok() {
            all.add(read(file));
        }
    }
    all
}

/// Reads a file.
#[must_use]
pub fn read(file: &Path) -> Servers {
    match text_of(file) {
        Ok(text) => parse(&text, file),
        Err(problem) => Servers { problems: vec![problem], ..Servers::default() },
    }
}

fn text_of(path: &Path) -> Result<String, Problem> {
    let cannot = |fault: io::Error| Problem::error(path, format!("cannot be read: {fault}"));
    // Opening a pipe would wait for somebody to write to it.
    if !path.metadata().map_err(cannot)?.is_file() {
        return Err(Problem::error(path, "is not a file"));
    }
    let file = File::open(path).map_err(cannot)?;
    let facts = file.metadata().map_err(cannot)?;
    if is_open_to_everybody(&facts) {
        let why = "can be written by everybody, so anybody could have us start any program; it is not used until \
                   only its owner can write it (chmod o-w)";
        return Err(Problem::error(path, why));
    }
    let mut bytes = Vec::new();
    file.take(LONGEST_FILE + 1).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > LONGEST_FILE {
        return Err(Problem::error(path, format!("is longer than {LONGEST_FILE} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| Problem::error(path, "is not UTF-8"))
}

#[cfg(unix)]
fn is_open_to_everybody(facts: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    facts.mode() & 0o002 != 0
}

#[cfg(not(unix))]
fn is_open_to_everybody(_: &std::fs::Metadata) -> bool {
    false
}

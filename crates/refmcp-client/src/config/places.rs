//! Where configuration files are, and reading them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::Servers;
use super::hosts::{Platform, usual_files};
use super::problem::Problem;
use super::text::{parse, parse_if_listed};

/// Bytes of the longest configuration file that is read.
const LONGEST_FILE: u64 = 16 << 20;

/// The places where hosts keep their servers, the nearest first: those of a directory, then those of a person.
/// [`usual_files`] also heeds the variables that move some of them.
#[must_use]
pub fn discover(directory: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let only_home = |name: &str| home.filter(|_| matches!(name, "HOME" | "USERPROFILE")).map(Into::into);
    usual_files(directory, Platform::CURRENT, &only_home)
}

/// Reads those of these files that are there. Where two name the same server, the first counts. A file without a list of
/// servers names none: some hosts keep other settings in it as well.
#[must_use]
pub fn read_all<P: AsRef<Path>>(files: &[P]) -> Servers {
    let mut all = Servers::default();
    for file in files.iter().map(AsRef::as_ref) {
        if file.symlink_metadata().is_ok() {
            all.add(read_with(file, parse_if_listed));
        }
    }
    all
}

/// Reads a file.
#[must_use]
pub fn read(file: &Path) -> Servers {
    read_with(file, parse)
}

fn read_with(file: &Path, parse: fn(&str, &Path) -> Servers) -> Servers {
    match text_of(file) {
        Ok(text) => parse(&text, file),
        Err(problem) => Servers { problems: vec![problem], ..Servers::default() },
    }
}

pub(super) fn text_of(path: &Path) -> Result<String, Problem> {
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

//! Saving a skill in a folder: whole or not at all, and nowhere else.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use refmcp_client::skill::VerifiedFile;
use serde_json::Value;

use crate::args::usage;

/// The folder of a skill, which is not there yet.
#[derive(Debug)]
pub(super) struct NewFolder {
    parent: PathBuf,
    name: String,
}

impl NewFolder {
    /// The folder of the skill of this name in another one.
    ///
    /// # Errors
    /// There is something already.
    pub(super) fn new(into: &Path, name: &str) -> Result<Self> {
        let new = Self { parent: into.to_owned(), name: name.to_owned() };
        for path in [new.folder(), new.origin()] {
            // A link that leads nowhere is something too.
            if path.symlink_metadata().is_ok() {
                return Err(
                    usage!("{} is there already; remove it, or choose --into DIR", path.display()).into()
                );
            }
        }
        Ok(new)
    }

    fn folder(&self) -> PathBuf {
        self.parent.join(&self.name)
    }

    /// The file that says where the skill comes from. It is beside the folder, whose files are those of the skill.
    fn origin(&self) -> PathBuf {
        self.parent.join(format!("{}.origin.json", self.name))
    }

    /// Saves files that were verified. They are written to a folder of another name, which is then renamed: a reader sees all
    /// of them or none.
    pub(super) fn save(&self, files: &[VerifiedFile], origin: &Value) -> Result<PathBuf> {
        fs::create_dir_all(&self.parent)
            .with_context(|| format!("cannot make the folder {}", self.parent.display()))?;
        let mut random = [0_u8; 8];
        getrandom::fill(&mut random).map_err(io::Error::other).context("no random numbers")?;
        let beside = self.parent.join(format!(".{}.{:016x}", self.name, u64::from_le_bytes(random)));
        let folder = self.folder();
        let written = write_all(&beside, files).and_then(|()| {
            write_new(&self.origin(), format!("{origin:#}\n").as_bytes())?;
            // An empty folder would be replaced; what came since is not to be.
            match folder.symlink_metadata() {
                Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
                Err(_) => fs::rename(&beside, &folder),
            }
            .inspect_err(|_| drop(fs::remove_file(self.origin())))
        });
        if let Err(error) = written {
            // What was begun is of no use, and may not even be there.
            let _ = fs::remove_dir_all(&beside);
            return Err(error).with_context(|| format!("cannot save the skill in {}", folder.display()));
        }
        Ok(folder)
    }
}

/// Writes files to a new folder that only its owner can change while it is written.
fn write_all(folder: &Path, files: &[VerifiedFile]) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)?;
    for file in files {
        let path = folder.join(file.path());
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        write_new(&path, file.bytes())?;
    }
    Ok(())
}

/// Writes a file that must not be there; no link is followed.
fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file: File = OpenOptions::new().write(true).create_new(true).open(path)?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    // Half a file would be in the way of the next attempt.
    written.inspect_err(|_| drop(fs::remove_file(path)))
}

/// Whether the paths are different files on any file system, also where case does not count, and files that no program takes
/// for its configuration: git, editors and shells run what hidden files such as `.git/config` and `.envrc` name.
///
/// # Errors
/// Two of them are one, one is a folder of another, one is hidden, or they are a git repository.
pub(super) fn check_paths<'a>(paths: impl Iterator<Item = &'a str>) -> Result<()> {
    let (mut files, mut folders) = (BTreeSet::new(), BTreeSet::new());
    for path in paths {
        let folded = path.to_lowercase();
        for (at, _) in folded.match_indices('/') {
            folders.extend(folded.get(..at).map(str::to_owned));
        }
        if folded.split('/').any(|part| part.starts_with('.') || part.starts_with("git~")) {
            let why = "is hidden, and programs may run what it names; read it with refmcp skills show";
            return Err(usage!("the file {path:?} of the skill {why}").into());
        }
        if !folded.split('/').all(is_plain) || !files.insert(folded) {
            return Err(usage!("the file {path:?} of the skill cannot be saved on every file system").into());
        }
    }
    let is_repository = |head: &String| {
        let inside = head.strip_suffix("head").filter(|root| root.is_empty() || root.ends_with('/'));
        inside
            .is_some_and(|root| ["objects", "refs"].iter().all(|it| folders.contains(&format!("{root}{it}"))))
    };
    if let Some(head) = files.iter().find(|file| is_repository(file)) {
        return Err(usage!(
            "{head:?} makes a folder of the skill a git repository, whose configuration runs programs"
        )
        .into());
    }
    match files.intersection(&folders).next() {
        Some(path) => Err(usage!("{path:?} is a file and a folder of the skill").into()),
        None => Ok(()),
    }
}

/// Whether each file system has files of this name, in lower case.
fn is_plain(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    let is_port =
        |kind| stem.strip_prefix(kind).is_some_and(|number| matches!(number.as_bytes(), [b'0'..=b'9']));
    let is_device = ["con", "prn", "aux", "nul"].contains(&stem) || is_port("com") || is_port("lpt");
    !name.ends_with(['.', ' ']) && !is_device
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_would_be_one_file_are_refused() {
        assert!(check_paths(["SKILL.md", "a/b.md", "a/c.md"].into_iter()).is_ok());
        for paths in [&["a", "A"][..], &["é", "É"], &["a", "a/b"], &["A", "a/b"], &["a."], &["a /b"]] {
            assert!(check_paths(paths.iter().copied()).is_err(), "{paths:?}");
        }
    }

    #[test]
    fn files_that_programs_run_are_refused() {
        for path in
            [".git/config", "a/.envrc", "GIT~1/config", ".vscode/tasks.json", "con", "a/NUL.md", "lpt1.txt"]
        {
            assert!(check_paths([path].into_iter()).is_err(), "{path}");
        }
        for root in ["", "a/"] {
            let paths = ["HEAD", "config", "objects/x", "refs/x"].map(|path| format!("{root}{path}"));
            assert!(check_paths(paths.iter().map(String::as_str)).is_err(), "{root}");
        }
        assert!(check_paths(["HEAD", "config", "console.md", "com.md", "a.b/git.md"].into_iter()).is_ok());
    }

    #[test]
    fn what_is_there_is_not_touched() {
        let into = tempfile::tempdir().unwrap();
        fs::write(into.path().join("taken"), "mine").unwrap();
        assert!(NewFolder::new(into.path(), "taken").is_err());
        let folder = NewFolder::new(into.path(), "new").unwrap();
        fs::create_dir(into.path().join("new")).unwrap();
        assert!(folder.save(&[], &Value::Null).is_err());
        let names = fs::read_dir(into.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, ["new", "taken"], "nothing is left of what was begun");
    }
}

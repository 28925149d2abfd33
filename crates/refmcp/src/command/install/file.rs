//! A configuration file of another program: read with a limit, replaced as a whole, and only while it is as it was read.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use refmcp_transport::file::{open_regular, read_limited};

/// Bytes of the longest file that is read.
const MAX_FILE: u64 = 16 << 20;

/// Links that are followed one after the other.
const MAX_LINKS: usize = 40;

/// A file, or the place for one.
#[derive(Debug)]
pub(super) struct ConfigFile {
    /// What it is called.
    pub(super) path: PathBuf,
    /// Where it really is: a link is followed, so that it stays a link.
    pub(super) real: PathBuf,
    /// Its text; `None` when there is no file.
    pub(super) text: Option<String>,
}

impl ConfigFile {
    /// The file as it is now.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let real = followed(path).with_context(|| format!("cannot find {}", path.display()))?;
        let text = text_of(&real).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Self { path: path.to_owned(), real, text })
    }

    /// What it is called, and where a link leads: the file that is written may be elsewhere.
    pub(super) fn shown(&self) -> String {
        let is_link = fs::symlink_metadata(&self.path).is_ok_and(|facts| facts.file_type().is_symlink());
        match is_link {
            true => format!("{} (a link to {})", self.path.display(), self.real.display()),
            false => self.path.display().to_string(),
        }
    }

    /// The folders that have to be made before the file can be written, the outermost first.
    pub(super) fn missing_folders(&self) -> Vec<PathBuf> {
        let ancestors = self.real.ancestors().skip(1);
        let missing = ancestors.take_while(|folder| !folder.as_os_str().is_empty() && !folder.exists());
        let mut folders: Vec<PathBuf> = missing.map(Path::to_owned).collect();
        folders.reverse();
        folders
    }

    /// Replaces the text; a new file is for its owner alone where that is wanted.
    pub(super) fn write(&self, text: &str, private: bool) -> Result<()> {
        if let Some(folder) = self.real.parent() {
            let made = DirBuilder::new().recursive(true).create(folder);
            made.with_context(|| format!("cannot make the folder {}", folder.display()))?;
        }
        let mut random = [0u8; 8];
        getrandom::fill(&mut random).map_err(io::Error::other).context("no random numbers")?;
        let name = self.real.file_name().context("the path ends without a name")?.to_string_lossy();
        let beside = self.real.with_file_name(format!(".{name}.{:016x}", u64::from_le_bytes(random)));
        let written = self.write_beside(&beside, text, private);
        let written = written.and_then(|()| {
            self.check_unchanged()?;
            Ok(fs::rename(&beside, &self.real)?)
        });
        if written.is_err() {
            // What was begun is of no use, and may not even be there.
            let _ = fs::remove_file(&beside);
        }
        written.with_context(|| format!("cannot write {}", self.path.display()))
    }

    fn write_beside(&self, beside: &Path, text: &str, private: bool) -> Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        {
            let mode = if private || self.text.is_some() { 0o600 } else { 0o644 };
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
        }
        #[cfg(not(unix))]
        let _ = private;
        let mut file = options.open(beside)?;
        if self.text.is_some() {
            keep_access(&file, &fs::metadata(&self.real)?)?;
        }
        file.write_all(text.as_bytes())?;
        Ok(file.sync_all()?)
    }

    /// Removes the file, and those of these folders that are empty then.
    pub(super) fn remove(&self, folders: &[PathBuf]) -> Result<()> {
        self.check_unchanged()?;
        fs::remove_file(&self.real).with_context(|| format!("cannot remove {}", self.path.display()))?;
        for folder in folders.iter().rev() {
            // One that is not empty holds files of others by now.
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Another program may have written the file since it was read, and what it wrote must not be lost.
    fn check_unchanged(&self) -> Result<()> {
        if text_of(&self.real)? != self.text {
            bail!("another program has changed it in the meantime; try again");
        }
        Ok(())
    }
}

/// Gives a file the permissions and the owner that another one has.
fn keep_access(file: &File, like: &Metadata) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, fchown};
        let new = file.metadata()?;
        if (new.uid(), new.gid()) != (like.uid(), like.gid()) {
            fchown(file, Some(like.uid()), Some(like.gid())).context("its owner and group cannot be kept")?;
        }
    }
    Ok(file.set_permissions(like.permissions())?)
}

fn text_of(path: &Path) -> Result<Option<String>> {
    match open_regular(path).and_then(|file| read_limited(file, MAX_FILE)) {
        Ok(bytes) => Ok(Some(String::from_utf8(bytes).context("it is not UTF-8")?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Where a path leads to, through every link, whether there is a file or not.
fn followed(path: &Path) -> Result<PathBuf> {
    let mut path = std::path::absolute(path)?;
    for _ in 0..MAX_LINKS {
        match fs::read_link(&path) {
            Ok(target) => path = path.parent().unwrap_or(Path::new("/")).join(target),
            Err(_) => return resolved(&path),
        }
    }
    bail!("there are too many links")
}

/// The path with every folder that exists named as it really is.
fn resolved(path: &Path) -> Result<PathBuf> {
    for ancestor in path.ancestors() {
        match ancestor.canonicalize() {
            Ok(real) => {
                let rest = path.strip_prefix(ancestor)?;
                return Ok(if rest.as_os_str().is_empty() { real } else { real.join(rest) });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name);
        fs::create_dir(place("real")).unwrap();
        fs::write(place("real/mcp.json"), "old").unwrap();
        fs::set_permissions(place("real/mcp.json"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("real/mcp.json", place("one")).unwrap();
        symlink("one", place("two")).unwrap();
        let file = ConfigFile::open(&place("two")).unwrap();
        assert_eq!(file.text.as_deref(), Some("old"));
        file.write("new", true).unwrap();
        assert_eq!(fs::read_to_string(place("real/mcp.json")).unwrap(), "new");
        assert_eq!(fs::metadata(place("real/mcp.json")).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(place("two").is_symlink() && place("one").is_symlink());
        assert_eq!(fs::read_dir(place("real")).unwrap().count(), 1, "nothing else is left behind");
        // A link to a file that is yet to come.
        symlink("real/deeper/later.json", place("three")).unwrap();
        let file = ConfigFile::open(&place("three")).unwrap();
        assert_eq!(file.missing_folders().len(), 1);
        file.write("{}", true).unwrap();
        assert_eq!(fs::read_to_string(place("real/deeper/later.json")).unwrap(), "{}");
        let mode = fs::metadata(place("real/deeper/later.json")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        symlink("round", place("round")).unwrap();
        assert!(ConfigFile::open(&place("round")).is_err());
    }

    #[test]
    fn what_another_program_has_written_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/mcp.json");
        let missing = ConfigFile::open(&path).unwrap();
        assert_eq!((missing.text.as_deref(), missing.missing_folders().len()), (None, 1));
        missing.write("one", false).unwrap();
        let error = format!("{:#}", missing.write("two", false).unwrap_err());
        assert!(error.contains("another program has changed it"), "{error}");
        let read = ConfigFile::open(&path).unwrap();
        fs::write(&path, "theirs").unwrap();
        assert!(read.write("ours", false).is_err() && read.remove(&[]).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
        assert_eq!(fs::read_dir(folder.path().join("a")).unwrap().count(), 1);
    }

    #[test]
    fn only_texts_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("latin");
        fs::write(&path, b"\xe9").unwrap();
        for (path, why) in [(path.as_path(), "is not UTF-8"), (folder.path(), "not a file")] {
            let error = format!("{:#}", ConfigFile::open(path).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }
}

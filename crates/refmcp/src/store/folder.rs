//! The state folder, and files in it that are replaced as a whole. Several processes may use it at once.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use refmcp_transport::file::read_limited;

/// Bytes of the longest file that is read.
const MAX_BYTES: u64 = 16 << 20;

/// How long another process may hold the lock; a change takes milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// How long between two attempts to take a lock.
const LOCK_POLL: Duration = Duration::from_millis(5);

/// The state folder.
#[derive(Debug, Clone)]
pub(crate) struct StateFolder {
    path: PathBuf,
}

/// A lock that ends with its file.
#[derive(Debug)]
pub(crate) struct FolderLock {
    file: File,
    pub(super) path: PathBuf,
}

impl FolderLock {
    /// Takes the lock; whether no other process has it.
    pub(super) fn try_lock(&self) -> Result<bool> {
        match self.file.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) => {
                Err(error).with_context(|| format!("cannot lock {}", self.path.display()))
            }
        }
    }
}

impl StateFolder {
    /// Where the environment says: `REFMCP_STATE_DIR`, or `refmcp` in the folder for the state of programs.
    pub(crate) fn from_env() -> Result<Self> {
        Self::from_variables(|name| {
            std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
        })
    }

    fn from_variables(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<Self> {
        if let Some(path) = variable("REFMCP_STATE_DIR") {
            return Ok(Self { path });
        }
        // A relative path here is to be ignored, says the specification of these variables.
        let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
        let home = || variable("HOME").map(|home| home.join(".local/state"));
        let windows = || variable("LOCALAPPDATA");
        let state = state.or_else(home).or_else(windows);
        let state = state.context("no folder to keep things in: set REFMCP_STATE_DIR")?;
        Ok(Self { path: state.join("refmcp") })
    }

    #[cfg(test)]
    pub(crate) fn at(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The path of a file in it.
    pub(super) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Locks the folder against changes by other processes. It blocks, though not for ever.
    pub(crate) fn lock(&self) -> Result<FolderLock> {
        self.lock_within(LOCK_TIMEOUT)
    }

    /// The same, for what is not worth a long wait.
    pub(super) fn lock_within(&self, timeout: Duration) -> Result<FolderLock> {
        let end = Instant::now() + timeout;
        let lock = self.lock_file("lock")?;
        while !lock.try_lock()? {
            if Instant::now() >= end {
                let (path, seconds) = (lock.path.display(), timeout.as_secs());
                bail!(
                    "another process has kept {path} locked for {seconds} s, and was perhaps stopped; end it, or try \
                     again later"
                );
            }
            std::thread::sleep(LOCK_POLL);
        }
        Ok(lock)
    }

    /// A file to lock, which is not locked yet.
    pub(super) fn lock_file(&self, name: &str) -> Result<FolderLock> {
        self.create()?;
        let path = self.file(name);
        let file = private(OpenOptions::new().write(true).create(true)).open(&path);
        let file = file.with_context(|| format!("cannot open {}", path.display()))?;
        Ok(FolderLock { file, path })
    }

    /// The content of a file; `None` when there is none.
    pub(crate) fn read(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.file(name);
        read_bounded(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// Replaces a file: a reader sees the old or the new content, and a crash leaves one of them.
    pub(crate) fn replace(&self, name: &str, content: &[u8]) -> Result<()> {
        self.create()?;
        let path = self.file(name);
        let mut random = [0u8; 8];
        getrandom::fill(&mut random).map_err(io::Error::other).context("no random numbers")?;
        let beside = self.file(&format!(".{name}.{:016x}", u64::from_le_bytes(random)));
        let written = write_new(&beside, content).and_then(|()| fs::rename(&beside, &path));
        if let Err(error) = written {
            // What was begun is of no use, and may not even be there.
            let _ = fs::remove_file(&beside);
            return Err(error).with_context(|| format!("cannot write {}", path.display()));
        }
        Ok(())
    }

    /// Sees to it that what was replaced stays so, whatever happens to the machine.
    pub(super) fn sync(&self) -> Result<()> {
        // Elsewhere folders are not for opening, and the system sees to it.
        if cfg!(unix) {
            let synced = File::open(&self.path).and_then(|folder| folder.sync_all());
            synced.with_context(|| format!("cannot write the folder {}", self.path.display()))?;
        }
        Ok(())
    }

    /// Makes the folder, private to its owner.
    pub(super) fn create(&self) -> Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&self.path).with_context(|| format!("cannot make the folder {}", self.path.display()))
    }
}

/// A file that only its owner can read.
pub(crate) fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Opens a file for appending that only its owner can read, also where it was there before. A link is refused: another user
/// may have put it there. A named pipe without a reader is an error at once: opening it would block, and no signal would end
/// the command.
pub(crate) fn append_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    private(options.create(true).append(true));
    #[cfg(unix)]
    {
        use rustix::fs::{FileType, Mode, OFlags, fchmod, fcntl_getfl, fcntl_setfl, fstat};
        use std::os::unix::fs::OpenOptionsExt as _;
        // What stands directly in `/dev`, such as `/dev/stderr`, is the system's.
        let is_system =
            path.parent().is_some_and(|folder| [Path::new("/dev"), Path::new("/dev/fd")].contains(&folder));
        let no_link = if is_system { OFlags::empty() } else { OFlags::NOFOLLOW };
        options.custom_flags((OFlags::NONBLOCK | no_link).bits().cast_signed());
        let file = options.open(path).map_err(|error| match rustix::io::Errno::from_io_error(&error) {
            Some(rustix::io::Errno::LOOP) => io::Error::other("it is a link; name the file itself"),
            _ => error,
        })?;
        let stat = fstat(&file)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if is_file && !is_system && stat.st_mode & 0o077 != 0 {
            fchmod(&file, Mode::RUSR | Mode::WUSR)?;
        }
        fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
        Ok(file)
    }
    #[cfg(not(unix))]
    options.open(path)
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = private(OpenOptions::new().write(true).create_new(true)).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// The content of a file; `None` when there is none.
pub(super) fn read_bounded(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match File::open(path).and_then(|file| read_open(&file)) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The content of a file that is open.
pub(super) fn read_open(file: &File) -> io::Result<Vec<u8>> {
    read_limited(file, MAX_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_pipe_without_a_reader_is_an_error_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(append_private(&pipe).is_err());
        let file = folder.path().join("file");
        append_private(&file).unwrap().write_all(b"a").unwrap();
        append_private(&file).unwrap().write_all(b"b").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"ab");
    }

    #[test]
    fn the_environment_says_where() {
        let cases = [
            (&[("REFMCP_STATE_DIR", "/a"), ("HOME", "/h")][..], Some("/a")),
            (&[("XDG_STATE_HOME", "/x"), ("HOME", "/h")], Some("/x/refmcp")),
            (&[("XDG_STATE_HOME", "x"), ("HOME", "/h")], Some("/h/.local/state/refmcp")),
            (&[("HOME", "/h")], Some("/h/.local/state/refmcp")),
            (&[("LOCALAPPDATA", "/l")], Some("/l/refmcp")),
            (&[], None),
        ];
        for (env, expected) in cases {
            let look =
                |name: &str| env.iter().find(|(key, _)| *key == name).map(|(_, value)| PathBuf::from(value));
            let folder = StateFolder::from_variables(look).ok();
            assert_eq!(folder.map(|folder| folder.path), expected.map(PathBuf::from), "{env:?}");
        }
    }

    #[test]
    fn files_are_replaced_as_a_whole_and_private() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(&temporary.path().join("deep/er"));
        assert_eq!(folder.read("a").unwrap(), None);
        for content in ["one", "two"] {
            folder.replace("a", content.as_bytes()).unwrap();
            assert_eq!(folder.read("a").unwrap().unwrap(), content.as_bytes());
        }
        let names: Vec<_> =
            fs::read_dir(&folder.path).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["a"], "nothing else is left behind");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&folder.path), mode(&folder.file("a"))), (0o700, 0o600));
        }
    }

    #[test]
    fn a_lock_that_is_held_for_too_long_is_told_of() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = StateFolder::at(temporary.path());
        let held = folder.lock().unwrap();
        let error = folder.lock_within(Duration::from_millis(20)).unwrap_err().to_string();
        assert!(error.contains("another process has kept"), "{error}");
        drop(held);
        folder.lock_within(Duration::ZERO).unwrap();
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let temporary = tempfile::tempdir().unwrap();
        let in_the_way = temporary.path().join("file");
        fs::write(&in_the_way, "").unwrap();
        let folder = StateFolder::at(&in_the_way);
        let error = format!("{:#}", folder.replace("a", b"").unwrap_err());
        assert!(error.contains("file"), "{error}");
    }
}

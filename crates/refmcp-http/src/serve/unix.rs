//! Unix sockets to listen on. The socket file has its permissions before clients can connect, replaces that of a dead
//! server, and is removed at the end.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// How often, and with which pause, the folder lock is tried while another server starts in it.
const TRIES: (u32, Duration) = (200, Duration::from_millis(10));

/// A Unix socket that is listened on; dropping it removes its file.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    file: SocketFile,
}

/// A path that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnixSocketError {
    /// A server listens there.
    #[error("{0}: another server is listening there")]
    InUse(PathBuf),
    /// There is a file that is no socket.
    #[error("{0} is there already and is no socket: remove it, or choose another path")]
    NoSocket(PathBuf),
    /// Another program keeps the folder locked.
    #[error("{0}: the folder is locked by another program")]
    Locked(PathBuf),
    /// The system refuses it.
    #[error("{0}")]
    File(PathBuf, #[source] io::Error),
}

impl UnixSocket {
    /// Listens at a path with these permissions: users who may write to the file may connect, with `0o600` this user alone.
    /// A dead socket is replaced; one that a server listens on, or another file, is not.
    ///
    /// # Errors
    /// The path is taken, or the system refuses it.
    pub async fn bind(path: impl AsRef<Path>, mode: u32) -> Result<Self, UnixSocketError> {
        let path = path.as_ref();
        let failed = |error| UnixSocketError::File(path.to_owned(), error);
        // Of two servers that find the same dead socket, the second would otherwise replace that of the first.
        let _starting = lock_folder(path).await?;
        remove_dead(path).await?;
        let socket = tokio::net::UnixSocket::new_stream().map_err(failed)?;
        socket.bind(path).map_err(failed)?;
        let file = SocketFile::at(path).map_err(failed)?;
        // Clients can connect only after `listen`.
        fs::set_permissions(path, Permissions::from_mode(mode & 0o777)).map_err(failed)?;
        let listener = socket.listen(BACKLOG).map_err(failed)?;
        Ok(Self { listener, file })
    }

    pub(super) fn path(&self) -> &Path {
        &self.file.path
    }

    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

async fn lock_folder(path: &Path) -> Result<File, UnixSocketError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let failed = |error| UnixSocketError::File(folder.to_owned(), error);
    let lock = File::open(folder).map_err(failed)?;
    for _ in 0..TRIES.0 {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => sleep(TRIES.1).await,
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
    }
    Err(UnixSocketError::Locked(folder.to_owned()))
}

async fn remove_dead(path: &Path) -> Result<(), UnixSocketError> {
    let failed = |error| UnixSocketError::File(path.to_owned(), error);
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(error)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(UnixSocketError::NoSocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(failed(error)),
        // Including a full backlog.
        Ok(_) | Err(_) => Err(UnixSocketError::InUse(path.to_owned())),
    }
}

/// The file of a socket; dropping it removes the file, unless another server has replaced it.
#[derive(Debug)]
struct SocketFile {
    path: PathBuf,
    identity: (u64, u64),
}

impl SocketFile {
    fn at(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        Ok(Self { identity: identity(&path)?, path })
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|identity| identity == self.identity)
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "the socket file was not removed");
        }
    }
}

//! A Unix socket to listen on. Its file is ours alone unless told otherwise, replaces one that a dead server left, and
//! goes when the server ends.

use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::RecvFlags;
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::sleep;

use super::listener::Peek;

/// Connections that may wait to be accepted.
const BACKLOG: u32 = 1024;

/// How often, and with which pause, the folder is asked for when another server starts in it.
const TRIES: (u32, Duration) = (200, Duration::from_millis(10));

/// A Unix socket that is listened on; its file is removed when this goes.
#[derive(Debug)]
pub struct UnixSocket {
    listener: UnixListener,
    _file: SocketFile,
}

/// Why a path cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UnixSocketError {
    /// Something listens there.
    #[error("{0}: another server is listening there")]
    InUse(PathBuf),
    /// Something else has that name.
    #[error("{0} is there already and is no socket: remove it, or choose another path")]
    NoSocket(PathBuf),
    /// Another program holds the folder and does not let go of it.
    #[error("{0}: the folder is locked by another program")]
    Locked(PathBuf),
    /// The system does not let us.
    #[error("{0}")]
    File(PathBuf, #[source] io::Error),
}

impl UnixSocket {
    /// Listens at a path whose file has these permissions: `0o600` is for this user alone, and each user who may write
    /// to the file may connect. A dead socket is replaced; one that a server listens on, or another file, is not.
    ///
    /// # Errors
    /// The path is taken, or the system refuses it.
    pub async fn bind(path: impl AsRef<Path>, mode: u32) -> Result<Self, UnixSocketError> {
        let path = path.as_ref();
        let failed = |fault| UnixSocketError::File(path.to_owned(), fault);
        // Two servers that find the same dead socket must not both replace it: the second would take away the first's.
        let _starting = lock_folder(path).await?;
        remove_dead(path).await?;
        let socket = tokio::net::UnixSocket::new_stream().map_err(failed)?;
        socket.bind(path).map_err(failed)?;
        let file = SocketFile::at(path).map_err(failed)?;
        // No client can connect before `listen`.
        fs::set_permissions(path, Permissions::from_mode(mode & 0o777)).map_err(failed)?;
        let listener = socket.listen(BACKLOG).map_err(failed)?;
        Ok(Self { listener, _file: file })
    }

    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        Ok(self.listener.accept().await?.0)
    }
}

/// Holds the folder of a path for this server.
async fn lock_folder(path: &Path) -> Result<File, UnixSocketError> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let failed = |fault| UnixSocketError::File(folder.to_owned(), fault);
    let lock = File::open(folder).map_err(failed)?;
    for _ in 0..TRIES.0 {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => sleep(TRIES.1).await,
            Err(TryLockError::Error(fault)) => return Err(failed(fault)),
        }
    }
    Err(UnixSocketError::Locked(folder.to_owned()))
}

/// Removes the socket of a server that is gone.
async fn remove_dead(path: &Path) -> Result<(), UnixSocketError> {
    let failed = |fault| UnixSocketError::File(path.to_owned(), fault);
    match fs::symlink_metadata(path) {
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(fault) => return Err(failed(fault)),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(UnixSocketError::NoSocket(path.to_owned()));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path).await {
        Err(fault) if fault.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed)
        }
        Err(fault) if fault.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(fault) if fault.kind() == io::ErrorKind::PermissionDenied => Err(failed(fault)),
        // Also where so many wait already that we could not.
        Ok(_) | Err(_) => Err(UnixSocketError::InUse(path.to_owned())),
    }
}

/// The file of a socket; removed when this goes, unless it is another's by then.
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
            && let Err(fault) = fs::remove_file(&self.path)
        {
            tracing::warn!(%fault, path = %self.path.display(), "the socket is left behind");
        }
    }
}

impl Peek for UnixStream {
    async fn peek(&self, bytes: &mut [u8]) -> io::Result<usize> {
        self.async_io(Interest::READABLE, || {
            let (count, _) = rustix::net::recv(self, &mut *bytes, RecvFlags::PEEK)?;
            Ok(count)
        })
        .await
    }

    async fn is_read_closed(&self) -> io::Result<bool> {
        Ok(self.ready(Interest::READABLE).await?.is_read_closed())
    }
}

//! This process's own standard input and output as a pipe.
//!
//! Clients start servers with pipes or sockets in place of a terminal. Those are read and written by the runtime's
//! own poller, without a thread in between, which halves the time of a round trip; anything else (a file, a
//! terminal) goes the general way.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::pipe::{LineReader, LineWriter};

/// Anything that can be read from, and written to.
pub type Input = Box<dyn AsyncRead + Send + Unpin>;
/// Anything that can be written to.
pub type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Standard input and output, one message a line.
pub fn stdio(max_message_size: usize) -> io::Result<(LineReader<Input>, LineWriter<Output>)> {
    Ok((LineReader::new(input()?, max_message_size), LineWriter::new(output()?)))
}

/// Standard input alone, byte for byte.
#[cfg(unix)]
pub fn input() -> io::Result<Input> {
    use std::os::fd::AsFd;
    Ok(match Kind::of(io::stdin().as_fd())? {
        Kind::Pipe(fd) => Box::new(tokio::net::unix::pipe::Receiver::from_owned_fd(fd)?),
        Kind::Socket(socket) => Box::new(tokio::net::UnixStream::from_std(socket)?),
        Kind::Other => Box::new(tokio::io::stdin()),
    })
}

/// Standard output alone, byte for byte.
#[cfg(unix)]
pub fn output() -> io::Result<Output> {
    use std::os::fd::AsFd;
    Ok(match Kind::of(io::stdout().as_fd())? {
        Kind::Pipe(fd) => Box::new(tokio::net::unix::pipe::Sender::from_owned_fd(fd)?),
        Kind::Socket(socket) => Box::new(tokio::net::UnixStream::from_std(socket)?),
        Kind::Other => Box::new(tokio::io::stdout()),
    })
}

#[cfg(unix)]
enum Kind {
    Pipe(std::os::fd::OwnedFd),
    Socket(std::os::unix::net::UnixStream),
    Other,
}

#[cfg(unix)]
impl Kind {
    fn of(fd: std::os::fd::BorrowedFd<'_>) -> io::Result<Self> {
        use std::os::unix::fs::FileTypeExt;
        let fd = fd.try_clone_to_owned()?;
        let file = std::fs::File::from(fd);
        let kind = file.metadata()?.file_type();
        if kind.is_fifo() {
            return Ok(Self::Pipe(file.into()));
        }
        if kind.is_socket() {
            let socket = std::os::unix::net::UnixStream::from(std::os::fd::OwnedFd::from(file));
            socket.set_nonblocking(true)?;
            return Ok(Self::Socket(socket));
        }
        Ok(Self::Other)
    }
}

/// Standard input alone, byte for byte.
#[cfg(not(unix))]
pub fn input() -> io::Result<Input> {
    Ok(Box::new(tokio::io::stdin()))
}

/// Standard output alone, byte for byte.
#[cfg(not(unix))]
pub fn output() -> io::Result<Output> {
    Ok(Box::new(tokio::io::stdout()))
}

/// Cancels the token when this process is told to stop.
pub async fn cancel_on_signal(stop: CancellationToken) -> io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    }
    #[cfg(not(unix))]
    tokio::signal::ctrl_c().await?;
    stop.cancel();
    Ok(())
}

/// The same, and also when the parent process is gone.
pub async fn cancel_on_signal_or_parent_exit(stop: CancellationToken) -> io::Result<()> {
    tokio::select! {
        told = cancel_on_signal(stop.clone()) => told?,
        () = cancel_on_parent_exit(stop) => {}
    }
    Ok(())
}

/// Cancels the token when the process that started this one is gone.
pub async fn cancel_on_parent_exit(stop: CancellationToken) {
    #[cfg(unix)]
    parent_gone().await;
    #[cfg(not(unix))]
    std::future::pending::<()>().await;
    stop.cancel();
}

/// Waits until another process has become our parent: ours has died, even if something still holds our input open.
#[cfg(unix)]
async fn parent_gone() {
    use std::os::unix::process::parent_id;
    const CHECK_INTERVAL: Duration = Duration::from_secs(1);
    let parent = parent_id();
    // The first process is never outlived.
    if parent <= 1 {
        std::future::pending::<()>().await;
    }
    while parent_id() == parent {
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
}

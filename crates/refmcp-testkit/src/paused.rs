//! Tokio's time, stopped and moved by hand, for tests that speak over real sockets.
//!
//! Tokio can pause its time by itself, but then moves it on whenever a runtime has nothing to do, which is also so while
//! bytes are under way between two sockets. Here it moves only when a test says so: a limit of a minute is reached
//! exactly, and on a slow machine as on a fast one.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tokio::task::spawn_blocking;

/// How long time stands still before it goes on by itself, so that the limits of a test that hangs are reached. The test
/// fails in any case.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// How often, and how long, [`PausedTime::settle`] lets sockets be read.
const ROUNDS: u32 = 10;
const ROUND: Duration = Duration::from_millis(4);

/// Tokio's time, as long as this lives. It needs a runtime of one thread, as `#[tokio::test]` has it.
#[derive(Debug)]
pub struct PausedTime {
    /// Tokio moves time by itself only while no blocking task runs. One waits to be told that this is over.
    held: mpsc::Sender<()>,
}

impl PausedTime {
    /// Stops the time.
    ///
    /// # Panics
    ///
    /// When it stands still already.
    pub fn start() -> Self {
        let (held, until_dropped) = mpsc::channel::<()>();
        drop(spawn_blocking(move || until_dropped.recv_timeout(MAX_PAUSE)));
        tokio::time::pause();
        Self { held }
    }

    /// Lets everything happen that needs no time to pass: what was sent is read, and tasks go on.
    pub async fn settle(&self) {
        for _ in 0..ROUNDS {
            real_pause().await;
        }
    }

    /// Moves the time on, after everything has happened that came before.
    pub async fn advance(&self, by: Duration) {
        self.settle().await;
        tokio::time::advance(by).await;
        self.settle().await;
    }
}

impl Drop for PausedTime {
    fn drop(&mut self) {
        if !thread::panicking() {
            tokio::time::resume();
            let still = self.held.send(()).is_ok();
            assert!(still, "the test waited {MAX_PAUSE:?} for what happens only when time moves");
        }
    }
}

/// A few milliseconds of the machine's own time, however tokio's stands, in which sockets are read and tasks go on.
pub async fn real_pause() {
    spawn_blocking(|| thread::sleep(ROUND)).await.expect("sleeping does not fail");
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};
    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test]
    async fn time_moves_by_hand_alone_while_sockets_are_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut to = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (mut from, _) = listener.accept().await.unwrap();
        let time = PausedTime::start();
        let begin = Instant::now();
        let late = tokio::spawn(async move {
            assert_eq!(from.read_u8().await.unwrap(), 7);
            sleep(Duration::from_secs(60)).await;
            begin.elapsed()
        });
        to.write_u8(7).await.unwrap();
        time.advance(Duration::from_secs(59)).await;
        assert!(!late.is_finished());
        assert_eq!(begin.elapsed(), Duration::from_secs(59));
        time.advance(Duration::from_millis(1001)).await;
        assert!(late.is_finished());
        assert!(late.await.unwrap() >= Duration::from_secs(60));
    }

    #[tokio::test]
    async fn time_goes_on_afterwards() {
        drop(PausedTime::start());
        let begin = Instant::now();
        sleep(Duration::from_millis(2)).await;
        assert!(begin.elapsed() >= Duration::from_millis(2));
        drop(PausedTime::start());
    }
}

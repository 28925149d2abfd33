//! Tokio's paused time for scripts: it stands still while a command is under way.

use std::any::Any;
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use refmcp_redis::TestTime;
use tokio::task::spawn_blocking;
use tokio::time::Instant;

/// For how long time stands still after a command, so that hints arrive that were sent with its reply.
const HINTS: Duration = Duration::from_millis(5);

/// Reached only by a command that hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Lets tokio's time go on when it is dropped, a little later.
struct Held(mpsc::Sender<()>);

impl Drop for Held {
    fn drop(&mut self) {
        let told = self.0.send(());
        assert!(told.is_ok() || std::thread::panicking(), "a command took longer than {LIMIT:?}");
    }
}

/// Tokio's time, held as long as the second value lives: it moves by itself only while no blocking task runs.
pub(crate) fn time() -> Arc<TestTime> {
    let (began, epoch) = (Instant::now(), SystemTime::now().duration_since(UNIX_EPOCH).unwrap());
    Arc::new(move || {
        let (held, dropped) = mpsc::channel();
        drop(spawn_blocking(move || {
            if dropped.recv_timeout(LIMIT).is_ok() {
                std::thread::sleep(HINTS);
            }
        }));
        (epoch + began.elapsed(), Box::new(parking_lot::Mutex::new(Held(held))) as Box<dyn Any + Send + Sync>)
    })
}

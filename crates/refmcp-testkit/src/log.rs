//! Captures the log of a test, and fails the test if a secret is in it.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tracing_subscriber::fmt::MakeWriter;

use crate::leaks::Secrets;

/// What all tests of this program log, from the first one on that watches it.
static LOG: OnceLock<LogBuffer> = OnceLock::new();

/// A log that is kept.
#[derive(Clone, Default)]
pub struct LogBuffer(Arc<Mutex<Vec<u8>>>);

impl LogBuffer {
    /// All that was logged so far.
    pub fn text(&self) -> String {
        self.since(0)
    }

    fn since(&self, from: usize) -> String {
        String::from_utf8_lossy(self.0.lock().get(from..).unwrap_or_default()).into_owned()
    }
}

impl fmt::Debug for LogBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes of a log", self.0.lock().len())
    }
}

impl io::Write for LogBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for LogBuffer {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Watches what all tests of this program log, as much as they can, and panics when it is dropped if one of the secrets
/// that it was told of was logged meanwhile, or something of the shape of one.
///
/// The test itself has to drop it: a panic in a spawned task fails no test.
#[derive(Debug)]
pub struct LeakWatch {
    from: usize,
    secrets: Mutex<Secrets>,
}

impl LeakWatch {
    /// Begins here. The first one makes this program log.
    ///
    /// # Panics
    ///
    /// If the program has set up a log of its own for all its threads.
    pub fn begin() -> Self {
        let log = LOG.get_or_init(|| {
            let kept = LogBuffer::default();
            let log = tracing_subscriber::fmt().with_env_filter("trace").with_ansi(false);
            log.with_writer(kept.clone()).init();
            kept
        });
        Self { from: log.0.lock().len(), secrets: Mutex::default() }
    }

    /// Tells of a secret.
    pub fn sees(&self, secret: &str) {
        self.with(|secrets| secrets.add(secret));
    }

    /// Tells of several, in whatever way there is.
    pub fn with<T>(&self, tell: impl FnOnce(&mut Secrets) -> T) -> T {
        tell(&mut self.secrets.lock())
    }

    /// What was logged since it began.
    pub fn log(&self) -> String {
        LOG.get().map(|log| log.since(self.from)).unwrap_or_default()
    }
}

impl Drop for LeakWatch {
    fn drop(&mut self) {
        // A test that has failed tells of its own trouble.
        if !std::thread::panicking()
            && let Some(leak) = self.with(|secrets| secrets.leak(&self.log()))
        {
            panic!("{leak}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    fn end_of(watch: LeakWatch) -> Option<String> {
        let ended = catch_unwind(AssertUnwindSafe(|| drop(watch)));
        Some(*ended.err()?.downcast::<String>().unwrap())
    }

    #[test]
    fn a_watch_ends_in_a_panic_if_its_secret_was_logged() {
        let watch = LeakWatch::begin();
        tracing::trace!("no secret here");
        assert!(watch.log().contains("no secret here"), "all is logged");
        watch.sees("a-thing-to-hide");
        assert_eq!(end_of(watch), None);

        tracing::trace!("they say a-thing-to-hide aloud");
        let later = LeakWatch::begin();
        later.sees("a-thing-to-hide");
        assert_eq!(end_of(later), None, "what was logged before is of others");

        let watch = LeakWatch::begin();
        watch.sees("a-thing-to-hide");
        std::thread::spawn(|| tracing::trace!("they say a-thing-to-hide again")).join().unwrap();
        let told = end_of(watch).unwrap();
        assert!(told.contains("they say »a-thing-to-hide again"), "{told}");
    }
}

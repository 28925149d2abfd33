//! Watchers of directories, each with a thread that ends with the server.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use cap_std::ambient_authority;
use cap_std::fs::Dir;
use notify::{Config, Event, RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use refmcp_server::Server;

use crate::ReferenceError;

/// How long a directory has to be quiet before it is read again.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// After how long a directory that is never quiet is read all the same.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// A watched directory whose changes have no receiver yet.
pub(crate) struct DirectoryWatcher {
    what: &'static str,
    path: PathBuf,
    watcher: RecommendedWatcher,
    changed_rx: Receiver<()>,
}

/// The watchers of a server: they last as long as it does.
#[derive(Default)]
struct Watchers(Mutex<Vec<RecommendedWatcher>>);

impl DirectoryWatcher {
    /// Opens a directory and begins to watch it: changes from now on are reported.
    pub(crate) fn open(
        what: &'static str,
        path: PathBuf,
        mode: RecursiveMode,
    ) -> Result<(Dir, Self), ReferenceError> {
        let real = path.canonicalize();
        let opened = real.and_then(|real| Ok((Dir::open_ambient_dir(&real, ambient_authority())?, real)));
        let (dir, real) = match opened {
            Ok(opened) => opened,
            Err(source) => return Err(ReferenceError::Directory { what, path, source }),
        };
        // One pending change is enough: the directory is read as a whole.
        let (changed_tx, changed_rx) = sync_channel(1);
        let on_event = move |event: notify::Result<Event>| {
            // Reading is an event too, and would go on for ever if it counted.
            if event.is_ok_and(|event| event.kind.is_access()) {
                return;
            }
            let _ = changed_tx.try_send(());
        };
        // Links may lead out of the directory.
        let watcher = RecommendedWatcher::new(on_event, Config::default().with_follow_symlinks(false));
        let watching = watcher.and_then(|mut watcher| watcher.watch(&real, mode).map(|()| watcher));
        match watching {
            Ok(watcher) => Ok((dir, Self { what, path, watcher, changed_rx })),
            Err(source) => Err(ReferenceError::Watch { what, path, source }),
        }
    }

    /// Calls `look` whenever something has changed, until the server is gone.
    pub(crate) fn on_change(
        self,
        server: &Server,
        mut look: impl FnMut(&Server) + Send + 'static,
    ) -> Result<(), ReferenceError> {
        let Self { what, path, watcher, changed_rx } = self;
        server.value::<Watchers>().0.lock().push(watcher);
        let server = server.downgrade();
        let work = move || {
            // The watcher, and so the sender, is dropped with the server.
            while changed_rx.recv().is_ok() {
                settle(&changed_rx);
                let Some(server) = server.upgrade() else { return };
                look(&server);
            }
        };
        match thread::Builder::new().name("refmcp-watch".to_owned()).spawn(work) {
            Ok(_) => Ok(()),
            Err(error) => Err(ReferenceError::Watch { what, path, source: notify::Error::io(error) }),
        }
    }
}

/// Waits until nothing changes any more.
fn settle(changed_rx: &Receiver<()>) {
    let end = Instant::now() + MAX_DELAY;
    while Instant::now() < end {
        if changed_rx.recv_timeout(DEBOUNCE).is_err() {
            return;
        }
    }
}

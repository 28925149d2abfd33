//! Directories that are watched: each by a thread of its own, which ends with the server.

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

/// How long a directory has to be quiet before anybody looks at it.
const QUIET: Duration = Duration::from_millis(100);
/// How long a directory that is never quiet goes unseen.
const PATIENCE: Duration = Duration::from_secs(1);

/// A directory that is being watched; nobody has been told yet.
pub(crate) struct Watched {
    what: &'static str,
    path: PathBuf,
    watcher: RecommendedWatcher,
    news: Receiver<()>,
}

/// The watchers of a server: they last as long as it does.
#[derive(Default)]
struct Watchers(Mutex<Vec<RecommendedWatcher>>);

impl Watched {
    /// Opens a directory and begins to watch it: what changes from now on will be told.
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
        // One piece of news says as much as many: look again.
        let (tell, news) = sync_channel(1);
        let hear = move |event: notify::Result<Event>| {
            // Looking at files is an event too; if it counted, looking would never end.
            if event.is_ok_and(|event| event.kind.is_access()) {
                return;
            }
            let _ = tell.try_send(());
        };
        // Links may lead anywhere; whatever is there is not ours to watch.
        let watcher = RecommendedWatcher::new(hear, Config::default().with_follow_symlinks(false));
        let watching = watcher.and_then(|mut watcher| watcher.watch(&real, mode).map(|()| watcher));
        match watching {
            Ok(watcher) => Ok((dir, Self { what, path, watcher, news })),
            Err(source) => Err(ReferenceError::Watch { what, path, source }),
        }
    }

    /// Calls `look` whenever something has changed, until the server is gone.
    pub(crate) fn tell(
        self,
        server: &Server,
        mut look: impl FnMut(&Server) + Send + 'static,
    ) -> Result<(), ReferenceError> {
        let Self { what, path, watcher, news } = self;
        server.value::<Watchers>().0.lock().push(watcher);
        let server = server.downgrade();
        let work = move || {
            // With the server the watcher goes, and with it the other end.
            while news.recv().is_ok() {
                settle(&news);
                let Some(server) = server.upgrade() else { return };
                look(&server);
            }
        };
        match thread::Builder::new().name("refmcp-watch".to_owned()).spawn(work) {
            Ok(_) => Ok(()),
            Err(fault) => Err(ReferenceError::Watch { what, path, source: notify::Error::io(fault) }),
        }
    }
}

/// Waits until nothing changes any more.
fn settle(news: &Receiver<()>) {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if news.recv_timeout(QUIET).is_err() {
            return;
        }
    }
}

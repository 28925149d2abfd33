//! Directories that are watched: a thread of their own, which ends with the server.

use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use notify::{Event, RecommendedWatcher, RecursiveMode, Watcher};
use refmcp_server::Server;

/// How long a directory has to be quiet before anybody looks at it.
const QUIET: Duration = Duration::from_millis(100);
/// How long a directory that is never quiet goes unseen.
const PATIENCE: Duration = Duration::from_secs(1);

/// A directory that is being watched; nobody has been told yet.
pub(crate) struct Watch {
    watcher: RecommendedWatcher,
    news: Receiver<()>,
}

/// The watchers of a server: they last as long as it does.
#[derive(Default)]
struct Watchers(Mutex<Vec<RecommendedWatcher>>);

impl Watch {
    /// Begins to watch. What changes from now on will be told.
    pub(crate) fn begin(directory: &Path, mode: RecursiveMode) -> notify::Result<Self> {
        // One piece of news says as much as many: look again.
        let (tell, news) = sync_channel(1);
        let mut watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Looking at files is an event too; if it counted, looking would never end.
            if event.is_ok_and(|event| event.kind.is_access()) {
                return;
            }
            let _ = tell.try_send(());
        })?;
        watcher.watch(directory, mode)?;
        Ok(Self { watcher, news })
    }

    /// Calls `look` whenever something has changed, until the server is gone.
    pub(crate) fn tell(
        self,
        server: &Server,
        mut look: impl FnMut(&Server) + Send + 'static,
    ) -> io::Result<()> {
        server.value::<Watchers>().0.lock().unwrap_or_else(PoisonError::into_inner).push(self.watcher);
        let (server, news) = (server.downgrade(), self.news);
        let work = move || {
            // With the server the watcher goes, and with it the other end.
            while news.recv().is_ok() {
                settle(&news);
                let Some(server) = server.upgrade() else { return };
                look(&server);
            }
        };
        thread::Builder::new().name("refmcp-watch".to_owned()).spawn(work).map(drop)
    }
}

/// Waits until nothing changes any more.
fn settle(news: &Receiver<()>) {
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        if !matches!(news.recv_timeout(QUIET), Ok(())) {
            return;
        }
    }
}

//! Changes of lists and resources (`notifications/…/list_changed`, `notifications/resources/updated`), broadcast to every
//! connection. What a slow connection has not read is merged: it costs no more memory than there are things that can
//! change, and nothing is lost.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use refmcp_proto::engine::Change;
use tokio::sync::Notify;

/// Sends changes to every receiver.
#[derive(Debug, Clone, Default)]
pub struct ChangeSender {
    feeds: Arc<Mutex<Vec<Weak<Inner>>>>,
}

/// The changes that one connection has not read yet.
#[derive(Debug)]
pub struct ChangeReceiver {
    inner: Arc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    pending: Mutex<BTreeSet<Change>>,
    news: Notify,
}

impl ChangeSender {
    /// A feed of everything that changes from now on.
    pub fn subscribe(&self) -> ChangeReceiver {
        let inner = Arc::new(Inner::default());
        self.feeds.lock().push(Arc::downgrade(&inner));
        ChangeReceiver { inner }
    }

    /// Tells every feed.
    pub fn publish(&self, change: &Change) {
        self.feeds.lock().retain(|feed| match feed.upgrade() {
            Some(inner) => {
                inner.pending.lock().insert(change.clone());
                inner.news.notify_one();
                true
            }
            None => false,
        });
    }
}

impl ChangeReceiver {
    /// Waits until there is something to take.
    pub async fn changed(&self) {
        while self.inner.pending.lock().is_empty() {
            self.inner.news.notified().await;
        }
    }

    /// Takes what has changed since the last time.
    pub fn take(&self) -> BTreeSet<Change> {
        std::mem::take(&mut *self.inner.pending.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn repeated_changes_are_merged_and_none_is_lost() {
        let hub = ChangeSender::default();
        let feed = hub.subscribe();
        for _ in 0..1000 {
            hub.publish(&Change::Tools);
        }
        hub.publish(&Change::Resource("a:b".into()));
        feed.changed().await;
        assert_eq!(feed.take().len(), 2);
        assert!(feed.take().is_empty());
    }

    #[tokio::test]
    async fn dropped_receivers_are_forgotten() {
        let hub = ChangeSender::default();
        drop(hub.subscribe());
        hub.publish(&Change::Prompts);
        assert!(hub.feeds.lock().is_empty());
    }
}

//! Which replicas have said that they are there, and until when.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::later;

/// The replicas by their ids, each with the end of its time. There are as many as processes share the state.
#[derive(Debug, Default)]
pub(super) struct LiveReplicas(HashMap<Arc<str>, Instant>);

impl LiveReplicas {
    pub(super) fn renew(&mut self, replica: &str, ttl: Duration, now: Instant) {
        self.0.retain(|_, until| now < *until);
        self.0.insert(replica.into(), later(now, ttl));
    }

    pub(super) fn is_there(&self, replica: &str, now: Instant) -> bool {
        self.0.get(replica).is_some_and(|until| now < *until)
    }
}

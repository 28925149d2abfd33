//! Calls that run, as other replicas see them: each one whose stream can be resumed is parked with the replica that runs it.
//!
//! Where that replica is gone, the one that the client comes back to ends the stream with an error. The call is not run
//! again: nothing tells how far it had come. A call that waits for input has no runner; see [`parked`](super::parked).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use refmcp_proto::jsonrpc::{RequestId, RpcError};
use refmcp_server::ReplicaLease;
use refmcp_server::backplane::{ParkOutcome, StreamNumber};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::session::parked::ParkedKey;
use crate::session::shared::SharedSession;
use crate::stream::response_stream::{ResponseStream, drive};
use crate::stream::retry::until_available;

/// How often it is looked whether the replica of a call is there. It is gone when it was not there twice: after an outage of the
/// backplane, replicas need a moment to say that they are.
const LOOK_INTERVAL: Duration = Duration::from_secs(3);

/// For how long a call is known to run.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// What a running call is parked under: its stream, the replica, and a number that no other run of that replica has.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RunningKey {
    stream: StreamNumber,
    replica: Box<str>,
    run: u64,
}

impl RunningKey {
    fn text(&self) -> Box<str> {
        format!("run/{}/{}/{}", self.stream.0, self.run, self.replica).into()
    }

    fn read(text: &str) -> Option<Self> {
        let (stream, rest) = text.strip_prefix("run/")?.split_once('/')?;
        let (run, replica) = rest.split_once('/')?;
        Some(Self {
            stream: StreamNumber(stream.parse().ok()?),
            replica: replica.into(),
            run: run.parse().ok()?,
        })
    }
}

/// A call that runs here, as far as others know of it.
#[derive(Debug)]
pub(super) struct RunningHere {
    stream: StreamNumber,
    run: u64,
    /// Others need not know of it any more.
    released: CancellationToken,
}

impl SharedSession {
    /// Lets other replicas know that the call of this stream runs here, until it has an outcome or waits for input.
    pub(crate) fn runs_here(
        self: &Arc<Self>,
        stream: Arc<ResponseStream>,
        number: StreamNumber,
        request: RequestId,
    ) {
        static RUNS: AtomicU64 = AtomicU64::new(0);
        let (run, released) = (RUNS.fetch_add(1, Ordering::Relaxed), CancellationToken::new());
        self.running.lock().push(RunningHere { stream: number, run, released: released.clone() });
        let session = self.clone();
        drive(async move {
            let lease = session.server.value::<ReplicaLease>();
            let guard = lease.run(&session.server);
            let over = async {
                tokio::select! {
                    () = stream.settled() => {}
                    () = released.cancelled() => {}
                    () = session.gone.cancelled() => {}
                }
            };
            let mut over = std::pin::pin!(over);
            let key = tokio::select! {
                key = session.park_running(&lease, number, run, &request) => {
                    over.await;
                    key
                }
                () = &mut over => None,
            };
            session.running.lock().retain(|here| here.run != run);
            if let Some(key) = key {
                let claim = || session.backplane.claim(&session.id, &key, session.epoch, None);
                until_available("a call that has ended counts as running", claim).await;
            }
            drop(guard);
        });
    }

    async fn park_running(
        &self,
        lease: &ReplicaLease,
        stream: StreamNumber,
        run: u64,
        request: &RequestId,
    ) -> Option<Box<str>> {
        const MEANWHILE: &str = "other replicas do not know that a call runs";
        let replica = until_available(MEANWHILE, || lease.announce(&self.server)).await;
        let key = RunningKey { stream, replica: (&*replica).into(), run }.text();
        let state = Bytes::from(serde_json::to_vec(request).unwrap_or_default());
        let park = || self.backplane.park(&self.id, &key, state.clone(), KEPT);
        match until_available(MEANWHILE, park).await {
            ParkOutcome::Parked | ParkOutcome::Already => Some(key),
            ParkOutcome::Full => {
                tracing::warn!("no room is left to tell other replicas that a call runs");
                None
            }
            ParkOutcome::Unknown => None,
        }
    }

    /// The call of this stream runs here no longer, though it has no outcome: it waits for input.
    pub(super) fn runs_no_longer(&self, stream: StreamNumber) {
        let running = self.running.lock();
        running.iter().filter(|here| here.stream == stream).for_each(|here| here.released.cancel());
    }

    /// Ends the stream that is resumed here when the replica that runs its call is gone.
    pub(super) fn look_after_runner(self: &Arc<Self>, stream: StreamNumber) {
        let session = self.clone();
        self.unless_gone(async move {
            let name: Box<str> = format!("run/{}", stream.0).into();
            if session.looked_after.lock().await.insert(name.clone()) {
                session.watch_runner(stream).await;
                session.looked_after.lock().await.remove(&name);
            }
        });
    }

    /// Waits until the call of a stream has an outcome, or gives it one when its replica is gone.
    async fn watch_runner(&self, stream: StreamNumber) {
        let lease = self.server.value::<ReplicaLease>();
        let (mut missing, mut is_over) = (None, false);
        loop {
            let keys = || self.backplane.parked_keys(&self.id);
            let keys = until_available("calls of other replicas are not looked after", keys).await;
            let running =
                keys.iter().filter_map(|key| RunningKey::read(key)).find(|key| key.stream == stream);
            match running {
                Some(key) if lease.is(&key.replica) => return,
                Some(key) => {
                    let is_there = || self.backplane.is_replica_there(&key.replica);
                    if until_available("calls of other replicas are not looked after", is_there).await {
                        missing = None;
                    } else if missing.as_ref() == Some(&key) {
                        return self.end_orphan(&key).await;
                    } else {
                        missing = Some(key);
                    }
                    is_over = false;
                }
                None if keys.iter().any(|key| ParkedKey::is_of(key, stream)) => is_over = false,
                // Between two runs a call is neither for a moment.
                None if is_over => return,
                None => is_over = true,
            }
            sleep(LOOK_INTERVAL).await;
        }
    }

    /// Ends the stream of a call whose replica is gone.
    async fn end_orphan(&self, key: &RunningKey) {
        let text = key.text();
        let claim = || self.backplane.claim(&self.id, &text, self.epoch, Some(key.stream));
        let claimed = until_available("a call of a replica that is gone has no outcome", claim).await;
        let Some(claimed) = claimed else { return };
        let request = match serde_json::from_slice(&claimed.state) {
            Ok(request) => request,
            Err(error) => return tracing::error!(%error, "the id of a request cannot be read"),
        };
        tracing::warn!("a call has no outcome: the replica that ran it is gone");
        let error = RpcError::internal(
            "the process that ran the call has stopped, and how far it had come is not known; it is not run again",
        );
        if let Some(driver) = self.driver.upgrade() {
            driver.end_stream(key.stream, claimed.last, &request, &error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_the_stream_and_the_replica() {
        let key = RunningKey { stream: StreamNumber(3), replica: "a/b".into(), run: 7 };
        assert_eq!(&*key.text(), "run/3/7/a/b");
        assert_eq!(RunningKey::read("run/3/7/a/b"), Some(key));
        for other in ["", "run", "run/3", "run/3/7", "3/5-7", "run/a/7/b"] {
            assert_eq!(RunningKey::read(other), None, "{other}");
        }
        assert!(
            !ParkedKey::is_of("run/3/7/a", StreamNumber(3)) && ParkedKey::is_of("3/5-7", StreamNumber(3))
        );
    }
}

//! Detached calls: run without an exchange, and kept in the backplane, where any process finds them by their keys.

use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::DetachedCall;
use refmcp_transport::EngineHandle;
use tokio::sync::Mutex;

use crate::backplane::{Backplane, ParkOutcome, Result, SessionId, Unavailable, WriterEpoch};
use crate::method;
use crate::session::Session;

/// The detached calls of a session. An engine has one of these, and clones of it.
#[derive(Debug, Clone)]
pub struct DetachedCalls {
    backplane: Arc<dyn Backplane>,
    session: SessionId,
    ttl: Duration,
    claimant: WriterEpoch,
    /// Held while a call is claimed: the backplane gives a call to the same claimant again.
    claiming: Arc<Mutex<()>>,
}

impl DetachedCalls {
    /// Those of this session, for the engine of this epoch; each is kept for so long after it last changed.
    pub fn new(
        backplane: Arc<dyn Backplane>,
        session: SessionId,
        ttl: Duration,
        claimant: WriterEpoch,
    ) -> Self {
        Self { backplane, session, ttl, claimant, claiming: Arc::default() }
    }

    /// Keeps a call that has an outcome or waits for input, until it is claimed.
    pub async fn keep(&self, key: &str, call: &DetachedCall) -> Result<ParkOutcome> {
        let state = serde_json::to_vec(call).map_err(Unavailable::new)?;
        // Keys of the backplane are good once, and so is each state of a call.
        let version = format!("{key}/{}", call.version());
        self.backplane.park(&self.session, &version, state.into(), self.ttl).await
    }

    /// The call of this key, which stays.
    pub async fn get(&self, key: &str) -> Result<Option<DetachedCall>> {
        let Some(version) = self.find(key).await? else { return Ok(None) };
        let state = self.backplane.parked(&self.session, &version).await?;
        state.map(|state| serde_json::from_slice(&state).map_err(Unavailable::new)).transpose()
    }

    /// Takes the call of this key, to go on with it. Of all who try, one gets it.
    pub async fn claim(&self, key: &str) -> Result<Option<DetachedCall>> {
        let _claiming = self.claiming.lock().await;
        let Some(version) = self.find(key).await? else { return Ok(None) };
        let claimed = self.backplane.claim(&self.session, &version, self.claimant, None).await?;
        claimed.map(|call| serde_json::from_slice(&call.state).map_err(Unavailable::new)).transpose()
    }

    /// The keys of the calls that are kept, in no order.
    pub async fn keys(&self) -> Result<Vec<String>> {
        let versions = self.backplane.parked_keys(&self.session).await?;
        Ok(versions.iter().filter_map(|version| Some(version_of(version)?.0.to_owned())).collect())
    }

    async fn find(&self, key: &str) -> Result<Option<Box<str>>> {
        let versions = self.backplane.parked_keys(&self.session).await?.into_iter();
        let number = |version: &str| {
            let (known, number) = version_of(version)?;
            (known == key).then_some(number)
        };
        let newest = versions.filter_map(|version| Some((number(&version)?, version))).max();
        Ok(newest.map(|(_, version)| version))
    }
}

/// The key of a call and the number of its state. Calls that wait in a session have other keys.
fn version_of(version: &str) -> Option<(&str, u32)> {
    let (key, number) = version.rsplit_once('/')?;
    Some((key, number.parse().ok()?))
}

impl Session {
    /// Runs a detached call until it has an outcome or needs input. One that waits for input is left as it is.
    pub async fn run_detached(self: &Arc<Self>, call: &mut DetachedCall) {
        let config = self.server().config();
        if let Some(dispatch) = call.dispatch(config) {
            // Progress and log messages have no exchange to be sent on.
            let handle = EngineHandle::disconnected();
            call.finish(config, method::start(self, dispatch, &handle).work.await);
        }
    }
}

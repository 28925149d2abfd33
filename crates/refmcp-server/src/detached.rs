//! Detached calls: run without an exchange, and kept in the backplane, where any process finds them by their keys.

use std::sync::Arc;
use std::time::Duration;

use refmcp_proto::engine::DetachedCall;
use refmcp_transport::EngineHandle;

use crate::backplane::{Backplane, ParkOutcome, Result, SessionId, Unavailable};
use crate::method;
use crate::session::Session;

/// The detached calls of a session.
#[derive(Debug, Clone)]
pub struct DetachedCalls {
    backplane: Arc<dyn Backplane>,
    session: SessionId,
    ttl: Duration,
}

impl DetachedCalls {
    /// Those of this session; each is kept for so long after it last changed.
    pub fn new(backplane: Arc<dyn Backplane>, session: SessionId, ttl: Duration) -> Self {
        Self { backplane, session, ttl }
    }

    /// Keeps a call that has an outcome or waits for input, until it is claimed.
    pub async fn keep(&self, key: &str, call: &DetachedCall) -> Result<ParkOutcome> {
        let state = serde_json::to_vec(call).map_err(Unavailable::new)?;
        // Keys of the backplane are good once, and a call is kept once in each round.
        let round = format!("{key}/{}", call.round());
        self.backplane.park(&self.session, &round, state.into(), self.ttl).await
    }

    /// The call of this key, which stays.
    pub async fn get(&self, key: &str) -> Result<Option<DetachedCall>> {
        let Some(round) = self.find(key).await? else { return Ok(None) };
        let state = self.backplane.parked(&self.session, &round).await?;
        state.map(|state| serde_json::from_slice(&state).map_err(Unavailable::new)).transpose()
    }

    /// Takes the call of this key, to go on with it. Of all who try, one gets it.
    pub async fn claim(&self, key: &str) -> Result<Option<DetachedCall>> {
        let Some(round) = self.find(key).await? else { return Ok(None) };
        let state = self.backplane.claim(&self.session, &round).await?;
        state.map(|state| serde_json::from_slice(&state).map_err(Unavailable::new)).transpose()
    }

    /// The keys of the calls that are kept, in no order.
    pub async fn keys(&self) -> Result<Vec<String>> {
        let rounds = self.backplane.parked_keys(&self.session).await?;
        let keys = rounds.iter().filter_map(|round| Some(round.rsplit_once('/')?.0.to_owned()));
        Ok(keys.collect())
    }

    async fn find(&self, key: &str) -> Result<Option<Box<str>>> {
        let mut rounds = self.backplane.parked_keys(&self.session).await?.into_iter();
        Ok(rounds.find(|round| round.rsplit_once('/').is_some_and(|(known, _)| known == key)))
    }
}

impl Session {
    /// Runs a detached call until it has an outcome or needs input. One that waits for input is left as it is.
    pub async fn run_detached(self: &Arc<Self>, call: &mut DetachedCall) {
        let config = self.server().config();
        if let Some(dispatch) = call.dispatch(config) {
            // Progress and log messages have no exchange to be sent on.
            let handle = EngineHandle::disconnected();
            call.finish(config, method::start(self.server(), self, dispatch, &handle).work.await);
        }
    }
}

//! This process as one of several replicas: it adopts sessions that others have opened, and hears of changes at others.

use std::sync::Arc;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use refmcp_proto::engine::Change;
use refmcp_server::backplane::{PostKey, SessionId, SessionRecord, TopicChanges, UpdateOutcome};

use crate::access::caller::Caller;
use crate::endpoint::EndpointState;
use crate::refusal::{Reason, Refusal};
use crate::request::headers;
use crate::request::http_sse::session_id;
use crate::routes::{Route, Target};
use crate::session::driver::SessionDriver;
use crate::session::shared::{SharedSession, StoredFacts};
use crate::session::{HttpSession, SessionTransport, Sessions, too_many_sessions};

impl EndpointState {
    /// Serves a request whose session other replicas may have changed, and answers it once they can see what it changed.
    pub(crate) async fn serve_as_replica(
        self: &Arc<Self>,
        route: &Route,
        caller: Caller,
        head: Parts,
        body: Body,
    ) -> Result<Response, Refusal> {
        let session = match route.target {
            // A stateless request needs nothing of the backplane, also while that cannot be reached.
            _ if headers::is_stateless(&head.headers) => None,
            Target::Messages => Some((SessionTransport::HttpSse, session_id(&head.uri))),
            Target::Mcp => {
                let id = headers::value(&head.headers, &headers::SESSION_ID).ok().flatten();
                Some((SessionTransport::Streamable, id))
            }
            _ => None,
        };
        let session = match session {
            Some((transport, Some(id))) => self.adopt(transport, id, &caller, &head.headers).await?,
            _ => None,
        };
        let response = self.serve_here(route, caller, head, body).await;
        if let Some(shared) = session.as_ref().and_then(|session| session.shared.as_ref()) {
            shared.settled().await?;
        }
        response
    }

    /// Brings this replica's part of a session up to date, making it if this is the first request here. A session that is
    /// over or not the caller's is not found afterwards.
    async fn adopt(
        &self,
        transport: SessionTransport,
        id: &str,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<HttpSession>>, Refusal> {
        let id = SessionId::new(id);
        let Some(record) = self.sessions.backplane.session(&id).await? else {
            self.sessions.drop_local(&id);
            return Ok(None);
        };
        if record.principal.as_ref() != caller.principal() {
            return Ok(None);
        }
        match self.sessions.get(&id) {
            Some(session) => {
                if let Some(shared) = &session.shared {
                    shared.refresh(&record).await?;
                }
                Ok(Some(session))
            }
            None => self.resume(transport, id, record, caller, headers).await,
        }
    }

    async fn resume(
        &self,
        transport: SessionTransport,
        id: SessionId,
        mut record: SessionRecord,
        caller: &Caller,
        headers: &HeaderMap,
    ) -> Result<Option<Arc<HttpSession>>, Refusal> {
        self.check_running()?;
        let backplane = &self.sessions.backplane;
        let (epoch, version, stored) = loop {
            let mut stored = StoredFacts::read(&record)?;
            if stored.transport != transport {
                return Ok(None);
            }
            let epoch = stored.engines;
            stored.engines += 1;
            match backplane.update_session(&id, record.version, stored.to_bytes()?).await? {
                UpdateOutcome::Updated(version) => break (epoch, version, stored),
                UpdateOutcome::Conflict(newer) => record = newer,
                UpdateOutcome::Unknown => return Ok(None),
                UpdateOutcome::TooLarge | UpdateOutcome::Full => return Err(too_many_sessions()),
            }
        };
        let mut connection = caller.connection(headers::of_session(headers));
        if transport == SessionTransport::HttpSse {
            connection.transport = "http+sse";
        }
        connection.observed = caller.observed.open(connection.transport);
        let resumed = self.server.resume(self.config.clone(), connection, epoch, stored.facts.as_ref());
        let resumed = resumed.map_err(|fault| {
            Refusal::unavailable(Reason::Sessions, "this session cannot be served here", 1)
                .with_detail(fault.to_string())
        })?;
        let driver = SessionDriver::new(resumed, self.options.stream_bytes);
        let shared = SharedSession::new(backplane.clone(), id.clone(), &driver, version, stored);
        driver.keep_log(backplane.clone(), id.clone());
        self.add_session(id, transport, caller, driver, Some(shared)).map(Some)
    }

    /// Tells all replicas of a change; they notify their clients.
    pub(crate) async fn publish(&self, change: &Change) {
        if let Err(fault) = self.sessions.backplane.bump(&topic(change)).await {
            tracing::warn!(%fault, "other replicas do not hear of a change");
            self.notify_all(change, None).await;
        }
    }

    /// Takes in what has changed at any replica.
    pub(crate) async fn take_changes(&self, changes: &TopicChanges) {
        if changes.missed {
            for change in [Change::Tools, Change::Prompts, Change::Resources] {
                self.notify_all(&change, Some(post_key(changes.latest))).await;
            }
        }
        for (topic, generation) in &changes.topics {
            match change(topic) {
                Some(change) => self.notify_all(&change, Some(post_key(*generation))).await,
                None => {
                    if let Some(session) = self.sessions.with_topic(topic) {
                        self.sessions.refresh(&session).await;
                    }
                }
            }
        }
    }
}

impl Sessions {
    /// Brings this replica's part of a session up to date; one that is not shared always is.
    pub(super) async fn refresh(&self, session: &HttpSession) {
        let Some(shared) = &session.shared else { return };
        let refreshed = match self.backplane.session(&session.id).await {
            Ok(Some(record)) => shared.refresh(&record).await,
            Ok(None) => {
                self.drop_local(&session.id);
                Ok(())
            }
            Err(fault) => Err(fault.into()),
        };
        if let Err(refusal) = refreshed {
            tracing::warn!(why = %refusal.why, "a session is not up to date");
        }
    }
}

/// The key of a notification that every replica posts, and a session gets once.
fn post_key(generation: u64) -> PostKey {
    PostKey(u128::from(u64::MAX) << 64 | u128::from(generation))
}

/// The topic of a change.
fn topic(change: &Change) -> String {
    match change {
        Change::Tools => "tools".to_owned(),
        Change::Prompts => "prompts".to_owned(),
        Change::Resources => "resources".to_owned(),
        Change::Resource(uri) => format!("resource {uri}"),
    }
}

/// The change of a topic; `None` for that of a session.
fn change(topic: &str) -> Option<Change> {
    match topic {
        "tools" => Some(Change::Tools),
        "prompts" => Some(Change::Prompts),
        "resources" => Some(Change::Resources),
        _ => topic.strip_prefix("resource ").map(|uri| Change::Resource(uri.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use refmcp_server::Server;
    use refmcp_server::backplane::{Backplane, MemoryBackplane, NewSession};

    use super::*;
    use crate::Endpoint;
    use crate::access::caller::Client;

    #[tokio::test]
    async fn sessions_of_other_principals_and_transports_are_not_adopted() {
        let backplane = Arc::new(MemoryBackplane::default());
        let server = Server::builder("replica", "1").build().unwrap();
        let endpoint = Endpoint::builder(server).backplane(backplane.clone()).build().inner;
        let caller =
            Caller { client: Client::default(), token: None, origin: None, observed: Default::default() };
        let (transport, other) = (SessionTransport::Streamable, SessionTransport::HttpSse);
        for (principal, kept, adopted) in
            [(Some("alice".into()), transport, false), (None, other, false), (None, transport, true)]
        {
            let id = SessionId::new(format!("{principal:?} {kept:?}"));
            let stored = StoredFacts { transport: kept, topic: "topic".into(), engines: 1, facts: None };
            let facts = stored.to_bytes().unwrap();
            let record = NewSession { principal, revision: "".into(), facts };
            backplane.create_session(&id, record, Duration::from_secs(60)).await.unwrap();
            let found = endpoint.adopt(transport, id.reveal(), &caller, &HeaderMap::new()).await.unwrap();
            assert_eq!((found.is_some(), endpoint.sessions.get(&id).is_some()), (adopted, adopted), "{id:?}");
        }
    }
}

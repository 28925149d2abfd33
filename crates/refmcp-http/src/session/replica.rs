//! This process as one of several replicas: it adopts sessions that others have opened, and hears of changes at others.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::response::Response;
use refmcp_proto::engine::Change;
use refmcp_server::backplane::{PostKey, SessionId, SessionRecord, TopicChanges, UpdateOutcome, WriterEpoch};

use crate::access::caller::Caller;
use crate::endpoint::EndpointState;
use crate::refusal::{Reason, Refusal};
use crate::request::headers;
use crate::request::http_sse::session_id;
use crate::routes::{Route, Target};
use crate::session::driver::SessionDriver;
use crate::session::shared::{SharedSession, StoredFacts, with_receipts};
use crate::session::{HttpSession, SessionTransport, Sessions, session_bytes, too_many_sessions};

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
            Target::Messages => Some((SessionTransport::HttpSse, session_id(&head.uri))),
            // A stateless request names no session. It needs nothing of the backplane, also while that cannot be reached.
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
        let (response, shared) = with_receipts(self.serve_here(route, caller, head, body)).await;
        if let Some(session) = session.as_ref().and_then(|session| session.shared.as_ref()) {
            session.settled().await;
        }
        shared.and(response)
    }

    /// Brings this replica's part of a session up to date, making it if this is the first request here. A session that is
    /// over or not the caller's is not found afterwards.
    pub(super) async fn adopt(
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
                session.used.store(self.clock.now().as_millis(), Ordering::Relaxed);
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
        let place = self.take_place(caller)?;
        let account = self.memory.session(caller);
        let memory = account.open(session_bytes(record.facts.len())).map_err(Refusal::no_memory)?;
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
        let mut connection = caller.connection(self.session_headers.keep(headers));
        if transport == SessionTransport::HttpSse {
            connection.transport = "http+sse";
        }
        connection.observed = caller.observed.open(connection.transport);
        connection.memory = Some(account);
        let resumed = self.server.resume(self.config.clone(), connection, epoch, stored.facts.as_ref());
        let resumed = resumed.map_err(|error| {
            Refusal::unavailable(Reason::Sessions, "this session cannot be served here", 1)
                .with_detail(error.to_string())
        })?;
        let driver = SessionDriver::new(resumed, self.options.stream_bytes);
        let writer = WriterEpoch(epoch);
        let shared = SharedSession::new(backplane.clone(), id.clone(), &driver, writer, version, stored);
        driver.keep_log(backplane.clone(), id.clone(), writer);
        driver.keep_memory(memory);
        Ok(Some(self.add_session(id, transport, place, driver, Some(shared))))
    }

    /// Tells all replicas of a change; they notify their clients. `false` where that is impossible now.
    pub(crate) async fn publish(&self, change: &Change) -> bool {
        let published = self.sessions.backplane.bump(&topic(change)).await;
        if let Err(error) = &published {
            tracing::warn!(%error, "other replicas do not hear of a change yet");
        }
        published.is_ok()
    }

    /// Takes in what has changed at any replica.
    pub(crate) async fn take_changes(&self, changes: &TopicChanges) {
        if changes.missed {
            return self.take_any_change(changes.latest).await;
        }
        for (topic, generation) in &changes.topics {
            match change(topic) {
                Some(change) => self.notify_all(&change, Some(post_key(topic, *generation))).await,
                None => {
                    if let Some(session) = self.sessions.with_topic(topic) {
                        self.sessions.refresh(&session).await;
                    }
                }
            }
        }
    }
}

impl EndpointState {
    /// Takes in that anything may have changed, up to a generation.
    async fn take_any_change(&self, latest: u64) {
        for session in self.sessions.all() {
            self.sessions.refresh(&session).await;
        }
        let lists = [Change::Tools, Change::Prompts, Change::Resources];
        let resources = self.watched_resources().into_iter().map(Change::Resource);
        for change in lists.into_iter().chain(resources) {
            self.notify_all(&change, Some(post_key(&topic(&change), latest))).await;
        }
    }
}

impl Sessions {
    /// Brings this replica's part of a session up to date; one that is not shared always is. `false` when that failed.
    pub(super) async fn refresh(&self, session: &HttpSession) -> bool {
        let Some(shared) = &session.shared else { return true };
        let refreshed = match self.backplane.session(&session.id).await {
            Ok(Some(record)) => shared.refresh(&record).await,
            Ok(None) => {
                self.drop_local(&session.id);
                Ok(())
            }
            Err(error) => Err(error.into()),
        };
        if let Err(refusal) = &refreshed {
            tracing::warn!(why = %refusal.why, "a session is not up to date");
        }
        refreshed.is_ok()
    }
}

/// The key of the notification of a topic that every replica posts, and a session gets once.
fn post_key(topic: &str, generation: u64) -> PostKey {
    // FNV-1a: all replicas have to compute the same.
    let hash = topic.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    PostKey(u128::from(hash) << 64 | u128::from(generation))
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

    use refmcp_proto::engine::SessionFacts;
    use refmcp_proto::peer::Peer;
    use refmcp_server::backplane::{
        Backplane, MemoryBackplane, NewSession, ReadFrom, ReadOutcome, StreamKey, StreamReader,
    };
    use refmcp_server::model::{LogLevel, PromptMessage, ResourceContents};
    use refmcp_server::{Call, NoArguments, Prompt, Resource, Revision, Server, Tool};

    use super::*;
    use crate::Endpoint;
    use crate::access::caller::Client;

    fn caller(endpoint: &EndpointState) -> Caller {
        let memory = endpoint.server.memory().account();
        Caller { client: Client::default(), token: None, origin: None, observed: Default::default(), memory }
    }

    #[tokio::test]
    async fn sessions_of_other_principals_and_transports_are_not_adopted() {
        let backplane = Arc::new(MemoryBackplane::default());
        let server = Server::builder("replica", "1").build().unwrap();
        let endpoint = Endpoint::builder(server).backplane(backplane.clone()).build().inner;
        let caller = caller(&endpoint);
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

    #[tokio::test]
    async fn after_missed_changes_all_lists_and_resources_count_as_changed() {
        let backplane = Arc::new(MemoryBackplane::default());
        let tool = Tool::new("a", "A", |_: Call, _: NoArguments| async { Ok("a") });
        let resource = Resource::new("a:b", "a", |_: Call| async { Ok(ResourceContents::text("a:b", "a")) });
        let prompt = Prompt::new("a", |_, _| async { Ok(Vec::<PromptMessage>::new()) });
        let server = Server::builder("replica", "1").tool(tool).resource(resource).prompt(prompt);
        let endpoint = Endpoint::builder(server.build().unwrap()).backplane(backplane.clone()).build().inner;
        let caller = caller(&endpoint);
        let (id, transport) = (SessionId::new("a"), SessionTransport::Streamable);
        let peer = Peer { revision: Revision::LATEST_SESSION, capabilities: Default::default(), info: None };
        let subscriptions = ["a:b".to_owned()].into();
        let facts = SessionFacts { peer, ready: true, log_level: LogLevel::Info, subscriptions };
        let stored = StoredFacts { transport, topic: "topic".into(), engines: 1, facts: Some(facts) };
        let record = NewSession { facts: stored.to_bytes().unwrap(), ..NewSession::default() };
        backplane.create_session(&id, record, Duration::from_secs(60)).await.unwrap();
        endpoint.adopt(transport, id.reveal(), &caller, &HeaderMap::new()).await.unwrap().unwrap();
        let missed = TopicChanges { topics: vec![], missed: true, latest: 7 };
        for _ in 0..2 {
            endpoint.take_changes(&missed).await;
        }
        let stream = StreamKey::get_stream(id);
        let mut reading = StreamReader::begin(backplane, stream, ReadFrom::After(0)).await.unwrap().unwrap();
        let ReadOutcome::Events(events) = reading.next().await.unwrap() else { panic!("no events") };
        let texts: Vec<_> = events.iter().map(|event| String::from_utf8_lossy(&event.bytes)).collect();
        let methods = ["tools/list", "prompts/list", "resources/list", "resources/updated"];
        assert_eq!(texts.len(), methods.len(), "{texts:?}");
        assert!(texts.iter().zip(methods).all(|(text, method)| text.contains(method)), "{texts:?}");
    }
}

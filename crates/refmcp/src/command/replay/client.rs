//! The client of a recording against a server: what it sent goes over a connection without an engine, as soon as what it had
//! waited for has come.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};
use refmcp_audit::recording::{Direction, Event, EventKind};
use refmcp_audit::replay::{
    ClientReplay, Conversations, RecordedConversation, ReplayAction, ReplayState, ReplayTransport,
};
use refmcp_check::{HttpRequest, RawConnection};
use refmcp_client::Revision;
use refmcp_proto::model::keys;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout, timeout_at};
use tokio_util::task::AbortOnDropHandle;

use crate::args::{ExitError, ExitReason, SharedOptions, Target};
use crate::command::client::{Person, Servers};
use crate::record::Recording;
use crate::ui::progress::Bars;

/// Events that wait to be taken in.
const MAX_WAITING: usize = 65_536;
/// How long a notification is waited for that came in the recording.
const NOTIFICATION_WITHIN: Duration = Duration::from_secs(1);
/// How long a server is listened to once all has come: as long as in the recording, but within these limits. What it says later,
/// the recorded client would not have heard.
const AT_THE_END: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(2));

/// Replays each conversation over a connection of its own; what passed is returned.
pub(super) async fn run(
    recorded: &[RecordedConversation],
    target: &Target,
    shared: &SharedOptions,
) -> Result<Conversations> {
    let bars = Bars::on_stderr();
    let person = Person::new(shared, &bars);
    let server = Servers::new(shared, &person)?.beside(&bars).to_check(target, None).await?;
    let record = Recording::open(&shared.record, false)?.listener();
    let (sender, mut events) = mpsc::channel(MAX_WAITING);
    let is_full = Arc::new(AtomicBool::new(false));
    let server = server.observed_by(Arc::new({
        let is_full = is_full.clone();
        move |event: &Event| {
            if let Some(record) = &record {
                record(event);
            }
            if sender.try_send(event.clone()).is_err() {
                is_full.store(true, Ordering::Relaxed);
            }
        }
    }));
    let mut live = Vec::new();
    for conversation in recorded.iter().filter(|it| it.client_parts().next().is_some()) {
        let connection = RawConnection::open(&server, shared.timeout)
            .await
            .map_err(|why| ExitError::new(ExitReason::Unreachable, format!("{target}: {why}")))?;
        let connection = Arc::new(connection);
        let over = if connection.is_http() { ReplayTransport::Http } else { ReplayTransport::Pipe };
        let replay = ClientReplay::new(conversation, over, server.transport());
        let mut run = Run {
            replay,
            connection,
            requests: HashMap::new(),
            end: None,
            failed: None,
            is_reached: false,
            shared,
        };
        let done = timeout(shared.total_timeout, run.play(&mut events)).await;
        run.connection.close().await;
        match done {
            Ok(done) => done?,
            Err(_) => {
                let what = format!("{target}: not done within {:?}", shared.total_timeout);
                return Err(ExitError::new(ExitReason::Unreachable, what).into());
            }
        }
        // What belongs to this connection is of no use to the next.
        while events.try_recv().is_ok() {}
        ensure!(!is_full.load(Ordering::Relaxed), "{target} sends faster than it can be taken in");
        let failed = run.failed.take();
        let passed = run.replay.finish();
        if let Some(why) = failed.filter(|_| passed.server_parts().next().is_none()) {
            return Err(ExitError::new(ExitReason::Unreachable, format!("{target}: {why}")).into());
        }
        live.push(passed);
    }
    Ok(live)
}

/// A conversation on its way.
struct Run<'a> {
    replay: ClientReplay<'a>,
    connection: Arc<RawConnection>,
    /// HTTP requests whose responses are being read.
    requests: HashMap<u64, AbortOnDropHandle<()>>,
    /// The request that ends the session.
    end: Option<u64>,
    /// Why the last request failed.
    failed: Option<String>,
    /// Something has come from the server.
    is_reached: bool,
    shared: &'a SharedOptions,
}

impl Run<'_> {
    async fn play(&mut self, events: &mut mpsc::Receiver<Event>) -> Result<()> {
        loop {
            while let Ok(event) = events.try_recv() {
                self.take(&event)?;
            }
            let within = match self.replay.state() {
                ReplayState::Done => break,
                ReplayState::Ready => {
                    sleep(self.replay.pause()).await;
                    if let Some(action) = self.replay.take() {
                        self.act(action);
                    }
                    continue;
                }
                ReplayState::Waits { is_needed: true } => self.shared.timeout,
                ReplayState::Waits { is_needed: false } => NOTIFICATION_WITHIN.min(self.shared.timeout),
            };
            match timeout(within, events.recv()).await {
                Ok(Some(event)) => self.take(&event)?,
                Ok(None) => return Err(anyhow!("the connection is gone")),
                Err(_) => self.replay.give_up(),
            }
        }
        self.listen_on(events).await
    }

    /// Takes in what comes after all was sent.
    async fn listen_on(&mut self, events: &mut mpsc::Receiver<Event>) -> Result<()> {
        let (least, most) = AT_THE_END;
        let last = Instant::now() + self.replay.stayed().clamp(least, most);
        while let Ok(Some(event)) = timeout_at(last, events.recv()).await {
            self.take(&event)?;
        }
        // Nothing of the session stays at the server.
        if let Some(end) = self.end.and_then(|end| self.requests.remove(&end))
            && timeout(most, end).await.is_err()
        {
            tracing::debug!("the end of the session is not confirmed");
        }
        while let Ok(event) = events.try_recv() {
            self.take(&event)?;
        }
        Ok(())
    }

    fn take(&mut self, event: &Event) -> Result<()> {
        match &event.kind {
            EventKind::Failed { why } => {
                self.failed = Some(why.clone());
                // Nothing that is still to be waited for will come.
                if !self.is_reached {
                    self.replay.close();
                }
            }
            EventKind::Message { direction: Direction::Received, .. } | EventKind::Response { .. } => {
                self.is_reached = true;
            }
            EventKind::Closed { why } => {
                self.failed = Some(why.clone());
                self.replay.close();
            }
            _ => {}
        }
        Ok(self.replay.observe(event)?)
    }

    fn act(&mut self, action: ReplayAction) {
        match action {
            ReplayAction::Leave { stream } => drop(self.requests.remove(&stream)),
            ReplayAction::Send { text, .. } if !self.connection.is_http() => self.connection.write(&text),
            ReplayAction::Send { stream, text, headers } => {
                let request = match headers {
                    Some(headers) => of_headers("POST", &headers, &text),
                    None => HttpRequest::of_message(&text, self.replay.session(), self.version(&text)),
                };
                self.request(stream, request);
            }
            ReplayAction::Request { stream, method, headers } => {
                self.end = (method == "DELETE").then_some(stream).or(self.end);
                let request = headers.map(|headers| of_headers(&method, &headers, ""));
                self.request(stream, request.unwrap_or_else(|| self.usual(&method)));
            }
        }
    }

    /// A request without a body as a client of the session makes it.
    fn usual(&self, method: &str) -> HttpRequest {
        let mut request = HttpRequest::new(method, &[("accept", "text/event-stream")], "");
        if let Some(session) = self.replay.session() {
            request = request.with("mcp-session-id", session);
        }
        match self.replay.version().filter(|version| has_version_header(version)) {
            Some(version) => request.with("mcp-protocol-version", version),
            None => request,
        }
    }

    /// The revision of a message: its own, or the one that was agreed on.
    fn version(&self, text: &str) -> Option<Revision> {
        let message: Value = serde_json::from_str(text).unwrap_or_default();
        let own = message
            .get("params")
            .and_then(|params| params.get("_meta")?.get(keys::PROTOCOL_VERSION)?.as_str());
        own.or(self.replay.version())?.parse().ok()
    }

    fn request(&mut self, stream: u64, request: HttpRequest) {
        let (connection, within) = (self.connection.clone(), self.shared.total_timeout);
        let sending = tokio::spawn(async move { connection.request(stream, &request, within).await });
        self.requests.insert(stream, AbortOnDropHandle::new(sending));
    }
}

fn of_headers(method: &str, headers: &[(String, String)], body: &str) -> HttpRequest {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    HttpRequest::new(method, &headers, body)
}

fn has_version_header(version: &str) -> bool {
    version.parse::<Revision>().is_ok_and(|version| version.rules().version_header)
}

//! The link to Redis: two connections that are kept up by a task, one for commands and one for hints.
//!
//! Commands of all callers share the first, and hints arrive on the second as push messages (RESP3). They are two because
//! Redis closes a connection with subscriptions that has some megabytes of replies outstanding, which a few long events
//! are. When either breaks, commands fail at once or after a moment, the task connects again, and all who wait look
//! again, since hints may have been missed.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, PushInfo, PushKind, RedisError, Value};
use refmcp_server::backplane::Unavailable;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::ConnectError;
use crate::check::{ServerInfo, check};
use crate::hints::Hints;
use crate::options::TestTime;
use crate::scripts::Script;

/// For how long a command waits for a connection, which may be back in a moment.
const PATIENCE: Duration = Duration::from_millis(300);
/// The delay before a connection is tried again, at first and at most.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// How often a connection is tried on which nothing is wrong.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The link.
pub(crate) struct Link {
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    client: Client,
    /// The address, as it may be shown.
    address: String,
    timeout: Duration,
    allow_volatile: bool,
    channel: String,
    time: Option<Arc<TestTime>>,
    state: watch::Sender<State>,
    hints: Hints,
    /// A command has failed in a way that makes the connection doubtful.
    doubted: Notify,
}

#[derive(Clone)]
enum State {
    Open(Connections),
    /// There is none, and why.
    Closed(Arc<str>),
}

/// The connections, which are replaced together.
#[derive(Clone)]
struct Connections {
    commands: MultiplexedConnection,
    hints: MultiplexedConnection,
}

/// A command that was not carried out, or perhaps was.
#[derive(Debug, thiserror::Error)]
enum CommandError {
    #[error("there is no connection to {address}: {why}")]
    NotConnected { address: String, why: Arc<str> },
    #[error("{address} did not reply within {within:?}")]
    Overdue { address: String, within: Duration },
    #[error("{address} did not carry out {what}: {error}")]
    Failed { address: String, what: &'static str, error: RedisError },
}

impl Link {
    /// Connects, and keeps connected until it is dropped.
    pub(crate) async fn open(
        client: Client,
        address: String,
        response_timeout: Duration,
        allow_volatile: bool,
        channel: String,
        time: Option<Arc<TestTime>>,
    ) -> Result<(Self, ServerInfo), ConnectError> {
        let shared = Arc::new(Shared {
            client,
            address,
            timeout: response_timeout,
            allow_volatile,
            channel,
            time,
            state: watch::Sender::new(State::Closed("it is not open yet".into())),
            hints: Hints::default(),
            doubted: Notify::new(),
        });
        let (connections, broken, info) = shared.connect().await?;
        shared.state.send_replace(State::Open(connections));
        let task = tokio::spawn(shared.clone().keep_open(broken)).abort_handle();
        Ok((Self { shared, task }, info))
    }

    /// The time by which scripts decide, where it is not that of Redis.
    pub(crate) fn time(&self) -> Option<&Arc<TestTime>> {
        self.shared.time.as_ref()
    }

    pub(crate) fn hints(&self) -> &Hints {
        &self.shared.hints
    }

    /// The address, as it may be shown.
    pub(crate) fn address(&self) -> &str {
        &self.shared.address
    }

    /// Whether there is a connection now.
    pub(crate) fn is_open(&self) -> bool {
        matches!(*self.shared.state.borrow(), State::Open(_))
    }

    /// Runs a command.
    pub(crate) async fn run(&self, what: &'static str, command: &Cmd) -> Result<Value, Unavailable> {
        let reply = self.shared.send(command).await?;
        reply.map_err(|error| self.shared.failed(what, error))
    }

    /// Runs a script, by its digest where Redis knows that.
    pub(crate) async fn script(
        &self,
        script: &Script,
        build: impl Fn(&'static str, &str) -> Cmd,
    ) -> Result<Value, Unavailable> {
        match self.shared.send(&build("EVALSHA", &script.digest)).await? {
            Err(error) if error.code() == Some("NOSCRIPT") => {
                self.run(script.name, &build("EVAL", &script.text)).await
            }
            reply => reply.map_err(|error| self.shared.failed(script.name, error)),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Link").field("address", &self.address()).field("open", &self.is_open()).finish()
    }
}

impl Shared {
    /// Sends a command, and waits for its reply. Redis's own refusals are within.
    async fn send(&self, command: &Cmd) -> Result<Result<Value, RedisError>, Unavailable> {
        let _held = self.time.as_ref().map(|time| time());
        let mut connection = self.connection().await?;
        let replied = timeout(self.timeout, connection.send_packed_command(command)).await;
        let overdue = || CommandError::Overdue { address: self.address.clone(), within: self.timeout };
        match replied {
            Ok(Err(error)) if error.is_timeout() => {
                self.doubted.notify_one();
                Err(Unavailable::new(overdue()))
            }
            Err(_) => {
                self.doubted.notify_one();
                Err(Unavailable::new(overdue()))
            }
            Ok(reply) => Ok(reply.and_then(Value::extract_error)),
        }
    }

    fn failed(&self, what: &'static str, error: RedisError) -> Unavailable {
        // Another one may be the primary by now.
        if error.is_io_error() || error.is_unrecoverable_error() || error.code() == Some("READONLY") {
            self.doubted.notify_one();
        }
        Unavailable::new(CommandError::Failed { address: self.address.clone(), what, error })
    }

    /// The connection for commands, if there is one soon.
    async fn connection(&self) -> Result<MultiplexedConnection, Unavailable> {
        let mut state = self.state.subscribe();
        let opened = timeout(PATIENCE, state.wait_for(|state| matches!(state, State::Open(_)))).await;
        if let Ok(Ok(state)) = opened
            && let State::Open(connections) = &*state
        {
            return Ok(connections.commands.clone());
        }
        let why = match &*self.state.borrow() {
            State::Closed(why) => why.clone(),
            State::Open(_) => "it is being opened".into(),
        };
        Err(Unavailable::new(CommandError::NotConnected { address: self.address.clone(), why }))
    }

    /// New connections that can be used, and what is notified when one of them breaks.
    async fn connect(self: &Arc<Self>) -> Result<(Connections, Arc<Notify>, ServerInfo), ConnectError> {
        let _held = self.time.as_ref().map(|time| time());
        let failed = |source| ConnectError::Unreachable { address: self.address.clone(), source };
        let broken = Arc::new(Notify::new());
        let (shared, breaks) = (Arc::downgrade(self), broken.clone());
        let pushed = move |info: PushInfo| {
            match info.kind {
                PushKind::Disconnection => breaks.notify_one(),
                PushKind::Message => {
                    if let (Some(shared), Some(Value::BulkString(what))) =
                        (shared.upgrade(), info.data.last())
                    {
                        shared.hints.hear(&String::from_utf8_lossy(what));
                    }
                }
                _ => {}
            }
            Ok::<(), Infallible>(())
        };
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout))
            .set_push_sender(pushed);
        let open = || self.client.get_multiplexed_async_connection_with_config(&config);
        let mut commands = open().await.map_err(failed)?;
        let info = self.check(&mut commands).await?;
        let mut hints = open().await.map_err(failed)?;
        hints.subscribe(&self.channel).await.map_err(failed)?;
        Ok((Connections { commands, hints }, broken, info))
    }

    /// Asks whether Redis is as it must be.
    async fn check(&self, connection: &mut MultiplexedConnection) -> Result<ServerInfo, ConnectError> {
        let _held = self.time.as_ref().map(|time| time());
        let asked: Result<String, RedisError> = redis::cmd("INFO").query_async(connection).await;
        let info =
            asked.map_err(|source| ConnectError::Unreachable { address: self.address.clone(), source })?;
        check(&info, self.allow_volatile)
    }

    /// Watches a connection until it breaks, and opens the next one, for ever.
    async fn keep_open(self: Arc<Self>, mut broken: Arc<Notify>) {
        loop {
            let why = self.until_broken(&broken).await;
            tracing::warn!(address = self.address, why, "the connection to Redis is lost");
            self.state.send_replace(State::Closed(why.into()));
            let mut delay = RETRY_DELAY.0;
            let (connections, breaks) = loop {
                match self.connect().await {
                    Ok((connections, breaks, _)) => break (connections, breaks),
                    Err(error) => {
                        let why = describe(&error);
                        tracing::debug!(address = self.address, why, "Redis cannot be used");
                        self.state.send_replace(State::Closed(why.into()));
                    }
                }
                tokio::time::sleep(delay).await;
                delay = RETRY_DELAY.1.min(delay * 2);
            };
            tracing::info!(address = self.address, "connected to Redis again");
            broken = breaks;
            self.state.send_replace(State::Open(connections));
            self.hints.hear_all();
        }
    }

    /// Waits until a connection cannot be used any more; gives the reason.
    async fn until_broken(&self, broken: &Notify) -> String {
        loop {
            tokio::select! {
                () = broken.notified() => return "it was closed".to_owned(),
                () = self.doubted.notified() => {}
                () = tokio::time::sleep(PROBE_INTERVAL) => {}
            }
            let State::Open(mut connections) = self.state.borrow().clone() else {
                return "it was closed".to_owned();
            };
            for connection in [&mut connections.commands, &mut connections.hints] {
                if let Err(error) = self.check(connection).await {
                    return describe(&error);
                }
            }
        }
    }
}

/// An error with its causes, in a line.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        // Some errors have the text of their cause in their own.
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

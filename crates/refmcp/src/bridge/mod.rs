//! `refmcp bridge`: a client on one transport, a server on another, and every message passed on as it is.
//!
//! | module | what it is |
//! |---|---|
//! | `crossing`, `hearing` | one conversation: a transport to the server, and which requests wait for answers |
//! | `server_sink`, `first_words` | hearing the server, and finding out which transport it speaks |
//! | `asked`, `learned`, `glance` | what is known of requests, of the session, of a single message |
//! | `pipe`, `outbox` | a client at the end of a pipe |
//! | `listen` | clients that come over HTTP or WebSocket |
//! | `words` | what the bridge has to say itself |

mod asked;
mod crossing;
mod first_words;
mod glance;
mod hearing;
mod learned;
mod listen;
mod outbox;
mod pipe;
mod server_sink;
mod words;

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use refmcp_client::observer::Observer;
use refmcp_client::transport::Connector;
use refmcp_transport::stdio::{left_alone, stdio};
use tokio_util::sync::CancellationToken;

use crate::args::{BridgeSide, ExitError, ExitReason, OutputFormat, SharedOptions};
use crossing::{Over, Why};

/// The server, and what observes the connections to it.
#[derive(Debug, Clone)]
pub(crate) struct Upstream {
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl Deref for Upstream {
    type Target = Arc<dyn Connector>;

    fn deref(&self) -> &Self::Target {
        &self.connector
    }
}

/// Passes messages between clients that come from one side and a server on the other, until there are no more clients
/// or it is told to stop. Where clients come over a listener, each has a connection to the server of its own.
pub(crate) async fn run(
    from: &BridgeSide,
    to: Upstream,
    options: &SharedOptions,
    stop: &CancellationToken,
) -> Result<()> {
    match from {
        BridgeSide::Stdio => from_stdio(to, options.timeout, stop).await,
        BridgeSide::Listen { url, transport, listen: access } => {
            let as_json = options.output == OutputFormat::Json;
            listen::run(url, *transport, access, to, options.timeout, as_json, stop).await
        }
    }
}

async fn from_stdio(to: Upstream, patience: Duration, stop: &CancellationToken) -> Result<()> {
    let name = to.name();
    let pipe = stdio(pipe::MAX_MESSAGE_SIZE).context("standard input and output cannot be used")?;
    let alone = stop.child_token();
    let watching = tokio::spawn(left_alone(alone.clone()));
    let passed = pipe::run(pipe, to, patience, &alone).await;
    watching.abort();
    passed.map_err(|over| explain(&name, &over))
}

/// Why the bridge ends, as the message on stderr and the exit code.
fn explain(server: &str, over: &Over) -> anyhow::Error {
    let Why::Server(why) = &over.why else {
        return ExitError::new(ExitReason::Failed, over.why.to_string()).into();
    };
    tracing::debug!(reached = over.reached, "the server has ended it");
    let reason = match why {
        why if why.needs_authorization() => ExitReason::Authorization,
        _ => ExitReason::Unreachable,
    };
    ExitError::new(reason, format!("{server}: {why}")).into()
}

//! A recorded server as a mock. It has no engine: what a client sends is looked up, and what is recorded is sent.
//!
//! | module | what it is |
//! |---|---|
//! | `pipe` | over standard input and output, and WebSocket |
//! | `http` | streamable HTTP, HTTP+SSE and the way to WebSocket |
//! | `session` | what one client, or all without sessions, are told |
//! | `body` | responses of HTTP |

mod body;
mod http;
mod pipe;
mod session;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use refmcp_audit::replay::{Mock, MockOutput, RecordedConversation};
use refmcp_client::observer::{Observed, Observer, Side};
use refmcp_transport::clock::Clock;
use refmcp_transport::pipe::{LineReader, LineWriter};
use refmcp_transport::stdio::{input, output};
use tokio::sync::Semaphore;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::{has_answers, nothing};
use crate::args::{RecordOptions, ReplayOptions};
use crate::command::reachable;
use crate::record::Recording;
use crate::ui::output::{announce, print_aside};
use crate::ui::redact::masked;
use crate::ui::text::one_line;
use http::Server;

/// Bytes of a message of a client.
const MAX_MESSAGE: usize = 16 << 20;
/// Connections at a time; more wait to be accepted.
const MAX_CONNECTIONS: usize = 256;
/// How long the head of a request may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// The pause after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);
/// The warning for a mock that other machines reach.
const OPEN_MOCK: &str = "the mock listens beyond this machine: every client that reaches it gets what is recorded; \
    --serve 127.0.0.1:PORT keeps it to this machine";

/// The server of a recording.
pub(super) fn mock(file: &Path, recorded: &[RecordedConversation]) -> Result<Mock> {
    let mock = Mock::new(recorded);
    if mock.is_empty() || !has_answers(recorded) {
        return Err(nothing(file, "has no request that was answered"));
    }
    Ok(mock)
}

/// Answers the process that started this one, until its input ends.
pub(super) async fn stdio(mock: &Mock, record: &RecordOptions, stopped: &CancellationToken) -> Result<()> {
    let (input, output) = (input().context("standard input")?, output().context("standard output")?);
    let observed = opened(Recording::open(record, false)?.observer().as_ref(), "stdio", "");
    let pipe = (LineReader::new(input, MAX_MESSAGE), LineWriter::new(output));
    tokio::select! {
        served = pipe::serve(pipe, mock.session(), observed) => served.context("stdio"),
        () = stopped.cancelled() => Ok(()),
    }
}

/// Answers clients at an address, until it is stopped.
pub(super) async fn listen(
    mock: Mock,
    (host, port): (&str, u16),
    options: &ReplayOptions,
    record: &RecordOptions,
    stopped: &CancellationToken,
) -> Result<()> {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let (listener, local) = reachable::bind(&host, port).await?;
    reachable::warn_if_open(local, OPEN_MOCK);
    let observer = Recording::open(record, false)?.observer();
    let (hosts, origins) = (options.allow_host.clone(), options.allow_origin.clone());
    let server = Arc::new(Server::new(mock, hosts, origins, observer));
    announce(&format!("refmcp replay is listening on http://{local}/mcp\n"));
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    loop {
        let accepted = tokio::select! {
            () = stopped.cancelled() => return Ok(()),
            accepted = async {
                // The semaphore is never closed.
                let place = places.clone().acquire_owned().await;
                (listener.accept().await, place)
            } => accepted,
        };
        let (stream, peer, place) = match accepted {
            (Ok((stream, peer)), place) => (stream, peer, place),
            (Err(error), _) => {
                tracing::warn!(%error, "no connection can be accepted now");
                sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            }
        };
        let (server, local) = (server.clone(), stream.local_addr().ok().map(|local| local.ip()));
        tokio::spawn(async move {
            let service = service_fn(|request| server.clone().answer(request, local, peer));
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            if let Err(error) = builder.serve_connection(TokioIo::new(stream), service).with_upgrades().await
            {
                tracing::debug!(%error, "a connection ended");
            }
            drop(place);
        });
    }
}

/// A connection as the recording has it.
fn opened(observer: Option<&Arc<dyn Observer>>, transport: &'static str, peer: &str) -> Observed {
    match observer {
        Some(observer) => Observed::open(observer.clone(), Side::Server, transport, peer, Clock::new()),
        None => Observed::default(),
    }
}

/// Tells the user what the recording has no answer to, and what it has another answer to.
fn tell_remarks(outputs: &[MockOutput]) {
    for output in outputs {
        if let MockOutput::Remark(why) = output {
            print_aside(&format!("refmcp: {}\n", one_line(&masked(why))));
        }
    }
}

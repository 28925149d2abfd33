//! The gateway's client that started this process, over standard input and output.
//!
//! The first message is read before the server is connected: an `initialize` says which client it is connected for, so one
//! connection is enough.

use std::time::Duration;

use anyhow::{Context, Result};
use refmcp_client::OpenError;
use refmcp_client::observer::{Observed, Side};
use refmcp_proto::jsonrpc::encode::{self, ResponseId};
use refmcp_proto::jsonrpc::{Incoming, Limits, Message, decode};
use refmcp_proto::model::InitializeParams;
use refmcp_proto::peer::Peer;
use refmcp_proto::revision::{Method, Revision, downgrade};
use refmcp_server::Connection;
use refmcp_transport::clock::Clock;
use refmcp_transport::pipe::{FrameWriter, PeekedReader};
use refmcp_transport::stdio::{cancel_on_parent_exit, stdio};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::gateway::{Gateway, MAX_MESSAGE_SIZE, Target, own_error};
use crate::args::{ExitError, ExitReason};
use crate::command::client::{LastLines, exit_error};

/// How long calls may go on once the bridge is told to stop, and how long the client may take to read the last message.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Serves the process that started this one, until it closes its end, the server is lost or it is told to stop.
pub(crate) async fn serve_stdio(
    target: Target,
    last_lines: &LastLines,
    stop: &CancellationToken,
) -> Result<()> {
    let (reader, writer) = stdio(MAX_MESSAGE_SIZE).context("standard input and output cannot be used")?;
    let stop = stop.child_token();
    let _alone = AbortOnDropHandle::new(tokio::spawn(cancel_on_parent_exit(stop.clone())));
    let observed = target.observer.clone().map(|observer| {
        Observed::open(observer, Side::Server, "stdio", "standard input and output", Clock::new())
    });
    let observed = observed.unwrap_or_default();
    let (mut reader, mut writer) = (PeekedReader::new(reader), writer);
    let first = tokio::select! {
        first = reader.peek() => first?,
        () = stop.cancelled() => return Ok(()),
    };
    let Some(first) = first else { return Ok(()) };
    let client = described_client(&first);
    let gateway = Gateway::new(target, true);
    let opened = tokio::select! {
        opened = gateway.open(client.as_ref()) => opened,
        () = stop.cancelled() => return Ok(()),
    };
    let client = match opened {
        Ok(client) => client,
        Err(why) => {
            turn_away(&mut writer, &observed, &first, &why).await;
            return Err(exit_error::of_connecting(&why, last_lines));
        }
    };
    let server = gateway.server(&client.server())?;
    let connection = Connection { transport: "stdio", local: true, observed, ..Connection::default() };
    let serving = stop.child_token();
    let until_lost = async {
        tokio::select! {
            _ = client.closed() => serving.cancel(),
            () = stop.cancelled() => {}
        }
        sleep(STOP_TIMEOUT).await;
    };
    let served = tokio::select! {
        served = server.serve((reader, writer), connection, serving.clone()) => served.map(drop),
        () = until_lost => Ok(()),
    };
    let lost = client.close_reason();
    gateway.close().await;
    if let Some(why) = lost {
        let needs_login = matches!(&why, OpenError::Transport(why) if why.needs_authorization());
        let reason = if needs_login { ExitReason::Authorization } else { ExitReason::Unreachable };
        let what = last_lines.added_to(&format!("{}: {why}", gateway.name()));
        return Err(ExitError::new(reason, what).into());
    }
    served.context("standard input and output")
}

/// The client that an `initialize` describes.
fn described_client(message: &[u8]) -> Option<Peer> {
    let Ok(Incoming::One(Message::Request(request))) = decode(message, &limits()) else { return None };
    let known = Method::known(&request.method);
    let params = request.params.text.filter(|_| known == Some(Method::Initialize))?;
    let InitializeParams { protocol_version, mut capabilities, client_info, .. } =
        serde_json::from_str(params).ok()?;
    let revision = Revision::negotiate(&protocol_version);
    downgrade::client_capabilities(revision.rules(), &mut capabilities);
    Some(Peer { revision, capabilities, info: Some(client_info) })
}

fn limits() -> Limits {
    Limits { max_message_size: MAX_MESSAGE_SIZE, ..Limits::default() }
}

/// Answers the first request with why there is no server.
async fn turn_away(
    writer: &mut impl FrameWriter,
    observed: &Observed,
    first: &[u8],
    why: &impl std::fmt::Display,
) {
    observed.received(first);
    let Ok(Incoming::One(Message::Request(request))) = decode(first, &limits()) else { return };
    let mut json = Vec::new();
    if encode::error(&mut json, ResponseId::Id(&request.id), &own_error(why)).is_ok() {
        observed.sent(&json);
        writer.push(&json);
    }
    let telling = async { while writer.pending() > 0 && writer.flush().await.is_ok() {} };
    // A client that does not read it sees the end of the process.
    let _ = timeout(STOP_TIMEOUT, telling).await;
}

//! Probes of the lifecycle with sessions: versions, ping, the end of a process.

use std::time::{Duration, Instant};

use refmcp_proto::revision::{Lifecycle, Revision};
use refmcp_proto::rule;
use serde_json::{Value, json};

use super::{Context, Probe, ProbeTransport, Stop};
use crate::connection::{Answer, Wants};

pub(super) static PROBES: &[Probe] = &[
    Probe::harsh("unknown-version", &[&rule::LIFE_06], |cx| Box::pin(unknown_version(cx))).once(),
    Probe::harsh("version-without-sessions", &[&rule::T_01], |cx| Box::pin(version_without_sessions(cx)))
        .once(),
    Probe::gentle("ping", &[&rule::PING_01, &rule::PING_02], |cx| Box::pin(ping(cx))),
    Probe::harsh("end-of-input", &[&rule::STDIO_09], |cx| Box::pin(end_of_input(cx)))
        .over(ProbeTransport::Child)
        .once(),
];

/// A version that no server has.
pub(super) const NO_VERSION: &str = "1900-01-01";

/// How long a process may go on after its input has ended, at least and at most; one that is slow to start may be slow to end.
const EXIT_WITHIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(8));

/// Sends an `initialize` with a version, over a connection of its own, as a client that opens a session.
async fn initialize(cx: &Context, version: &str) -> Result<(Value, Answer), Stop> {
    let mut session = cx.unopened(Revision::LATEST_SESSION).await?;
    let (id, message) = session.initialize(version);
    let answer = session.exchange(&message.to_string(), &Wants::Response(id.clone())).await;
    session.enter(&answer);
    session.close().await;
    Ok((id, answer))
}

/// A version that the server does not have is answered with one that it has, or refused.
async fn unknown_version(cx: &mut Context) -> Result<(), Stop> {
    let (id, answer) = initialize(cx, NO_VERSION).await?;
    let spoken = answer.result(&id).and_then(|result| result.get("protocolVersion"));
    let spoken = spoken.and_then(Value::as_str);
    let kept =
        answer.error(&id).is_some() || answer.is_refused() || spoken.is_some_and(|it| it != NO_VERSION);
    let what = || match spoken {
        Some(_) => "initialize with an unknown version agrees on it".to_owned(),
        None => format!("initialize with an unknown version is answered with {}", answer.summary(&id)),
    };
    cx.check(&rule::LIFE_06, &answer, kept, what, "answer with a version that the server supports");
    Ok(())
}

/// `initialize` never agrees on a revision without sessions.
async fn version_without_sessions(cx: &mut Context) -> Result<(), Stop> {
    let Some(version) = Revision::with(Lifecycle::PerRequest).next() else { return Ok(()) };
    let (id, answer) = initialize(cx, version.as_str()).await?;
    let spoken = answer.result(&id).and_then(|result| result.get("protocolVersion"));
    let kept = spoken != Some(&json!(version.as_str()));
    if answer.late || answer.ended.is_some() {
        return Err(Stop::NotVerified(format!("initialize is answered with {}", answer.summary(&id))));
    }
    let what =
        || format!("initialize agrees on {version}, which has no sessions", version = version.as_str());
    cx.check(&rule::T_01, &answer, kept, what, "answer with the newest supported revision that has sessions");
    Ok(())
}

/// A ping is answered with an empty result; in a revision without it, it is unknown.
async fn ping(cx: &mut Context) -> Result<(), Stop> {
    let session = cx.session().await?;
    let (id, answer) = session.request("ping", json!({})).await;
    let empty = answer.result(&id).and_then(Value::as_object);
    let empty = empty.is_some_and(|result| result.keys().all(|key| key == "_meta"));
    let what = || format!("ping is answered with {}, or with members in it", answer.summary(&id));
    cx.check(&rule::PING_01, &answer, empty, what, "answer ping at once with an empty result");
    let unknown = answer.error_code(&id) == Some(-32601);
    let what =
        || format!("ping, which this revision does not have, is answered with {}", answer.summary(&id));
    cx.check(&rule::PING_02, &answer, unknown, what, "refuse it with the error -32601");
    Ok(())
}

/// A server exits soon after its input has ended.
async fn end_of_input(cx: &mut Context) -> Result<(), Stop> {
    let (least, most) = EXIT_WITHIN;
    let begun = Instant::now();
    let mut session = cx.open_at(&cx.shared.target.with_grace(most)).await?;
    let allowed = (least + begun.elapsed() * 2).min(most);
    let (_, mut answer) = session.sentinel().await;
    answer.exchange.repeat = cx.repeat();
    let begun = Instant::now();
    session.close().await;
    let took = begun.elapsed();
    let what = || format!("the process still runs {} seconds after its input has ended", allowed.as_secs());
    cx.check(&rule::STDIO_09, &answer, took < allowed, what, "exit when standard input ends");
    Ok(())
}

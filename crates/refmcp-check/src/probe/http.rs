//! Probes of transports over HTTP: origins, sessions, headers, streams.

use std::time::Duration;

use refmcp_proto::revision::Lifecycle;
use refmcp_proto::rule;
use serde_json::{Value, json};

use super::messages::sentinel_method;
use super::{Context, Probe, ProbeTransport, Stop};
use crate::connection::{Answer, Http, HttpRequest, Wants};
use crate::session::{Session, check_access};
use crate::target::TargetTransport;

pub(super) static PROBES: &[Probe] = &[
    Probe::harsh("foreign-origin", &[&rule::HTTP_02], |cx| Box::pin(foreign_origin(cx)))
        .over(ProbeTransport::Http),
    Probe::harsh("get-stream", &[&rule::HTTP_01], |cx| Box::pin(get_stream(cx))).over(ProbeTransport::Http),
    Probe::harsh("missing-session", &[&rule::HTTP_20], |cx| Box::pin(missing_session(cx)))
        .over(ProbeTransport::Http),
    Probe::harsh("ended-session", &[&rule::HTTP_21], |cx| Box::pin(ended_session(cx)))
        .over(ProbeTransport::Http),
    Probe::harsh("version-header", &[&rule::HTTP_24, &rule::HTTP_25], |cx| Box::pin(version_header(cx)))
        .over(ProbeTransport::Http),
    Probe::harsh("resumed-stream", &[&rule::HTTP_16, &rule::HTTP_17], |cx| Box::pin(resumed_stream(cx)))
        .over(ProbeTransport::Http),
    Probe::harsh("mirrored-headers", &[&rule::MHTTP_08, &rule::MHTTP_10], |cx| {
        Box::pin(mirrored_headers(cx))
    })
    .over(ProbeTransport::Http),
    Probe::harsh("ids-that-mean-nothing", &[&rule::MHTTP_01], |cx| Box::pin(ids_that_mean_nothing(cx)))
        .over(ProbeTransport::Http),
    Probe::harsh("sse-endpoint", &[&rule::SSE_01, &rule::SSE_02], |cx| Box::pin(sse_endpoint(cx)))
        .over(ProbeTransport::Sse),
    Probe::harsh("sse-foreign-origin", &[&rule::SSE_05, &rule::HTTP_02], |cx| {
        Box::pin(sse_foreign_origin(cx))
    })
    .over(ProbeTransport::Sse),
];

/// How long a resumed stream is read.
const RESUMED_WITHIN: Duration = Duration::from_secs(1);

/// The origin of a page that no server knows.
const FOREIGN: &str = "https://refmcp-check.invalid";

/// A request that every server answers, as it is sent over HTTP.
fn sentinel(session: &mut Session) -> (Value, HttpRequest) {
    let method = sentinel_method(session);
    let (id, message) = session.message(method, json!({}));
    (id, session.post(&message.to_string()))
}

/// A page of a foreign origin is refused.
async fn foreign_origin(cx: &mut Context) -> Result<(), Stop> {
    let mut session = cx.unopened(cx.revision).await?;
    let (id, request) = match cx.revision.lifecycle() {
        Lifecycle::Handshake => {
            let (id, message) = session.initialize(cx.revision.as_str());
            (id, session.post(&message.to_string()))
        }
        Lifecycle::PerRequest => sentinel(&mut session),
    };
    let answer = session.send(&request.with("origin", FOREIGN), &Wants::Response(id.clone())).await;
    session.enter(&answer);
    session.close().await;
    if answer.status.is_none() {
        return Err(Stop::NotVerified(format!("the request is answered with {}", answer.summary(&id))));
    }
    let what = || format!("a request with a foreign Origin is answered with {}", answer.summary(&id));
    cx.check(
        &rule::HTTP_02,
        &answer,
        answer.is_refused(),
        what,
        "refuse origins that are not allowed with 403",
    );
    Ok(())
}

/// GET opens a stream, or is refused with 405.
async fn get_stream(cx: &mut Context) -> Result<(), Stop> {
    let session = cx.session().await?;
    let request = session.post("").without("content-type").with("accept", "text/event-stream");
    let request = HttpRequest { method: "GET".to_owned(), ..request };
    let answer = session.send(&request, &Wants::Head).await;
    let is_stream = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let kept = (answer.status == Some(200) && is_stream) || answer.status == Some(405);
    let what = || format!("GET is answered with {}", answer.summary(&Value::Null));
    cx.check(&rule::HTTP_01, &answer, kept, what, "answer GET with a stream of events, or with 405");
    Ok(())
}

/// The session of a server that has them.
async fn session_with_id(cx: &mut Context) -> Result<&mut Session, Stop> {
    let session = cx.session().await?;
    if session.id().is_none() {
        return Err(Stop::Skipped("the server gives its sessions no ids".to_owned()));
    }
    Ok(session)
}

/// A request without the id of its session is refused.
async fn missing_session(cx: &mut Context) -> Result<(), Stop> {
    let session = session_with_id(cx).await?;
    let (id, request) = sentinel(session);
    let answer = session.send(&request.without("mcp-session-id"), &Wants::Response(id.clone())).await;
    let kept = answer.status == Some(400);
    let what = || format!("a request without Mcp-Session-Id is answered with {}", answer.summary(&id));
    cx.check(&rule::HTTP_20, &answer, kept, what, "refuse it with status 400");
    Ok(())
}

/// A session that was deleted is gone.
async fn ended_session(cx: &mut Context) -> Result<(), Stop> {
    let session = session_with_id(cx).await?;
    let (id, request) = sentinel(session);
    let delete = HttpRequest { method: "DELETE".to_owned(), body: String::new(), ..request.clone() };
    let deleted = session.send(&delete.without("content-type"), &Wants::Body).await;
    if !deleted.status.is_some_and(|status| (200..300).contains(&status)) {
        let status = deleted.status.unwrap_or(0);
        return Err(Stop::Skipped(format!(
            "the server does not let clients delete sessions: status {status}"
        )));
    }
    let mut answer = session.send(&request, &Wants::Response(id.clone())).await;
    answer.exchange.repeat = cx.repeat();
    let kept = answer.status == Some(404);
    let what = || format!("a request for a deleted session is answered with {}", answer.summary(&id));
    cx.check(
        &rule::HTTP_21,
        &answer,
        kept,
        what,
        "refuse requests for a session that has ended with status 404",
    );
    Ok(())
}

/// An invalid version is refused. None at all is not, where nothing else tells the revision.
async fn version_header(cx: &mut Context) -> Result<(), Stop> {
    let session = cx.session().await?;
    let (id, request) = sentinel(session);
    let answer =
        session.send(&request.with("mcp-protocol-version", "refmcp"), &Wants::Response(id.clone())).await;
    let kept = answer.status == Some(400);
    let what = || format!("an invalid MCP-Protocol-Version is answered with {}", answer.summary(&id));
    cx.check(&rule::HTTP_25, &answer, kept, what, "refuse it with status 400");
    let session = cx.session().await?;
    if session.id().is_some() {
        return Err(Stop::Skipped("the id of a session tells its revision".to_owned()));
    }
    let (id, request) = sentinel(session);
    let answer = session.send(&request.without("mcp-protocol-version"), &Wants::Response(id.clone())).await;
    let kept = answer.result(&id).is_some();
    let what = || format!("a request without MCP-Protocol-Version is answered with {}", answer.summary(&id));
    cx.check(&rule::HTTP_24, &answer, kept, what, "take it for one of the first revision of this transport");
    Ok(())
}

/// A resumed stream has nothing of another stream.
async fn resumed_stream(cx: &mut Context) -> Result<(), Stop> {
    let session = cx.session().await?;
    let mut streams = Vec::new();
    for _ in 0..2 {
        let (id, request) = sentinel(session);
        let answer = session.send(&request, &Wants::Response(id.clone())).await;
        let Some(event) = answer.event_ids.first().cloned() else {
            return Err(Stop::Skipped("the server's streams have no event ids".to_owned()));
        };
        streams.push((id, event, answer));
    }
    let [(one, event, first), (two, _, second)] = streams.as_slice() else { return Ok(()) };
    let same = second.event_ids.iter().any(|id| first.event_ids.contains(id));
    let what = || "two streams of a session have an event id in common".to_owned();
    let request = session.post("").without("content-type").with("accept", "text/event-stream");
    let request = HttpRequest { method: "GET".to_owned(), ..request }.with("last-event-id", event);
    // The other response comes at once, or never.
    let within = RESUMED_WITHIN.min(cx.within());
    let session = cx.session().await?;
    let mut answer = session.send_within(&request, &Wants::Response(two.clone()), within).await;
    // Event ids are others in another session.
    answer.exchange.repeat = cx.repeat();
    cx.check(&rule::HTTP_16, second, !same, what, "make event ids unique among all streams of a session");
    let foreign = answer.response(two).is_some();
    if !foreign && answer.response(one).is_none() {
        return Err(Stop::Skipped("the server repeats nothing".to_owned()));
    }
    let what = || "a resumed stream has the response of another stream".to_owned();
    cx.check(&rule::HTTP_17, &answer, !foreign, what, "repeat only messages of the stream that broke");
    Ok(())
}

/// Headers that are missing or differ from the body are refused.
async fn mirrored_headers(cx: &mut Context) -> Result<(), Stop> {
    let session = cx.session().await?;
    let mut judged = Vec::new();
    let (id, request) = sentinel(session);
    let (named_id, message) = session.message("tools/call", json!({ "name": "refmcp_no_such_tool" }));
    let named = session.post(&message.to_string());
    let wrong = [
        (&rule::MHTTP_10, "no Mcp-Method", &id, request.clone().without("mcp-method")),
        (&rule::MHTTP_10, "another Mcp-Method", &id, request.clone().with("mcp-method", "tools/list")),
        (&rule::MHTTP_10, "another Mcp-Name", &named_id, named.with("mcp-name", "another")),
        (&rule::MHTTP_08, "another MCP-Protocol-Version", &id, {
            request.with("mcp-protocol-version", super::lifecycle::NO_VERSION)
        }),
    ];
    for (rule, what, id, request) in wrong {
        if what == "another Mcp-Name" && session.capability("tools").is_none() {
            continue;
        }
        let answer = session.send(&request, &Wants::Response(id.clone())).await;
        judged.push((rule, what, id.clone(), answer));
    }
    for (rule, header, id, answer) in judged {
        let kept = answer.error_code(&id) == Some(-32020) && answer.status == Some(400);
        let what =
            || format!("a request with {header} than its body is answered with {}", answer.summary(&id));
        cx.check(rule, &answer, kept, what, "refuse it with status 400 and the error -32020");
    }
    Ok(())
}

/// Ids of sessions and events mean nothing where there are no sessions.
async fn ids_that_mean_nothing(cx: &mut Context) -> Result<(), Stop> {
    let session = cx.session().await?;
    let (id, request) = sentinel(session);
    let request = request.with("mcp-session-id", "refmcp-check").with("last-event-id", "refmcp-check");
    let answer = session.send(&request, &Wants::Response(id.clone())).await;
    let kept = answer.result(&id).is_some() && answer.header("mcp-session-id").is_none();
    let what =
        || format!("a request with ids of a session and an event is answered with {}", answer.summary(&id));
    cx.check(
        &rule::MHTTP_01,
        &answer,
        kept,
        what,
        "ignore Mcp-Session-Id and Last-Event-ID, and send no session id",
    );
    Ok(())
}

/// Opens the stream of HTTP+SSE with these headers.
async fn sse_stream(cx: &Context, headers: &[(&str, &str)]) -> Answer {
    let TargetTransport::Sse(_, target) = &cx.shared.target.transport else { return Answer::default() };
    let mut request = HttpRequest::new("GET", &[("accept", "text/event-stream")], "");
    for (name, value) in headers {
        request = request.with(name, value);
    }
    Http::beside(target).send(&request, &Wants::Anything, cx.within()).await
}

/// The stream begins with the endpoint.
async fn sse_endpoint(cx: &mut Context) -> Result<(), Stop> {
    let answer = sse_stream(cx, &[]).await;
    if let Err(error) = check_access(&answer) {
        return Err(Stop::NotVerified(super::context::reason(error)));
    }
    let is_stream = answer.header("content-type").is_some_and(|kind| kind.starts_with("text/event-stream"));
    let what = || format!("GET is answered with {}", answer.summary(&Value::Null));
    let opened = answer.status == Some(200) && is_stream;
    cx.check(&rule::SSE_01, &answer, opened, what, "answer GET with a stream of events");
    if opened {
        let first = answer.junk.first().is_some_and(|event| event.starts_with("endpoint: "));
        let named = first && answer.messages.is_empty();
        let what = || "the stream does not begin with an endpoint event".to_owned();
        cx.check(
            &rule::SSE_02,
            &answer,
            named,
            what,
            "say by an endpoint event where to post, before anything else",
        );
    }
    Ok(())
}

/// A page of a foreign origin is refused.
async fn sse_foreign_origin(cx: &mut Context) -> Result<(), Stop> {
    let answer = sse_stream(cx, &[("origin", FOREIGN)]).await;
    if answer.status.is_none() {
        return Err(Stop::NotVerified("the request is not answered".to_owned()));
    }
    let what =
        || format!("a request with a foreign Origin is answered with {}", answer.summary(&Value::Null));
    for rule in [&rule::SSE_05, &rule::HTTP_02] {
        cx.check(rule, &answer, answer.is_refused(), what, "refuse origins that are not allowed with 403");
    }
    Ok(())
}

//! HTTP+SSE, the older transport with two endpoints: an SSE stream of all messages to the client, and a URI that the
//! client posts its messages to.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use refmcp_proto::jsonrpc::{Incoming, Message, decode, excerpt};
use refmcp_proto::revision::{Method, Resumption};
use refmcp_server::backplane::{ReadFrom, SessionId, StreamNumber};

use crate::access::caller::Caller;
use crate::access::scopes;
use crate::endpoint::{EndpointState, original_uri};
use crate::refusal::{Reason, Refusal};
use crate::request::{body, headers};
use crate::routes::{EndpointPath, Target};
use crate::session::SessionTransport;
use crate::stream::sse::{self, EventSource, SseFormat};

/// Opens a session; its first event has the URI to post to.
pub(crate) async fn open(
    endpoint: &Arc<EndpointState>,
    caller: Caller,
    head: Parts,
) -> Result<Response, Refusal> {
    // Without a finding: the oldest revision, whose transport this is, has no rule about `Accept`.
    headers::check_accepts_events(&head.headers, endpoint.options.require_accept)?;
    let counted = endpoint.acquire_stream()?;
    let mut connection = caller.connection(endpoint.session_headers.keep(&head.headers));
    connection.transport = "http+sse";
    connection.memory = Some(endpoint.memory.session(&caller));
    let driver = endpoint.open_driver(&caller.observed, connection);
    let session = endpoint.open_session(SessionTransport::HttpSse, &caller, driver.clone(), 0).await?;
    // The session ends with its stream, also if opening that fails.
    let end = EndSessionOnDrop { endpoint: endpoint.clone(), id: session.id.clone() };
    let guards = (counted, driver.add_reader(), end);
    let source = match driver.read(StreamNumber::GET, ReadFrom::Unread).await? {
        Some(Ok(reading)) => EventSource::Log(reading),
        Some(Err(_)) => return Err(Refusal::internal("the stream cannot be read")),
        None => EventSource::Stream(driver.get_stream().attach()),
    };
    let uri = format!("{}?sessionId={}", sibling_path(&head, "/messages"), session.id.reveal());
    let format = SseFormat::new(Resumption::Never, &endpoint.options);
    Ok(sse::response(endpoint, source, format, sse::endpoint_event(&uri), guards, caller.observed.stream()))
}

/// A path beside the requested one, wherever the endpoint is mounted.
fn sibling_path(head: &Parts, path: &str) -> String {
    let folder = original_uri(head).path().rsplit_once('/').map_or("", |(folder, _)| folder);
    // A path that begins with two slashes would name a host.
    let folder = folder.trim_start_matches('/');
    if folder.is_empty() { path.to_owned() } else { format!("/{folder}{path}") }
}

/// The error text for a method that a path does not have. A client that posts to the path of the stream takes it for
/// streamable HTTP.
pub(crate) fn wrong_method(paths: &EndpointPath, target: Target, head: &Parts) -> Cow<'static, str> {
    let path = |target| excerpt(&sibling_path(head, paths.of(target)));
    match target {
        Target::Events => format!(
            "open the stream with GET {}, and post to the URI that its endpoint event names; \
             or POST to {} for streamable HTTP",
            path(Target::Events),
            path(Target::Mcp)
        )
        .into(),
        Target::Messages => {
            format!("messages are posted here; GET {} opens the stream that says where", path(Target::Events))
                .into()
        }
        _ => "this method is not served here".into(),
    }
}

/// The session that a message is posted to.
pub(crate) fn session_id(uri: &Uri) -> Option<&str> {
    uri.query()?.split('&').find_map(|pair| pair.strip_prefix("sessionId="))
}

/// Receives a message; the answer goes to the session's stream.
pub(crate) async fn message(
    endpoint: &Arc<EndpointState>,
    caller: Caller,
    head: Parts,
    body: Body,
) -> Result<Response, Refusal> {
    body::check_type(&head.headers)?;
    let missing = || Refusal::bad_request(Reason::Session, "no sessionId; /sse says where to post");
    let id = session_id(&head.uri).ok_or_else(missing)?;
    let session = endpoint.sessions.find(SessionTransport::HttpSse, id, &caller)?;
    let body = body::read_message(endpoint, &caller, body).await?;
    match decode(&body.bytes, &endpoint.limits()) {
        Ok(incoming) => {
            scopes::check(endpoint, &caller, &head, Some(&session), &incoming)?;
            if session.driver.session_rules().is_none() && is_initialize(&incoming) {
                session.reserve_client(body.bytes.len())?;
            }
            let context = caller.request_context(session.driver.connection(), head.headers);
            session.driver.receive(&caller.observed, |engine, now, stream| {
                engine.incoming_with(now, stream, &incoming, context);
            });
        }
        // A malformed body is answered on the stream, as any other.
        Err(error) => {
            session.driver.receive(&caller.observed, |engine, _, stream| engine.malformed(stream, &error));
        }
    }
    Ok(StatusCode::ACCEPTED.into_response())
}

fn is_initialize(incoming: &Incoming<'_>) -> bool {
    matches!(incoming, Incoming::One(Message::Request(request)) if request.method == Method::Initialize.name())
}

/// The session lasts as long as its stream is read.
struct EndSessionOnDrop {
    endpoint: Arc<EndpointState>,
    id: SessionId,
}

impl Drop for EndSessionOnDrop {
    fn drop(&mut self) {
        self.endpoint.sessions.close(&self.id, "the stream of the session ended");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_path_names_no_other_host() {
        for (called, post) in [
            ("/sse", "/messages"),
            ("/a/b/sse", "/a/b/messages"),
            ("/sse?x=/y", "/messages"),
            ("//sse", "/messages"),
            ("//evil.example/sse", "/evil.example/messages"),
            ("///evil.example/x/sse", "/evil.example/x/messages"),
        ] {
            let (head, ()) = axum::http::Request::get(called).body(()).unwrap().into_parts();
            assert_eq!(sibling_path(&head, "/messages"), post, "{called}");
        }
    }
}

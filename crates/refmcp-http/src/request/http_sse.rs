//! HTTP+SSE, the older transport of two endpoints: a stream that carries all the server says, and a place to post
//! what the client says.

use std::borrow::Cow;
use std::sync::Arc;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::Response;
use refmcp_proto::jsonrpc::{decode, excerpt};
use refmcp_server::backplane::SessionId;

use crate::access::caller::Caller;
use crate::access::scopes;
use crate::endpoint::{Inner, original};
use crate::refusal::{Reason, Refusal};
use crate::request::headers::AcceptRule;
use crate::request::post::{check_body, read};
use crate::request::{headers, response};
use crate::routes::{EndpointPath, Target};
use crate::session::SessionTransport;
use crate::session::driver::GET_STREAM;
use crate::stream::sse::{self, EventSource, SseFormat};

/// Opens a session: its first event says where to post.
pub(crate) async fn open(
    endpoint: &Arc<Inner>,
    caller: Caller,
    request: Request,
) -> Result<Response, Refusal> {
    headers::check_accepts_events(request.headers(), endpoint.options.require_accept)?;
    let counted = endpoint.reads()?;
    let mut connection = caller.connection(headers::of_session(request.headers()));
    connection.transport = "http+sse";
    let session =
        endpoint.open_session(SessionTransport::HttpSse, &caller, endpoint.converse(connection)).await?;
    if let Some(finding) = headers::absent_accept(request.headers(), AcceptRule::Get) {
        session.conversation.note(finding);
    }
    // Should anything fail from here on, the session ends.
    let ends = EndsSession { endpoint: endpoint.clone(), id: session.id.clone() };
    let reading = session.conversation.add_reader();
    let source = EventSource::ResponseStream(session.conversation.standing().attach());
    let where_to = sse::endpoint_event(&format!("{}?sessionId={}", messages(&request), session.id.reveal()));
    let style = SseFormat { ids: false, retry: None, keep_alive: endpoint.options.keep_alive };
    Ok(sse::response(endpoint, source, style, where_to, sse::held((counted, reading, ends))))
}

/// The path to post to, beside the one that was called, wherever the endpoint is mounted.
fn messages(request: &Request) -> String {
    beside(request, "/messages")
}

/// A path of ours beside the one that was called.
fn beside(request: &Request, path: &str) -> String {
    let whole = original(request.extensions(), request.uri());
    let folder = whole.path().rsplit_once('/').map_or("", |(folder, _)| folder);
    // What begins with two slashes would name a host.
    let folder = folder.trim_start_matches('/');
    if folder.is_empty() { path.to_owned() } else { format!("/{folder}{path}") }
}

/// What a client is told that uses a method which a path does not have. Those that post to the stream's path take it for
/// streamable HTTP.
pub(crate) fn wrong_method(paths: &EndpointPath, target: Target, request: &Request) -> Cow<'static, str> {
    let path = |target| excerpt(&beside(request, paths.of(target)));
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

/// Takes a message; whatever is to be said to it goes to the stream.
pub(crate) async fn message(
    endpoint: &Arc<Inner>,
    caller: Caller,
    request: Request,
) -> Result<Response, Refusal> {
    let (parts, body) = request.into_parts();
    check_body(&parts.headers)?;
    let id = parts.uri.query().and_then(|query| {
        query.split('&').find_map(|pair| pair.strip_prefix("sessionId=")).map(str::to_owned)
    });
    let id = id.ok_or_else(|| Refusal::bad(Reason::Session, "no sessionId; /sse says where to post"))?;
    let unknown = || Refusal::new(StatusCode::NOT_FOUND, Reason::Session, "there is no such session");
    let session = endpoint.sessions.find(SessionTransport::HttpSse, &id, &caller).ok_or_else(unknown)?;
    let body = read(endpoint, body).await?;
    // What cannot be read is answered on the stream, as everything else is.
    if caller.grant.is_some()
        && let Ok(incoming) = decode(&body, &endpoint.limits())
    {
        scopes::check(endpoint, &caller, &parts, || Some(session.clone()), &incoming)?;
    }
    session.conversation.receive_bytes(GET_STREAM, &body);
    Ok(response::accepted())
}

/// The session lasts as long as its stream is read.
struct EndsSession {
    endpoint: Arc<Inner>,
    id: SessionId,
}

impl Drop for EndsSession {
    fn drop(&mut self) {
        self.endpoint.sessions.close(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    #[test]
    fn messages_go_to_the_host_that_was_called() {
        for (called, post) in [
            ("/sse", "/messages"),
            ("/a/b/sse", "/a/b/messages"),
            ("/sse?x=/y", "/messages"),
            ("//sse", "/messages"),
            ("//evil.example/sse", "/evil.example/messages"),
            ("///evil.example/x/sse", "/evil.example/x/messages"),
        ] {
            let request = axum::http::Request::builder().uri(called).body(Body::empty()).unwrap();
            assert_eq!(messages(&request), post, "{called}");
        }
    }
}

//! The stream of events that belongs to no request.

use std::sync::Arc;

use bytes::Bytes;
use hyper::{Method, StatusCode};
use refmcp_proto::engine::client::WireError;
use refmcp_proto::jsonrpc::excerpt;
use refmcp_proto::revision::Rules;

use super::bookmark::Bookmark;
use super::events::{End, Events};
use super::headers::Content;
use super::line::Line;
use super::refusal::check_encoding;

/// Keeps a stream open for everything that the server says on its own account, as long as it has one to offer.
pub(super) async fn listen(line: Arc<Line>, rules: &'static Rules) {
    let session = line.session().id;
    let mut bookmark = Bookmark::new();
    loop {
        let headers = || line.headers.get(Some(rules), session.clone(), bookmark.id().cloned());
        match line.request(Method::GET, &line.target, Bytes::new(), headers).await {
            Ok(answer)
                if answer.status == StatusCode::OK && Content::of(&answer.headers) == Content::Events =>
            {
                if let Err(fault) = check_encoding(&answer.headers) {
                    return line.ear.noise(&fault.to_string());
                }
                bookmark.opened();
                read(&line, &mut bookmark, Events::new(answer.body, line.max_message)).await;
                bookmark.ended();
            }
            Ok(answer) if answer.status.is_success() => {
                let status = answer.status;
                return line
                    .ear
                    .noise(&format!("status {status} without events, where a stream was asked for"));
            }
            // Not every server has such a stream; this is how they say so.
            Ok(answer)
                if answer.status.is_client_error() && answer.status != StatusCode::TOO_MANY_REQUESTS =>
            {
                return answer.body.drain().await;
            }
            Ok(answer) => answer.body.drain().await,
            Err(WireError::Broken(_) | WireError::Unreachable(_)) => {}
            // Whoever makes a request hears of it; the server has done nothing that is not allowed.
            Err(fault) if fault.needs_authorization() => {
                return tracing::debug!(%fault, "there is no stream for what the server says by itself");
            }
            Err(fault) => return line.ear.noise(&fault.to_string()),
        }
        tokio::time::sleep(bookmark.pause()).await;
        bookmark.attempt();
    }
}

async fn read(line: &Line, bookmark: &mut Bookmark, mut events: Events) {
    loop {
        match events.next().await {
            Ok(item) => match bookmark.note(item) {
                Some(event) if event.event != "message" => {
                    line.ear.noise(&format!("an event named {:?}", excerpt(&event.event)));
                }
                Some(event) => line.ear.message(None, event.data.as_bytes()),
                None => {}
            },
            Err(End::TooLong) => return line.ear.too_long(None, line.max_message),
            Err(End::Broken(_)) => return events.release(),
        }
    }
}

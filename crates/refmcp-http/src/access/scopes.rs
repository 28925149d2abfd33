//! Whether a request's token is good for what the request asks for. That is known once its body was read, and looked at
//! before anything of it is done.

use std::sync::Arc;

use axum::http::request::Parts;
use refmcp_auth::Scopes;
use refmcp_proto::jsonrpc::{Incoming, Message, Request};

use crate::access::caller::Caller;
use crate::access::resource_server::Head;
use crate::endpoint::Inner;
use crate::refusal::Refusal;
use crate::session::HttpSession;

/// Refuses a body as a whole when its token is not good for all of it. The session, if there is one, may have tools of
/// its own.
pub(crate) fn check(
    endpoint: &Inner,
    caller: &Caller,
    parts: &Parts,
    session: impl FnOnce() -> Option<Arc<HttpSession>>,
    body: &Incoming<'_>,
) -> Result<(), Refusal> {
    let (Some(resource_server), Some(grant)) = (&endpoint.options.resource_server, &caller.grant) else {
        return Ok(());
    };
    let (requests, id) = match body {
        Incoming::One(Message::Request(request)) => (vec![request], Some(&request.id)),
        Incoming::One(Message::Notification(_) | Message::Response(_)) => return Ok(()),
        Incoming::Batch(messages) => (messages.iter().flatten().filter_map(request).collect(), None),
    };
    if !requests.iter().any(|request| endpoint.server.may_need_scopes(&request.method)) {
        return Ok(());
    }
    let session = session();
    let needed = requests.into_iter().flat_map(|request| {
        let (method, params) = (&*request.method, request.params.text);
        let own = session.as_ref().map(|session| session.conversation.scopes_needed(method, params));
        // Whichever tool of this name it is going to be, the token is good for it.
        endpoint.server.scopes_needed(method, params).into_iter().chain(own.into_iter().flatten())
    });
    let needed: Vec<Arc<str>> = needed.collect();
    let needed: Scopes = needed.iter().map(|scope| &**scope).collect();
    if grant.granted.scopes.cover(&needed) {
        return Ok(());
    }
    let head = Head::of(&endpoint.options.path, &parts.method, &parts.uri, &parts.extensions, &parts.headers);
    Err(resource_server.lacks(grant, needed, &head).said_to(id))
}

fn request<'a, 'b>(message: &'a Message<'b>) -> Option<&'a Request<'b>> {
    match message {
        Message::Request(request) => Some(request),
        Message::Notification(_) | Message::Response(_) => None,
    }
}

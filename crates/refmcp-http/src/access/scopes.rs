//! Scopes: whether the access token of a request covers what its messages need. They are known once the body was read, and
//! checked before the engine receives it.

use std::sync::Arc;

use axum::http::request::Parts;
use refmcp_auth::Scopes;
use refmcp_proto::jsonrpc::{Incoming, Message, Request};

use crate::access::caller::Caller;
use crate::endpoint::EndpointState;
use crate::refusal::Refusal;
use crate::session::HttpSession;

/// Refuses a body whose token does not cover all of its messages. The session, if there is one, may have its own tools.
pub(crate) fn check(
    endpoint: &EndpointState,
    caller: &Caller,
    head: &Parts,
    session: Option<&HttpSession>,
    body: &Incoming<'_>,
) -> Result<(), Refusal> {
    let (Some(resource_server), Some(token)) = (&endpoint.options.resource_server, &caller.token) else {
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
    let needed = requests.into_iter().flat_map(|request| {
        let (method, params) = (&*request.method, request.params.text);
        let own = session.map(|session| session.driver.scopes_needed(method, params));
        // The token covers each tool of this name, of the server and of the session.
        endpoint.server.scopes_needed(method, params).into_iter().chain(own.into_iter().flatten())
    });
    let needed: Vec<Arc<str>> = needed.collect();
    let needed: Scopes = needed.iter().map(|scope| &**scope).collect();
    if token.access.scopes.cover(&needed) {
        return Ok(());
    }
    Err(resource_server.insufficient_scope(token, needed, head).into_rpc_error(id))
}

fn request<'a, 'b>(message: &'a Message<'b>) -> Option<&'a Request<'b>> {
    match message {
        Message::Request(request) => Some(request),
        Message::Notification(_) | Message::Response(_) => None,
    }
}

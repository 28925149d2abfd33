//! Messages as HTTP requests: headers, the order among them, sessions, redirections, tokens, error responses.

pub(crate) mod error_response;
mod headers;
pub(crate) mod post;
mod requester;
mod tasks;

pub use headers::HeaderError;
pub(crate) use headers::{ContentType, USER_AGENT, event_id, is_reserved};
pub(crate) use requester::{HttpRequest, HttpRequester, observe_request, observe_response};
pub(crate) use tasks::{SendOrder, SendOrderGuard};

//! Streams end when their access token expires or is revoked.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};
use refmcp_auth::resource::{AccessError, digest};

use super::ResourceServer;
use super::verification::VerifiedToken;

/// A body that ends when a token expires. Its chunks are whole events, so no event is cut.
struct ExpiringBody {
    body: Body,
    expired: Pin<Box<dyn Future<Output = ()> + Send>>,
    ended: bool,
}

impl HttpBody for ExpiringBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.ended && self.expired.as_mut().poll(context).is_ready() {
            self.ended = true;
            // What the stream holds is dropped now, not with its connection.
            self.body = Body::empty();
        }
        if self.ended {
            return Poll::Ready(None);
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

impl ResourceServer {
    /// Ends a response that is an SSE stream with the token of its request.
    pub(crate) fn end_with_token(&self, response: Response, token: &Arc<VerifiedToken>) -> Response {
        const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
        if response.headers().get(header::CONTENT_TYPE) != Some(&EVENTS) || response.body().is_end_stream() {
            return response;
        }
        let expired = Box::pin(self.clone().until_expired(token.clone()));
        response.map(|body| Body::new(ExpiringBody { body, expired, ended: false }))
    }

    /// Waits until a token expires, or until introspection finds it inactive.
    pub(crate) async fn until_expired(self, token: Arc<VerifiedToken>) {
        /// The longest sleep: the system's clock may be set in the meantime.
        const MAX_SLEEP: Duration = Duration::from_secs(600);
        let mut until = token.until;
        loop {
            let left = Duration::from_secs(until.saturating_sub(self.now()));
            if left.is_zero() {
                return;
            }
            let step = if token.secret.is_some() { self.settings.options.recheck_every } else { MAX_SLEEP };
            tokio::time::sleep(left.min(step)).await;
            let Some(secret) = &token.secret else { continue };
            match self.verify_token(secret, digest(secret.reveal())).await {
                Ok(token) => until = token.until,
                // The issuer cannot be reached: the token stays valid.
                Err(AccessError::Undecided) => {}
                Err(_) => return,
            }
        }
    }
}

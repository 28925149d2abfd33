//! Streams end when their access token expires or is revoked.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use futures_util::StreamExt;
use refmcp_auth::resource::{AccessError, digest};

use super::ResourceServer;
use super::verification::VerifiedToken;

impl ResourceServer {
    /// Ends a response that is an SSE stream with the token of its request.
    pub(crate) fn end_with_token(&self, response: Response, token: &Arc<VerifiedToken>) -> Response {
        const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
        if response.headers().get(header::CONTENT_TYPE) != Some(&EVENTS) || response.body().is_end_stream() {
            return response;
        }
        let expired = Box::pin(self.clone().until_expired(token.clone()));
        // Its chunks are whole events, so no event is cut.
        response.map(|body| Body::from_stream(body.into_data_stream().take_until(expired)))
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

//! Responses that end with the token they were given for.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, header};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::ResourceServer;
use super::verification::VerifiedToken;

/// A body that ends when something is over. What is sent in one piece is whole events, so none is torn.
struct Ending {
    body: Body,
    over: Pin<Box<dyn Future<Output = ()> + Send>>,
    ended: bool,
}

impl HttpBody for Ending {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if !self.ended && self.over.as_mut().poll(context).is_ready() {
            self.ended = true;
            // Whatever hangs on the stream ends now and not when its connection does.
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
    /// The same response, but a stream of events ends with the grant it was opened by.
    pub(crate) fn ending(&self, response: Response, grant: &Arc<VerifiedToken>) -> Response {
        const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
        if response.headers().get(header::CONTENT_TYPE) != Some(&EVENTS) {
            return response;
        }
        let over = Box::pin(self.clone().over(grant.clone()));
        response.map(
            |body| {
                if body.is_end_stream() { body } else { Body::new(Ending { body, over, ended: false }) }
            },
        )
    }
}

//! Heads and bodies of HTTP as they pass: which fields belong to one connection alone, and a body that is seen.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::HeaderMap;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{
    CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
};
use refmcp_auth::header_value::{list, lists};
use refmcp_client::observer::{Direction, Observed};

use super::taps::{Content, Tap};

/// A body that is seen as it passes.
pub(super) struct SeenBody {
    body: Incoming,
    tap: Option<Tap>,
    /// The stream whose end is told, if this is a response.
    response: Option<Observed>,
    has_ended: bool,
}

impl SeenBody {
    pub(super) fn new(body: Incoming, tap: Tap, response: Option<Observed>) -> Self {
        Self { body, tap: Some(tap), response, has_ended: false }
    }
}

impl Drop for SeenBody {
    fn drop(&mut self) {
        // What is left of the body is told before its end.
        drop(self.tap.take());
        if let Some(stream) = &self.response {
            let has_ended = self.has_ended || self.body.is_end_stream();
            stream.stream_ended(if has_ended { Direction::Received } else { Direction::Sent });
        }
    }
}

impl Body for SeenBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Ready(Some(Ok(frame))) => {
                if let (Some(data), Some(tap)) = (frame.data_ref(), &mut self.tap) {
                    tap.feed(data);
                }
            }
            Poll::Ready(None) => self.has_ended = true,
            // A body that broke has neither ended nor been left.
            Poll::Ready(Some(Err(_))) => self.response = None,
            Poll::Pending => {}
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Where messages are in a body of these headers.
pub(super) fn content(headers: &HeaderMap) -> Content {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let is_plain = |encoding: &&str| encoding.eq_ignore_ascii_case("identity");
    match text(CONTENT_ENCODING).filter(|encoding| !is_plain(encoding)) {
        Some(encoding) => Content::whole(Some(encoding.to_owned())),
        None if text(CONTENT_TYPE).is_some_and(|kind| kind.starts_with("text/event-stream")) => {
            Content::events()
        }
        None => Content::whole(None),
    }
}

/// `websocket`, where a client wants to change to it, or a server does. In another protocol, such as HTTP/2, requests would
/// pass that are not checked.
pub(super) fn upgrade(headers: &HeaderMap) -> Option<HeaderValue> {
    let wanted = lists(headers, &CONNECTION, "upgrade").then(|| headers.get(UPGRADE))??;
    wanted.as_bytes().eq_ignore_ascii_case(b"websocket").then(|| wanted.clone())
}

/// Whether the body of a message is encoded for one connection in a way that is not undone here.
pub(super) fn has_transfer_coding(headers: &HeaderMap) -> bool {
    headers
        .get_all(TRANSFER_ENCODING)
        .iter()
        .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
}

/// Removes what belongs to one connection alone (RFC 9110, 7.6.1), except for a change of the protocol that both sides are
/// to hear of. A length beside chunks is not theirs (RFC 9112, 6.3), and the other side could take it for it.
pub(super) fn remove_hop_by_hop(headers: &mut HeaderMap, upgrade: Option<HeaderValue>) {
    let named: Vec<HeaderName> = list(headers, &CONNECTION).filter_map(|name| name.parse().ok()).collect();
    let keep_alive = HeaderName::from_static("keep-alive");
    let proxy_connection = HeaderName::from_static("proxy-connection");
    let of_proxies = [PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, proxy_connection];
    let known = [CONNECTION, TE, TRANSFER_ENCODING, UPGRADE, keep_alive].into_iter().chain(of_proxies);
    if headers.contains_key(TRANSFER_ENCODING) {
        headers.remove(CONTENT_LENGTH);
    }
    for name in named.into_iter().chain(known) {
        headers.remove(name);
    }
    if let Some(upgrade) = upgrade {
        headers.insert(UPGRADE, upgrade);
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let fields = fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)));
        fields.collect()
    }

    #[test]
    fn fields_of_one_connection_are_removed_and_all_others_stay() {
        let mut fields = headers(&[
            ("connection", "close, X-Own"),
            ("x-own", "1"),
            ("keep-alive", "timeout=5"),
            ("te", "trailers"),
            ("transfer-encoding", "chunked"),
            ("content-length", "7"),
            ("proxy-authorization", "Basic a"),
            ("proxy-authenticate", "Basic"),
            ("authorization", "Bearer t"),
            ("x-other", "2"),
        ]);
        assert_eq!(upgrade(&fields), None);
        remove_hop_by_hop(&mut fields, None);
        assert_eq!(fields, headers(&[("authorization", "Bearer t"), ("x-other", "2")]));
    }

    #[test]
    fn chunks_are_the_only_coding() {
        for (coding, is_other) in [("chunked", false), ("Chunked", false), ("gzip, chunked", true)] {
            assert_eq!(has_transfer_coding(&headers(&[("transfer-encoding", coding)])), is_other, "{coding}");
        }
    }

    #[test]
    fn a_change_of_the_protocol_passes() {
        let mut fields = headers(&[("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")]);
        let wanted = upgrade(&fields);
        assert_eq!(wanted, Some(HeaderValue::from_static("websocket")));
        remove_hop_by_hop(&mut fields, wanted);
        assert_eq!(fields, headers(&[("upgrade", "websocket"), ("connection", "upgrade")]));
        assert_eq!(upgrade(&headers(&[("upgrade", "websocket")])), None, "it is not for this connection");
        assert_eq!(upgrade(&headers(&[("connection", "upgrade"), ("upgrade", "h2c")])), None);
    }
}

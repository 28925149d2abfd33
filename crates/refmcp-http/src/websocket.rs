//! WebSocket: a pipe of text frames, one message each. The protocol does not define it; it behaves as stdio does.

use std::collections::VecDeque;
use std::io;

use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use refmcp_server::transport::pipe::{Frame, FrameReader, FrameWriter};

use crate::endpoint::Endpoint;
use crate::post::connection;

/// Whether the client wants to leave HTTP.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.get(header::UPGRADE).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"websocket"))
}

pub(crate) async fn upgrade(State(endpoint): State<Endpoint>, request: Request) -> Response {
    upgrade_request(endpoint, request).await
}

pub(crate) async fn upgrade_request(endpoint: Endpoint, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(refusal) => return refusal.into_response(),
    };
    let most = endpoint.inner.options.body_bytes;
    let mut connection = connection(&parts);
    connection.transport = "websocket";
    let upgrade = upgrade.protocols(["mcp"]).max_message_size(most).max_frame_size(most);
    upgrade.on_upgrade(move |socket| async move {
        let stop = endpoint.inner.stop.child_token();
        let (sink, stream) = socket.split();
        let pipe = (
            Frames { stream, current: Bytes::new(), fresh: false },
            Queue { sink, queue: VecDeque::new(), bytes: 0 },
        );
        if let Err(fault) = endpoint.inner.server.serve(pipe, connection, stop).await {
            tracing::debug!(%fault, "a WebSocket ended");
        }
    })
}

/// Messages that come in.
struct Frames {
    stream: SplitStream<WebSocket>,
    /// The frame that came last, and whether it was handed out.
    current: Bytes,
    fresh: bool,
}

impl FrameReader for Frames {
    async fn fill(&mut self) -> io::Result<bool> {
        loop {
            match self.stream.next().await {
                Some(Ok(Message::Text(text))) => {
                    self.current = text.into();
                    self.fresh = true;
                    return Ok(true);
                }
                // Pings are answered by the library; only text is ours.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                Some(Ok(Message::Binary(_))) => {
                    return Err(io::Error::new(io::ErrorKind::ConnectionAborted, "a binary frame"));
                }
                Some(Ok(Message::Close(_))) | None => return Ok(false),
                Some(Err(fault)) => return Err(io::Error::new(io::ErrorKind::ConnectionAborted, fault)),
            }
        }
    }

    fn next_frame(&mut self) -> Option<Frame<'_>> {
        std::mem::take(&mut self.fresh).then(|| Frame::Message(&self.current))
    }
}

/// Messages that go out.
struct Queue {
    sink: SplitSink<WebSocket, Message>,
    queue: VecDeque<Message>,
    bytes: usize,
}

impl FrameWriter for Queue {
    fn push(&mut self, json: &[u8]) {
        self.bytes += json.len();
        self.queue.push_back(Message::Text(String::from_utf8_lossy(json).into_owned().into()));
    }

    fn pending(&self) -> usize {
        self.bytes
    }

    async fn flush(&mut self) -> io::Result<()> {
        let gone = |fault: axum::Error| io::Error::new(io::ErrorKind::BrokenPipe, fault);
        while !self.queue.is_empty() {
            // Only what the sink has room for leaves the queue, so nothing is lost when this is dropped.
            std::future::poll_fn(|context| self.sink.poll_ready_unpin(context)).await.map_err(gone)?;
            if let Some(message) = self.queue.pop_front() {
                self.sink.start_send_unpin(message).map_err(gone)?;
            }
        }
        self.sink.flush().await.map_err(gone)?;
        self.bytes = 0;
        Ok(())
    }
}

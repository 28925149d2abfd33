//! A message on its way to the client, and what it waits for.

use bytes::Bytes;
use refmcp_proto::engine::MessageKind;
use refmcp_server::backplane::PostKey;
use tokio::sync::watch;

#[derive(Debug, Clone)]
pub(crate) struct Message {
    pub(crate) json: Bytes,
    pub(crate) kind: MessageKind,
    /// The key of a message that several replicas post to the GET stream.
    pub(crate) post_key: Option<PostKey>,
    /// The message is logged when this is open.
    pub(crate) gate: Option<Gate>,
}

/// What has to be done before a message is logged. It opens when its sender is dropped. The value is whether that failed.
#[derive(Debug, Clone)]
pub(crate) struct Gate(watch::Receiver<bool>);

impl Gate {
    pub(crate) fn new() -> (watch::Sender<bool>, Self) {
        let (closed, gate) = watch::channel(false);
        (closed, Self(gate))
    }

    /// Waits until it is open; `false` if its messages are not to be sent.
    pub(crate) async fn opened(mut self) -> bool {
        while self.0.changed().await.is_ok() {}
        !*self.0.borrow()
    }
}

impl Message {
    pub(crate) fn is_response(&self) -> bool {
        matches!(self.kind, MessageKind::Response { .. })
    }

    /// The error code of an answer that is an error.
    pub(crate) fn error_code(&self) -> Option<i64> {
        match self.kind {
            MessageKind::Response { error } => error,
            MessageKind::Notification | MessageKind::Request => None,
        }
    }
}

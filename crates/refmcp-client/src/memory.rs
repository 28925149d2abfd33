//! A server in the same process, for tests.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use refmcp_proto::engine::client::TransportError;
use refmcp_transport::pipe::{FrameReader, FrameWriter};

use crate::pipe::{DEFAULT_MAX_MESSAGE_SIZE, PipeTransport};
use crate::transport::{Connecting, Connector, MessageSink, Transport};

type Start = Box<dyn FnOnce(Arc<dyn MessageSink>) -> Arc<dyn Transport> + Send>;

/// One end of a pair of in-memory pipes, with a server at the other. It can be connected once.
pub struct Memory {
    start: Mutex<Option<Start>>,
}

impl Memory {
    /// Uses this end: of [`refmcp_transport::memory::pair`], or any other pair of reader and writer.
    pub fn new<R: FrameReader + 'static, W: FrameWriter + 'static>(end: (R, W)) -> Self {
        let start = |sink| PipeTransport::start(end, sink, DEFAULT_MAX_MESSAGE_SIZE);
        Self { start: Mutex::new(Some(Box::new(start))) }
    }
}

impl Connector for Memory {
    fn connect(&self, sink: Arc<dyn MessageSink>) -> Connecting<'_> {
        Box::pin(async move {
            let start = self.start.lock().take();
            let used = || TransportError::Unreachable("the end of the pipe is already in use".to_owned());
            Ok(start.ok_or_else(used)?(sink))
        })
    }

    fn transport(&self) -> &'static str {
        "memory"
    }

    fn name(&self) -> String {
        "a server in this process".to_owned()
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = self.start.lock().is_none();
        f.debug_struct("Memory").field("used", &used).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct NullSink;

    impl MessageSink for NullSink {
        fn message(&self, _: Option<refmcp_proto::engine::client::ExchangeId>, _: &[u8]) {}
        fn too_long(&self, _: Option<refmcp_proto::engine::client::ExchangeId>, _: usize) {}
        fn ended(&self, _: refmcp_proto::engine::client::ExchangeId, _: TransportError) {}
        fn closed(&self, _: TransportError) {}
        fn ignored_input(&self, _: &str) {}
    }

    #[tokio::test]
    async fn it_is_connected_once() {
        let (near, _far) = refmcp_transport::memory::pair(100);
        let memory = Memory::new(near);
        assert!(memory.connect(Arc::new(NullSink)).await.is_ok());
        let again = memory.connect(Arc::new(NullSink)).await.unwrap_err();
        assert_eq!(again.to_string(), "cannot reach the server: the end of the pipe is already in use");
    }
}

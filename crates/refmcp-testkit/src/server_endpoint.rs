//! A real server as the server of a transcript, on a runtime of its own whose clock moves only when the transcript says so.

use std::fmt;
use std::io;
use std::time::Duration;

use refmcp_proto::engine::Change;
use refmcp_server::Server;
use refmcp_server::transport::memory::MemoryPipe;
use refmcp_server::transport::pipe::{Frame, FrameReader, FrameWriter};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use crate::transcript::Endpoint;

/// A server, its runtime, and the client's end of the pipe to it.
pub struct ServerEndpoint {
    runtime: Runtime,
    server: Server,
    pipe: MemoryPipe,
}

/// Under a paused clock this passes when all tasks are idle, and not before.
const UNTIL_IDLE: Duration = Duration::from_millis(1);

impl ServerEndpoint {
    /// Makes a server, inside of the runtime that its time comes from, and connects to it.
    pub fn new<E: fmt::Display>(make: impl FnOnce() -> Result<Server, E>) -> Result<Self, String> {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.map_err(|error: io::Error| error.to_string())?;
        let (server, pipe) = runtime.block_on(async {
            let server = make().map_err(|error| error.to_string())?;
            let pipe = server.in_memory();
            Ok::<_, String>((server, pipe))
        })?;
        Ok(Self { runtime, server, pipe })
    }
}

impl Endpoint for ServerEndpoint {
    fn send(&mut self, text: &str) {
        let writer = &mut self.pipe.1;
        self.runtime.block_on(async {
            writer.push(text.as_bytes());
            while writer.pending() > 0 && writer.flush().await.is_ok() {}
        });
    }

    fn receive(&mut self) -> Vec<String> {
        let reader = &mut self.pipe.0;
        self.runtime.block_on(async {
            let mut texts = Vec::new();
            loop {
                match reader.next_frame() {
                    Some(Frame::Message(bytes)) => texts.push(String::from_utf8_lossy(bytes).into_owned()),
                    Some(Frame::TooLong) => texts.push("a message over the limit".to_owned()),
                    None => match timeout(UNTIL_IDLE, reader.fill()).await {
                        Ok(Ok(true)) => {}
                        _ => return texts,
                    },
                }
            }
        })
    }

    fn advance(&mut self, by: Duration) {
        // Sleeping lets every timer on the way go off in its turn, which a jump would not.
        self.runtime.block_on(async { sleep(by).await });
    }

    fn act(&mut self, order: &str) -> Result<(), String> {
        let change = match order.split_once(' ') {
            Some(("change", "tools")) => Change::Tools,
            Some(("change", "prompts")) => Change::Prompts,
            Some(("change", "resources")) => Change::Resources,
            Some(("change", uri)) => Change::Resource(uri.to_owned()),
            _ => return Err(format!("unknown action: {order}")),
        };
        self.server.changed(&change);
        Ok(())
    }
}

impl fmt::Debug for ServerEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerEndpoint").field("server", &self.server).finish_non_exhaustive()
    }
}

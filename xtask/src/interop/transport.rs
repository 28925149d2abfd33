//! The ways to reach the server: what they are called and where the server says they are.

/// A way to reach the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Transport {
    Stdio,
    StreamableHttp,
    HttpSse,
    WebSocket,
}

pub(crate) const TRANSPORTS: [Transport; 4] =
    [Transport::Stdio, Transport::StreamableHttp, Transport::HttpSse, Transport::WebSocket];

impl Transport {
    /// How it is chosen, and how the clients call it in their results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "http",
            Self::HttpSse => "sse",
            Self::WebSocket => "websocket",
        }
    }

    /// What it is called in headings; the server says its addresses under the same words.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::StreamableHttp => "streamable HTTP",
            Self::HttpSse => "HTTP+SSE",
            Self::WebSocket => "WebSocket",
        }
    }
}

//! A server that reads requests and writes whatever bytes a test wants.

use std::time::Duration;

use refmcp_testkit::paused::PausedTime;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// How long anything may take before a test has failed.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(TEST_TIMEOUT, future).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

/// A server.
#[derive(Debug)]
pub(crate) struct Server {
    listener: TcpListener,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self { listener: TcpListener::bind("127.0.0.1:0").await.unwrap() }
    }

    pub(crate) fn origin(&self) -> String {
        format!("http://{}", self.listener.local_addr().unwrap())
    }

    pub(crate) fn url(&self) -> String {
        format!("{}/mcp", self.origin())
    }

    /// The next connection.
    pub(crate) async fn accept(&self) -> Peer {
        let (stream, _) = in_time("a connection", self.listener.accept()).await.unwrap();
        Self::peer(stream)
    }

    /// The next client.
    pub(crate) fn peer(stream: TcpStream) -> Peer {
        stream.set_nodelay(true).unwrap();
        Peer { stream: BufReader::new(stream) }
    }

    /// The next connection and its first request.
    pub(crate) async fn request(&self) -> (Peer, Seen) {
        let mut peer = self.accept().await;
        let seen = peer.request().await;
        (peer, seen)
    }

    /// True if no client connects, even after so much time. The time is moved by hand.
    pub(crate) async fn is_left_alone(&self, time: Duration) -> bool {
        let paused = PausedTime::start();
        paused.advance(time).await;
        tokio::select! {
            biased;
            _ = self.listener.accept() => false,
            () = paused.settle() => true,
        }
    }
}

/// A request as it came.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Seen {
    /// The only value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(found, _)| found == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert_eq!(values.next(), None, "{name} comes once");
        value
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Peer {
    stream: BufReader<TcpStream>,
}

impl Peer {
    /// The next request on this connection.
    pub(crate) async fn request(&mut self) -> Seen {
        in_time("a request", self.read_request()).await
    }

    async fn line(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    async fn read_request(&mut self) -> Seen {
        let first = self.line().await;
        let mut words = first.split(' ').map(str::to_owned);
        let (method, path) = (words.next().unwrap(), words.next().unwrap_or_default());
        let mut headers = Vec::new();
        loop {
            let line = self.line().await;
            let Some((name, value)) = line.split_once(':') else { break };
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let length = headers.iter().find(|(name, _)| name == "content-length");
        let length = length.map_or(0, |(_, length)| length.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).await.unwrap();
        Seen { method, path, headers, body: String::from_utf8(body).unwrap() }
    }

    /// Whether nothing more has come on this connection, while the time stands still.
    pub(crate) async fn is_left_alone(&mut self, paused: &PausedTime) -> bool {
        paused.settle().await;
        tokio::select! {
            biased;
            // No bytes at all are the end of the connection.
            come = self.stream.fill_buf() => come.is_ok_and(<[u8]>::is_empty),
            () = paused.settle() => true,
        }
    }

    /// Writes bytes as they are.
    pub(crate) async fn write(&mut self, bytes: impl AsRef<[u8]>) {
        in_time("writing", self.stream.write_all(bytes.as_ref())).await.unwrap();
    }

    /// Writes bytes until the other side has gone.
    pub(crate) async fn write_for_ever(&mut self, bytes: &[u8]) {
        in_time("the other side to leave", async { while self.stream.write_all(bytes).await.is_ok() {} })
            .await;
    }

    /// A response with a body of known length.
    pub(crate) async fn respond(&mut self, status: u16, headers: &str, body: &str) {
        let length = body.len();
        self.write(format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n{headers}\r\n{body}")).await;
    }

    pub(crate) async fn json(&mut self, body: &str) {
        self.respond(200, "Content-Type: application/json\r\n", body).await;
    }

    pub(crate) async fn accepted(&mut self) {
        self.respond(202, "", "").await;
    }

    /// The head of a response that is a stream of events.
    pub(crate) async fn stream(&mut self) {
        self.write(
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n",
        )
        .await;
    }

    /// A piece of such a stream.
    pub(crate) async fn chunk(&mut self, text: &str) {
        self.write(format!("{:x}\r\n{text}\r\n", text.len())).await;
    }

    /// The end of such a stream.
    pub(crate) async fn end(&mut self) {
        self.write("0\r\n\r\n").await;
    }

    /// Waits until the other side has ended the connection.
    pub(crate) async fn gone(&mut self) {
        let mut rest = Vec::new();
        // A reset is as good an end as any.
        let _ended = in_time("the connection to end", self.stream.read_to_end(&mut rest)).await;
        assert_eq!(String::from_utf8_lossy(&rest), "", "nothing more was to be said");
    }
}

//! A connection for others than probes: nothing is judged, nothing is answered, and a listener gets all that passes.

use std::time::Duration;

use super::http::{Http, HttpRequest};
use super::pipe::Pipe;
use super::{Audit, Connection, Wants};
use crate::target::{Target, TargetTransport};
use refmcp_audit::recording::EventKind;

/// A connection that exact bytes are sent over. What comes back goes to the listener of the target.
#[derive(Debug)]
pub struct RawConnection(Connection);

impl RawConnection {
    /// Opens a connection, and sends nothing.
    ///
    /// # Errors
    /// There is none within this time.
    pub async fn open(target: &Target, within: Duration) -> Result<Self, String> {
        let audit = Audit::unjudged(target.events());
        Ok(Self(match &target.transport {
            TargetTransport::Pipe(connector) | TargetTransport::Sse(connector, _) => {
                Connection::Pipe(Pipe::open(&**connector, false, audit, within).await?)
            }
            TargetTransport::Child(child) => Connection::Pipe(Pipe::open(child, false, audit, within).await?),
            TargetTransport::Http(http) => Connection::Http(Http::new(http.clone(), false, audit)),
        }))
    }

    /// Whether messages are sent by [`request`](Self::request), each in an HTTP request, and not by [`write`](Self::write).
    pub fn is_http(&self) -> bool {
        matches!(self.0, Connection::Http(_))
    }

    /// Sends a line or a frame.
    pub fn write(&self, text: &str) {
        if let Connection::Pipe(pipe) = &self.0 {
            pipe.write(text);
        }
    }

    /// Sends an HTTP request with a number of its own, and reads its response to the end. A redirection within the server is
    /// followed once.
    pub async fn request(&self, stream: u64, request: &HttpRequest, within: Duration) {
        if let Connection::Http(http) = &self.0 {
            let answer = http.send_on(stream, request, &Wants::Body, within).await;
            if let Some(http) = http.redirected(&answer) {
                http.send_on(stream, request, &Wants::Body, within).await;
            }
        }
    }

    /// Closes the connection.
    pub async fn close(&self) {
        if let Connection::Pipe(pipe) = &self.0 {
            pipe.end().await;
        }
        self.0.audit().tell(EventKind::Closed { why: "finished".to_owned() });
    }
}

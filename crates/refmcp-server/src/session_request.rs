//! Requests to the client of a session that belong to no call.

use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::engine::{InputOutcome, SessionRequest};
use refmcp_proto::jsonrpc::RequestId;
use refmcp_transport::EngineHandle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::error::ServerRequestError;
use crate::server_request::ServerRequest;
use crate::session::Session;

/// The requests of a session that wait for their responses. The engine limits how many there are.
#[derive(Default)]
pub(crate) struct OpenRequests(Mutex<Vec<(RequestId, oneshot::Sender<InputOutcome>)>>);

/// How often it is looked whether the connection is still there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Session {
    /// Sends the client a request outside of any call, and waits for its response. Over HTTP it travels on the GET stream:
    /// a client that opens none never gets it, and the request ends with [`ServerRequestError::TimedOut`].
    ///
    /// # Errors
    /// The session is not open or has ended, or the client does not support the request, refuses it or does not answer.
    pub async fn request<A>(&self, request: impl Into<ServerRequest<A>>) -> Result<A, ServerRequestError> {
        let request = request.into();
        let result = self.respond(SessionRequest::Input(request.request.clone())).await?;
        let key = request.request.method().to_owned();
        request.read(result).map_err(|why| ServerRequestError::InvalidResult { key, why })
    }

    /// Asks whether the client is there, and waits for its response.
    ///
    /// # Errors
    /// As of [`request`](Self::request).
    pub async fn ping(&self) -> Result<(), ServerRequestError> {
        self.respond(SessionRequest::Ping).await.map(drop)
    }

    async fn respond(&self, request: SessionRequest) -> Result<serde_json::Value, ServerRequestError> {
        let (sender, mut receiver) = oneshot::channel();
        let open = self.value::<OpenRequests>();
        let handle = self.handle().cloned().unwrap_or_else(EngineHandle::disconnected);
        let sent = |id: RequestId| {
            let mut open = open.0.lock();
            // What was dropped by its handler is waited for no more.
            open.retain(|(_, sender)| !sender.is_closed());
            open.push((id, sender));
        };
        let made = handle.request_client(self.server().now(), request, sent);
        made.ok_or(ServerRequestError::Closed)?.map_err(ServerRequestError::Unsupported)?;
        let outcome = loop {
            match timeout(LOOK_EVERY, &mut receiver).await {
                Ok(outcome) => break outcome.map_err(|_| ServerRequestError::Closed)?,
                Err(_) if handle.inspect(|_| ()).is_none() => return Err(ServerRequestError::Closed),
                Err(_) => {}
            }
        };
        match outcome {
            InputOutcome::Response(value) => Ok(value),
            InputOutcome::Error(error) => Err(ServerRequestError::Refused(error)),
            InputOutcome::TimedOut => Err(ServerRequestError::TimedOut),
        }
    }
}

impl OpenRequests {
    /// Hands an outcome to what waits for it.
    pub(crate) fn responded(&self, id: &RequestId, outcome: InputOutcome) {
        let mut open = self.0.lock();
        if let Some(at) = open.iter().position(|(known, _)| known == id) {
            // It may wait no longer.
            let _ = open.swap_remove(at).1.send(outcome);
        }
    }
}

//! Requests to the client that belong to no call: a session can make them whenever it is open.

use super::ServerEngine;
use super::calls::input_closed_error;
use super::client_tasks::keep_task_wish;
use super::input_rounds::OpenRequest;
use crate::engine::{CallFailure, MessageKind, MessageTarget, SessionRequest, SharedOutput};
use crate::jsonrpc::{RequestId, RpcError, encode};
use crate::model::JsonObject;
use crate::revision::{InputMode, ServerMethod, downgrade};
use crate::time::Timestamp;

/// Requests of a session that may be without a response at a time.
const MAX_OPEN: usize = 16;

impl ServerEngine {
    /// Sends the client a request on whichever stream the session listens; its response comes as
    /// [`Output::ClientResponded`](crate::engine::Output::ClientResponded).
    ///
    /// # Errors
    /// There is no open session, the client does not support the request, or too many wait for their responses.
    pub fn request_client(
        &mut self,
        now: Timestamp,
        request: SessionRequest,
    ) -> Result<RequestId, CallFailure> {
        let peer = self.phase.peer().filter(|_| self.is_ready()).cloned();
        let peer = peer.filter(|peer| peer.rules().input_mode == InputMode::ServerRequest);
        let Some(peer) = peer else {
            return Err(RpcError::invalid_request("there is no open session to send a request in").into());
        };
        if self.input_closed {
            return Err(input_closed_error().into());
        }
        if self.server_requests.of_session() >= MAX_OPEN {
            let why = format!("{MAX_OPEN} requests of the session have no response yet");
            return Err(RpcError::internal(why).into());
        }
        let input = match request {
            SessionRequest::Ping => None,
            SessionRequest::Input(request) => {
                peer.check_support(&request)?;
                let mut request = downgrade::input_request(peer.rules(), request)?;
                downgrade::remove_context(&peer.capabilities, &mut request);
                keep_task_wish(&peer, &mut request);
                Some(request)
            }
        };
        let within = self.config.timeouts.client_response;
        let id = self.server_requests.open(OpenRequest::new(None, now + within, input.as_ref()));
        self.share(SharedOutput::Expect { ids: vec![id.clone()], within, call: None });
        self.send(MessageTarget::Session, MessageKind::Request, |json| match input {
            None => encode::request(json, &id, ServerMethod::Ping.name(), &JsonObject::new()),
            Some(mut request) => {
                downgrade::set_elicitation_id(&mut request, &id);
                encode::request(json, &id, request.method(), &request.params())
            }
        });
        Ok(id)
    }
}

//! Keepalive: a ping after silence, and the end of the session when no response comes.

use super::ServerEngine;
use crate::engine::{CloseReason, MessageKind, MessageTarget, Output, SharedOutput, Timeouts};
use crate::jsonrpc::{RequestId, encode};
use crate::model::JsonObject;
use crate::revision::ServerMethod;
use crate::time::Timestamp;

#[derive(Debug, Default)]
pub(super) struct Keepalive {
    last_message: Option<Timestamp>,
    /// The open ping.
    ping: Option<Box<Ping>>,
}

#[derive(Debug)]
struct Ping {
    id: RequestId,
    until: Timestamp,
}

impl Keepalive {
    pub(super) fn start(&mut self, now: Timestamp) {
        self.last_message = Some(now);
    }

    pub(super) fn message_received(&mut self, now: Timestamp, timeouts: &Timeouts) {
        if self.last_message.is_some() {
            self.last_message = Some(now);
        }
        // Any message shows that the peer is alive; its response to the ping may be queued behind others.
        if let Some(ping) = &mut self.ping {
            ping.until = now + timeouts.pong;
        }
    }

    pub(super) fn deadline(&self, timeouts: &Timeouts) -> Option<Timestamp> {
        match &self.ping {
            Some(ping) => Some(ping.until),
            None => Some(self.last_message? + timeouts.ping_after?),
        }
    }

    /// Takes a response, if it is the one to the open ping.
    pub(super) fn take_response(&mut self, id: &RequestId) -> bool {
        let ours = self.ping.as_ref().is_some_and(|ping| ping.id == *id);
        if ours {
            self.ping = None;
        }
        ours
    }
}

impl ServerEngine {
    pub(super) fn check_keepalive(&mut self, now: Timestamp) {
        let keepalive = self.keepalive.deadline(&self.config.timeouts);
        if keepalive.is_none_or(|deadline| now < deadline) {
            return;
        }
        if self.keepalive.ping.take().is_some() {
            self.outputs.push_back(Output::Close(CloseReason::PingTimeout));
            self.keepalive.last_message = None;
            return;
        }
        let id = self.server_requests.new_id();
        let within = self.config.timeouts.pong;
        self.keepalive.ping = Some(Box::new(Ping { id: id.clone(), until: now + within }));
        // The response may arrive at another process, and is then no message of the client here.
        self.keepalive.last_message = Some(now);
        self.share(SharedOutput::Expect { ids: vec![id.clone()], within, call: None });
        self.send(MessageTarget::Session, MessageKind::Request, |json| {
            encode::request(json, &id, ServerMethod::Ping.name(), &JsonObject::new())
        });
    }
}

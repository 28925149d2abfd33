//! Progress (`notifications/progress`) and log messages of calls: those that the client wants, by its `progressToken` and
//! log level, and none twice when a handler runs again. There is no rate limit; progress that does not grow is dropped.

use serde::Serialize;

use super::ServerEngine;
use crate::engine::{CallId, LogMessage, MessageKind, MessageTarget, Progress};
use crate::jsonrpc::encode;
use crate::model::{LogParams, ProgressParams, ServerNotification, plain_number};
use crate::revision::{LogScope, NotificationMethod};

impl ServerEngine {
    /// Sends progress of a call, if the client gave a token and the value grows.
    pub fn progress(&mut self, number: CallId, progress: Progress) {
        let Some(call) = self.calls.get_mut(number) else { return };
        let Some(token) = call.progress_token.clone() else { return };
        let value = progress.progress;
        if !value.is_finite() || call.progress.is_some_and(|seen| value <= seen) {
            return;
        }
        call.progress = Some(value);
        let params = ProgressParams {
            message: progress.message.filter(|_| call.peer.rules().progress_message),
            total: progress.total.and_then(plain_number),
            ..ProgressParams::new(token, value)
        };
        let to = MessageTarget::Exchange(call.exchange);
        self.send(to, MessageKind::Notification, |json| {
            encode::notification(json, NotificationMethod::Progress.name(), Some(&params))
        });
    }

    /// Sends a notification that the engine knows nothing of, for a call or for the session.
    pub fn notify(&mut self, call: Option<CallId>, notification: &ServerNotification) {
        let to = match call {
            Some(number) => self.calls.get(number).map(|call| MessageTarget::Exchange(call.exchange)),
            None => self.phase.peer().map(|_| MessageTarget::Session),
        };
        let Some(to) = to else { return };
        #[derive(Serialize)]
        struct Message<'a> {
            jsonrpc: &'static str,
            #[serde(flatten)]
            notification: &'a ServerNotification,
        }
        let message = Message { jsonrpc: "2.0", notification };
        self.send(to, MessageKind::Notification, |json| serde_json::to_writer(json, &message));
    }

    /// Sends a log message, for a call or for the session as a whole, if the client wants it.
    pub fn log(&mut self, call: Option<CallId>, note: LogMessage) {
        if self.config.capabilities.logging.is_none() {
            return;
        }
        let (to, least) = match call {
            Some(number) => {
                let Some(call) = self.calls.get_mut(number) else { return };
                call.logs_made += 1;
                // A forwarded call goes on after an input round; any other runs again and logs the same again.
                if call.logs_made <= call.logs_seen && !self.config.forwards {
                    return;
                }
                call.logs_seen = call.logs_made;
                let least = match call.peer.rules().log_scope {
                    LogScope::Session => Some(self.log_level),
                    LogScope::Request => call.log_level,
                };
                (MessageTarget::Exchange(call.exchange), least)
            }
            // Without a session there is nowhere to send what belongs to no request.
            None => (MessageTarget::Session, self.phase.peer().map(|_| self.log_level)),
        };
        if least.is_none_or(|least| note.level < least) {
            return;
        }
        let params = LogParams { logger: note.logger, ..LogParams::new(note.level, note.data) };
        self.send(to, MessageKind::Notification, |json| {
            encode::notification(json, NotificationMethod::Log.name(), Some(&params))
        });
    }
}

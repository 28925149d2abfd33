//! Notifications of the server behind that belong to no call: to the session in front, or to all clients that listen.

use std::sync::{Arc, OnceLock, Weak};

use refmcp_proto::engine::{Change, LogMessage};
use refmcp_proto::model::{LogParams, ServerNotification};
use refmcp_server::{Session, WeakServer};

/// Where notifications that belong to no call go.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    /// The session that the connection belongs to; none for stateless requests.
    pub(super) session: OnceLock<Weak<Session>>,
    /// The server in front, once it is built.
    pub(super) server: Arc<OnceLock<WeakServer>>,
    /// Whether a change concerns all clients of the server in front: the only one, or all that are stateless.
    pub(super) all: bool,
}

impl Listeners {
    pub(super) async fn deliver(&self, notification: ServerNotification) {
        let session = self.session.get().and_then(Weak::upgrade);
        let change = match notification {
            ServerNotification::ToolsListChanged(_) => Change::Tools,
            ServerNotification::PromptsListChanged(_) => Change::Prompts,
            ServerNotification::ResourcesListChanged(_) => Change::Resources,
            ServerNotification::ResourceUpdated(updated) => Change::Resource(updated.uri),
            other => {
                let Some(session) = session else { return };
                return match other {
                    ServerNotification::Log(log) => session.log(log_message(log)).await,
                    other => session.notify(other).await,
                };
            }
        };
        match session {
            Some(session) if !self.all => session.changed(change).await,
            _ => {
                if let Some(server) = self.server.get().and_then(WeakServer::upgrade) {
                    server.changed(&change);
                }
            }
        }
    }
}

fn log_message(log: LogParams) -> LogMessage {
    LogMessage { level: log.level, logger: log.logger, data: log.data }
}

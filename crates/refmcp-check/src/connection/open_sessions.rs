//! The sessions that a server over HTTP has opened for a check: whatever a probe leaves open is ended at the end of the run.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_proto::revision::Revision;
use serde_json::Value;

use super::{Answer, Http, HttpRequest, Wants};

/// How long the end of a session is waited for.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// Sessions that are remembered; a server that opens more than that at a time is of no use to anyone.
const MAX_SESSIONS: usize = 4096;

const SESSION_ID: &str = "mcp-session-id";

/// The sessions that are open at a server.
#[derive(Debug, Clone, Default)]
pub(crate) struct OpenSessions(Arc<Mutex<Vec<OpenSession>>>);

#[derive(Debug)]
struct OpenSession {
    id: String,
    /// The revision that was negotiated, once it is known.
    revision: Option<Revision>,
}

impl OpenSessions {
    /// Takes note of what an answer opens or ends. It is called when the head is there, and when the body is.
    pub(super) fn note(&self, request: &HttpRequest, answer: &Answer) {
        let is_success = answer.status.is_some_and(|status| (200..300).contains(&status));
        let mut open = self.0.lock();
        if request.method == "DELETE" {
            // 404: it has ended already. 405: the server ends sessions by itself.
            if is_success || matches!(answer.status, Some(404 | 405)) {
                open.retain(|known| Some(&*known.id) != request.header(SESSION_ID));
            }
            return;
        }
        let Some(id) = answer.header(SESSION_ID).filter(|_| is_success && is_initialize(&request.body))
        else {
            return;
        };
        let spoken = answer.messages.iter().find_map(|it| it.get("result")?.get("protocolVersion")?.as_str());
        let revision = spoken.and_then(|spoken| spoken.parse().ok());
        if let Some(known) = open.iter_mut().find(|known| known.id == id) {
            known.revision = revision.or(known.revision);
        } else if open.len() < MAX_SESSIONS {
            open.push(OpenSession { id: id.to_owned(), revision });
        }
    }

    fn first(&self) -> Option<String> {
        self.0.lock().first().map(|open| open.id.clone())
    }

    fn revision(&self, id: &str) -> Option<Revision> {
        self.0.lock().iter().find(|open| open.id == id)?.revision
    }

    fn forget(&self, id: &str) {
        self.0.lock().retain(|open| open.id != id);
    }
}

fn is_initialize(body: &str) -> bool {
    let message: Value = serde_json::from_str(body).unwrap_or_default();
    message.get("method").is_some_and(|method| method == "initialize")
}

impl Http {
    /// Ends a session of the server, in the revision that was negotiated.
    pub(crate) async fn delete(&self, id: &str, revision: Revision) {
        let revision = self.open_sessions().revision(id).unwrap_or(revision);
        let mut request = HttpRequest::new("DELETE", &[(SESSION_ID, id)], "");
        if revision.rules().version_header {
            request = request.with("mcp-protocol-version", revision.as_str());
        }
        self.send(&request, &Wants::Body, DELETE_TIMEOUT).await;
        // It was asked for once; a server that does not end it is not asked again.
        self.open_sessions().forget(id);
    }

    /// Ends every session that is still open.
    pub(crate) async fn delete_all(&self) {
        while let Some(id) = self.open_sessions().first() {
            self.delete(&id, Revision::LATEST_SESSION).await;
        }
    }
}

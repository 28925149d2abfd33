//! The tour: the server makes everything happen to a client that may happen to it, each thing once, in a stated order.
//!
//! | file | what it is |
//! |---|---|
//! | `step` | the steps as a table |
//! | `progress` | how far the tour of one client is: no IO, and no clock |
//! | `requests` | the steps that ask the client |
//! | `changes` | the steps that change lists and resources |
//! | `in_call` | steps at the beginning of calls |
//! | `in_session` | steps while a session is open and no call is in flight |
//! | `tool` | the tool `tour`, whose results are steps too |
//!
//! A client is known by the name and version that it gives itself, so its tour goes on in its next session.

mod changes;
mod in_call;
mod in_session;
mod progress;
mod requests;
mod step;
mod tool;

use std::sync::Arc;

use parking_lot::Mutex;
use refmcp_server::model::Implementation;
use refmcp_server::peer::Peer;
use refmcp_server::{ServerBuilder, VersionChoice};

use progress::TourProgress;
pub use step::{Occasion, Step, TourSteps, UnknownStep};

/// What the server tells the model on the other side.
pub(crate) const INSTRUCTIONS: &str =
    "To go through the tour, call the tool tour again and again, and do what its results say.";

/// Clients whose tours are kept; the oldest makes room.
const MAX_CLIENTS: usize = 256;

/// Characters that are kept of a name and of a version.
const MAX_NAME: usize = 256;

/// The tours of all clients. Clones are the same.
#[derive(Debug, Clone)]
struct Tours {
    steps: Arc<TourSteps>,
    clients: Arc<Mutex<Vec<(ClientName, TourProgress)>>>,
}

/// The name and version of a client; empty where it gives none.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClientName(String, String);

impl ClientName {
    fn of(info: Option<&Implementation>) -> Self {
        info.map_or_else(
            || Self(String::new(), String::new()),
            |it| Self(beginning(&it.name), beginning(&it.version)),
        )
    }
}

fn beginning(text: &str) -> String {
    text.chars().take(MAX_NAME).collect()
}

/// Adds the tour to a server. The tool comes first in the list, where clients find it that read one page.
pub(crate) fn add(builder: ServerBuilder, steps: TourSteps) -> ServerBuilder {
    let tours = Tours { steps: Arc::new(steps), clients: Arc::default() };
    let choice = {
        let tours = tours.clone();
        VersionChoice::new(move |client, negotiated| {
            let name = ClientName::of(Some(client));
            let older = tours.with_name(name, |progress| progress.older_revision(&tours.steps, negotiated));
            older.unwrap_or(negotiated)
        })
    };
    let (in_calls, in_sessions) = (tours.clone(), tours.clone());
    builder
        .version_choice(choice)
        .before_tools(move |call| in_call::before(in_calls.clone(), call))
        .on_session(move |session| {
            tokio::spawn(in_session::run(in_sessions.clone(), Arc::downgrade(session)));
        })
        .tool(tool::tool(tours))
}

impl Tours {
    /// Does something with the tour of a client.
    fn with<T>(&self, peer: &Peer, act: impl FnOnce(&mut TourProgress) -> T) -> T {
        self.with_name(ClientName::of(peer.info.as_ref()), act)
    }

    fn with_name<T>(&self, name: ClientName, act: impl FnOnce(&mut TourProgress) -> T) -> T {
        let mut clients = self.clients.lock();
        let at = clients.iter().position(|(known, _)| *known == name);
        if at.is_none() && clients.len() >= MAX_CLIENTS {
            clients.remove(0);
        }
        match at.and_then(|at| clients.get_mut(at)) {
            Some((_, progress)) => act(progress),
            None => {
                let mut progress = TourProgress::default();
                let returned = act(&mut progress);
                clients.push((name, progress));
                returned
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_of_clients_are_not_kept_whole() {
        let info = Implementation::new("ä".repeat(1 << 20), "1".repeat(1 << 20));
        let ClientName(name, version) = ClientName::of(Some(&info));
        assert_eq!((name.chars().count(), version.len()), (MAX_NAME, MAX_NAME));
    }
}

//! Additions to the lists at run time: for one session, or, where requests have none, for everybody and for a while.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_server::{Call, CallError, Catalog, Change, Connection, Server};
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// Additions that one session, or everybody together, may have.
const MOST: usize = 100;
/// How long an addition for everybody stays.
const LIFETIME: Duration = Duration::from_secs(600);

/// Something that can be added.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Thing {
    Tool(String),
    Prompt(String),
    Resource(String),
}

/// The additions for everybody, each with a number: one that was removed and added again has another.
#[derive(Default)]
struct Everybodys(Mutex<Numbered>);

#[derive(Default)]
struct Numbered {
    next: u64,
    things: HashMap<Thing, u64>,
    expiries: HashMap<Thing, AbortHandle>,
}

/// Adds a thing, and says for whom.
pub(crate) async fn add(
    call: &Call,
    thing: Thing,
    put: impl FnOnce(&mut Catalog) -> Option<Change> + Send,
) -> Result<String, CallError> {
    let Some(session) = call.session() else {
        may_change_for_everybody(call.connection())?;
        let said = format!("{thing} was added for everybody, for {} minutes", LIFETIME.as_secs() / 60);
        return add_for_everybody(call.server(), thing, put).map(|()| said);
    };
    if thing.is_in(&call.server().catalog()) {
        return Err(thing.exists());
    }
    let mut refused = None;
    session
        .change_lists(|own| {
            if thing.is_in(own) {
                refused = Some(thing.exists());
            } else if own.len() >= MOST {
                refused = Some(full());
            }
            if refused.is_some() { None } else { put(own) }
        })
        .await;
    refused.map_or_else(|| Ok(format!("{thing} was added to this session")), Err)
}

/// Removes a thing that was added, and says for whom.
pub(crate) async fn remove(call: &Call, thing: &Thing) -> Result<String, CallError> {
    let Some(session) = call.session() else {
        may_change_for_everybody(call.connection())?;
        let number = Everybodys::of(call.server(), |all| all.things.get(thing).copied());
        let removed = number.is_some_and(|number| remove_for_everybody(call.server(), thing, number));
        return if removed { Ok(format!("{thing} was removed for everybody")) } else { Err(thing.unknown()) };
    };
    let mut removed = false;
    session
        .change_lists(|own| {
            let change = thing.remove_from(own);
            removed = change.is_some();
            change
        })
        .await;
    if removed { Ok(format!("{thing} was removed from this session")) } else { Err(thing.unknown()) }
}

/// Who may change what everybody sees: those who started this process, and those who said who they are.
fn may_change_for_everybody(connection: &Connection) -> Result<(), CallError> {
    if connection.local || connection.principal.is_some() {
        Ok(())
    } else {
        Err(CallError::new(
            "the lists are everybody's here; only clients on this machine and authenticated ones may change them",
        ))
    }
}

fn add_for_everybody(
    server: &Server,
    thing: Thing,
    put: impl FnOnce(&mut Catalog) -> Option<Change>,
) -> Result<(), CallError> {
    let number = Everybodys::of(server, |all| {
        if all.things.len() >= MOST {
            return Err(full());
        }
        let mut exists = false;
        server.change_lists(|lists| {
            exists = thing.is_in(lists);
            if exists { None } else { put(lists) }
        });
        if exists {
            return Err(thing.exists());
        }
        all.next += 1;
        all.things.insert(thing.clone(), all.next);
        Ok(all.next)
    })?;
    let (weak, ending) = (server.downgrade(), thing.clone());
    let expiry = tokio::spawn(async move {
        sleep(LIFETIME).await;
        if let Some(server) = weak.upgrade() {
            remove_for_everybody(&server, &ending, number);
        }
    });
    // Whoever removes it earlier ends the wait.
    Everybodys::of(server, |all| all.expiries.insert(thing, expiry.abort_handle()));
    Ok(())
}

/// Removes the addition with this number; `false` when it is gone already.
fn remove_for_everybody(server: &Server, thing: &Thing, number: u64) -> bool {
    Everybodys::of(server, |all| {
        let there = all.things.get(thing) == Some(&number);
        if there {
            all.things.remove(thing);
            if let Some(expiry) = all.expiries.remove(thing) {
                expiry.abort();
            }
            server.change_lists(|lists| thing.remove_from(lists));
        }
        there
    })
}

impl Everybodys {
    fn of<T>(server: &Server, with: impl FnOnce(&mut Numbered) -> T) -> T {
        let everybodys = server.value::<Self>();
        with(&mut everybodys.0.lock())
    }
}

impl Thing {
    fn is_in(&self, lists: &Catalog) -> bool {
        match self {
            Self::Tool(name) => lists.has_tool(name),
            Self::Prompt(name) => lists.has_prompt(name),
            Self::Resource(uri) => lists.has_resource(uri),
        }
    }

    fn remove_from(&self, lists: &mut Catalog) -> Option<Change> {
        match self {
            Self::Tool(name) => lists.remove_tool(name),
            Self::Prompt(name) => lists.remove_prompt(name),
            Self::Resource(uri) => lists.remove_resource(uri),
        }
    }

    fn exists(&self) -> CallError {
        CallError::new(format!("{self} is there already"))
    }

    fn unknown(&self) -> CallError {
        CallError::new(format!("{self} was not added here, so it cannot be removed"))
    }
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, name) = match self {
            Self::Tool(name) => ("tool", name),
            Self::Prompt(name) => ("prompt", name),
            Self::Resource(uri) => ("resource", uri),
        };
        write!(f, "{kind} {name}")
    }
}

fn full() -> CallError {
    CallError::new(format!("there are {MOST} additions already; remove one first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_on_the_network_change_nothing() {
        let may_change = |local, principal: Option<&str>| {
            let principal = principal.map(Into::into);
            may_change_for_everybody(&Connection { local, principal, ..Connection::default() }).is_ok()
        };
        assert!(may_change(true, None) && may_change(false, Some("alice")));
        assert!(!may_change(false, None));
    }
}

//! Items that clients add to the lists at run time: for their session, or, where requests have none, for all clients and
//! for a limited time.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_server::{Call, CallError, Catalog, Connection, InvalidTool, Server};
use tokio::task::AbortHandle;
use tokio::time::sleep;

/// Most items that a session, or all clients together, may add.
const MAX_ITEMS: usize = 100;
/// How long a shared item stays.
const LIFETIME: Duration = Duration::from_secs(600);

/// An item that can be added.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum AddedItem {
    Tool(String),
    Prompt(String),
    Resource(String),
}

/// The shared items, each with a number: an item that is removed and added again gets another.
#[derive(Default)]
struct SharedItems(Mutex<SharedItemTable>);

#[derive(Default)]
struct SharedItemTable {
    next: u64,
    items: HashMap<AddedItem, u64>,
    expiries: HashMap<AddedItem, AbortHandle>,
}

/// Adds an item, and says for whom.
pub(crate) async fn add(
    call: &Call,
    item: AddedItem,
    put: impl FnOnce(&mut Catalog) -> Result<(), InvalidTool> + Send,
) -> Result<String, CallError> {
    let Some(session) = call.session() else {
        may_change_shared_lists(call.connection())?;
        let said = format!("{item} was added for everybody, for {} minutes", LIFETIME.as_secs() / 60);
        return add_shared(call.server(), item, put).map(|()| said);
    };
    if item.is_in(&call.server().catalog()) {
        return Err(item.exists());
    }
    let added = session.change_lists(|own| match own.len() {
        _ if item.is_in(own) => Err(item.exists()),
        MAX_ITEMS.. => Err(full()),
        _ => Ok(put(own)?),
    });
    added.await.map(|()| format!("{item} was added to this session"))
}

/// Removes an added item, and says for whom.
pub(crate) async fn remove(call: &Call, item: &AddedItem) -> Result<String, CallError> {
    let Some(session) = call.session() else {
        may_change_shared_lists(call.connection())?;
        let number = SharedItems::of(call.server(), |all| all.items.get(item).copied());
        let removed = number.is_some_and(|number| remove_shared(call.server(), item, number));
        return if removed { Ok(format!("{item} was removed for everybody")) } else { Err(item.unknown()) };
    };
    if session.change_lists(|own| item.remove_from(own)).await {
        Ok(format!("{item} was removed from this session"))
    } else {
        Err(item.unknown())
    }
}

/// Shared lists may be changed by local clients and by authenticated ones.
fn may_change_shared_lists(connection: &Connection) -> Result<(), CallError> {
    if connection.local || connection.principal.is_some() {
        Ok(())
    } else {
        Err(CallError::new(
            "the lists are everybody's here; only clients on this machine and authenticated ones may change them",
        ))
    }
}

fn add_shared(
    server: &Server,
    item: AddedItem,
    put: impl FnOnce(&mut Catalog) -> Result<(), InvalidTool>,
) -> Result<(), CallError> {
    let number = SharedItems::of(server, |all| {
        if all.items.len() >= MAX_ITEMS {
            return Err(full());
        }
        server.change_lists(|lists| if item.is_in(lists) { Err(item.exists()) } else { Ok(put(lists)?) })?;
        all.next += 1;
        all.items.insert(item.clone(), all.next);
        Ok(all.next)
    })?;
    let (weak, expiring) = (server.downgrade(), item.clone());
    let expiry = tokio::spawn(async move {
        sleep(LIFETIME).await;
        if let Some(server) = weak.upgrade() {
            remove_shared(&server, &expiring, number);
        }
    });
    // Removing it earlier aborts the wait.
    SharedItems::of(server, |all| all.expiries.insert(item, expiry.abort_handle()));
    Ok(())
}

/// Removes the item with this number; `false` when it is gone already.
fn remove_shared(server: &Server, item: &AddedItem, number: u64) -> bool {
    SharedItems::of(server, |all| {
        let present = all.items.get(item) == Some(&number);
        if present {
            all.items.remove(item);
            if let Some(expiry) = all.expiries.remove(item) {
                expiry.abort();
            }
            server.change_lists(|lists| item.remove_from(lists));
        }
        present
    })
}

impl SharedItems {
    fn of<T>(server: &Server, with: impl FnOnce(&mut SharedItemTable) -> T) -> T {
        with(&mut server.value::<Self>().0.lock())
    }
}

impl AddedItem {
    fn is_in(&self, lists: &Catalog) -> bool {
        match self {
            Self::Tool(name) => lists.has_tool(name),
            Self::Prompt(name) => lists.has_prompt(name),
            Self::Resource(uri) => lists.has_resource(uri),
        }
    }

    fn remove_from(&self, lists: &mut Catalog) -> bool {
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

impl fmt::Display for AddedItem {
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
    CallError::new(format!("there are {MAX_ITEMS} additions already; remove one first"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_clients_must_authenticate_to_change_shared_lists() {
        let may_change = |local, principal: Option<&str>| {
            let principal = principal.map(Into::into);
            may_change_shared_lists(&Connection { local, principal, ..Connection::default() }).is_ok()
        };
        assert!(may_change(true, None) && may_change(false, Some("alice")));
        assert!(!may_change(false, None));
    }
}

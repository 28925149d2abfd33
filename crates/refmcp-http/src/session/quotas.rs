//! Quotas of sessions: how many are open in all and of each client, and which one ends when a new one finds no room.
//!
//! Requests only store the time in their session. So the order of sessions by their last use is not exact, and is put right where
//! it is looked at: a few sessions for each one that is opened.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use foldhash::HashMap;
use refmcp_server::backplane::SessionId;

/// Sessions that are looked at to find an idle one.
const MAX_LOOKS: usize = 32;

/// The client that a session counts for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum ClientKey {
    /// The principal of its access tokens.
    Principal(Arc<str>),
    /// Its address, or the network of an IPv6 address.
    Network(IpAddr),
    /// Any client without both. They are not limited one by one.
    Unknown,
}

/// The use of a session, in milliseconds of the clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionUse {
    /// No call is in flight and no stream is open since this time, or longer.
    Idle(u64),
    /// A call is in flight, or a stream is open.
    Busy,
}

/// Why there is no room for a session; no other is idle that could end for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The client has as many as it may have.
    Client,
    /// There are as many as may be open.
    Total,
}

/// The open sessions of each client.
#[derive(Debug)]
pub(crate) struct SessionQuotas {
    most: usize,
    most_of_client: usize,
    /// The client of each session, and the time under which it stands in `clients`.
    sessions: HashMap<SessionId, (ClientKey, u64)>,
    /// The sessions of each client by the time of their last use that is known.
    clients: HashMap<ClientKey, BTreeSet<(u64, SessionId)>>,
    /// Clients by the number of their sessions.
    by_count: BTreeSet<(usize, ClientKey)>,
}

impl SessionQuotas {
    pub(crate) fn new(most: usize, most_of_client: usize) -> Self {
        let (sessions, clients, by_count) = (HashMap::default(), HashMap::default(), BTreeSet::new());
        Self { most, most_of_client, sessions, clients, by_count }
    }

    /// Counts a new session. Where there is no room, the longest unused session that is idle is not counted any more and has to
    /// end: one of the same client if that has too many, else one of the client with the most sessions.
    pub(crate) fn open(
        &mut self,
        client: &ClientKey,
        id: &SessionId,
        now: u64,
        look: impl FnMut(&SessionId) -> SessionUse,
    ) -> Result<Option<SessionId>, NoRoom> {
        if self.sessions.contains_key(id) {
            return Ok(None);
        }
        let evicted = match self.full(client) {
            None => None,
            Some((loser, why)) => Some(self.longest_unused(&loser, now, look).ok_or(why)?),
        };
        if let Some(evicted) = &evicted {
            self.close(evicted);
        }
        self.insert(client.clone(), id.clone(), now);
        Ok(evicted)
    }

    /// Counts a session no more.
    pub(crate) fn close(&mut self, id: &SessionId) {
        let Some((client, seen)) = self.sessions.remove(id) else { return };
        let sessions = self.clients.entry(client.clone()).or_default();
        let before = sessions.len();
        sessions.remove(&(seen, id.clone()));
        let after = sessions.len();
        if after == 0 {
            self.clients.remove(&client);
        }
        self.recount(client, before, after);
    }

    /// The client that has to end a session before this one can open another, and why.
    fn full(&self, client: &ClientKey) -> Option<(ClientKey, NoRoom)> {
        let own = self.clients.get(client).map_or(0, BTreeSet::len);
        if own >= self.most_of_client && *client != ClientKey::Unknown {
            return Some((client.clone(), NoRoom::Client));
        }
        let largest = || self.by_count.last().map_or(client, |(_, largest)| largest);
        (self.sessions.len() >= self.most).then(|| (largest().clone(), NoRoom::Total))
    }

    /// The session of a client that is idle for the longest time, as far as it is looked for.
    fn longest_unused(
        &mut self,
        client: &ClientKey,
        now: u64,
        mut look: impl FnMut(&SessionId) -> SessionUse,
    ) -> Option<SessionId> {
        let mut best: Option<(u64, SessionId)> = None;
        for _ in 0..MAX_LOOKS {
            let (seen, id) = self.clients.get(client)?.first()?.clone();
            let last_use = look(&id);
            match last_use {
                SessionUse::Idle(since) if since <= seen => return Some(id),
                SessionUse::Idle(since) => {
                    if best.as_ref().is_none_or(|(least, _)| since < *least) {
                        best = Some((since, id.clone()));
                    }
                    self.set_seen(client, &id, seen, since);
                }
                SessionUse::Busy => self.set_seen(client, &id, seen, now),
            }
        }
        best.map(|(_, id)| id)
    }

    fn set_seen(&mut self, client: &ClientKey, id: &SessionId, before: u64, after: u64) {
        if let Some(sessions) = self.clients.get_mut(client) {
            sessions.remove(&(before, id.clone()));
            sessions.insert((after, id.clone()));
        }
        if let Some((_, seen)) = self.sessions.get_mut(id) {
            *seen = after;
        }
    }

    fn insert(&mut self, client: ClientKey, id: SessionId, now: u64) {
        let sessions = self.clients.entry(client.clone()).or_default();
        let before = sessions.len();
        sessions.insert((now, id.clone()));
        let after = sessions.len();
        self.sessions.insert(id, (client.clone(), now));
        self.recount(client, before, after);
    }

    fn recount(&mut self, client: ClientKey, before: usize, after: usize) {
        self.by_count.remove(&(before, client.clone()));
        if after > 0 {
            self.by_count.insert((after, client));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(name: &str) -> ClientKey {
        ClientKey::Principal(name.into())
    }

    fn id(text: impl Into<Arc<str>>) -> SessionId {
        SessionId::new(text)
    }

    /// Opens a session while others are used as this says.
    fn open(
        quotas: &mut SessionQuotas,
        of: &str,
        name: &str,
        now: u64,
        look: impl Fn(&str) -> SessionUse,
    ) -> Result<Option<String>, NoRoom> {
        let evicted = quotas.open(&client(of), &id(name), now, |id| look(id.reveal()));
        evicted.map(|evicted| evicted.map(|id| id.reveal().to_owned()))
    }

    fn unused(_: &str) -> SessionUse {
        SessionUse::Idle(0)
    }

    #[test]
    fn a_client_at_its_limit_loses_its_own_longest_unused_session() {
        let mut quotas = SessionQuotas::new(10, 2);
        assert_eq!(open(&mut quotas, "bob", "b1", 0, unused), Ok(None));
        assert_eq!(open(&mut quotas, "ann", "a1", 1, unused), Ok(None));
        assert_eq!(open(&mut quotas, "ann", "a2", 2, unused), Ok(None));
        // The first was used after the second.
        let look = |name: &str| SessionUse::Idle(if name == "a1" { 9 } else { 2 });
        assert_eq!(open(&mut quotas, "ann", "a3", 10, look), Ok(Some("a2".to_owned())));
        // One that is busy stays, however long ago its last request was.
        let look = |name: &str| if name == "a1" { SessionUse::Busy } else { SessionUse::Idle(11) };
        assert_eq!(open(&mut quotas, "ann", "a4", 12, look), Ok(Some("a3".to_owned())));
        assert_eq!(open(&mut quotas, "ann", "a5", 13, |_| SessionUse::Busy), Err(NoRoom::Client));
        assert_eq!(open(&mut quotas, "bob", "b2", 14, unused), Ok(None), "another client has room");
        quotas.close(&id("a1"));
        assert_eq!(open(&mut quotas, "ann", "a6", 15, |_| SessionUse::Busy), Ok(None), "there is room again");
    }

    #[test]
    fn when_all_are_open_the_client_with_the_most_sessions_loses_one() {
        let mut quotas = SessionQuotas::new(4, 3);
        for (of, name, now) in [("bob", "b1", 0), ("ann", "a1", 1), ("ann", "a2", 2), ("ann", "a3", 3)] {
            assert_eq!(open(&mut quotas, of, name, now, unused), Ok(None), "{name}");
        }
        assert_eq!(open(&mut quotas, "cat", "c1", 4, unused), Ok(Some("a1".to_owned())));
        let busy = |name: &str| if name.starts_with('a') { SessionUse::Busy } else { SessionUse::Idle(0) };
        assert_eq!(open(&mut quotas, "cat", "c2", 5, busy), Err(NoRoom::Total), "no other loses one");
        assert_eq!(open(&mut quotas, "bob", "b1", 6, busy), Ok(None), "it is counted already");
        assert_eq!(quotas.sessions.len(), 4);
    }

    #[test]
    fn no_session_at_all_may_be_allowed() {
        let mut quotas = SessionQuotas::new(0, 5);
        assert_eq!(open(&mut quotas, "ann", "a1", 0, unused), Err(NoRoom::Total));
    }

    #[test]
    fn clients_that_are_unknown_share_the_total_alone() {
        let mut quotas = SessionQuotas::new(3, 1);
        for name in ["1", "2", "3"] {
            assert_eq!(quotas.open(&ClientKey::Unknown, &id(name), 0, |_| SessionUse::Busy), Ok(None));
        }
        let full = quotas.open(&ClientKey::Unknown, &id("4"), 0, |_| SessionUse::Busy);
        assert_eq!(full, Err(NoRoom::Total));
    }

    #[test]
    fn few_sessions_are_looked_at() {
        let mut quotas = SessionQuotas::new(100_000, 5000);
        for number in 0..5000 {
            open(&mut quotas, "ann", &number.to_string(), 0, unused).unwrap();
        }
        // All were used since, or are busy.
        for last_use in [SessionUse::Idle(7), SessionUse::Busy] {
            let mut looks = 0;
            let opened = quotas.open(&client("ann"), &id(format!("{last_use:?}")), 10, |_| {
                looks += 1;
                last_use
            });
            assert_eq!(opened.is_ok(), last_use != SessionUse::Busy);
            assert!(looks <= MAX_LOOKS, "{looks}");
        }
        // Others are looked at the next time, so the only idle one is found.
        let only = |name: &str| if name == "4321" { SessionUse::Idle(0) } else { SessionUse::Busy };
        let tries = (0..5000).position(|now| open(&mut quotas, "ann", "new", 20 + now, only).is_ok());
        assert!(tries.is_some_and(|tries| tries <= 5000 / MAX_LOOKS + 1), "{tries:?}");
    }

    #[test]
    fn closing_leaves_nothing() {
        let mut quotas = SessionQuotas::new(10, 10);
        for name in ["1", "2"] {
            open(&mut quotas, "ann", name, 3, unused).unwrap();
        }
        for name in ["1", "2", "2", "unknown"] {
            quotas.close(&id(name));
        }
        assert!(quotas.sessions.is_empty() && quotas.clients.is_empty() && quotas.by_count.is_empty());
    }
}

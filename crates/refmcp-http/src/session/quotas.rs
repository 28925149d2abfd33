//! Quotas of sessions: how many are open in all and of each client, and which one ends when a new one finds no room.
//!
//! Requests only store the time in their session. So the order of sessions by their last use is not exact, and is put right where
//! it is looked at: a few sessions for each one that is opened. There are many sessions, so what is counted of one stands in the
//! session itself.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

impl ClientKey {
    /// The principal, of a client that has one.
    pub(crate) fn principal(&self) -> Option<&Arc<str>> {
        match self {
            Self::Principal(principal) => Some(principal),
            Self::Network(_) | Self::Unknown => None,
        }
    }
}

/// What quotas keep in a session.
#[derive(Debug)]
pub(crate) struct SessionQuota {
    pub(crate) client: Arc<ClientKey>,
    /// The time under which it stands among the sessions of its client; changed by the quotas alone.
    seen: AtomicU64,
}

impl SessionQuota {
    pub(crate) fn new(client: Arc<ClientKey>, now: u64) -> Self {
        Self { client, seen: AtomicU64::new(now) }
    }

    fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }
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

/// The sessions of each client.
#[derive(Debug)]
pub(crate) struct SessionQuotas<T> {
    most: usize,
    most_of_client: usize,
    total: usize,
    clients: HashMap<Arc<ClientKey>, ClientSessions<T>>,
    /// Clients by the number of their sessions.
    by_count: BTreeSet<(usize, Arc<ClientKey>)>,
}

/// The sessions of one client.
#[derive(Debug)]
struct ClientSessions<T> {
    /// How many are being opened. They end for no other.
    opening: usize,
    /// Those that are open, by the time of their last use that is known.
    open: BTreeMap<(u64, SessionId), Arc<T>>,
}

impl<T> ClientSessions<T> {
    fn len(&self) -> usize {
        self.opening + self.open.len()
    }
}

impl<T: AsRef<SessionQuota>> SessionQuotas<T> {
    pub(crate) fn new(most: usize, most_of_client: usize) -> Self {
        Self { most, most_of_client, total: 0, clients: HashMap::default(), by_count: BTreeSet::new() }
    }

    /// Takes a place for a new session; gives the key that its [`SessionQuota`] has. Where there is no room, the longest unused
    /// session that is idle is not counted any more and has to end: one of the same client if that has too many, else one of
    /// the client with the most sessions.
    pub(crate) fn take_place(
        &mut self,
        client: &ClientKey,
        now: u64,
        look: impl FnMut(&T) -> SessionUse,
    ) -> Result<(Arc<ClientKey>, Option<Arc<T>>), NoRoom> {
        let evicted = match self.full(client) {
            None => None,
            Some((loser, why)) => {
                let (id, session) = self.longest_unused(&loser, now, look).ok_or(why)?;
                self.close(&id, &session);
                Some(session)
            }
        };
        let known = self.clients.get_key_value(client).map(|(client, _)| client.clone());
        let client = known.unwrap_or_else(|| Arc::new(client.clone()));
        self.change(&client, |sessions| sessions.opening += 1);
        Ok((client, evicted))
    }

    /// Gives back a place that no session was opened in.
    pub(crate) fn give_back(&mut self, client: &Arc<ClientKey>) {
        self.change(client, |sessions| sessions.opening -= 1);
    }

    /// Counts a session that is open now, in its place.
    pub(crate) fn open(&mut self, id: &SessionId, session: &Arc<T>) {
        let quota = T::as_ref(session);
        self.change(&quota.client, |sessions| {
            sessions.opening -= 1;
            sessions.open.insert((quota.seen(), id.clone()), session.clone());
        });
    }

    /// Counts a session no more.
    pub(crate) fn close(&mut self, id: &SessionId, session: &T) {
        let quota = session.as_ref();
        self.change(&quota.client, |sessions| {
            sessions.open.remove(&(quota.seen(), id.clone()));
        });
    }

    /// The client that has to end a session before this one can open another, and why.
    fn full(&self, client: &ClientKey) -> Option<(ClientKey, NoRoom)> {
        let own = self.clients.get(client).map_or(0, ClientSessions::len);
        if own >= self.most_of_client && *client != ClientKey::Unknown {
            return Some((client.clone(), NoRoom::Client));
        }
        let largest = || self.by_count.last().map_or(client, |(_, largest)| largest);
        (self.total >= self.most).then(|| (largest().clone(), NoRoom::Total))
    }

    /// The session of a client that is idle for the longest time, as far as it is looked for.
    fn longest_unused(
        &mut self,
        client: &ClientKey,
        now: u64,
        mut look: impl FnMut(&T) -> SessionUse,
    ) -> Option<(SessionId, Arc<T>)> {
        let sessions = &mut self.clients.get_mut(client)?.open;
        let mut best: Option<(u64, SessionId, Arc<T>)> = None;
        for _ in 0..MAX_LOOKS {
            let ((seen, id), session) = sessions.pop_first()?;
            let since = match look(&session) {
                SessionUse::Idle(since) if since <= seen => {
                    sessions.insert((seen, id.clone()), session.clone());
                    return Some((id, session));
                }
                SessionUse::Idle(since) => {
                    if best.as_ref().is_none_or(|(least, ..)| since < *least) {
                        best = Some((since, id.clone(), session.clone()));
                    }
                    since
                }
                SessionUse::Busy => now,
            };
            T::as_ref(&session).seen.store(since, Ordering::Relaxed);
            sessions.insert((since, id), session);
        }
        best.map(|(_, id, session)| (id, session))
    }

    /// Changes the sessions of a client, and what is counted of them.
    fn change(&mut self, client: &Arc<ClientKey>, act: impl FnOnce(&mut ClientSessions<T>)) {
        let new = || ClientSessions { opening: 0, open: BTreeMap::new() };
        let sessions = self.clients.entry(client.clone()).or_insert_with(new);
        let before = sessions.len();
        act(sessions);
        let after = sessions.len();
        if after == 0 {
            self.clients.remove(client);
        }
        self.total = self.total - before + after;
        self.by_count.remove(&(before, client.clone()));
        if after > 0 {
            self.by_count.insert((after, client.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Named(SessionId, SessionQuota);

    impl AsRef<SessionQuota> for Named {
        fn as_ref(&self) -> &SessionQuota {
            &self.1
        }
    }

    fn client(name: &str) -> ClientKey {
        ClientKey::Principal(name.into())
    }

    /// Opens a session while others are used as this says; gives it and the name of the one that has to end.
    fn open_as(
        quotas: &mut SessionQuotas<Named>,
        client: &ClientKey,
        name: &str,
        now: u64,
        look: impl Fn(&str) -> SessionUse,
    ) -> Result<(Arc<Named>, Option<String>), NoRoom> {
        let (client, evicted) = quotas.take_place(client, now, |session| look(session.0.reveal()))?;
        let session = Arc::new(Named(SessionId::new(name), SessionQuota::new(client, now)));
        quotas.open(&session.0, &session);
        Ok((session, evicted.map(|evicted| evicted.0.reveal().to_owned())))
    }

    /// The same of a client with a principal.
    fn open(
        quotas: &mut SessionQuotas<Named>,
        of: &str,
        name: &str,
        now: u64,
        look: impl Fn(&str) -> SessionUse,
    ) -> Result<Option<String>, NoRoom> {
        open_as(quotas, &client(of), name, now, look).map(|(_, evicted)| evicted)
    }

    fn unused(_: &str) -> SessionUse {
        SessionUse::Idle(0)
    }

    #[test]
    fn a_client_at_its_limit_loses_its_own_longest_unused_session() {
        let mut quotas = SessionQuotas::new(10, 2);
        assert_eq!(open(&mut quotas, "bob", "b1", 0, unused), Ok(None));
        let (first, evicted) = open_as(&mut quotas, &client("ann"), "a1", 1, unused).unwrap();
        assert_eq!(evicted, None);
        assert_eq!(open(&mut quotas, "ann", "a2", 2, unused), Ok(None));
        // The first was used after the second.
        let look = |name: &str| SessionUse::Idle(if name == "a1" { 9 } else { 2 });
        assert_eq!(open(&mut quotas, "ann", "a3", 10, look), Ok(Some("a2".to_owned())));
        // One that is busy stays, however long ago its last request was.
        let look = |name: &str| if name == "a1" { SessionUse::Busy } else { SessionUse::Idle(11) };
        assert_eq!(open(&mut quotas, "ann", "a4", 12, look), Ok(Some("a3".to_owned())));
        assert_eq!(open(&mut quotas, "ann", "a5", 13, |_| SessionUse::Busy), Err(NoRoom::Client));
        assert_eq!(open(&mut quotas, "bob", "b2", 14, unused), Ok(None), "another client has room");
        quotas.close(&first.0, &first);
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
        assert_eq!(quotas.total, 4);
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
            open_as(&mut quotas, &ClientKey::Unknown, name, 0, |_| SessionUse::Busy).unwrap();
        }
        let full = open_as(&mut quotas, &ClientKey::Unknown, "4", 0, |_| SessionUse::Busy);
        assert_eq!(full.err(), Some(NoRoom::Total));
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
            let place = quotas.take_place(&client("ann"), 10, |_| {
                looks += 1;
                last_use
            });
            assert_eq!(place.is_ok(), last_use != SessionUse::Busy);
            assert!(looks <= MAX_LOOKS, "{looks}");
        }
        // Others are looked at the next time, so the only idle one is found.
        let only = |name: &str| if name == "4321" { SessionUse::Idle(0) } else { SessionUse::Busy };
        let tries = (0..5000).position(|now| open(&mut quotas, "ann", "new", 20 + now, only).is_ok());
        assert!(tries.is_some_and(|tries| tries <= 5000 / MAX_LOOKS + 1), "{tries:?}");
    }

    #[test]
    fn a_session_that_is_being_opened_has_a_place_and_is_not_ended() {
        let mut quotas = SessionQuotas::<Named>::new(10, 2);
        let (place, _) = quotas.take_place(&client("ann"), 0, |_| SessionUse::Idle(0)).unwrap();
        assert_eq!(open(&mut quotas, "ann", "a1", 1, unused), Ok(None));
        assert_eq!(open(&mut quotas, "ann", "a2", 2, unused), Ok(Some("a1".to_owned())));
        quotas.give_back(&place);
        assert_eq!(open(&mut quotas, "ann", "a3", 3, unused), Ok(None), "there is room again");
    }

    #[test]
    fn closing_leaves_nothing() {
        let mut quotas = SessionQuotas::new(10, 10);
        let sessions =
            ["1", "2"].map(|name| open_as(&mut quotas, &client("ann"), name, 3, unused).unwrap().0);
        let (place, _) = quotas.take_place(&client("ann"), 4, |_| SessionUse::Busy).unwrap();
        quotas.give_back(&place);
        for session in sessions.iter().chain(&sessions) {
            quotas.close(&session.0, session);
        }
        assert!(quotas.total == 0 && quotas.clients.is_empty() && quotas.by_count.is_empty());
    }
}

//! The requests of a client that wait for answers.

use std::collections::{BTreeMap, HashMap};

use refmcp_proto::engine::client::ExchangeId;
use refmcp_proto::jsonrpc::RequestId;
use refmcp_proto::revision::{Lifecycle, Revision};

use super::glance::Message;

/// A request that waits for its answer.
#[derive(Debug, Clone)]
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) method: Box<str>,
    pub(super) lifecycle: Lifecycle,
    token: Option<RequestId>,
}

impl Asked {
    pub(super) fn new(id: RequestId, message: &Message<'_>) -> Self {
        let stated = message.meta.revision.as_ref().and_then(|stated| stated.parse::<Revision>().ok());
        Self {
            id,
            method: message.method.as_deref().unwrap_or_default().into(),
            lifecycle: stated.map_or(Lifecycle::Handshake, Revision::lifecycle),
            token: message.meta.token.as_ref().map(|token| token.id.clone()),
        }
    }

    /// Whether its answer comes only when there is nothing more to tell.
    fn is_standing(&self) -> bool {
        &*self.method == "subscriptions/listen"
    }
}

/// All of them.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    all: BTreeMap<ExchangeId, Asked>,
    /// Clients may use an id twice at once; what comes for it is for the older one.
    by_id: HashMap<RequestId, Vec<ExchangeId>>,
    by_token: HashMap<RequestId, ExchangeId>,
    standing: usize,
}

impl Waiting {
    pub(super) fn insert(&mut self, exchange: ExchangeId, asked: Asked) {
        self.by_id.entry(asked.id.clone()).or_default().push(exchange);
        if let Some(token) = &asked.token {
            self.by_token.insert(token.clone(), exchange);
        }
        self.standing += usize::from(asked.is_standing());
        self.all.insert(exchange, asked);
    }

    pub(super) fn get(&self, exchange: ExchangeId) -> Option<&Asked> {
        self.all.get(&exchange)
    }

    /// The request with an id.
    pub(super) fn find(&self, id: &RequestId) -> Option<ExchangeId> {
        self.by_id.get(id).and_then(|named| named.first()).copied()
    }

    /// The request that an answer with this id is for, when it came this way.
    pub(super) fn answered(&self, from: Option<ExchangeId>, id: &RequestId) -> Option<ExchangeId> {
        let own = from.filter(|from| self.all.get(from).is_some_and(|asked| asked.id == *id));
        own.or_else(|| self.find(id))
    }

    /// The request that wants progress under a token.
    pub(super) fn with_token(&self, token: &RequestId) -> Option<ExchangeId> {
        self.by_token.get(token).copied()
    }

    pub(super) fn remove(&mut self, exchange: ExchangeId) -> Option<Asked> {
        let asked = self.all.remove(&exchange)?;
        if let Some(named) = self.by_id.get_mut(&asked.id) {
            named.retain(|other| *other != exchange);
            if named.is_empty() {
                self.by_id.remove(&asked.id);
            }
        }
        if let Some(token) = &asked.token
            && self.by_token.get(token) == Some(&exchange)
        {
            self.by_token.remove(token);
        }
        self.standing -= usize::from(asked.is_standing());
        Some(asked)
    }

    /// Takes all of them, in the order in which they were asked.
    pub(super) fn drain(&mut self) -> BTreeMap<ExchangeId, Asked> {
        std::mem::take(self).all
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.all.len()
    }

    /// How many there are that end by themselves.
    pub(super) fn ending(&self) -> usize {
        self.all.len() - self.standing
    }
}

#[cfg(test)]
mod tests {
    use super::super::glance::read;
    use super::*;

    fn asked(text: &str) -> Asked {
        let message = read(text.as_bytes()).unwrap().remove(0);
        Asked::new(message.asks().unwrap().clone(), &message)
    }

    #[test]
    fn an_id_that_is_used_twice_is_answered_twice() {
        let mut waiting = Waiting::default();
        let ping = asked(r#"{"id":1,"method":"ping","params":{"_meta":{"progressToken":"t"}}}"#);
        waiting.insert(ExchangeId(1), ping.clone());
        waiting.insert(ExchangeId(2), ping);
        assert_eq!(waiting.answered(Some(ExchangeId(2)), &RequestId::from(1)), Some(ExchangeId(2)));
        assert_eq!(waiting.answered(None, &RequestId::from(1)), Some(ExchangeId(1)));
        assert_eq!(waiting.with_token(&RequestId::from("t")), Some(ExchangeId(2)));
        assert!(waiting.remove(ExchangeId(1)).is_some() && waiting.remove(ExchangeId(1)).is_none());
        assert_eq!(waiting.find(&RequestId::from(1)), Some(ExchangeId(2)));
        assert_eq!(waiting.drain().len(), 1);
        assert_eq!((waiting.find(&RequestId::from(1)), waiting.count()), (None, 0));
    }

    #[test]
    fn who_listens_is_not_waited_for() {
        let mut waiting = Waiting::default();
        waiting.insert(ExchangeId(1), asked(r#"{"id":1,"method":"subscriptions/listen"}"#));
        waiting.insert(ExchangeId(2), asked(r#"{"id":2,"method":"ping"}"#));
        assert_eq!((waiting.count(), waiting.ending()), (2, 1));
        waiting.remove(ExchangeId(1));
        waiting.remove(ExchangeId(2));
        assert_eq!((waiting.count(), waiting.ending()), (0, 0));
    }
}

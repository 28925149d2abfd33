//! A session of a client over streamable HTTP: a connection to the server of its own, and the responses and streams
//! by which the client hears it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use refmcp_client::TransportError;
use refmcp_proto::engine::client::ExchangeId;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Duration, Instant};

use super::Common;
use super::feed::Feed;
use crate::bridge::crossing::{Crossing, Heard, Near, Over};
use crate::bridge::glance::{Message, read};

/// Bytes of messages that wait for a client to come and fetch them.
const MOST_HELD: usize = 4 << 20;

/// A session.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) crossing: Arc<Crossing>,
    ways: Arc<Ways>,
    _slot: OwnedSemaphorePermit,
}

/// The ways to the client.
#[derive(Debug)]
struct Ways {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Requests of the client, and where their answers go.
    asked: BTreeMap<ExchangeId, Arc<Feed>>,
    /// The stream for what belongs to no request.
    standing: Option<Arc<Feed>>,
    held: VecDeque<Box<str>>,
    held_bytes: usize,
    used: Instant,
    over: bool,
}

impl State {
    /// Sends what is no answer by the best way there is, or keeps it until there is one.
    fn tell(&mut self, json: &str, belongs_to: Option<ExchangeId>) {
        let own = belongs_to.and_then(|exchange| self.asked.get(&exchange));
        if own.into_iter().chain(&self.standing).chain(self.asked.values()).any(|feed| feed.push(json)) {
            return;
        }
        self.held_bytes += json.len();
        self.held.push_back(json.into());
        while self.held_bytes > MOST_HELD
            && let Some(dropped) = self.held.pop_front()
        {
            tracing::warn!("a client does not fetch what the server says; the oldest is dropped");
            self.held_bytes -= dropped.len();
        }
    }

    /// Gives the messages that were not fetched yet to a new stream.
    fn release_to(&mut self, feed: &Feed) {
        self.held_bytes = 0;
        for json in std::mem::take(&mut self.held) {
            feed.push(&json);
        }
    }

    fn answer(&mut self, exchange: ExchangeId, json: &str) {
        let Some(feed) = self.asked.remove(&exchange) else { return };
        // Several requests of one body share a response.
        let shared = self.asked.values().any(|other| Arc::ptr_eq(other, &feed));
        let read = if shared { feed.push(json) } else { feed.finish(json) };
        if !read {
            tracing::debug!("an answer came for a request whose client has gone");
        }
    }
}

impl Near for Ways {
    fn hear(&self, heard: Heard<'_>) {
        let mut state = self.state.lock();
        match heard.belongs_to {
            Some(exchange) if heard.is_answer => state.answer(exchange, heard.json),
            None if heard.is_answer => tracing::debug!("an answer to nothing that was asked"),
            belongs_to => state.tell(heard.json, belongs_to),
        }
    }

    fn called_off(&self, request: ExchangeId) {
        if let Some(feed) = self.state.lock().asked.remove(&request) {
            feed.end();
        }
    }

    fn over(&self, over: Over) {
        tracing::warn!(why = %over.why, "a session ended");
        let mut state = self.state.lock();
        state.over = true;
        for feed in std::mem::take(&mut state.asked).values().chain(&state.standing) {
            feed.end();
        }
    }
}

impl Session {
    /// Connects a client to a server.
    pub(super) async fn open(
        common: &Common,
        slot: OwnedSemaphorePermit,
    ) -> Result<Arc<Self>, TransportError> {
        let state = State {
            asked: BTreeMap::new(),
            standing: None,
            held: VecDeque::new(),
            held_bytes: 0,
            used: Instant::now(),
            over: false,
        };
        let ways = Arc::new(Ways { state: Mutex::new(state) });
        let crossing = Crossing::open(common.to.clone(), ways.clone()).await?;
        Ok(Arc::new(Self { crossing, ways, _slot: slot }))
    }

    /// Passes messages on; where something answers them, here it comes.
    pub(super) async fn pass(self: &Arc<Self>, messages: &[Message<'_>]) -> Option<Reading> {
        let numbered: Vec<_> = messages.iter().map(|message| (self.crossing.number(), message)).collect();
        let asked: Vec<_> = numbered.iter().filter(|(_, message)| message.asks().is_some()).collect();
        let reading = (!asked.is_empty()).then(|| Reading { session: self.clone(), feed: Feed::new() });
        if let Some(Reading { feed, .. }) = &reading {
            let mut state = self.ways.state.lock();
            state.used = Instant::now();
            state.asked.extend(asked.iter().map(|(exchange, _)| (*exchange, feed.clone())));
            if state.standing.is_none() {
                state.release_to(feed);
            }
        }
        for (exchange, message) in numbered {
            self.crossing.ready().await;
            self.crossing.pass(exchange, message);
        }
        reading
    }

    /// The stream for what belongs to no request; the last one that asks for it gets it.
    pub(super) fn stand(self: &Arc<Self>) -> Reading {
        let feed = Feed::new();
        let mut state = self.ways.state.lock();
        state.used = Instant::now();
        state.release_to(&feed);
        if state.over {
            feed.end();
        }
        if let Some(before) = state.standing.replace(feed.clone()) {
            before.end();
        }
        drop(state);
        Reading { session: self.clone(), feed }
    }

    /// A response is no longer read. What it held finds another way, but for answers, which have no other.
    fn unread(&self, feed: &Arc<Feed>) {
        let mut state = self.ways.state.lock();
        state.used = Instant::now();
        if state.standing.as_ref().is_some_and(|standing| Arc::ptr_eq(standing, feed)) {
            state.standing = None;
        }
        state.asked.retain(|_, other| !Arc::ptr_eq(other, feed));
        for json in feed.leave() {
            let told =
                read(json.as_bytes()).is_ok_and(|read| read.first().is_some_and(|first| !first.is_answer()));
            if told {
                state.tell(&json, None);
            }
        }
    }

    /// Ends the streams that would not end by themselves.
    pub(super) fn wind_down(&self) {
        if let Some(standing) = self.ways.state.lock().standing.take() {
            standing.end();
        }
    }

    /// Whether there is no server behind it any more.
    pub(super) fn is_over(&self) -> bool {
        self.ways.state.lock().over
    }

    /// Whether it was not used for so long.
    pub(super) fn is_idle(&self, since: Duration) -> bool {
        let state = self.ways.state.lock();
        state.asked.is_empty() && state.standing.is_none() && state.used.elapsed() > since
    }
}

/// A response that is being read.
#[derive(Debug)]
pub(super) struct Reading {
    session: Arc<Session>,
    pub(super) feed: Arc<Feed>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.session.unread(&self.feed);
    }
}

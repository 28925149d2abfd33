//! The network in virtual time: connections with delays and cuts. Bytes of one direction keep their order; those of
//! different connections overtake each other.

use std::collections::VecDeque;

use refmcp_proto::engine::ExchangeId;

use crate::random::Random;

/// A connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ConnectionId(pub(super) usize);

/// An end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Client,
    Server,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// What travels over a connection. A pipe has bytes alone.
#[derive(Debug)]
pub(super) enum Payload {
    Bytes(Vec<u8>),
    Request(Box<HttpRequest>),
    Head(HttpHead),
    /// The end of a response.
    End,
}

impl Payload {
    fn len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Request(request) => request.body.len() + 1,
            Self::Head(_) | Self::End => 1,
        }
    }
}

/// An HTTP request.
#[derive(Debug)]
pub(super) struct HttpRequest {
    pub(super) method: HttpMethod,
    /// `Mcp-Session-Id`.
    pub(super) session: Option<u64>,
    /// `Last-Event-ID`: the stream and the event.
    pub(super) last_event: Option<(u64, u64)>,
    pub(super) body: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HttpMethod {
    /// A request of a revision without sessions.
    PostStateless,
    /// A request of a session, or `initialize`.
    PostRequest,
    /// A notification or a response.
    PostMessage,
    Get,
    Delete,
}

/// The head of an HTTP response.
#[derive(Debug, Clone, Copy)]
pub(super) struct HttpHead {
    pub(super) status: u16,
    /// A stream of events, and not JSON.
    pub(super) is_stream: bool,
    /// `Mcp-Session-Id`.
    pub(super) session: Option<u64>,
}

/// How the network behaves in one conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct NetworkProfile {
    /// The longest delay, in milliseconds.
    pub(super) delay: u64,
    /// One connection in so many is cut.
    pub(super) cuts: Option<u64>,
    /// One connection in so many has a slow reader.
    pub(super) slow: Option<u64>,
    /// Whether messages come in pieces.
    pub(super) pieces: bool,
}

/// The longest delay of a slow reader, in milliseconds.
const SLOW: u64 = 2_000;

/// The longest time until an end hears that the other is gone, in milliseconds.
const UNNOTICED: u64 = 4_000;

#[derive(Debug)]
pub(super) struct Connection {
    /// The client, by its index.
    pub(super) client: usize,
    /// The exchange of the client that it is for; that of the GET stream and of a pipe is 0.
    pub(super) exchange: ExchangeId,
    to_client: Direction,
    to_server: Direction,
    is_broken: bool,
    is_slow: bool,
}

#[derive(Debug, Default)]
struct Direction {
    chunks: VecDeque<Payload>,
    bytes: usize,
    last_arrival: u64,
    /// The connection is cut after so many bytes more.
    cut_after: Option<usize>,
    /// The receiver takes nothing more.
    is_closed: bool,
}

/// When something is to be told to which end.
#[derive(Debug, Clone, Copy)]
pub(super) enum Signal {
    Arrival(ConnectionId, Side),
    Closed(ConnectionId, Side),
}

/// All connections, open and closed.
#[derive(Debug)]
pub(super) struct Network {
    profile: NetworkProfile,
    connections: Vec<Connection>,
    /// What is to be scheduled.
    pub(super) signals: Vec<(u64, Signal)>,
    /// The clients of connections that were cut since this was last looked at.
    pub(super) cuts: Vec<usize>,
}

impl Network {
    pub(super) fn new(profile: NetworkProfile) -> Self {
        Self { profile, connections: Vec::new(), signals: Vec::new(), cuts: Vec::new() }
    }

    pub(super) fn connect(
        &mut self,
        random: &mut Random,
        client: usize,
        exchange: ExchangeId,
    ) -> ConnectionId {
        let mut connection = Connection {
            client,
            exchange,
            to_client: Direction::default(),
            to_server: Direction::default(),
            is_broken: false,
            is_slow: self.profile.slow.is_some_and(|slow| random.one_in(slow)),
        };
        if self.profile.cuts.is_some_and(|cuts| random.one_in(cuts)) {
            let after = usize::try_from(random.below(900)).ok();
            let side = if random.one_in(3) { &mut connection.to_server } else { &mut connection.to_client };
            side.cut_after = after;
        }
        self.connections.push(connection);
        ConnectionId(self.connections.len() - 1)
    }

    pub(super) fn get(&self, id: ConnectionId) -> &Connection {
        &self.connections[id.0]
    }

    /// Bytes on their way to this end.
    pub(super) fn in_flight(&self, id: ConnectionId, to: Side) -> usize {
        self.direction(id, to).bytes
    }

    /// Whether what is sent to this end may arrive.
    pub(super) fn is_open(&self, id: ConnectionId, to: Side) -> bool {
        !self.connections[id.0].is_broken && !self.direction(id, to).is_closed
    }

    fn direction(&self, id: ConnectionId, to: Side) -> &Direction {
        match to {
            Side::Client => &self.connections[id.0].to_client,
            Side::Server => &self.connections[id.0].to_server,
        }
    }

    fn direction_mut(&mut self, id: ConnectionId, to: Side) -> &mut Direction {
        match to {
            Side::Client => &mut self.connections[id.0].to_client,
            Side::Server => &mut self.connections[id.0].to_server,
        }
    }

    /// Sends to an end, as far as the connection gets it there.
    pub(super) fn send(
        &mut self,
        random: &mut Random,
        now: u64,
        id: ConnectionId,
        to: Side,
        mut payload: Payload,
    ) {
        if !self.is_open(id, to) {
            return;
        }
        let direction = self.direction_mut(id, to);
        let length = payload.len();
        let is_cut = direction.cut_after.is_some_and(|after| length > after);
        if let Some(after) = &mut direction.cut_after {
            if is_cut && let Payload::Bytes(bytes) = &mut payload {
                bytes.truncate(*after);
            }
            *after = after.saturating_sub(length);
        }
        match payload {
            Payload::Bytes(bytes) => self.send_bytes(random, now, id, to, bytes),
            _ if is_cut => {}
            whole => self.push(random, now, id, to, whole),
        }
        if is_cut {
            self.break_off(random, now, id);
            self.cuts.push(self.connections[id.0].client);
        }
    }

    fn send_bytes(&mut self, random: &mut Random, now: u64, id: ConnectionId, to: Side, mut bytes: Vec<u8>) {
        if self.profile.pieces && bytes.len() > 1 && random.one_in(2) {
            let at = 1 + usize::try_from(random.below(bytes.len() as u64 - 1)).unwrap_or(0);
            let rest = bytes.split_off(at);
            self.push(random, now, id, to, Payload::Bytes(bytes));
            bytes = rest;
        }
        if !bytes.is_empty() {
            self.push(random, now, id, to, Payload::Bytes(bytes));
        }
    }

    fn push(&mut self, random: &mut Random, now: u64, id: ConnectionId, to: Side, payload: Payload) {
        let slow = self.connections[id.0].is_slow && to == Side::Client;
        let delay = random.below(self.profile.delay + 1) + if slow { random.below(SLOW) } else { 0 };
        let direction = self.direction_mut(id, to);
        let at = direction.last_arrival.max(now + delay);
        direction.last_arrival = at;
        direction.bytes += payload.len();
        direction.chunks.push_back(payload);
        self.signals.push((at, Signal::Arrival(id, to)));
    }

    /// What arrives at an end now; nothing at one that is closed.
    pub(super) fn take(&mut self, id: ConnectionId, to: Side) -> Option<Payload> {
        let direction = self.direction_mut(id, to);
        let payload = direction.chunks.pop_front()?;
        direction.bytes -= payload.len();
        (!direction.is_closed).then_some(payload)
    }

    /// An end closes the connection. The other gets what is under way, and then hears of it.
    pub(super) fn close(&mut self, random: &mut Random, now: u64, id: ConnectionId, by: Side) {
        if std::mem::replace(&mut self.direction_mut(id, by).is_closed, true)
            || self.connections[id.0].is_broken
        {
            return;
        }
        let delay = random.below(self.profile.delay + 1);
        let late = if random.one_in(4) { random.below(UNNOTICED) } else { 0 };
        let to = by.other();
        let direction = self.direction_mut(id, to);
        let at = direction.last_arrival.max(now + delay + late);
        direction.last_arrival = at;
        self.signals.push((at, Signal::Closed(id, to)));
    }

    /// The connection breaks: each end hears of it at some time, and nothing more can be sent.
    pub(super) fn break_off(&mut self, random: &mut Random, now: u64, id: ConnectionId) {
        if std::mem::replace(&mut self.connections[id.0].is_broken, true) {
            return;
        }
        for to in [Side::Client, Side::Server] {
            let late = if random.one_in(4) { random.below(UNNOTICED) } else { random.below(10) };
            let direction = self.direction_mut(id, to);
            let at = direction.last_arrival.max(now + late);
            direction.last_arrival = at;
            self.signals.push((at, Signal::Closed(id, to)));
        }
    }

    /// Takes nothing more at this end, which knows that the connection is over; `false` if it knew before.
    pub(super) fn shut(&mut self, id: ConnectionId, side: Side) -> bool {
        !std::mem::replace(&mut self.direction_mut(id, side).is_closed, true)
    }

    /// All connections that are not known to be over at the server.
    pub(super) fn open_at_server(&self) -> Vec<ConnectionId> {
        let all = (0..self.connections.len()).map(ConnectionId);
        all.filter(|id| self.is_open(*id, Side::Server)).collect()
    }
}

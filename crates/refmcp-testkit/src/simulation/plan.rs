//! The plan of a conversation, all from its seed: revision, transport, network, what clients do, what goes wrong.

use refmcp_proto::revision::{Elicitation, Lifecycle, Revision};

use super::network::NetworkProfile;
use crate::random::Random;

/// What happens in one conversation.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) revision: Revision,
    /// The client may speak every revision, and this is the newest of the server.
    pub(super) negotiates: bool,
    pub(super) transport: Transport,
    pub(super) network: NetworkProfile,
    /// Whether the server pings silent sessions.
    pub(super) pings: bool,
    /// Whether the log of streams is so small that it drops events.
    pub(super) small_log: bool,
    /// Whether clients refuse or withhold input now and then.
    pub(super) moody_clients: bool,
    pub(super) restart: Option<(u64, Restart)>,
    /// What each client does, with the time since what it did before.
    pub(super) clients: Vec<Vec<(u64, Action)>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transport {
    /// One ordered stream of lines each way: standard input and output, WebSocket.
    Pipe,
    /// An exchange for each message, a GET stream, server-sent events.
    Http,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Restart {
    /// The server forgets its sessions.
    SessionsLost,
    /// The server goes on with the facts of its sessions.
    SessionsKept,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// Calls a tool, with or without progress; cancels it after so many milliseconds.
    Call { tool: &'static str, progress: bool, cancel_after: Option<u64> },
    /// Lists the tools.
    List,
    /// Subscribes to changes of the list of tools for so many milliseconds, where the revision has streams for that.
    Listen { for_millis: u64 },
    /// Connects again, while the server has not noticed that the old connection is gone.
    Reconnect,
}

/// Tools of every revision.
const TOOLS: &[&str] =
    &["quick", "quick", "work", "work", "log", "sample", "roots", "change", "fail", "hang", "once"];

/// Tools that need elicitation.
const ELICITING_TOOLS: &[&str] = &["ask", "ask", "ask_twice", "ask_many"];

impl Plan {
    pub(super) fn new(random: &mut Random) -> Self {
        let revision = random.pick(&Revision::ALL);
        let transport = random.pick(&[Transport::Pipe, Transport::Http]);
        let is_hostile = random.one_in(3);
        let network = NetworkProfile {
            delay: random.pick(&[0, 0, 3, 40, 700]),
            cuts: is_hostile.then(|| random.pick(&[2, 4, 8])),
            slow: random.one_in(4).then_some(2),
            pieces: random.one_in(3),
        };
        let count = if random.one_in(4) { 2 } else { 1 };
        let clients = (0..count).map(|_| actions(random, revision, is_hostile)).collect();
        let restart = random
            .one_in(8)
            .then(|| (random.below(3_000), random.pick(&[Restart::SessionsLost, Restart::SessionsKept])));
        Self {
            revision,
            negotiates: random.one_in(4),
            transport,
            network,
            pings: random.one_in(6),
            small_log: random.one_in(8),
            moody_clients: random.one_in(5),
            restart,
            clients,
        }
    }
}

fn actions(random: &mut Random, revision: Revision, is_hostile: bool) -> Vec<(u64, Action)> {
    let rules = revision.rules();
    let pause = random.pick(&[0, 20, 600]);
    let count = 1 + random.below(4);
    let action = |random: &mut Random| match random.below(12) {
        0 => Action::List,
        1 if rules.lifecycle == Lifecycle::PerRequest => {
            Action::Listen { for_millis: 1 + random.below(2_000) }
        }
        2 if is_hostile => Action::Reconnect,
        kind => {
            let tools =
                if kind > 6 && rules.elicitation != Elicitation::Unknown { ELICITING_TOOLS } else { TOOLS };
            let tool = random.pick(tools);
            let cancel_after =
                (random.one_in(5) || tool == "hang" && random.one_in(2)).then(|| random.below(1_500));
            Action::Call { tool, progress: random.one_in(2), cancel_after }
        }
    };
    (0..count).map(|_| (random.below(pause + 1), action(random))).collect()
}

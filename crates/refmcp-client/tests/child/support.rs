//! An sink that writes down what it hears, and a look at which processes are there.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use refmcp_client::child::ChildProcess;
use refmcp_client::transport::{Connector, MessageSink, Transport};
use refmcp_proto::engine::client::{ClientMessage, ClientMessageKind, ExchangeId, TransportError};
use refmcp_testkit::paused::PausedTime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, timeout};

/// Longer than anything here may take, even on a machine that is busy.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// What an sink heard.
#[derive(Debug, PartialEq)]
pub(crate) enum Event {
    Message(String),
    TooLong(usize),
    Ended,
    Closed(TransportError),
    IgnoredInput(String),
}

struct Notebook(UnboundedSender<Event>);

impl Notebook {
    fn note(&self, event: Event) {
        // Nobody may be left to read it.
        let _ = self.0.send(event);
    }
}

impl MessageSink for Notebook {
    fn message(&self, exchange: Option<ExchangeId>, json: &[u8]) {
        assert_eq!(exchange, None, "a pipe has one stream for everything");
        self.note(Event::Message(String::from_utf8_lossy(json).into_owned()));
    }

    fn too_long(&self, _: Option<ExchangeId>, limit: usize) {
        self.note(Event::TooLong(limit));
    }

    fn ended(&self, _: ExchangeId, _: TransportError) {
        self.note(Event::Ended);
    }

    fn closed(&self, why: TransportError) {
        self.note(Event::Closed(why));
    }

    fn ignored_input(&self, what: &str) {
        self.note(Event::IgnoredInput(what.to_owned()));
    }
}

/// A server that runs.
pub(crate) struct Running {
    pub(crate) transport: Arc<dyn Transport>,
    heard: UnboundedReceiver<Event>,
}

/// A shell script as a server; it gets little time to end.
pub(crate) fn script(text: &str) -> ChildProcess {
    ChildProcess::new("/bin/sh")
        .args(["-c", text])
        .grace(Duration::from_millis(300), Duration::from_millis(300))
}

/// The same with as much time to end as it likes.
pub(crate) fn unhurried(text: &str) -> ChildProcess {
    script(text).grace(LONG, LONG)
}

/// Starts it.
pub(crate) async fn start(child: &ChildProcess) -> Running {
    let (notes, heard) = unbounded_channel();
    let transport = child.connect(Arc::new(Notebook(notes))).await.unwrap();
    Running { transport, heard }
}

/// Tries to start it; why that fails.
pub(crate) async fn refusal(child: &ChildProcess) -> String {
    let (notes, _) = unbounded_channel();
    match child.connect(Arc::new(Notebook(notes))).await.unwrap_err() {
        TransportError::Unreachable(why) => why,
        other => panic!("not unreachable: {other}"),
    }
}

impl Running {
    /// Sends a message.
    pub(crate) fn send(&self, json: impl Into<Vec<u8>>) {
        self.transport.clone().send(outgoing(json));
    }

    /// The next thing heard.
    pub(crate) async fn next(&mut self) -> Event {
        timeout(LONG, self.heard.recv())
            .await
            .expect("something is heard in time")
            .expect("the sink is there")
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> String {
        match self.next().await {
            Event::Message(text) => text,
            other => panic!("not a message: {other:?}"),
        }
    }

    /// The group of a server whose first message is its number.
    pub(crate) async fn group(&mut self) -> Group {
        Group(self.message().await.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap())
    }

    /// Why nothing more comes.
    pub(crate) async fn why_broken(&mut self) -> String {
        match self.next().await {
            Event::Closed(TransportError::Broken(why)) => why,
            other => panic!("not broken: {other:?}"),
        }
    }

    /// Closes it, and says how long that took.
    pub(crate) async fn close(&self) -> Duration {
        // Time goes on in steps, each of which leaves the processes as long as they need on a busy machine.
        let (time, began) = (PausedTime::start(), Instant::now());
        let closing = tokio::spawn(self.transport.clone().close());
        time.settle().await;
        while !closing.is_finished() {
            time.advance(Duration::from_millis(100)).await;
        }
        began.elapsed()
    }

    /// Whatever was heard and not looked at.
    pub(crate) fn rest(&mut self) -> Vec<Event> {
        std::iter::from_fn(|| self.heard.try_recv().ok()).collect()
    }
}

pub(crate) fn outgoing(json: impl Into<Vec<u8>>) -> ClientMessage {
    ClientMessage {
        exchange: ExchangeId(1),
        kind: ClientMessageKind::Notification { method: "test".into() },
        json: json.into(),
        rules: None,
    }
}

/// What a script says first, so that its group is known.
pub(crate) const SAY_GROUP: &str = r#"echo "{\"pid\":$$}"; "#;

/// A process group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group(pub(crate) u32);

impl Group {
    /// Its processes that are not just waiting to be reaped by somebody else, and its leader even then: that one is
    /// ours to reap.
    pub(crate) fn members(self) -> Vec<u32> {
        let mut members = Vec::new();
        for entry in fs::read_dir("/proc").unwrap() {
            let entry = entry.unwrap();
            let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
            let Some((number, rest)) = stat.split_once(" (") else { continue };
            let mut rest = rest.rsplit_once(") ").unwrap().1.split(' ');
            let (state, _parent, group) = (rest.next().unwrap(), rest.next(), rest.next().unwrap());
            let number: u32 = number.parse().unwrap();
            if group == self.0.to_string() && (state != "Z" || number == self.0) {
                members.push(number);
            }
        }
        members
    }

    /// Waits until nothing is left of it.
    pub(crate) async fn ends(self) {
        let began = Instant::now();
        while !self.members().is_empty() {
            assert!(began.elapsed() < LONG, "left behind: {:?}", self.members());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

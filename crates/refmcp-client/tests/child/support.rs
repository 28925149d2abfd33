//! Servers that are shell scripts, and a look at which processes exist.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use refmcp_client::child::ChildProcess;
use refmcp_client::transport::{Connector, Transport};
use refmcp_proto::engine::client::TransportError;
use refmcp_testkit::paused::PausedTime;
use tokio::time::Instant;

use crate::recording_sink::{LONG, RecordingSink, SinkEvent, outgoing};

/// A running server.
pub(crate) struct Running {
    pub(crate) transport: Arc<dyn Transport>,
    sink: RecordingSink,
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
    let (sink, recorded) = RecordingSink::new();
    Running { transport: child.connect(sink).await.unwrap(), sink: recorded }
}

/// Tries to start it; why that fails.
pub(crate) async fn refusal(child: &ChildProcess) -> String {
    match child.connect(RecordingSink::new().0).await.unwrap_err() {
        TransportError::Unreachable(why) => why,
        other => panic!("not unreachable: {other}"),
    }
}

impl Running {
    /// Sends a message.
    pub(crate) fn send(&self, json: impl Into<Vec<u8>>) {
        self.transport.clone().send(outgoing(json));
    }

    /// The next event.
    pub(crate) async fn next(&mut self) -> SinkEvent {
        self.sink.next().await
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> String {
        let (exchange, text) = self.sink.message().await;
        assert_eq!(exchange, None, "a pipe has one stream for everything");
        text
    }

    /// The group of a server whose first message is its number.
    pub(crate) async fn group(&mut self) -> Group {
        Group(self.message().await.trim_matches(|c: char| !c.is_ascii_digit()).parse().unwrap())
    }

    /// Why nothing more comes.
    pub(crate) async fn why_broken(&mut self) -> String {
        self.sink.why_broken().await
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

    /// The events that were not looked at.
    pub(crate) fn rest(&mut self) -> Vec<SinkEvent> {
        self.sink.rest()
    }
}

/// What a script says first, so that its group is known.
pub(crate) const SAY_GROUP: &str = r#"echo "{\"pid\":$$}"; "#;

/// A process group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group(pub(crate) u32);

impl Group {
    /// Its processes that are not just waiting to be reaped by another process, and its leader even then: that one is
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

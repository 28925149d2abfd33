//! Audits of tests: what passes is judged by the rules of the specification, and a test in which the judged party broke one that
//! is demanded fails. The other party may break rules on purpose.
//!
//! ```
//! use refmcp_server::{Call, NoArguments, Server, Tool};
//! use refmcp_testkit::audit::{Role, TestAudit};
//!
//! let audit = TestAudit::of(Role::Server);
//! let greet = Tool::new("greet", "Greets", |_: Call, _: NoArguments| async { Ok("Hello!") });
//! let server = Server::builder("greeter", "1").tool(greet).observer(audit.observer()).build().unwrap();
//! # let _ = server;
//! // … clients talk to the server; then dropping the audit panics if the server broke a rule.
//! drop(audit);
//! ```

use std::sync::Arc;
use std::thread;

use parking_lot::Mutex;
use refmcp_audit::Auditor;
use refmcp_audit::recording::{Direction, Event, EventKind, Masks, Recorder, Side};
pub use refmcp_audit::verdict::Role;
use refmcp_proto::rule::{Level, Rule};
use refmcp_server::transport::observer::Observer;
use tokio::time::Instant;

/// Judges one party of the conversations that pass. Dropping it panics if that party broke a rule.
#[derive(Debug)]
pub struct TestAudit(Arc<State>);

#[derive(Debug)]
struct State {
    role: Role,
    auditor: Mutex<Auditor>,
    broken: Mutex<Vec<String>>,
    /// Rules that are broken on purpose.
    allowed: Mutex<Vec<&'static str>>,
    /// The first broken rule ends the process.
    is_fatal: bool,
}

/// An observer that judges this party, and ends the process when it breaks a rule: where a test has no place for a [`TestAudit`],
/// since the other tasks of the party would swallow a panic.
pub fn fatal_audit(role: Role) -> Arc<dyn Observer> {
    let state = Arc::new(State::new(role, true));
    Arc::new(Recorder::new(Masks::default(), move |event| state.observe(&event)))
}

impl TestAudit {
    /// An audit of this party.
    pub fn of(role: Role) -> Self {
        Self(Arc::new(State::new(role, false)))
    }

    /// What shows it the messages of servers and clients.
    pub fn observer(&self) -> Arc<dyn Observer> {
        let state = self.0.clone();
        Arc::new(Recorder::new(Masks::default(), move |event| state.observe(&event)))
    }

    /// The test makes the party break this rule.
    pub fn allow(&self, rule: &Rule) {
        self.0.allowed.lock().push(rule.id);
    }

    /// How the party broke rules so far: each way once, with the rule and the message.
    pub fn broken(&self) -> Vec<String> {
        let (broken, allowed) = (self.0.broken.lock(), self.0.allowed.lock());
        let is_allowed = |line: &&String| allowed.iter().any(|rule| line.starts_with(&format!("{rule}:")));
        broken.iter().filter(|line| !is_allowed(line)).cloned().collect()
    }
}

impl Drop for TestAudit {
    fn drop(&mut self) {
        let broken = self.broken();
        if !broken.is_empty() && !thread::panicking() {
            panic!("the {} broke rules:\n{}", self.0.role, broken.join("\n"));
        }
    }
}

impl State {
    fn new(role: Role, is_fatal: bool) -> Self {
        let (auditor, broken, allowed) = (Mutex::default(), Mutex::default(), Mutex::default());
        Self { role, auditor, broken, allowed, is_fatal }
    }

    fn observe(&self, event: &Event) {
        let new = {
            let mut auditor = self.auditor.lock();
            auditor.observe(event);
            auditor.take_new()
        };
        let demanded = |rule: &Rule| matches!(rule.level, Level::Must | Level::May);
        let of_party = new.into_iter().filter(|(rule, role, _)| *role == self.role && demanded(rule));
        let lines = of_party.map(|(rule, _, violation)| {
            let (what, expected, text) = (violation.what, violation.expected, violation.evidence.text);
            format!("{}: {what}; {expected}\n    {text}", rule.id)
        });
        let lines: Vec<_> = lines.collect();
        if self.is_fatal && !lines.is_empty() {
            eprintln!("the {} broke rules:\n{}", self.role, lines.join("\n"));
            std::process::exit(101);
        }
        self.broken.lock().extend(lines);
    }
}

/// An audit of the server at the other end of a pipe, which is shown what the client sends and gets.
#[derive(Debug)]
pub(crate) struct PipeAudit {
    audit: TestAudit,
    since: Instant,
}

impl PipeAudit {
    pub(crate) fn new() -> Self {
        let audit = Self { audit: TestAudit::of(Role::Server), since: Instant::now() };
        let (transport, peer) = ("memory".to_owned(), "server".to_owned());
        audit.event(EventKind::Opened { side: Side::Client, transport, peer });
        audit
    }

    pub(crate) fn passed(&self, direction: Direction, bytes: &[u8]) {
        let kind = match serde_json::from_slice::<&serde_json::value::RawValue>(bytes) {
            Ok(text) => EventKind::Message { direction, text: text.get().to_owned(), event_id: None },
            Err(why) => EventKind::Invalid { direction, bytes: bytes.to_owned(), why: why.to_string() },
        };
        self.event(kind);
    }

    fn event(&self, kind: EventKind) {
        let at = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.audit.0.observe(&Event { at, connection: 1, revision: None, stream: None, kind });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server_that(breaks: bool) -> PipeAudit {
        let audit = PipeAudit::new();
        let id = if breaks { 8 } else { 7 };
        audit.passed(Direction::Sent, br#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#);
        // Another party that breaks rules is not judged.
        audit.passed(Direction::Sent, br#"{"jsonrpc":"2.0","id":99,"result":{}}"#);
        audit.passed(
            Direction::Received,
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#).as_bytes(),
        );
        audit
    }

    #[test]
    fn a_server_that_keeps_the_rules_passes() {
        drop(server_that(false));
    }

    #[test]
    #[should_panic(expected = "RPC-05: a response to no request")]
    fn a_server_that_breaks_a_rule_fails_the_test() {
        drop(server_that(true));
    }

    #[test]
    fn a_rule_that_is_broken_on_purpose_is_allowed() {
        let audit = server_that(true);
        audit.audit.allow(&refmcp_proto::rule::RPC_05);
        drop(audit);
    }
}

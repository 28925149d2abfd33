//! What one client of a mock, or all clients without sessions, are told over HTTP: each message goes to the response that it
//! belongs to, or to the stream of the session.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use refmcp_audit::replay::{HttpAnswer, MockMessage, MockOutput, MockSession};
use refmcp_client::observer::Observed;
use tokio::sync::mpsc;

use super::tell_remarks;

/// Messages that wait for the reader of a response.
const MAX_WAITING: usize = 4096;
/// Messages that are kept until the stream of the session is opened.
const MAX_KEPT: usize = 1024;

/// A session over HTTP.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) observed: Observed,
    state: Mutex<MockSession>,
    calls: AtomicU64,
    readers: Mutex<Readers>,
}

#[derive(Debug, Default)]
struct Readers {
    /// Responses that are being read, by the number of their call.
    calls: HashMap<u64, mpsc::Sender<MockMessage>>,
    /// The stream of the session, while it is open.
    general: Option<mpsc::Sender<MockMessage>>,
    /// What is for that stream, until it is open.
    kept: VecDeque<MockMessage>,
}

/// A response that messages go to as long as it is read.
#[derive(Debug)]
pub(super) struct Reader {
    session: Arc<Session>,
    call: u64,
    pub(super) messages: mpsc::Receiver<MockMessage>,
}

impl Session {
    pub(super) fn new(state: MockSession, observed: Observed) -> Self {
        let (state, calls, readers) = (Mutex::new(state), AtomicU64::new(1), Mutex::default());
        Self { observed, state, calls, readers }
    }

    /// Takes in a message or a batch. Its answers go to the reader; without one, to the stream of the session.
    pub(super) fn receive(self: &Arc<Self>, text: &str, wants_reader: bool) -> (HttpAnswer, Option<Reader>) {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let reader = wants_reader.then(|| {
            let (sender, messages) = mpsc::channel(MAX_WAITING);
            self.readers.lock().calls.insert(call, sender);
            Reader { session: self.clone(), call, messages }
        });
        let mut state = self.state.lock();
        let answer = state.http_answer(text);
        let outputs = state.receive(call, text);
        tell_remarks(&outputs);
        // Under the lock: what two clients cause stays in its order.
        for output in outputs {
            if let MockOutput::Message(message) = output {
                self.pass(message);
            }
        }
        (answer, reader)
    }

    fn pass(&self, message: MockMessage) {
        let mut readers = self.readers.lock();
        let reader = message.call.and_then(|call| readers.calls.get(&call)).or(readers.general.as_ref());
        let message = match reader.map(|reader| reader.try_send(message.clone())) {
            // A reader that takes nothing gets no more.
            Some(Ok(()) | Err(mpsc::error::TrySendError::Full(_))) => return,
            _ => message,
        };
        if readers.kept.len() < MAX_KEPT {
            readers.kept.push_back(message);
        }
    }

    /// Opens the stream of the session, in place of one that is open.
    pub(super) fn open(&self) -> mpsc::Receiver<MockMessage> {
        let (sender, messages) = mpsc::channel(MAX_WAITING);
        let mut readers = self.readers.lock();
        for message in std::mem::take(&mut readers.kept) {
            // There is room for more than is kept.
            let _ = sender.try_send(message);
        }
        readers.general = Some(sender);
        messages
    }

    /// Ends the stream of the session.
    pub(super) fn close(&self, why: &str) {
        self.readers.lock().general = None;
        self.observed.closed(&why);
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.session.readers.lock().calls.remove(&self.call);
        self.session.state.lock().left(self.call);
    }
}

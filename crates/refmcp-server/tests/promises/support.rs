//! What several tests need.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use refmcp_server::{Call, CallError, NoArguments, Revision, Server, Tool};
use refmcp_testkit::client::TestClient;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// The newest revision with sessions.
pub(crate) const SESSION: Revision = Revision::LATEST_SESSION;
/// The newest revision, which has none.
pub(crate) const STATELESS: Revision = Revision::LATEST;
/// One revision of either kind.
pub(crate) const BOTH: [Revision; 2] = [SESSION, STATELESS];

/// A server with these tools.
pub(crate) fn server(tools: impl IntoIterator<Item = Tool>) -> Server {
    let builder = Server::builder("test", "1");
    tools.into_iter().fold(builder, refmcp_server::ServerBuilder::tool).build().unwrap()
}

/// A tool that says its name and is done.
pub(crate) fn named(name: &'static str) -> Tool {
    Tool::new(name, "Says its name", move |_: Call, _: NoArguments| async move { Ok(name) })
}

/// The names in a list.
pub(crate) fn names(items: &[Value]) -> Vec<String> {
    items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

/// Waits until all other tasks are idle; needs a paused clock.
pub(crate) async fn idle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// A call that is repeated with answers, where questions come as results.
pub(crate) async fn repeat(client: &mut TestClient, tool: &str, state: &Value, answers: Value) -> Value {
    let params = json!({ "name": tool, "arguments": {}, "requestState": state, "inputResponses": answers });
    client.call("tools/call", params).await
}

/// A tool that waits at a gate, and what is known about its calls.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    pub(crate) begun: Arc<AtomicUsize>,
    pub(crate) stopped: Arc<AtomicUsize>,
    open: Arc<Semaphore>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        Self { begun: Arc::default(), stopped: Arc::default(), open: Arc::new(Semaphore::new(0)) }
    }

    /// The tool: its calls end one by one as they are let through.
    pub(crate) fn tool(&self) -> Tool {
        let gate = self.clone();
        Tool::new("gate", "Waits", move |_: Call, _: NoArguments| {
            let gate = gate.clone();
            async move {
                gate.begun.fetch_add(1, Ordering::SeqCst);
                let _count = CountWhenDropped(gate.stopped.clone());
                gate.open.acquire().await?.forget();
                Ok::<_, CallError>("through")
            }
        })
    }

    /// Lets some calls through.
    pub(crate) fn let_through(&self, count: usize) {
        self.open.add_permits(count);
    }

    pub(crate) fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    pub(crate) fn stopped(&self) -> usize {
        self.stopped.load(Ordering::SeqCst)
    }
}

/// Counts how often one of it goes out of scope.
pub(crate) struct CountWhenDropped(pub(crate) Arc<AtomicUsize>);

impl Drop for CountWhenDropped {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

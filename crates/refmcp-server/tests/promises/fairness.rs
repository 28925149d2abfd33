//! A handler that computes without a pause delays no other call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use refmcp_server::{Call, CallError, NoArguments, Tool};
use refmcp_testkit::client::TestClient;
use serde_json::json;

use crate::support::{BOTH, named, server};

/// A tool that keeps its thread busy until it is told to end, and how often it runs.
#[derive(Clone, Default)]
struct Spinner {
    enough: Arc<AtomicBool>,
    spinning: Arc<AtomicUsize>,
}

impl Spinner {
    fn tool(&self) -> Tool {
        let spinner = self.clone();
        Tool::new("spin", "Computes", move |_: Call, _: NoArguments| {
            let spinner = spinner.clone();
            async move { spinner.spin() }
        })
    }

    fn spin(&self) -> Result<&'static str, CallError> {
        self.spinning.fetch_add(1, Ordering::SeqCst);
        // Longer than any test waits: only a test that has failed sees the end of it.
        let end = Instant::now() + Duration::from_secs(60);
        while !self.enough.load(Ordering::SeqCst) && Instant::now() < end {
            std::hint::spin_loop();
        }
        Ok("dizzy")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn calls_are_answered_while_another_computes() {
    for revision in BOTH {
        let spinner = Spinner::default();
        let server = server([spinner.tool(), named("echo"), named("inline").inline()]);
        let mut client = TestClient::open(&server, revision).await;
        let spinning = client.start_tool("spin", json!({})).await;
        while spinner.spinning.load(Ordering::SeqCst) == 0 {
            client.catch_up().await;
        }
        // The answers come although the spinner would go on for a minute.
        for name in ["echo", "inline"] {
            assert_eq!(client.tool_text(name, json!({})).await, name, "{revision}");
        }
        let other = &mut TestClient::open(&server, revision).await;
        assert_eq!(other.tool_text("echo", json!({})).await, "echo", "{revision}");
        assert_eq!(client.answered(spinning), None);
        spinner.enough.store(true, Ordering::SeqCst);
        assert_eq!(client.answer(spinning).await["result"]["content"][0]["text"], "dizzy", "{revision}");
    }
}

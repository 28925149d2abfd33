//! The well-behaved client whose latency is measured: calls of `echo`, one after the other, on one connection.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use serde_json::json;
use tokio::time::sleep;

use super::http::{Connection, Target};
use super::ledger::Ledger;
use super::message;

const NAME: &str = "the measured client";
const PAUSE: Duration = Duration::from_millis(10);

/// The latencies that were measured and not taken yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Latencies(Arc<Mutex<Vec<Duration>>>);

impl Latencies {
    pub(super) fn take(&self) -> Vec<Duration> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn add(&self, latency: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(latency);
    }
}

/// Calls until it is aborted.
pub(super) async fn run(target: Target, latencies: Latencies, ledger: Ledger) {
    if let Err(error) = call(target, &latencies, &ledger).await {
        ledger.failed(NAME, &error);
    }
}

async fn call(target: Target, latencies: &Latencies, ledger: &Ledger) -> Result<()> {
    let mut connection = Connection::open(target).await?;
    for id in 1.. {
        let nonce = format!("measured {id}");
        let request =
            target.post_stateless("echo", &message::stateless_call(id, "echo", &json!({ "message": nonce })));
        let begin = Instant::now();
        let response = connection.exchange(&request).await?;
        latencies.add(begin.elapsed());
        ensure!(
            !response.is_refusal(),
            "a client that holds nothing was refused: status {}",
            response.status
        );
        let messages = response.messages()?;
        if message::text(message::only_response(&messages, id)?) != Some(&nonce) {
            bail!("not the answer {nonce:?}: {messages:?}");
        }
        ledger.answered(NAME);
        sleep(PAUSE).await;
    }
    Ok(())
}

/// The latency that so many of a hundred calls have at most, in milliseconds.
pub(super) fn percentile(latencies: &mut [Duration], percent: usize) -> f64 {
    latencies.sort_unstable();
    let at = (latencies.len() * percent / 100).min(latencies.len().saturating_sub(1));
    latencies.get(at).map_or(0.0, |latency| latency.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_latencies() {
        let mut latencies: Vec<_> = (1..=200).rev().map(Duration::from_millis).collect();
        assert_eq!([50, 99, 100].map(|percent| percentile(&mut latencies, percent)), [101.0, 199.0, 200.0]);
        assert_eq!(percentile(&mut [], 99), 0.0);
    }
}

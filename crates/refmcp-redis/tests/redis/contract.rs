//! The contract of all backplanes, over two connections to one server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use refmcp_redis::RedisBackplane;
use refmcp_testkit::backplane::races::RACES;
use refmcp_testkit::backplane::{BackplaneFixture, CASES, Case, Replicas, steps};
use refmcp_testkit::redis::RedisServer;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::server::options;

/// Longer than anything takes that is no waiting, also on a busy machine.
const TICK: Duration = Duration::from_millis(150);

/// How many cases run at the same time: they wait most of the time.
const AT_ONCE: usize = 12;

/// Each state has keys of its own in one server.
fn fixture(server: &RedisServer, tick: Duration) -> BackplaneFixture {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let options = options(server);
    BackplaneFixture::new(tick, move |settings| {
        let prefix = format!("test-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        let mut options = options.clone();
        (options.prefix, options.settings) = (prefix, settings);
        options.timeout = Duration::from_secs(20);
        // No hint is lost here. What waits for the next look all the same is late, and fails.
        options.poll = Duration::from_secs(60);
        async move {
            let one = Arc::new(RedisBackplane::connect(options.clone()).await.unwrap());
            let other = Arc::new(RedisBackplane::connect(options).await.unwrap());
            Replicas { one, other }
        }
    })
}

async fn run(cases: &'static [Case]) {
    let server = RedisServer::start();
    let fixture = Arc::new(fixture(&server, TICK));
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    let mut running = JoinSet::new();
    for case in cases {
        let (fixture, turns) = (fixture.clone(), turns.clone());
        running.spawn(async move {
            let _turn = turns.acquire().await.unwrap();
            (case.run)(&fixture).await;
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn cases() {
    run(CASES).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races() {
    run(RACES).await;
}

/// Random changes and questions, compared with the model of the testkit. No time passes in them.
#[tokio::test]
async fn random_steps() {
    let server = RedisServer::start();
    // Nothing expires while they are played.
    let fixture = fixture(&server, Duration::from_secs(10));
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..30 {
        let mut numbers = Vec::new();
        while numbers.len() < 250 {
            // SplitMix64.
            random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut number = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            number ^= number >> 31;
            if !steps::passes_time(number) {
                numbers.push(number);
            }
        }
        steps::play(&fixture, &numbers).await;
    }
}

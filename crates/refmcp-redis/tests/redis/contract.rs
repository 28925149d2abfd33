//! The contract of all backplanes, over two connections to one server.
//!
//! Time is tokio's, which stands still while a command is under way and otherwise goes on as soon as all wait: so the cases do not
//! depend on how fast the machine is, and take no longer than their commands.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use refmcp_redis::{RedisBackplane, TestTime};
use refmcp_testkit::backplane::races::RACES;
use refmcp_testkit::backplane::{BackplaneFixture, CASES, Replicas, steps};
use refmcp_testkit::redis::RedisServer;

use crate::server::options;
use crate::time::time;

/// A tick. A hint that arrives late fails no case, since who waits looks again before its limit.
const TICK: Duration = Duration::from_millis(100);

/// A tick of the races, in real time: none of them waits for one.
const RACE_TICK: Duration = Duration::from_secs(2);

/// Reached only by a command that hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// Each state has keys of its own in one server.
fn fixture(server: &RedisServer, tick: Duration, time: Option<Arc<TestTime>>) -> BackplaneFixture {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let options = options(server);
    BackplaneFixture::new(tick, move |settings| {
        let mut options = options.clone();
        options.prefix = format!("test-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        options.settings = settings;
        options.timeout = LIMIT;
        options.poll = tick * 5;
        options.time.clone_from(&time);
        async move {
            let one = Arc::new(RedisBackplane::connect(options.clone()).await.unwrap());
            let other = Arc::new(RedisBackplane::connect(options).await.unwrap());
            Replicas { one, other }
        }
    })
}

#[tokio::test(start_paused = true)]
async fn cases() {
    let server = RedisServer::start();
    let fixture = fixture(&server, TICK, Some(time()));
    for case in CASES {
        eprintln!("{}", case.name);
        (case.run)(&fixture).await;
    }
}

/// Without a hand on the time, and with threads that are in each other's way.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn races() {
    let server = RedisServer::start();
    let fixture = fixture(&server, RACE_TICK, None);
    for race in RACES {
        eprintln!("{}", race.name);
        (race.run)(&fixture).await;
    }
}

/// Random changes and questions, compared with the model of the testkit.
#[tokio::test(start_paused = true)]
async fn random_steps() {
    let server = RedisServer::start();
    let fixture = fixture(&server, TICK, Some(time()));
    let mut random: u64 = 0x9e37_79b9_7f4a_7c15;
    for _ in 0..30 {
        let numbers: Vec<u64> = (0..250)
            .map(|_| {
                // SplitMix64.
                random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let number = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                number ^ (number >> 31)
            })
            .collect();
        steps::play(&fixture, &numbers).await;
    }
}

//! A server under good and hostile load for minutes: what it holds stays within its budget, good clients are answered,
//! and afterwards everything is as it was.
//!
//! | module | what it is |
//! |---|---|
//! | `good` | clients of every transport that check each answer; `ledger` counts them |
//! | `hostile` | clients that hold what they can, and vanish |
//! | `probe` | the well-behaved client whose latency is measured |
//! | `http`, `http2`, `websocket`, `message`, `random` | what clients are made of |
//! | `sample` | what the server uses, each second |
//! | `checks` | what must hold in the end |
//! | `chart` | the picture |
//! | `file_limit` | room for so many connections |

mod chart;
mod checks;
mod file_limit;
mod good;
mod hostile;
mod http;
mod http2;
mod ledger;
mod message;
mod probe;
mod random;
mod sample;
mod websocket;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::time::{Instant, interval, sleep, timeout};

use crate::server::Server;
use crate::{Build, Tally, shell};
use checks::Findings;
use good::GoodClients;
use http::Target;
use ledger::Ledger;
use probe::{Latencies, percentile};
use random::Random;
use sample::{MIB, Sample, Sampler};

const PICTURE: &str = "docs/soak.svg";

/// Sessions and logs of clients that vanished are to be gone soon after.
const SERVER: [&str; 12] = [
    "--memory",
    "256M",
    "--ops-addr",
    "127.0.0.1:0",
    "--output",
    "json",
    "--session-timeout",
    "20",
    "--retention",
    "5",
    "--grace",
    "1",
];

/// How long the server may take until everything is as it was.
const SETTLE_LIMIT: Duration = Duration::from_secs(90);

/// How long the server is watched without requests.
const IDLE: Duration = Duration::from_secs(5);

const SEED: u64 = 20_261_118;

/// How many clients there are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Crowd {
    /// Good clients of each kind.
    good: usize,
    /// Hostile clients of each kind.
    hostile: usize,
    /// Connections that say one byte.
    one_byte: usize,
    /// Connections that come and go in waves.
    idle: usize,
}

/// What a latency above the goal means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Latency {
    /// It fails the run: for a machine with nothing else to do.
    Strict,
    Warned,
    /// It says nothing here.
    Unchecked,
}

struct Plan {
    crowd: Crowd,
    warm_up: Duration,
    load: Duration,
    latency: Latency,
}

/// Runs for so many minutes: `MINUTES [--strict] [--update]`.
///
/// # Errors
/// The arguments are not understood, or the server cannot be started or measured.
pub fn run(args: &[&str]) -> Result<Tally> {
    let has = |option| args.contains(&option);
    let named: Vec<&str> =
        args.iter().copied().filter(|arg| !["--strict", "--update"].contains(arg)).collect();
    let minutes = match named[..] {
        [minutes] => minutes.parse::<f64>().ok().filter(|minutes| (0.1..=1440.0).contains(minutes)),
        _ => None,
    };
    let Some(minutes) = minutes else { bail!("how many minutes? `soak MINUTES [--strict] [--update]`") };
    let plan = Plan {
        crowd: Crowd { good: 3, hostile: 8, one_byte: 2_000, idle: 7_000 },
        warm_up: Duration::from_secs(15),
        load: Duration::from_secs_f64(minutes * 60.0),
        latency: if has("--strict") { Latency::Strict } else { Latency::Warned },
    };
    let (tally, samples) = soak(&Build::of_tree()?, &plan)?;
    if has("--update") {
        let picture = shell::root().join(PICTURE);
        fs::write(picture, chart::draw(&samples)).with_context(|| format!("cannot write {PICTURE}"))?;
    }
    Ok(tally)
}

/// A short run with few clients, whose result does not depend on the machine.
///
/// # Errors
/// The server cannot be started or measured.
pub fn short(build: &Build) -> Result<Tally> {
    let plan = Plan {
        crowd: Crowd { good: 1, hostile: 4, one_byte: 200, idle: 300 },
        warm_up: Duration::from_secs(8),
        load: Duration::from_secs(12),
        latency: Latency::Unchecked,
    };
    Ok(soak(build, &plan)?.0)
}

fn soak(build: &Build, plan: &Plan) -> Result<(Tally, Vec<Sample>)> {
    let Crowd { hostile, one_byte, idle, .. } = plan.crowd;
    file_limit::raise((one_byte + idle + 40 * hostile + 1_000) as u64)?;
    let folder = shell::target_directory()?.join("soak");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let log = folder.join("server.log");
    let server = Server::start_with_banner(&build.refmcp(), &SERVER, &log)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ran = runtime.block_on(load_and_check(build, plan, &server, &log));
    drop(runtime);
    server.stop()?;
    ran
}

async fn load_and_check(
    build: &Build,
    plan: &Plan,
    server: &Server,
    log: &Path,
) -> Result<(Tally, Vec<Sample>)> {
    let banner: Value = serde_json::from_str(&server.url).context("the banner is no JSON")?;
    let target = Target { port: port(&banner["endpoints"]["streamableHttp"])? };
    let operations = Target { port: port(&banner["operations"])? };
    let (ledger, latencies, mut random) = (Ledger::default(), Latencies::default(), Random::new(SEED));
    let probe = tokio::spawn(probe::run(target, latencies.clone(), ledger.clone()));
    let mut sampler = Sampler::new(server.id(), operations, latencies);
    sleep(Duration::from_secs(1)).await;
    let first = sampler.sample().await?;
    println!("{}", heads());
    println!("{}   at the start", row(&first));

    let program = Arc::new(build.refmcp());
    let good = || GoodClients {
        target,
        program: program.clone(),
        ledger: ledger.clone(),
        stop: Arc::new(AtomicBool::new(false)),
    };
    let mut samples = vec![first];
    load(plan.warm_up, plan.crowd, good(), &mut sampler, &mut samples, &mut random).await?;
    let before = settle(&mut sampler, first, &mut samples).await?;
    println!("{}   after the warm-up", row(&before));

    sampler.measured.clear();
    let begin = samples.len();
    load(plan.load, plan.crowd, good(), &mut sampler, &mut samples, &mut random).await?;
    let end = samples.len();
    let mut measured = std::mem::take(&mut sampler.measured);
    let after = settle(&mut sampler, before, &mut samples).await?;
    println!("{}   after the load", row(&after));

    let measuring = !probe.is_finished();
    probe.abort();
    sleep(Duration::from_secs(1)).await;
    let cpu = sampler.cpu()?;
    sleep(IDLE).await;
    let idle = (sampler.cpu()? - cpu, IDLE);
    ensure!(measuring, "the measured client has stopped: {:?}", ledger.faults());
    let findings = Findings {
        before,
        after,
        loaded: &samples[begin..end],
        p50: percentile(&mut measured, 50),
        p99: percentile(&mut measured, 99),
        idle,
        ledger: &ledger,
        log: &fs::read_to_string(log)?,
        latency: plan.latency,
    };
    Ok((findings.report(), samples))
}

/// Puts load on the server, and takes a sample each second.
async fn load(
    time: Duration,
    crowd: Crowd,
    good: GoodClients,
    sampler: &mut Sampler,
    samples: &mut Vec<Sample>,
    random: &mut Random,
) -> Result<()> {
    let mut good_clients = good.start(crowd.good, random);
    let mut hostile_clients = hostile::start(crowd, good.target, random);
    let (begin, mut seconds) = (Instant::now(), interval(Duration::from_secs(1)));
    while begin.elapsed() < time {
        seconds.tick().await;
        let sample = sampler.sample().await?;
        samples.push(sample);
        println!("{}", row(&sample));
    }
    hostile_clients.shutdown().await;
    good.stop.store(true, Ordering::Relaxed);
    let left = async { while good_clients.join_next().await.is_some() {} };
    timeout(2 * http::LIMIT, left).await.context("good clients still wait for answers")
}

/// Waits until the server uses no more than it did, or for as long as it may take. Threads that have nothing to do end
/// within the shortest time.
async fn settle(sampler: &mut Sampler, before: Sample, samples: &mut Vec<Sample>) -> Result<Sample> {
    let begin = Instant::now();
    loop {
        sleep(Duration::from_secs(1)).await;
        let sample = sampler.sample().await?;
        samples.push(sample);
        let settled = sample.fds <= before.fds
            && sample.sessions <= before.sessions
            && sample.held <= before.held
            && begin.elapsed() > Duration::from_secs(10);
        if settled || begin.elapsed() > SETTLE_LIMIT {
            return Ok(sample);
        }
    }
}

/// The port of an address of the banner.
fn port(url: &Value) -> Result<u16> {
    let port = url.as_str().and_then(|url| url.split("127.0.0.1:").nth(1)?.split('/').next()?.parse().ok());
    port.with_context(|| format!("no address: {url}"))
}

fn heads() -> String {
    let heads = [
        "s", "RSS MiB", "held MiB", "fds", "threads", "CPU s", "sessions", "streams", "conns", "p50 ms",
        "p99 ms",
    ];
    heads.map(|head| format!("{head:>9}")).concat()
}

fn row(sample: &Sample) -> String {
    let Sample { at, rss, fds, threads, cpu, held, sessions, streams, connections, p50, p99 } = sample;
    let [rss, held] = [*rss, *held].map(|bytes| bytes as f64 / MIB);
    let cpu = cpu.as_secs_f64();
    format!(
        "{at:>9.0}{rss:>9.1}{held:>9.1}{fds:>9}{threads:>9}{cpu:>9.1}{sessions:>9}{streams:>9}{connections:>9}\
         {p50:>9.1}{p99:>9.1}"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ports_are_those_of_the_banner() {
        assert_eq!(port(&json!("http://127.0.0.1:4000/mcp")).unwrap(), 4000);
        assert_eq!(port(&json!("http://127.0.0.1:4001")).unwrap(), 4001);
        assert!(port(&Value::Null).is_err());
    }

    #[test]
    fn minutes_are_needed() {
        for args in [&[][..], &["soon"], &["1", "2"], &["0"]] {
            assert!(run(args).unwrap_err().to_string().contains("how many minutes"), "{args:?}");
        }
    }

    #[test]
    fn a_row_has_a_column_for_each_head() {
        assert_eq!(row(&Sample::default()).len(), heads().len());
    }
}

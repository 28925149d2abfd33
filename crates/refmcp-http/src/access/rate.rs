//! How often one client may ask: a bucket that fills at a steady rate, from which every request takes a drop.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use parking_lot::Mutex;
use refmcp_server::Timestamp;

/// Clients that are remembered; when there are more, all start afresh.
const MOST_CLIENTS: usize = 100_000;

/// A rate of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Requests per second, in the long run.
    pub per_second: u32,
    /// Requests at once, after a pause.
    pub burst: u32,
}

impl Rate {
    /// So many requests per second, and as many at once as would be fine within ten.
    pub fn per_second(per_second: u32) -> Self {
        Self { per_second, burst: per_second.saturating_mul(10) }
    }
}

impl Default for Rate {
    fn default() -> Self {
        Self::per_second(100)
    }
}

/// The buckets of all clients.
#[derive(Debug)]
pub(crate) struct RateLimiter {
    rate: Rate,
    buckets: Mutex<HashMap<IpAddr, Bucket>>,
}

/// In thousandths of a request, so that nothing is lost in rounding.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    drops: u64,
    at: Timestamp,
}

const REQUEST: u64 = 1000;

impl RateLimiter {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, buckets: Mutex::default() }
    }

    /// Takes a drop from a client's bucket, or says in how many seconds there is one.
    pub(crate) fn take(&self, client: IpAddr, now: Timestamp) -> Result<(), u64> {
        let full = u64::from(self.rate.burst) * REQUEST;
        let mut buckets = self.buckets.lock();
        if buckets.len() >= MOST_CLIENTS {
            buckets.clear();
        }
        let bucket = buckets.entry(network(client)).or_insert(Bucket { drops: full, at: now });
        let passed = now.as_millis().saturating_sub(bucket.at.as_millis());
        // So many per second are as many thousandths per millisecond.
        bucket.drops = full.min(bucket.drops.saturating_add(passed * u64::from(self.rate.per_second)));
        bucket.at = bucket.at.max(now);
        if bucket.drops >= REQUEST {
            bucket.drops -= REQUEST;
            return Ok(());
        }
        let missing = REQUEST - bucket.drops;
        Err(missing.div_ceil(u64::from(self.rate.per_second.max(1)) * 1000).max(1))
    }
}

/// Whoever has one address of version 6 has a whole network of them.
fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_empties_and_fills() {
        let buckets = RateLimiter::new(Rate { per_second: 10, burst: 3 });
        let (one, other): (IpAddr, IpAddr) = ("192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap());
        let at = Timestamp::from_millis;
        for _ in 0..3 {
            assert_eq!(buckets.take(one, at(1000)), Ok(()));
        }
        assert_eq!(buckets.take(one, at(1000)), Err(1));
        assert_eq!(buckets.take(other, at(1000)), Ok(()), "each has a bucket of its own");
        assert_eq!(buckets.take(one, at(1099)), Err(1));
        assert_eq!(buckets.take(one, at(1100)), Ok(()));
        assert_eq!(buckets.take(one, at(900)), Err(1), "a clock that jumps back gives nothing");
        for _ in 0..3 {
            assert_eq!(buckets.take(one, at(100_000)), Ok(()));
        }
        assert_eq!(buckets.take(one, at(100_000)), Err(1), "never more than a burst");
    }

    #[test]
    fn a_network_of_version_6_is_one_client() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}

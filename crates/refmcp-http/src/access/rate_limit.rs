//! The rate limit of each client: a token bucket.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use parking_lot::Mutex;
use refmcp_server::Timestamp;

/// Clients that are tracked; beyond that, all buckets are full again.
const MAX_CLIENTS: usize = 100_000;

/// A rate of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Requests per second, in the long run.
    pub per_second: u32,
    /// Requests at once after a pause.
    pub burst: u32,
}

impl Rate {
    /// So many requests per second, and ten times as many at once.
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

/// Tokens are thousandths of a request, so that rounding loses nothing.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: u64,
    filled: Timestamp,
}

const REQUEST: u64 = 1000;

impl RateLimiter {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, buckets: Mutex::default() }
    }

    /// Takes one request from a client's bucket.
    ///
    /// # Errors
    /// The bucket is empty; it has a request in so many seconds.
    pub(crate) fn take(&self, client: IpAddr, now: Timestamp) -> Result<(), u64> {
        let full = u64::from(self.rate.burst) * REQUEST;
        let mut buckets = self.buckets.lock();
        if buckets.len() >= MAX_CLIENTS {
            buckets.clear();
        }
        let bucket = buckets.entry(network(client)).or_insert(Bucket { tokens: full, filled: now });
        let passed = now.as_millis().saturating_sub(bucket.filled.as_millis());
        // Requests per second are thousandths of a request per millisecond.
        bucket.tokens = full.min(bucket.tokens.saturating_add(passed * u64::from(self.rate.per_second)));
        bucket.filled = bucket.filled.max(now);
        if bucket.tokens >= REQUEST {
            bucket.tokens -= REQUEST;
            return Ok(());
        }
        let missing = REQUEST - bucket.tokens;
        Err(missing.div_ceil(u64::from(self.rate.per_second.max(1)) * 1000).max(1))
    }
}

/// The client that an address belongs to: with IPv6 a client has a whole network.
pub(crate) fn network(client: IpAddr) -> IpAddr {
    match client {
        IpAddr::V4(_) => client,
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_emptied_and_refilled() {
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
    fn an_ipv6_network_is_one_client() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}

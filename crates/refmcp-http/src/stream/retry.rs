//! Trying again what a backplane could not do because it was unavailable.

use std::future::Future;
use std::time::Duration;

use refmcp_server::backplane::Unavailable;

/// The delay before a backplane that was unavailable is asked again, at first and at most.
pub(crate) const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// Asks a backplane until it is available. `meanwhile` says what follows from that until then.
pub(crate) async fn until_available<T, F>(meanwhile: &'static str, ask: impl Fn() -> F) -> T
where
    F: Future<Output = Result<T, Unavailable>>,
{
    let mut delay = RETRY_DELAY.0;
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => tracing::warn!(%error, "{meanwhile}; it is tried again"),
        }
        tokio::time::sleep(delay).await;
        delay = RETRY_DELAY.1.min(delay * 2);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_is_asked_again_less_and_less_often() {
        let (asked, began) = (AtomicU32::new(0), Instant::now());
        let ask = || async {
            let count = asked.fetch_add(1, Ordering::Relaxed);
            if count < 9 { Err(Unavailable::new("away")) } else { Ok(count) }
        };
        assert_eq!(until_available("nothing happens", ask).await, 9);
        // 50 ms and twice that five times, then 2 s three times.
        assert_eq!(began.elapsed(), Duration::from_millis(50 * 63 + 3 * 2000));
    }
}

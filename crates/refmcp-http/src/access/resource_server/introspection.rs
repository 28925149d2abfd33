//! IntrospectionQueue an issuer about tokens: about each once for all who present it, and about a few at a time.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use refmcp_auth::resource::AccessError;
use tokio::sync::{Semaphore, watch};

use super::token_cache::Digest;
use super::verification::VerifiedToken;

/// Tokens that an issuer is asked about at once.
const AT_ONCE: usize = 16;

/// How long somebody waits to be one of them. An issuer that is slow is no reason to pile up whoever comes with yet
/// another token.
const WAIT: Duration = Duration::from_secs(2);

/// What comes of asking; nothing yet.
type Outcome = Option<Result<Arc<VerifiedToken>, AccessError>>;

/// The tokens that are being asked about.
#[derive(Debug)]
pub(super) struct IntrospectionQueue {
    turns: Semaphore,
    under_way: Mutex<HashMap<Digest, watch::Receiver<Outcome>>>,
}

impl Default for IntrospectionQueue {
    fn default() -> Self {
        Self { turns: Semaphore::new(AT_ONCE), under_way: Mutex::default() }
    }
}

impl IntrospectionQueue {
    /// What comes of asking about a token, by whoever asks first; the others hear the same. What has begun goes on, even
    /// if the one who began it leaves.
    pub(super) async fn once<A>(
        self: &Arc<Self>,
        token: Digest,
        ask: impl FnOnce() -> A,
    ) -> Result<Arc<VerifiedToken>, AccessError>
    where
        A: Future<Output = Result<Arc<VerifiedToken>, AccessError>> + Send + 'static,
    {
        let mut outcome = self.begin(token, ask);
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Err(AccessError::Undecided)),
            Err(_) => Err(AccessError::Undecided),
        }
    }

    fn begin<A>(self: &Arc<Self>, token: Digest, ask: impl FnOnce() -> A) -> watch::Receiver<Outcome>
    where
        A: Future<Output = Result<Arc<VerifiedToken>, AccessError>> + Send + 'static,
    {
        let mut under_way = self.under_way.lock();
        if let Some(outcome) = under_way.get(&token) {
            return outcome.clone();
        }
        let (tell, outcome) = watch::channel(None);
        under_way.insert(token, outcome.clone());
        let (ask, over) = (ask(), Over { asking: Arc::clone(self), token });
        tokio::spawn(async move {
            let heard = match tokio::time::timeout(WAIT, over.asking.turns.acquire()).await {
                Ok(Ok(_turn)) => ask.await,
                _ => Err(AccessError::Undecided),
            };
            // Whoever comes from now on looks at what is remembered, or asks again.
            drop(over);
            tell.send_replace(Some(heard));
        });
        outcome
    }
}

/// Forgets that a token is being asked about, however that ends.
struct Over {
    asking: Arc<IntrospectionQueue>,
    token: Digest,
}

impl Drop for Over {
    fn drop(&mut self) {
        self.asking.under_way.lock().remove(&self.token);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::time::Instant;

    use super::*;

    fn token(number: usize) -> Digest {
        let mut token = [0; 32];
        token[..8].copy_from_slice(&number.to_be_bytes());
        token
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_issuer_keeps_nobody_for_long_but_those_it_is_asked_for() {
        let asking = Arc::new(IntrospectionQueue::default());
        for number in 0..AT_ONCE {
            drop(asking.begin(token(number), pending));
        }
        let began = Instant::now();
        let denied = asking.once(token(AT_ONCE), pending).await.unwrap_err();
        assert_eq!((denied, began.elapsed()), (AccessError::Undecided, WAIT));
        assert_eq!(asking.under_way.lock().len(), AT_ONCE, "it can be asked about again");
    }

    #[tokio::test(start_paused = true)]
    async fn one_asks_and_all_hear_that_nobody_answers() {
        let (asking, asked) = (Arc::new(IntrospectionQueue::default()), Arc::new(AtomicUsize::new(0)));
        let began = Instant::now();
        let all = (0..50).map(|_| {
            asking.once(token(1), || {
                asked.fetch_add(1, Ordering::SeqCst);
                async {
                    tokio::time::sleep(Duration::from_secs(10)).await;
                    Err(AccessError::Undecided)
                }
            })
        });
        for heard in futures_util::future::join_all(all).await {
            assert_eq!(heard.unwrap_err(), AccessError::Undecided);
        }
        assert_eq!((asked.load(Ordering::SeqCst), began.elapsed()), (1, Duration::from_secs(10)));
        assert!(asking.under_way.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_fault_of_whoever_asks_leaves_nobody_waiting() {
        let asking = Arc::new(IntrospectionQueue::default());
        let heard = asking.once(token(1), || async { panic!("on purpose") }).await;
        assert_eq!(heard.unwrap_err(), AccessError::Undecided);
        assert!(asking.under_way.lock().is_empty());
    }
}

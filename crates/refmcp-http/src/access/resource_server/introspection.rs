//! Token introspection (RFC 7662): once for all requests that present the same token, and for few tokens at a time.

use std::collections::HashMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use parking_lot::Mutex;
use refmcp_auth::Secret;
use refmcp_auth::claims::Claims;
use refmcp_auth::resource::{AccessError, Introspection};
use tokio::sync::{Semaphore, watch};

use super::issuer::Issuer;
use super::token_cache::Digest;
use super::verification::VerifiedToken;
use super::{INTROSPECTION_CACHE_TTL, ResourceServer};

/// Introspection requests at once.
const AT_ONCE: usize = 16;

/// How long a token waits for its turn. Further tokens must not pile up behind a slow issuer.
const INTROSPECTION_TIMEOUT: Duration = Duration::from_secs(2);

type Outcome = Result<Arc<VerifiedToken>, AccessError>;

/// The tokens that are being introspected.
#[derive(Debug)]
pub(super) struct IntrospectionQueue {
    permits: Semaphore,
    pending: Mutex<HashMap<Digest, watch::Receiver<Option<Outcome>>>>,
}

impl Default for IntrospectionQueue {
    fn default() -> Self {
        Self { permits: Semaphore::new(AT_ONCE), pending: Mutex::default() }
    }
}

impl IntrospectionQueue {
    /// The outcome of introspecting a token. The first caller starts it and all get its outcome; it goes on even if the
    /// first one leaves.
    async fn once<A>(self: &Arc<Self>, token: Digest, introspect: impl FnOnce() -> A) -> Outcome
    where
        A: Future<Output = Outcome> + Send + 'static,
    {
        let mut outcome = self.start(token, introspect);
        match outcome.wait_for(Option::is_some).await {
            Ok(outcome) => outcome.clone().unwrap_or(Err(AccessError::Undecided)),
            Err(_) => Err(AccessError::Undecided),
        }
    }

    fn start<A>(
        self: &Arc<Self>,
        token: Digest,
        introspect: impl FnOnce() -> A,
    ) -> watch::Receiver<Option<Outcome>>
    where
        A: Future<Output = Outcome> + Send + 'static,
    {
        let mut pending = self.pending.lock();
        if let Some(outcome) = pending.get(&token) {
            return outcome.clone();
        }
        let (sender, outcome) = watch::channel(None);
        pending.insert(token, outcome.clone());
        let (introspect, entry) = (introspect(), PendingEntry { queue: Arc::clone(self), token });
        tokio::spawn(async move {
            let found = match tokio::time::timeout(INTROSPECTION_TIMEOUT, entry.queue.permits.acquire()).await
            {
                Ok(Ok(_permit)) => introspect.await,
                _ => Err(AccessError::Undecided),
            };
            // Later callers look into the cache, or start again.
            drop(entry);
            sender.send_replace(Some(found));
        });
        outcome
    }
}

/// Removes a token from the queue when it is dropped, also after a panic.
struct PendingEntry {
    queue: Arc<IntrospectionQueue>,
    token: Digest,
}

impl Drop for PendingEntry {
    fn drop(&mut self) {
        self.queue.pending.lock().remove(&self.token);
    }
}

impl ResourceServer {
    /// Verifies a token by introspection, together with all requests that present it now.
    pub(super) async fn introspect_once(
        &self,
        introspection: &Introspection,
        issuer: &Arc<Issuer>,
        token: &Secret,
        digest: Digest,
    ) -> Outcome {
        let introspect =
            || self.clone().introspect(introspection.clone(), issuer.clone(), token.clone(), digest);
        self.state.introspections.once(digest, introspect).await
    }

    async fn introspect(
        self,
        introspection: Introspection,
        issuer: Arc<Issuer>,
        token: Secret,
        digest: Digest,
    ) -> Outcome {
        // Another request may have been first.
        let now = self.now();
        if let Some(token) = self.state.cache.valid(&digest, now) {
            return Ok(token);
        }
        if self.state.cache.is_inactive(&digest, now) {
            return Err(AccessError::Inactive);
        }
        let claims = self.request_introspection(&introspection, &issuer, &token).await;
        if let Err(AccessError::Inactive | AccessError::Token(_)) = claims {
            self.state.cache.insert_inactive(digest, now + INTROSPECTION_CACHE_TTL.as_secs(), now);
        }
        let cached = INTROSPECTION_CACHE_TTL.min(self.settings.options.recheck_every);
        Ok(self.cache(&claims?, digest, Some(token), cached))
    }

    async fn request_introspection(
        &self,
        introspection: &Introspection,
        issuer: &Arc<Issuer>,
        token: &Secret,
    ) -> Result<Claims, AccessError> {
        let fetch = &self.settings.fetch;
        let undecided = |why: String| {
            // Any client can send tokens, and each is introspected.
            if let Some(left_out) = self.state.warnings.take(self.now() * 1000) {
                let left_out = (left_out > 0).then_some(left_out);
                tracing::warn!(
                    issuer = issuer.name,
                    why,
                    left_out,
                    "the issuer cannot be asked about a token"
                );
            }
            AccessError::Undecided
        };
        let endpoint = issuer.introspection_endpoint(&**fetch, self.now()).await;
        let endpoint = endpoint.ok_or_else(|| undecided("it has no introspection endpoint".to_owned()))?;
        let request = introspection.request(&endpoint, token.reveal());
        let request = request.map_err(|error| undecided(error.to_string()))?;
        let response = fetch.fetch(request).await.map_err(|error| undecided(error.to_string()))?;
        introspection.read(&response, &self.validation(issuer), self.now()).map_err(|denied| match denied {
            AccessError::Undecided => undecided(match response.status() {
                status @ StatusCode::UNAUTHORIZED => format!("it does not take our id and secret: {status}"),
                status if status.is_success() => "its answer makes no sense".to_owned(),
                status => format!("its answer is {status}"),
            }),
            denied => denied,
        })
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
    async fn tokens_wait_for_a_slow_issuer_only_for_a_while() {
        let queue = Arc::new(IntrospectionQueue::default());
        for number in 0..AT_ONCE {
            drop(queue.start(token(number), pending));
        }
        let began = Instant::now();
        let denied = queue.once(token(AT_ONCE), pending).await.unwrap_err();
        assert_eq!((denied, began.elapsed()), (AccessError::Undecided, INTROSPECTION_TIMEOUT));
        assert_eq!(queue.pending.lock().len(), AT_ONCE, "it can be introspected again");
    }

    #[tokio::test(start_paused = true)]
    async fn requests_with_one_token_share_one_introspection() {
        let (queue, asked) = (Arc::new(IntrospectionQueue::default()), Arc::new(AtomicUsize::new(0)));
        let began = Instant::now();
        let all = (0..50).map(|_| {
            queue.once(token(1), || {
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
        assert!(queue.pending.lock().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_panic_leaves_no_request_waiting() {
        let queue = Arc::new(IntrospectionQueue::default());
        let heard = queue.once(token(1), || async { panic!("on purpose") }).await;
        assert_eq!(heard.unwrap_err(), AccessError::Undecided);
        assert!(queue.pending.lock().is_empty());
    }
}

//! A trusted issuer: its metadata and its keys, fetched once for all requests that wait for them.

use std::sync::Arc;

use axum::http::{Request, header};
use bytes::Bytes;
use parking_lot::Mutex;
use refmcp_auth::Seconds;
use refmcp_auth::fetch::Fetch;
use refmcp_auth::jose::{Algorithm, Jwks};
use refmcp_auth::metadata::ServerMetadata;
use refmcp_auth::resource::{AccessError, JwksCache, read_issuer_metadata};
use refmcp_auth::uri;
use tokio::sync::OwnedMutexGuard;
use tokio::task::JoinHandle;
use url::Url;

/// Seconds for which metadata is fresh.
const FRESH: Seconds = 600;

/// Seconds between two attempts to fetch it.
const RETRY_AFTER: Seconds = 10;

#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) name: String,
    known: Mutex<Known>,
    /// Held while metadata or keys are fetched.
    fetching: Arc<tokio::sync::Mutex<()>>,
}

#[derive(Debug, Default)]
struct Known {
    keys: JwksCache,
    metadata: Option<Arc<ServerMetadata>>,
    fetched: Seconds,
    tried: Seconds,
}

impl Known {
    fn fresh_metadata(&self, now: Seconds) -> Option<Arc<ServerMetadata>> {
        self.metadata.clone().filter(|_| now.saturating_sub(self.fetched) < FRESH)
    }
}

impl Issuer {
    pub(super) fn new(name: String) -> Arc<Self> {
        Arc::new(Self { name, known: Mutex::default(), fetching: Arc::default() })
    }

    /// The keys, among them the one that a token names by its algorithm and `kid`, if it can be fetched.
    pub(super) async fn keys(
        self: &Arc<Self>,
        fetch: &Arc<dyn Fetch>,
        algorithm: Algorithm,
        kid: Option<&str>,
        now: Seconds,
    ) -> Result<Arc<Jwks>, AccessError> {
        let should = || self.known.lock().keys.should_fetch(algorithm, kid, now);
        if self.known.lock().keys.has(algorithm, kid, now) {
            // Known keys are used while newer ones are fetched.
            if should()
                && let Ok(permit) = self.fetching.clone().try_lock_owned()
            {
                self.start_fetch(fetch, permit, now);
            }
        } else {
            // The missing key may be being fetched.
            let permit = self.fetching.clone().lock_owned().await;
            if should()
                && let Err(error) = self.start_fetch(fetch, permit, now).await
            {
                tracing::error!(%error, "fetching keys failed");
            }
        }
        let keys = self.known.lock().keys.known(now);
        if keys.keys.is_empty() { Err(AccessError::Undecided) } else { Ok(keys) }
    }

    /// Starts a task that fetches the keys; it goes on even if its request is dropped.
    fn start_fetch(
        self: &Arc<Self>,
        fetch: &Arc<dyn Fetch>,
        permit: OwnedMutexGuard<()>,
        now: Seconds,
    ) -> JoinHandle<()> {
        let (issuer, fetch) = (self.clone(), fetch.clone());
        tokio::spawn(async move {
            issuer.fetch_keys(&*fetch, now).await;
            drop(permit);
        })
    }

    async fn fetch_keys(&self, fetch: &dyn Fetch, now: Seconds) {
        self.known.lock().keys.trying(now);
        let Some(metadata) = self.metadata(fetch, now).await else { return };
        let Some(address) = &metadata.jwks_uri else {
            return tracing::warn!(issuer = self.name, "the issuer has no jwks_uri");
        };
        let body = match get(fetch, address).await {
            Ok(body) => body,
            Err(why) => return tracing::warn!(issuer = self.name, why, "keys cannot be fetched"),
        };
        if let Err(error) = self.known.lock().keys.take(&body, now) {
            tracing::warn!(issuer = self.name, %error, "keys cannot be read");
        }
    }

    pub(super) async fn introspection_endpoint(&self, fetch: &dyn Fetch, now: Seconds) -> Option<Url> {
        let known = self.known.lock().fresh_metadata(now);
        let metadata = match known {
            Some(metadata) => metadata,
            None => {
                let _permit = self.fetching.lock().await;
                self.metadata(fetch, now).await?
            }
        };
        metadata.introspection_endpoint.as_ref().and_then(|url| Url::parse(url).ok())
    }

    /// The metadata, as fresh as possible.
    async fn metadata(&self, fetch: &dyn Fetch, now: Seconds) -> Option<Arc<ServerMetadata>> {
        {
            let mut known = self.known.lock();
            let tried = now.saturating_sub(known.tried) < RETRY_AFTER;
            if tried || known.fresh_metadata(now).is_some() {
                return known.metadata.clone();
            }
            known.tried = now;
        }
        let Ok(issuer) = Url::parse(&self.name) else {
            tracing::warn!(issuer = self.name, "the issuer is no URL");
            return None;
        };
        for url in uri::server_metadata(&issuer) {
            let response = match fetch.fetch(request(url.as_str()).ok()?).await {
                Ok(response) => response,
                Err(error) => {
                    tracing::warn!(issuer = self.name, %error, "metadata cannot be fetched");
                    continue;
                }
            };
            match read_issuer_metadata(&self.name, &response) {
                Ok(metadata) => {
                    let mut known = self.known.lock();
                    known.metadata = Some(Arc::new(metadata));
                    known.fetched = now;
                    return known.metadata.clone();
                }
                Err(error) => tracing::warn!(issuer = self.name, %error, "metadata cannot be used"),
            }
        }
        // Stale metadata is better than none.
        self.known.lock().metadata.clone()
    }
}

fn request(url: &str) -> Result<Request<Bytes>, axum::http::Error> {
    Request::get(url).header(header::ACCEPT, "application/json").body(Bytes::new())
}

async fn get(fetch: &dyn Fetch, url: &str) -> Result<Bytes, String> {
    let request = request(url).map_err(|error| error.to_string())?;
    let response = fetch.fetch(request).await.map_err(|error| error.to_string())?;
    if !response.status().is_success() {
        return Err(format!("status {}", response.status().as_u16()));
    }
    Ok(response.into_body())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use axum::http::Response;
    use futures_util::FutureExt as _;
    use refmcp_auth::fetch::{BoxFuture, FetchError};
    use refmcp_auth::jose::PrivateKey;
    use serde_json::json;

    use super::*;

    /// Serves one key, or never answers.
    #[derive(Debug)]
    struct Web {
        keys: Jwks,
        silent: AtomicBool,
    }

    impl Fetch for Web {
        fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, FetchError>> {
            if self.silent.load(Ordering::SeqCst) {
                return Box::pin(std::future::pending());
            }
            let body = match request.uri().path() {
                "/jwks" => json!(self.keys),
                _ => json!({ "issuer": "https://as", "jwks_uri": "https://as/jwks" }),
            };
            let answer = Response::new(Bytes::from(body.to_string()));
            Box::pin(async move { Ok(answer) })
        }
    }

    #[tokio::test]
    async fn a_known_key_is_used_while_newer_ones_are_fetched() {
        let keys = Jwks { keys: vec![PrivateKey::generate().unwrap().public()] };
        let web = Arc::new(Web { keys, silent: AtomicBool::new(false) });
        let (issuer, fetch) = (Issuer::new("https://as".to_owned()), web.clone() as Arc<dyn Fetch>);
        let now = 1_000_000;
        let ask = |now| issuer.keys(&fetch, Algorithm::Es256, None, now);
        ask(now).await.unwrap();
        web.silent.store(true, Ordering::SeqCst);
        for later in [FRESH, FRESH, FRESH + RETRY_AFTER, 2 * FRESH] {
            let keys = ask(now + later).now_or_never().expect("an answer at once").unwrap();
            assert_eq!(keys.keys.len(), 1);
        }
    }
}

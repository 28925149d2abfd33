//! One issuer: its metadata and its keys, fetched once for all who wait for them.

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

/// Seconds for which metadata is good.
const FRESH: Seconds = 600;

/// Seconds between two attempts to fetch it.
const AGAIN: Seconds = 10;

/// An issuer that is trusted.
#[derive(Debug)]
pub(super) struct Issuer {
    pub(super) name: String,
    known: Mutex<Known>,
    /// Held by whoever fetches.
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

    /// The keys, among them the one that a token of this algorithm names, if it can be had.
    pub(super) async fn keys(
        self: &Arc<Self>,
        fetch: &Arc<dyn Fetch>,
        algorithm: Algorithm,
        kid: Option<&str>,
        now: Seconds,
    ) -> Result<Arc<Jwks>, AccessError> {
        let should = || self.known.lock().keys.should_fetch(algorithm, kid, now);
        if self.known.lock().keys.has(algorithm, kid, now) {
            // One that is merely old is good until there are newer ones: nobody waits for those.
            if should()
                && let Ok(turn) = self.fetching.clone().try_lock_owned()
            {
                self.begin(fetch, turn, now);
            }
        } else {
            // The one that is needed may be on its way.
            let turn = self.fetching.clone().lock_owned().await;
            if should()
                && let Err(fault) = self.begin(fetch, turn, now).await
            {
                tracing::error!(%fault, "keys were not fetched");
            }
        }
        let keys = self.known.lock().keys.known(now);
        if keys.keys.is_empty() { Err(AccessError::Undecided) } else { Ok(keys) }
    }

    /// Begins to fetch the keys. That goes on for those who come later, even if the one who began it leaves.
    fn begin(
        self: &Arc<Self>,
        fetch: &Arc<dyn Fetch>,
        turn: OwnedMutexGuard<()>,
        now: Seconds,
    ) -> JoinHandle<()> {
        let (issuer, fetch) = (self.clone(), fetch.clone());
        tokio::spawn(async move {
            issuer.fetch_keys(&*fetch, now).await;
            drop(turn);
        })
    }

    async fn fetch_keys(&self, fetch: &dyn Fetch, now: Seconds) {
        self.known.lock().keys.trying(now);
        let Some(metadata) = self.metadata(fetch, now).await else { return };
        let Some(address) = &metadata.jwks_uri else {
            return tracing::warn!(issuer = self.name, "the issuer tells of no keys");
        };
        let body = match get(fetch, address).await {
            Ok(body) => body,
            Err(why) => return tracing::warn!(issuer = self.name, why, "keys cannot be fetched"),
        };
        if let Err(fault) = self.known.lock().keys.take(&body, now) {
            tracing::warn!(issuer = self.name, %fault, "keys cannot be read");
        }
    }

    /// Where the issuer can be asked about tokens.
    pub(super) async fn introspection_endpoint(
        self: &Arc<Self>,
        fetch: &Arc<dyn Fetch>,
        now: Seconds,
    ) -> Option<Url> {
        let known = self.known.lock().fresh_metadata(now);
        let metadata = match known {
            Some(metadata) => metadata,
            None => {
                let _turn = self.fetching.lock().await;
                let (issuer, fetch) = (self.clone(), fetch.clone());
                tokio::spawn(async move { issuer.metadata(&*fetch, now).await }).await.ok()??
            }
        };
        metadata.introspection_endpoint.as_ref().and_then(|place| Url::parse(place).ok())
    }

    /// The metadata, as fresh as can be.
    async fn metadata(&self, fetch: &dyn Fetch, now: Seconds) -> Option<Arc<ServerMetadata>> {
        {
            let mut known = self.known.lock();
            let tried = now.saturating_sub(known.tried) < AGAIN;
            if tried || known.fresh_metadata(now).is_some() {
                return known.metadata.clone();
            }
            known.tried = now;
        }
        let Ok(issuer) = Url::parse(&self.name) else {
            tracing::warn!(issuer = self.name, "the issuer's name is no URL");
            return None;
        };
        for place in uri::server_metadata(&issuer) {
            let response = match fetch.fetch(request(place.as_str()).ok()?).await {
                Ok(response) => response,
                Err(fault) => {
                    tracing::warn!(issuer = self.name, %fault, "metadata cannot be fetched");
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
                Err(fault) => tracing::warn!(issuer = self.name, %fault, "metadata cannot be used"),
            }
        }
        // What was known before is better than nothing.
        self.known.lock().metadata.clone()
    }
}

fn request(place: &str) -> Result<Request<Bytes>, axum::http::Error> {
    Request::get(place).header(header::ACCEPT, "application/json").body(Bytes::new())
}

async fn get(fetch: &dyn Fetch, place: &str) -> Result<Bytes, String> {
    let request = request(place).map_err(|fault| fault.to_string())?;
    let response = fetch.fetch(request).await.map_err(|fault| fault.to_string())?;
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

    /// Tells of one key; or never answers.
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
    async fn nobody_whose_key_is_known_waits_for_newer_ones() {
        let keys = Jwks { keys: vec![PrivateKey::generate().unwrap().public()] };
        let web = Arc::new(Web { keys, silent: AtomicBool::new(false) });
        let (issuer, fetch) = (Issuer::new("https://as".to_owned()), web.clone() as Arc<dyn Fetch>);
        let now = 1_000_000;
        let ask = |now| issuer.keys(&fetch, Algorithm::Es256, None, now);
        ask(now).await.unwrap();
        web.silent.store(true, Ordering::SeqCst);
        for later in [FRESH, FRESH, FRESH + AGAIN, 2 * FRESH] {
            let keys = ask(now + later).now_or_never().expect("an answer at once").unwrap();
            assert_eq!(keys.keys.len(), 1);
        }
    }
}

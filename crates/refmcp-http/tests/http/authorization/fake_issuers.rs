//! Fake issuers without a network.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::Mutex;
use refmcp_auth::fetch::{BoxFuture, Fetch, FetchError};
use refmcp_auth::jose::{Header, Jwk, Jwks, PrivateKey};
use serde_json::{Value, json};

pub(crate) const ISSUER: &str = "https://issuer.example";
pub(super) const OTHER_ISSUER: &str = "https://other.example/tenant";

/// Two issuers with configurable behaviour.
#[derive(Debug)]
pub(crate) struct Issuers {
    keys: Mutex<(String, PrivateKey)>,
    other: PrivateKey,
    /// Keys that are published beside the real one.
    pub(super) more: Mutex<Vec<Value>>,
    /// Requests fail.
    pub(super) down: AtomicBool,
    /// Tokens are revoked.
    pub(super) revoked: AtomicBool,
    /// The URLs that were fetched.
    fetched: Mutex<Vec<String>>,
}

impl Default for Issuers {
    fn default() -> Self {
        Self {
            keys: Mutex::new(("one".to_owned(), PrivateKey::generate().unwrap())),
            other: PrivateKey::generate().unwrap(),
            more: Mutex::default(),
            down: AtomicBool::new(false),
            revoked: AtomicBool::new(false),
            fetched: Mutex::default(),
        }
    }
}

pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

impl Issuers {
    /// The claims of a valid token, except these.
    pub(super) fn claims(resource: &str, changes: Value) -> Value {
        let mut claims = json!({
            "iss": ISSUER, "sub": "me", "client_id": "client", "aud": resource,
            "iat": now(), "exp": now() + 300, "scope": "basic",
        });
        let Value::Object(changes) = changes else { panic!("{changes}") };
        for (name, value) in changes {
            claims[name] = value;
        }
        claims
    }

    /// A valid token, except for these claims.
    pub(crate) fn token(&self, resource: &str, changes: Value) -> String {
        let keys = self.keys.lock();
        let header = Header { kid: Some(keys.0.clone()), ..Header::of_type("at+jwt") };
        self.sign(header, &Self::claims(resource, changes), &keys.1)
    }

    /// A valid token, except for its header.
    pub(super) fn token_under(&self, header: Header, resource: &str) -> String {
        let keys = self.keys.lock();
        self.sign(header, &Self::claims(resource, json!({})), &keys.1)
    }

    fn sign(&self, header: Header, claims: &Value, key: &PrivateKey) -> String {
        let key = if claims["iss"] == OTHER_ISSUER { &self.other } else { key };
        key.sign(header, claims).unwrap()
    }

    /// The public key.
    pub(super) fn public(&self) -> Jwk {
        self.keys.lock().1.public()
    }

    /// Rotates the key.
    pub(super) fn rotate(&self, kid: &str) {
        *self.keys.lock() = (kid.to_owned(), PrivateKey::generate().unwrap());
    }

    /// How often URLs with this suffix were fetched.
    pub(super) fn fetches(&self, ending: &str) -> usize {
        self.fetched.lock().iter().filter(|url| url.ends_with(ending)).count()
    }

    fn answer(&self, url: &str, body: &[u8]) -> Option<Value> {
        Some(match url {
            "https://issuer.example/.well-known/oauth-authorization-server" => json!({
                "issuer": ISSUER,
                "jwks_uri": "https://issuer.example/jwks",
                "introspection_endpoint": "https://issuer.example/introspect",
            }),
            // This one has only the other kind of metadata.
            "https://other.example/tenant/.well-known/openid-configuration" => {
                json!({ "issuer": OTHER_ISSUER, "jwks_uri": "https://other.example/jwks" })
            }
            "https://issuer.example/jwks" => {
                let keys = self.keys.lock();
                let mut all = self.more.lock().clone();
                all.insert(
                    0,
                    serde_json::to_value(Jwk { kid: Some(keys.0.clone()), ..keys.1.public() }).unwrap(),
                );
                json!({ "keys": all })
            }
            "https://other.example/jwks" => {
                let key = Jwk { kid: Some("one".to_owned()), ..self.other.public() };
                serde_json::to_value(Jwks { keys: vec![key] }).unwrap()
            }
            "https://issuer.example/introspect" => {
                let form = url::form_urlencoded::parse(body);
                let token = form.into_iter().find(|(name, _)| name == "token").unwrap().1;
                if self.revoked.load(Ordering::SeqCst) || !token.starts_with("opaque~") {
                    return Some(json!({ "active": false }));
                }
                // An opaque token contains its audience, so that it need not be stored.
                let aud = token.trim_start_matches("opaque~").replace('~', ":");
                json!({ "active": true, "sub": "me", "client_id": "client", "aud": aud, "exp": now() + 300 })
            }
            _ => return None,
        })
    }
}

impl Fetch for Issuers {
    fn fetch(
        &self,
        request: axum::http::Request<Bytes>,
    ) -> BoxFuture<'_, Result<axum::http::Response<Bytes>, FetchError>> {
        Box::pin(async move {
            let url = request.uri().to_string();
            self.fetched.lock().push(url.clone());
            // Others get a turn while this one waits.
            tokio::task::yield_now().await;
            if self.down.load(Ordering::SeqCst) {
                return Err(FetchError::Unreachable("no server".to_owned()));
            }
            let answer = self.answer(&url, request.body());
            let status = if answer.is_some() { 200 } else { 404 };
            let body = answer.unwrap_or_default().to_string();
            Ok(axum::http::Response::builder().status(status).body(body.into()).unwrap())
        })
    }
}

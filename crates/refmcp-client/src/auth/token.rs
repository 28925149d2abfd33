//! An access token on a request.

use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Uri};
use parking_lot::Mutex;
use refmcp_auth::Seconds;
use refmcp_auth::client::{TokenSet, TokenType};
use refmcp_auth::dpop;
use refmcp_auth::jose::PrivateKey;
use url::Url;

/// The header of DPoP proofs.
const PROOF: HeaderName = HeaderName::from_static("dpop");
/// The header of DPoP nonces.
const NONCE: HeaderName = HeaderName::from_static("dpop-nonce");
/// Longest accepted nonce.
const MAX_NONCE: usize = 1024;
/// Seconds before expiration at which a token is refreshed.
const MARGIN: Seconds = 30;

/// A token in use.
pub(crate) struct Token {
    pub(super) token_set: TokenSet,
    /// A number that is unique among the tokens of a server.
    pub(super) number: u64,
    /// When to refresh it.
    pub(super) refresh_at: Option<Seconds>,
    header: HeaderValue,
    key: Option<PrivateKey>,
}

impl Token {
    /// The error tells why it cannot be used.
    pub(super) fn new(token_set: TokenSet, number: u64, now: Seconds) -> Result<Self, String> {
        let text = format!("{} {}", token_set.token_type.name(), token_set.token.reveal());
        let mut header =
            HeaderValue::try_from(text).map_err(|_| "the token has characters that no header can hold")?;
        header.set_sensitive(true);
        let key = match (&token_set.key, token_set.token_type) {
            (Some(key), TokenType::Dpop) => Some(key.open().map_err(|error| error.to_string())?),
            (None, TokenType::Dpop) => {
                return Err("the key that the token is bound to is not kept".to_owned());
            }
            (_, TokenType::Bearer) => None,
        };
        let renewable = token_set.refresh_token.is_some();
        let refresh_at = token_set.expires_at.filter(|_| renewable).map(|end| {
            // A token with a short lifetime would otherwise be refreshed all the time.
            end.saturating_sub(MARGIN.min(end.saturating_sub(now) / 4))
        });
        Ok(Self { token_set, number, refresh_at, header, key })
    }

    /// True if it needs DPoP proofs.
    pub(super) fn is_bound(&self) -> bool {
        self.key.is_some()
    }

    /// Adds it to a request.
    pub(crate) fn apply(
        &self,
        headers: &mut HeaderMap,
        method: &Method,
        url: &Uri,
        nonce: &Nonce,
        now: Seconds,
    ) -> Result<(), String> {
        headers.insert(header::AUTHORIZATION, self.header.clone());
        let Some(key) = &self.key else { return Ok(()) };
        let url = Url::parse(&url.to_string()).map_err(|error| error.to_string())?;
        let (token, nonce) = (Some(self.token_set.token.reveal()), nonce.get());
        let proof = dpop::prove(key, method.as_str(), &url, token, nonce.as_deref(), now);
        let proof = proof.map_err(|error| error.to_string())?;
        let mut proof = HeaderValue::try_from(proof).map_err(|error| error.to_string())?;
        proof.set_sensitive(true);
        headers.insert(PROOF, proof);
        Ok(())
    }
}

/// The DPoP nonce that the server provided.
#[derive(Debug, Default)]
pub(crate) struct Nonce(Mutex<Option<Box<str>>>);

impl Nonce {
    fn get(&self) -> Option<Box<str>> {
        self.0.lock().clone()
    }

    /// Reads the nonce of a response; true if there was one.
    pub(super) fn update(&self, headers: &HeaderMap) -> bool {
        let Some(Ok(nonce)) = headers.get(NONCE).map(HeaderValue::to_str) else { return false };
        let fits = !nonce.is_empty() && nonce.len() <= MAX_NONCE;
        if fits {
            *self.0.lock() = Some(nonce.into());
        }
        fits
    }
}

//! DPoP proofs at the token endpoint (RFC 9449).

use http::HeaderMap;
use refmcp_auth::Seconds;
use refmcp_auth::dpop::{self, ProofContext, ProofError, VerifiedProof};
use refmcp_auth::resource::ReplayCache;
use url::Url;

use crate::respond::ErrorResponse;
use crate::serve::Server;

fn bad(fault: ProofError) -> ErrorResponse {
    ErrorResponse::new("invalid_dpop_proof", fault.to_string())
}

/// Verifies the proof of a request, if there is one.
pub(super) fn check(
    server: &Server,
    headers: &HeaderMap,
    now: Seconds,
) -> Result<Option<VerifiedProof>, ErrorResponse> {
    let mut given = headers.get_all("dpop").iter();
    let Some(proof) = given.next() else {
        return Ok(None);
    };
    if given.next().is_some() {
        return Err(bad(ProofError::Several));
    }
    let proof = proof.to_str().map_err(|_| bad(ProofError::Malformed))?;
    let endpoint = Url::parse(&server.settings.endpoint("/token"));
    let endpoint = endpoint.map_err(|_| ErrorResponse::server_error("the token endpoint has no URL"))?;
    let asked = ProofContext { method: "POST", urls: std::slice::from_ref(&endpoint), token: None };
    let proven = dpop::check(proof, &asked, now).map_err(bad)?;
    if server.settings.dpop_nonce {
        let nonce = proven.nonce.as_deref().unwrap_or_default();
        if !server.state().nonces.is_good(nonce, now) {
            return Err(ErrorResponse::new("use_dpop_nonce", ProofError::Nonce.to_string()));
        }
    }
    Ok(Some(proven))
}

/// Marks the proof as used, right before tokens are issued. Proofs of failed requests may come again, so that a flood of them
/// does not fill the cache.
pub(super) fn use_once(
    used: &mut ReplayCache,
    proof: Option<&VerifiedProof>,
    now: Seconds,
) -> Result<(), ErrorResponse> {
    proof.map_or(Ok(()), |proof| used.use_once(proof, now)).map_err(bad)
}

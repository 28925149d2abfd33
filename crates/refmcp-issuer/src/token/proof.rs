//! Proofs that a client holds a key (RFC 9449).

use http::HeaderMap;
use refmcp_auth::Seconds;
use refmcp_auth::dpop::{self, ProofContext, ProofError, VerifiedProof};
use refmcp_auth::resource::ReplayCache;
use url::Url;

use crate::respond::Refusal;
use crate::serve::Server;

fn bad(fault: ProofError) -> Refusal {
    Refusal::new("invalid_dpop_proof", fault.to_string())
}

/// What a request proves: that it comes from whoever holds a key, if it does.
pub(super) fn check(
    server: &Server,
    headers: &HeaderMap,
    now: Seconds,
) -> Result<Option<VerifiedProof>, Refusal> {
    let mut given = headers.get_all("dpop").iter();
    let Some(proof) = given.next() else {
        return Ok(None);
    };
    if given.next().is_some() {
        return Err(bad(ProofError::Several));
    }
    let proof = proof.to_str().map_err(|_| bad(ProofError::Malformed))?;
    let endpoint = Url::parse(&server.settings.endpoint("/token"));
    let endpoint = endpoint.map_err(|_| Refusal::own_fault("the token endpoint has no URL"))?;
    let asked = ProofContext { method: "POST", urls: std::slice::from_ref(&endpoint), token: None };
    let proven = dpop::check(proof, &asked, now).map_err(bad)?;
    if server.settings.dpop_nonce {
        let nonce = proven.nonce.as_deref().unwrap_or_default();
        if !server.state().nonces.is_good(nonce, now) {
            return Err(Refusal::new("use_dpop_nonce", ProofError::Nonce.to_string()));
        }
    }
    Ok(Some(proven))
}

/// Uses the proof of a request, if there is one. That is done last, where tokens are about to be given: proofs that get
/// nothing do no harm when they come again, and anybody can make as many as they like.
pub(super) fn use_once(
    used: &mut ReplayCache,
    proof: Option<&VerifiedProof>,
    now: Seconds,
) -> Result<(), Refusal> {
    proof.map_or(Ok(()), |proof| used.use_once(proof, now)).map_err(bad)
}

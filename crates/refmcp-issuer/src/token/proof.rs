//! Proofs that a client holds a key (RFC 9449).

use http::HeaderMap;
use refmcp_auth::Seconds;
use refmcp_auth::dpop::{self, Asked, ProofFault};
use refmcp_auth::random::{NoRandom, unguessable};
use url::Url;

use crate::respond::Refusal;
use crate::serve::Server;

/// Seconds after which another nonce takes the place of one.
const RENEWED: Seconds = 300;

/// Seconds for which a proof is remembered after it was made; it is taken for half of it.
const REMEMBERED: Seconds = 2 * dpop::WITHIN;

/// What proofs must carry, so that none is made long before it is used.
#[derive(Default)]
pub(crate) struct Nonces {
    current: Option<(String, Seconds)>,
    former: Option<String>,
}

impl Nonces {
    /// The nonce to use now.
    pub(crate) fn current(&mut self, now: Seconds) -> Result<String, NoRandom> {
        if let Some((nonce, since)) = &self.current
            && now < since.saturating_add(RENEWED)
        {
            return Ok(nonce.clone());
        }
        let nonce = unguessable()?;
        self.former = self.current.replace((nonce.clone(), now)).map(|(former, _)| former);
        Ok(nonce)
    }

    /// Whether this is a nonce of ours that is still good.
    fn is_ours(&mut self, nonce: &str, now: Seconds) -> Result<bool, NoRandom> {
        Ok(self.current(now)? == nonce || self.former.as_deref() == Some(nonce))
    }
}

/// The fingerprint of the key that a request proves to hold, if it does.
pub(super) fn check(server: &Server, headers: &HeaderMap, now: Seconds) -> Result<Option<String>, Refusal> {
    let bad = |fault: ProofFault| Refusal::new("invalid_dpop_proof", fault.to_string());
    let mut given = headers.get_all("dpop").iter();
    let Some(proof) = given.next() else {
        return Ok(None);
    };
    if given.next().is_some() {
        return Err(bad(ProofFault::Several));
    }
    let proof = proof.to_str().map_err(|_| bad(ProofFault::Malformed))?;
    let endpoint = Url::parse(&server.settings.endpoint("/token"));
    let endpoint = endpoint.map_err(|_| Refusal::own_fault("the token endpoint has no URL"))?;
    let asked = Asked { method: "POST", urls: std::slice::from_ref(&endpoint), token: None };
    let proven = dpop::check(proof, &asked, now).map_err(bad)?;
    let mut state = server.state();
    if server.settings.dpop_nonce {
        let ours = state.nonces.is_ours(proven.nonce.as_deref().unwrap_or_default(), now);
        if !ours.map_err(|fault| Refusal::own_fault(fault.to_string()))? {
            return Err(Refusal::new("use_dpop_nonce", ProofFault::Nonce.to_string()));
        }
    }
    let name = format!("proof {} {}", proven.jkt, proven.jti);
    if !state.is_first(&name, proven.iat.saturating_add(REMEMBERED), now) {
        return Err(bad(ProofFault::Replayed));
    }
    Ok(Some(proven.jkt))
}

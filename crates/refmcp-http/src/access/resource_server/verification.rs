//! Verification of a request's access token, from the head of the request alone.

use std::sync::Arc;
use std::time::Duration;

use axum::http::request::Parts;
use refmcp_auth::claims::{Claims, TokenError, TokenValidation};
use refmcp_auth::client::TokenType;
use refmcp_auth::dpop::{self, ProofContext, ProofError, VerifiedProof};
use refmcp_auth::jose::Jws;
use refmcp_auth::resource::{
    AccessError, ChallengeContext, IN_A_FORM, PresentedToken, RequestOrigin, VerifiedAccess, digest,
    read_credentials,
};
use refmcp_auth::{Scopes, Seconds, Secret};
use serde::Deserialize;

use super::issuer::Issuer;
use super::token_cache::Digest;
use super::{ResourceServer, TOKEN_CACHE_TTL};
use crate::access::forwarded::{ForwardedOrigin, requested_host};
use crate::endpoint::original_uri;
use crate::refusal::Refusal;
use crate::routes::Target;

/// An access token that was verified.
#[derive(Debug)]
pub(crate) struct VerifiedToken {
    pub(crate) access: VerifiedAccess,
    /// Its scopes, as handlers see them.
    pub(crate) scopes: Arc<[Box<str>]>,
    /// When it expires, with the clock skew that is tolerated.
    pub(super) until: Seconds,
    scheme: TokenType,
    /// The token itself, where introspection has to be repeated.
    pub(super) secret: Option<Secret>,
}

/// The host and scheme that the client used, as far as they are known.
pub(super) fn request_origin(head: &Parts) -> RequestOrigin<'_> {
    let scheme = head.extensions.get::<ForwardedOrigin>().and_then(|forwarded| forwarded.scheme);
    RequestOrigin { host: requested_host(head), scheme }
}

impl ResourceServer {
    /// Verifies the access token of a request by its head alone. `admit` counts the request, once its token may be valid.
    pub(crate) async fn authorize<G>(
        &self,
        head: &Parts,
        admit: impl FnOnce() -> Result<G, Refusal>,
    ) -> Result<(Arc<VerifiedToken>, G), Refusal> {
        let refuse = |denied: &AccessError, scheme| self.refuse(denied, scheme, head);
        let presented =
            read_credentials(original_uri(head), &head.headers).map_err(|denied| refuse(&denied, None))?;
        let scheme = presented.scheme;
        let refuse = |denied: AccessError| refuse(&denied, Some(scheme));
        let proof = self.check_proof(head, &presented, self.now()).map_err(refuse)?;
        let (digest, now) = (digest(presented.token), self.now());
        let cached = self.state.cache.valid(&digest, now).filter(|token| now < token.until);
        if cached.is_none() && self.state.cache.is_inactive(&digest, now) {
            return Err(refuse(AccessError::Inactive));
        }
        let admitted = admit()?;
        let token = match cached {
            Some(token) => token,
            None => self.verify_token(&Secret::new(presented.token), digest).await.map_err(refuse)?,
        };
        self.check_binding(&token, scheme, proof.as_ref()).map_err(refuse)?;
        Ok((token, admitted))
    }

    /// The DPoP proof of a request, checked as far as possible without the claims of the token.
    fn check_proof(
        &self,
        head: &Parts,
        presented: &PresentedToken<'_>,
        now: Seconds,
    ) -> Result<Option<VerifiedProof>, AccessError> {
        let Some(proof) = presented.proof else { return Ok(None) };
        let path = self.settings.path.of(self.target(head));
        let urls = self.settings.names.urls(path, original_uri(head).path());
        let context =
            ProofContext { method: head.method.as_str(), urls: &urls, token: Some(presented.token) };
        let proof = dpop::check(proof, &context, now)?;
        if let Some(nonces) = &self.settings.options.dpop_nonces
            && !proof.nonce.as_deref().is_some_and(|nonce| nonces.is_good(nonce, now))
        {
            return Err(ProofError::Nonce.into());
        }
        Ok(Some(proof))
    }

    /// Checks that a token is presented as what it is: one that is bound to a key with a proof by that key, which is used
    /// once, and one that is not bound as a bearer token.
    fn check_binding(
        &self,
        token: &VerifiedToken,
        scheme: TokenType,
        proof: Option<&VerifiedProof>,
    ) -> Result<(), AccessError> {
        match (&token.access.jkt, scheme, proof) {
            (Some(_), TokenType::Bearer, _) => Err(AccessError::ProofRequired),
            (None, TokenType::Dpop, _) => Err(AccessError::NotBound),
            (None, TokenType::Bearer, _) if self.settings.options.require_dpop => Err(AccessError::NotBound),
            (None, TokenType::Bearer, _) => Ok(()),
            (Some(jkt), TokenType::Dpop, Some(proof)) if proof.jkt == *jkt => {
                Ok(self.state.replays.lock().use_once(proof, self.now())?)
            }
            (Some(_), TokenType::Dpop, Some(_)) => Err(ProofError::Binding.into()),
            (Some(_), TokenType::Dpop, None) => Err(ProofError::Missing.into()),
        }
    }

    /// Verifies a token by its signature or by introspection, and caches it.
    pub(super) async fn verify_token(
        &self,
        token: &Secret,
        digest: Digest,
    ) -> Result<Arc<VerifiedToken>, AccessError> {
        let issuer = self.issuer_of(token.reveal())?;
        let first = self.settings.issuers.first().is_some_and(|first| Arc::ptr_eq(first, issuer));
        if first && let Some(introspection) = &self.settings.options.introspection {
            return self.introspect_once(introspection, issuer, token, digest).await;
        }
        let claims = self.verify_signature(issuer, token).await?;
        Ok(self.cache(&claims, digest, None, TOKEN_CACHE_TTL))
    }

    /// Caches a verified token for a while.
    pub(super) fn cache(
        &self,
        claims: &Claims,
        digest: Digest,
        secret: Option<Secret>,
        cached: Duration,
    ) -> Arc<VerifiedToken> {
        let now = self.now();
        let access = VerifiedAccess::by(claims);
        let until = access.expires_at.saturating_add(self.settings.options.clock_skew.as_secs());
        let scheme = if access.jkt.is_some() { TokenType::Dpop } else { TokenType::Bearer };
        let scopes = access.scopes.iter().map(Box::from).collect();
        let token = Arc::new(VerifiedToken { access, scopes, until, scheme, secret });
        self.state.cache.insert(digest, token.clone(), until.min(now + cached.as_secs()), now);
        token
    }

    /// The issuer that a token names; opaque tokens are the first issuer's, if it supports introspection.
    fn issuer_of(&self, token: &str) -> Result<&Arc<Issuer>, AccessError> {
        #[derive(Deserialize)]
        struct Issued {
            iss: String,
        }
        match Jws::parse(token).and_then(|jws| jws.claims_unchecked::<Issued>()) {
            Ok(Issued { iss }) => {
                let known = self.settings.issuers.iter().find(|issuer| issuer.name == iss);
                known.ok_or_else(|| TokenError::Issuer.into())
            }
            Err(error) => {
                let first =
                    self.settings.issuers.first().filter(|_| self.settings.options.introspection.is_some());
                first.ok_or_else(|| TokenError::from(error).into())
            }
        }
    }

    pub(super) fn validation(&self, issuer: &Issuer) -> TokenValidation {
        TokenValidation {
            audiences: self.settings.names.audiences(),
            allow_other_audiences: self.settings.options.allow_other_audiences,
            skew: self.settings.options.clock_skew,
            ..TokenValidation::new(issuer.name.clone(), "")
        }
    }

    async fn verify_signature(&self, issuer: &Arc<Issuer>, token: &Secret) -> Result<Claims, AccessError> {
        let (algorithm, kid) = {
            let jws = Jws::parse(token.reveal()).map_err(TokenError::from)?;
            (jws.algorithm(), jws.header().kid.clone())
        };
        let keys = issuer.keys(&self.settings.fetch, algorithm, kid.as_deref(), self.now()).await?;
        Ok(self.validation(issuer).check(token.reveal(), &keys, self.now())?)
    }

    /// Refuses a request whose token lacks scopes; the challenge names all that are needed.
    pub(crate) fn insufficient_scope(&self, token: &VerifiedToken, needed: Scopes, head: &Parts) -> Refusal {
        let denied = AccessError::InsufficientScope(needed);
        self.refuse(&denied, Some(token.scheme), head)
    }

    /// Refuses a request with its token in a form.
    pub(crate) fn refuse_form(&self, head: &Parts) -> Refusal {
        self.refuse(&IN_A_FORM, None, head)
    }

    fn target(&self, head: &Parts) -> Target {
        self.settings.path.target(head.uri.path())
    }

    fn refuse(&self, denied: &AccessError, scheme: Option<TokenType>, head: &Parts) -> Refusal {
        // Messages of HTTP+SSE belong to the resource of their stream.
        let target = match self.target(head) {
            Target::Messages => Target::Events,
            target => target,
        };
        let context = ChallengeContext {
            metadata: &self.settings.names.document(self.settings.path.of(target), request_origin(head)),
            scopes: &self.settings.options.challenge_scopes,
            only_bound: self.settings.options.require_dpop,
        };
        let challenges = denied.challenges(scheme, &context);
        // Where DPoP is offered, the nonce for the next proof is sent along.
        let dpop = challenges.iter().any(|challenge| challenge.is(TokenType::Dpop.name()));
        let nonce = self
            .settings
            .options
            .dpop_nonces
            .as_ref()
            .filter(|_| dpop)
            .map(|nonces| nonces.current(self.now()));
        Refusal::denied(denied, &challenges, nonce)
    }
}

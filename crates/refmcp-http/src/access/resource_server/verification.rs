//! From the head of a request to what its token grants, or to a refusal.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{Extensions, HeaderMap, Method, StatusCode, Uri, header};
use refmcp_auth::claims::{Claims, TokenError, TokenValidation};
use refmcp_auth::dpop::{self, ProofContext, ProofError, VerifiedProof};
use refmcp_auth::jose::Jws;
use refmcp_auth::resource::{
    AccessError, ChallengeContext, IN_A_FORM, Introspection, PresentedToken, RequestOrigin, Scheme,
    VerifiedAccess, digest, read_credentials,
};
use refmcp_auth::{Scopes, Seconds, Secret};
use serde::Deserialize;

use super::issuer::Issuer;
use super::token_cache::Digest;
use super::{REMEMBERED, REMEMBERED_ANSWER, ResourceServer, now};
use crate::access::forwarded::ForwardedOrigin;
use crate::endpoint::original;
use crate::refusal::{Challenges, Refusal};
use crate::routes::{EndpointPath, Target};

/// What a token that was checked grants.
pub(crate) struct VerifiedToken {
    pub(crate) granted: VerifiedAccess,
    /// Its scopes, as servers keep them.
    pub(crate) scopes: Arc<[Box<str>]>,
    /// When it is over, with all that clocks may differ.
    pub(crate) until: Seconds,
    pub(crate) scheme: Scheme,
    /// The token, where its issuer has to be asked about it again.
    token: Option<Secret>,
}

impl fmt::Debug for VerifiedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifiedToken").field("granted", &self.granted).finish_non_exhaustive()
    }
}

/// How far a request has come by what its head says alone.
pub(crate) enum TokenStatus {
    /// It is let in.
    Granted(Arc<VerifiedToken>),
    /// Its token has to be checked.
    UnverifiedToken(Box<UnverifiedToken>),
}

/// A token that has to be checked.
pub(crate) struct UnverifiedToken {
    token: Secret,
    digest: Digest,
    scheme: Scheme,
    proof: Option<VerifiedProof>,
    place: Place,
}

/// Where a request went, for challenges.
#[derive(Debug, Clone)]
struct Place {
    metadata: String,
}

/// The head of a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head<'a> {
    /// Where it leads.
    pub(crate) target: Target,
    pub(crate) method: &'a Method,
    /// As the client wrote it, wherever the endpoint is mounted.
    pub(crate) uri: &'a Uri,
    pub(crate) headers: &'a HeaderMap,
    /// What a proxy says of how it was called.
    called: Option<&'a ForwardedOrigin>,
}

impl<'a> Head<'a> {
    pub(crate) fn of(
        path: &EndpointPath,
        method: &'a Method,
        uri: &'a Uri,
        extensions: &'a Extensions,
        headers: &'a HeaderMap,
    ) -> Self {
        let called = extensions.get::<ForwardedOrigin>();
        Self { target: path.target(uri.path()), method, uri: original(extensions, uri), headers, called }
    }

    /// RequestOrigin which name the server was called, as far as it is known.
    pub(super) fn by(&self) -> RequestOrigin<'a> {
        let forwarded = self.called.and_then(|called| called.host.as_deref());
        let named = || self.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let target = || self.uri.authority().map(axum::http::uri::Authority::as_str);
        RequestOrigin {
            host: forwarded.or_else(named).or_else(target),
            scheme: self.called.and_then(|called| called.scheme),
        }
    }
}

impl ResourceServer {
    /// Lets a request in by its head, if its token was checked just now, or says what is left to check.
    pub(crate) fn admit(&self, head: &Head<'_>) -> Result<TokenStatus, Refusal> {
        let place = || self.place(head);
        let read_credentials = read_credentials(head.uri, head.headers)
            .map_err(|denied| self.refuse(&denied, None, &place()))?;
        let scheme = read_credentials.scheme;
        let refuse = |denied: AccessError| self.refuse(&denied, Some(scheme), &place());
        let now = now();
        let proof = self.proof(head, &read_credentials, now).map_err(refuse)?;
        let digest = digest(read_credentials.token);
        if let Some(grant) = self.state.verdicts.good(&digest, now).filter(|grant| now < grant.until) {
            self.bind(&grant, scheme, proof.as_ref(), now).map_err(refuse)?;
            return Ok(TokenStatus::Granted(grant));
        }
        if self.state.verdicts.is_bad(&digest, now) {
            return Err(refuse(AccessError::Inactive));
        }
        let token = Secret::new(read_credentials.token);
        Ok(TokenStatus::UnverifiedToken(Box::new(UnverifiedToken {
            token,
            digest,
            scheme,
            proof,
            place: place(),
        })))
    }

    /// Checks a token.
    pub(crate) async fn check(&self, check: Box<UnverifiedToken>) -> Result<Arc<VerifiedToken>, Refusal> {
        let UnverifiedToken { token, digest, scheme, proof, place } = *check;
        let refuse = |denied: AccessError| self.refuse(&denied, Some(scheme), &place);
        let grant = self.verify(&token, digest).await.map_err(refuse)?;
        self.bind(&grant, scheme, proof.as_ref(), now()).map_err(refuse)?;
        Ok(grant)
    }

    /// The proof that goes with a token, checked as far as it can be without the token's claims.
    fn proof(
        &self,
        head: &Head<'_>,
        read_credentials: &PresentedToken<'_>,
        now: Seconds,
    ) -> Result<Option<VerifiedProof>, AccessError> {
        let Some(proof) = read_credentials.proof else { return Ok(None) };
        let urls = self.settings.names.urls(self.settings.path.of(head.target), head.uri.path());
        let asked =
            ProofContext { method: head.method.as_str(), urls: &urls, token: Some(read_credentials.token) };
        let proven = dpop::check(proof, &asked, now)?;
        if let Some(nonces) = &self.settings.nonces
            && !proven.nonce.as_deref().is_some_and(|nonce| nonces.is_good(nonce, now))
        {
            return Err(ProofError::Nonce.into());
        }
        Ok(Some(proven))
    }

    /// Whether a token may be used in the way in which it was presented: one that is bound to a key only with a proof by
    /// that key, which is good once, and one that is not only as what it is.
    fn bind(
        &self,
        grant: &VerifiedToken,
        scheme: Scheme,
        proof: Option<&VerifiedProof>,
        now: Seconds,
    ) -> Result<(), AccessError> {
        match (&grant.granted.jkt, scheme, proof) {
            (Some(_), Scheme::Bearer, _) => Err(AccessError::ProofRequired),
            (None, Scheme::Dpop, _) => Err(AccessError::NotBound),
            (None, Scheme::Bearer, _) if self.settings.only_bound => Err(AccessError::NotBound),
            (None, Scheme::Bearer, _) => Ok(()),
            (Some(jkt), Scheme::Dpop, Some(proof)) if proof.jkt == *jkt => {
                let mut replays = self.state.replays.lock();
                Ok(replays.use_once(proof, now)?)
            }
            (Some(_), Scheme::Dpop, Some(_)) => Err(ProofError::Binding.into()),
            (Some(_), Scheme::Dpop, None) => Err(ProofError::Missing.into()),
        }
    }

    /// What a token grants, by its signature or by what its issuer says, and remembers it.
    async fn verify(&self, token: &Secret, digest: Digest) -> Result<Arc<VerifiedToken>, AccessError> {
        let issuer = self.issuer_of(token.reveal())?;
        let first = self.settings.issuers.first().is_some_and(|first| Arc::ptr_eq(first, issuer));
        if first && let Some(introspection) = &self.settings.introspection {
            let asked = || {
                let (resource_server, introspection) = (self.clone(), introspection.clone());
                let (issuer, token) = (issuer.clone(), token.clone());
                async move { resource_server.by_asking(&introspection, &issuer, &token, digest).await }
            };
            return self.state.asking.once(digest, asked).await;
        }
        let claims = self.by_keys(issuer, token).await?;
        Ok(self.found_good(&claims, digest, None, REMEMBERED))
    }

    /// What a token grants by what its issuer says of it.
    async fn by_asking(
        &self,
        introspection: &Introspection,
        issuer: &Arc<Issuer>,
        token: &Secret,
        digest: Digest,
    ) -> Result<Arc<VerifiedToken>, AccessError> {
        // Somebody may have asked in the meantime.
        let now = now();
        if let Some(grant) = self.state.verdicts.good(&digest, now) {
            return Ok(grant);
        }
        if self.state.verdicts.is_bad(&digest, now) {
            return Err(AccessError::Inactive);
        }
        let answer = self.ask(introspection, issuer, token).await;
        if let Err(AccessError::Inactive | AccessError::Token(_)) = answer {
            self.state.verdicts.found_bad(digest, now, now + REMEMBERED_ANSWER.as_secs());
        }
        let remembered = REMEMBERED_ANSWER.min(self.settings.asked_again);
        Ok(self.found_good(&answer?, digest, Some(token.clone()), remembered))
    }

    /// Remembers for a while what a token grants.
    fn found_good(
        &self,
        claims: &Claims,
        digest: Digest,
        token: Option<Secret>,
        remembered: Duration,
    ) -> Arc<VerifiedToken> {
        let now = now();
        let granted = VerifiedAccess::by(claims);
        let until = granted.expires_at.saturating_add(self.settings.skew.as_secs());
        let scheme = if granted.jkt.is_some() { Scheme::Dpop } else { Scheme::Bearer };
        let scopes = granted.scopes.iter().map(Box::from).collect();
        let grant = Arc::new(VerifiedToken { granted, scopes, until, scheme, token });
        self.state.verdicts.found_good(digest, grant.clone(), now, until.min(now + remembered.as_secs()));
        grant
    }

    /// The issuer of a token, by its own account; tokens that say nothing are the first issuer's, if it can be asked.
    fn issuer_of(&self, token: &str) -> Result<&Arc<Issuer>, AccessError> {
        #[derive(Deserialize)]
        struct Issued {
            iss: String,
        }
        let said = Jws::parse(token).and_then(|jws| jws.claims_unchecked::<Issued>());
        match said {
            Ok(Issued { iss }) => {
                let known = self.settings.issuers.iter().find(|issuer| issuer.name == iss);
                known.ok_or_else(|| TokenError::Issuer.into())
            }
            Err(fault) => {
                let first = self.settings.issuers.first().filter(|_| self.settings.introspection.is_some());
                first.ok_or_else(|| TokenError::from(fault).into())
            }
        }
    }

    fn expected(&self, issuer: &Issuer) -> TokenValidation {
        TokenValidation {
            audiences: self.settings.names.audiences(),
            allow_other_audiences: self.settings.allow_other_audiences,
            skew: self.settings.skew,
            ..TokenValidation::new(issuer.name.clone(), "")
        }
    }

    async fn by_keys(&self, issuer: &Arc<Issuer>, token: &Secret) -> Result<Claims, AccessError> {
        let (algorithm, kid) = {
            let jws = Jws::parse(token.reveal()).map_err(TokenError::from)?;
            (jws.algorithm(), jws.header().kid.clone())
        };
        let keys = issuer.keys(&self.settings.fetch, algorithm, kid.as_deref(), now()).await?;
        Ok(self.expected(issuer).check(token.reveal(), &keys, now())?)
    }

    async fn ask(
        &self,
        introspection: &Introspection,
        issuer: &Arc<Issuer>,
        token: &Secret,
    ) -> Result<Claims, AccessError> {
        let fetch = &self.settings.fetch;
        let unknowable = |why: String| {
            // Anybody can send tokens, and each is asked about.
            if let Some(left_out) = self.state.warnings.take(now() * 1000) {
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
        let endpoint = issuer.introspection_endpoint(fetch, now()).await;
        let endpoint = endpoint.ok_or_else(|| unknowable("it has no place for that".to_owned()))?;
        let question = introspection.request(&endpoint, token.reveal());
        let question = question.map_err(|fault| unknowable(fault.to_string()))?;
        let answer = fetch.fetch(question).await.map_err(|fault| unknowable(fault.to_string()))?;
        introspection.read(&answer, &self.expected(issuer), now()).map_err(|denied| match denied {
            AccessError::Undecided => unknowable(match answer.status() {
                status @ StatusCode::UNAUTHORIZED => format!("it does not take our id and secret: {status}"),
                status if status.is_success() => "its answer makes no sense".to_owned(),
                status => format!("its answer is {status}"),
            }),
            denied => denied,
        })
    }

    /// Waits until a grant is over: until its token ends, or until its issuer says that it is no good any more.
    pub(crate) async fn over(self, grant: Arc<VerifiedToken>) {
        /// However far the end is, the clock may be set in the meantime.
        const LONGEST: Duration = Duration::from_secs(600);
        let mut until = grant.until;
        loop {
            let left = Duration::from_secs(until.saturating_sub(now()));
            if left.is_zero() {
                return;
            }
            let step = if grant.token.is_some() { self.settings.asked_again } else { LONGEST };
            tokio::time::sleep(left.min(step)).await;
            let Some(token) = &grant.token else { continue };
            match self.verify(token, digest(token.reveal())).await {
                Ok(grant) => until = grant.until,
                // That nobody can tell is no news of it.
                Err(AccessError::Undecided) => {}
                Err(_) => return,
            }
        }
    }

    /// What somebody hears who has not the scopes that something takes; all of those are named.
    pub(crate) fn lacks(&self, grant: &VerifiedToken, needed: Scopes, head: &Head<'_>) -> Refusal {
        self.refuse(&AccessError::InsufficientScope(needed), Some(grant.scheme), &self.place(head))
    }

    /// What somebody hears who sends a token in a form.
    pub(crate) fn refuse_form(&self, head: &Head<'_>) -> Refusal {
        self.refuse(&IN_A_FORM, None, &self.place(head))
    }

    /// Whose document a challenge leads to: messages belong to the stream that they are posted for.
    fn place(&self, head: &Head<'_>) -> Place {
        let target = if head.target == Target::Messages { Target::Events } else { head.target };
        Place { metadata: self.settings.names.document(self.settings.path.of(target), head.by()) }
    }

    fn refuse(&self, denied: &AccessError, scheme: Option<Scheme>, place: &Place) -> Refusal {
        let says = ChallengeContext {
            metadata: &place.metadata,
            scopes: &self.settings.asked_for,
            only_bound: self.settings.only_bound,
        };
        let challenges = denied.challenges(scheme, &says);
        // A nonce is told wherever proofs are spoken of, so that the next one can have it.
        let proofs = challenges.iter().any(|challenge| challenge.is(Scheme::Dpop.name()));
        let nonce = self.settings.nonces.as_ref().filter(|_| proofs).map(|nonces| nonces.current(now()));
        Refusal::denied(denied, Challenges::new(&challenges, nonce.as_deref()))
    }
}

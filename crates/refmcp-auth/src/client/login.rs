//! The flow from beginning to end: discovery, then a refresh, or a client identity and the tokens of the requested grant.

use std::sync::Arc;

use url::Url;

use super::authorization::{MAX_SCOPE_BYTES, authorization_request, choose_scopes, dpop_key, uses_dpop};
use super::discovery::{AuthTarget, checked_url, discover_resource, discover_server, insecure};
use super::flow::FlowIo;
use super::flow_step::{FlowStep, excerpt, redacted_url};
use super::identity::{ClientChoice, Form, OAuthClient, choose};
use super::registration::register;
use super::token_request::{self, token_request};
use super::{
    Blame, ClientIdentity, DpopPolicy, EnterpriseIdp, FlowError, FlowErrorKind, FlowRequest, GrantKind,
    StoreUpdate, StoredState, TokenSet, UnauthorizedResponse,
};
use crate::jose::PrivateKey;
use crate::metadata::{OAuthError, ServerMetadata};
use crate::pkce;
use crate::random::random_token;
use crate::scope::Scopes;
use crate::secret::Secret;

/// Gets new tokens: by a refresh of the stored ones where that is possible, else by the requested grant.
pub(crate) async fn login(
    io: FlowIo,
    mut flow_request: FlowRequest,
    stored: StoredState,
) -> Result<TokenSet, FlowError> {
    let mut target = discover_resource(&io, &mut flow_request, &stored).await?;
    let what = "the authorization server's metadata";
    let server = discover_server(&io, what, &target.issuer, target.alone, &flow_request).await?;
    target.issuer.clone_from(&server.issuer);
    let mut login = Login { io, flow_request, stored, target, server, registered: false, answered: false };
    let mut tokens = login.refresh_stored().await?;
    while tokens.is_none() {
        let client = login.identify().await?;
        tokens = login.authorize(client).await?;
    }
    store(&login.io, tokens.ok_or_else(FlowError::out_of_order)?).await
}

/// Refreshes tokens at their issuer.
pub(crate) async fn refresh(
    io: FlowIo,
    grant: TokenSet,
    identity: ClientIdentity,
) -> Result<TokenSet, FlowError> {
    let mut token_request = token_request::refresh_request(&grant, &identity)?;
    match token_request.send(&io).await? {
        Ok(tokens) => store(&io, token_request.renewed(tokens, grant, io.now())?).await,
        Err(refusal) => {
            let message = format!("{} does not renew the login: {refusal}", grant.issuer);
            Err(FlowError::new(FlowErrorKind::RefreshDenied, message))
        }
    }
}

async fn store(io: &FlowIo, tokens: TokenSet) -> Result<TokenSet, FlowError> {
    io.store(StoreUpdate::Tokens(Box::new(tokens.clone()))).await?;
    Ok(tokens)
}

/// A flow after discovery.
struct Login {
    io: FlowIo,
    flow_request: FlowRequest,
    stored: StoredState,
    target: AuthTarget,
    server: ServerMetadata,
    /// True after a registration in this flow; a flow registers once.
    registered: bool,
    /// True after the token endpoint has confirmed or rejected the client in this flow.
    answered: bool,
}

impl Login {
    /// Refreshes the stored tokens. None means that a new login is needed.
    async fn refresh_stored(&mut self) -> Result<Option<TokenSet>, FlowError> {
        let Some(mut grant) = self.refreshable_tokens() else { return Ok(None) };
        grant.token_endpoint = self.server.token_url()?;
        let mut token_request = token_request::refresh_request(&grant, &self.flow_request.identity)?;
        match token_request.send(&self.io).await? {
            Ok(tokens) => token_request.renewed(tokens, grant, self.io.now()).map(Some),
            Err(refusal) if is_unknown_client(&refusal) && token_request.client.dynamic => {
                self.register_again();
                Ok(None)
            }
            Err(_) => {
                self.answered = true;
                self.io.step(FlowStep::new("begins a new login", "the old login is over"));
                Ok(None)
            }
        }
    }

    /// Takes the stored tokens if a refresh is possible and useful. Tokens of another issuer, resource or client are not, and
    /// are not shown to this issuer.
    fn refreshable_tokens(&mut self) -> Option<TokenSet> {
        let grant = self.stored.tokens.as_ref()?;
        let identity = &self.flow_request.identity;
        let ours = identity.registered.as_ref();
        let why_not = if grant.issuer != self.target.issuer {
            "it is of another authorization server"
        } else if grant.resource != self.target.resource {
            "it is for another resource"
        } else if self.lacks_scopes() {
            "it is good for too little, which renewing does not change"
        } else if ours.is_some_and(|ours| Some(&ours.client_id) != grant.client_id.as_ref()) {
            "it is of another client"
        } else if !matches!(self.flow_request.grant_kind, GrantKind::AuthorizationCode { .. })
            || grant.refresh_token.is_none()
        {
            "nothing renews it"
        } else if OAuthClient::of_tokens(grant, identity).is_none() {
            "its client's secret or key is not at hand"
        } else {
            return self.stored.tokens.take();
        };
        self.io.step(FlowStep::new("looked at the last login", "it is not renewed").next(why_not));
        None
    }

    fn lacks_scopes(&self) -> bool {
        self.flow_request.challenge.as_ref().is_some_and(UnauthorizedResponse::is_insufficient_scope)
    }

    /// The client to use: one that exists, or a new registration.
    async fn identify(&mut self) -> Result<OAuthClient, FlowError> {
        loop {
            let bound = uses_dpop(&self.flow_request, &self.target);
            match choose(&self.flow_request, &self.stored, &self.server, bound, self.io.now())? {
                ClientChoice::Existing(client, why) => {
                    let name = client.id.as_deref().map_or_else(|| "no client id".to_owned(), excerpt);
                    self.io.step(FlowStep::new("chose the client identity", name).next(why));
                    if !self.needs_check(&client) || self.is_known(&client).await? {
                        return Ok(client);
                    }
                    self.stored.registrations.remove(&self.target.issuer);
                }
                ClientChoice::Register { endpoint, about, redirect_uri } => {
                    let step = FlowStep::new("chose the client identity", "none yet");
                    self.io.step(step.next("this client registers itself"));
                    let (scopes, _) = self.choose_scopes();
                    let all = self.target.scopes.as_ref().map_or(scopes.clone(), |all| scopes.union(all));
                    let scopes = if all.written() > MAX_SCOPE_BYTES { scopes } else { all };
                    let bound = self.flow_request.dpop == DpopPolicy::Always;
                    let registered =
                        register(&self.io, &endpoint, &self.server, about, redirect_uri, &scopes, bound)
                            .await?;
                    self.registered = true;
                    let client = OAuthClient::registered(&registered, &self.server);
                    let (issuer, registered) = (self.target.issuer.clone(), Box::new(registered));
                    self.io.store(StoreUpdate::Registration { issuer, registered }).await?;
                    return Ok(client);
                }
            }
        }
    }

    fn choose_scopes(&self) -> (Scopes, &'static str) {
        choose_scopes(&self.flow_request, &self.stored, &self.target, &self.server)
    }

    fn dpop_key(&self) -> Result<Option<Arc<PrivateKey>>, FlowError> {
        dpop_key(&self.flow_request, &self.target, &self.server)
    }

    /// True if nothing in this flow has shown that the client is still known.
    fn needs_check(&self, client: &OAuthClient) -> bool {
        // A token of this client was accepted a moment ago and only lacks scopes.
        let taken = self.lacks_scopes()
            && self.stored.tokens.as_ref().is_some_and(|grant| {
                grant.issuer == self.target.issuer
                    && grant.client_id.is_some()
                    && grant.client_id == client.id
            });
        client.dynamic && !self.answered && !taken
    }

    /// Checks that the authorization server still knows a stored registration, as far as it tells.
    ///
    /// Some authorization servers keep registrations for a limited time, and one for tests may start with none. An
    /// authorization endpoint shows an error page to a client that it does not know and never redirects back, so the flow
    /// would wait in vain. Therefore the token endpoint is asked first, with a made-up code. A known client gets
    /// `invalid_grant`, an unknown one `invalid_client`. Because some token endpoints do not tell, the registration is also
    /// set aside while the browser is open.
    async fn is_known(&mut self, client: &OAuthClient) -> Result<bool, FlowError> {
        let GrantKind::AuthorizationCode { redirect_uri } = &self.flow_request.grant_kind else {
            return Ok(true);
        };
        let code = Secret::from(random_token().map_err(FlowError::crypto)?);
        let verifier = pkce::verifier().map_err(FlowError::crypto)?;
        let form = token_request::with_code(&code, &verifier, redirect_uri, &self.target.resource);
        // A token endpoint that demands DPoP may check the proof first.
        let mut check = token_request(None, &self.server, client.clone(), form, self.dpop_key()?)?;
        let answer = check.send(&self.io).await;
        let step = |said| FlowStep::new("checked the stored registration at", said).at(&check.endpoint);
        let (known, step) = match answer {
            Ok(Err(refusal)) if is_unknown_client(&refusal) => {
                (false, step("the client is not known any more").next("this client registers again"))
            }
            Ok(Err(refusal)) if refusal.error == "invalid_grant" => {
                let next = "the made-up code was refused, and not the client";
                (true, step("the client is still known").next(next))
            }
            Err(error) if error.blame() == Blame::Internal => return Err(error),
            // Any other response says nothing about the client.
            _ => (true, step("it does not say")),
        };
        self.io.step(step);
        self.answered = true;
        Ok(known)
    }

    /// Requests tokens with the requested grant. None means that the client is no longer known and has to register again.
    async fn authorize(&mut self, client: OAuthClient) -> Result<Option<TokenSet>, FlowError> {
        let (asked, why) = self.choose_scopes();
        let shown = if asked.is_empty() { "none".to_owned() } else { excerpt(&asked.to_string()) };
        self.io.step(FlowStep::new("chose the scopes", shown).next(why));
        let key = self.dpop_key()?;
        let resource = &self.target.resource;
        let form = match &self.flow_request.grant_kind {
            GrantKind::AuthorizationCode { redirect_uri } => {
                let redirect_uri = redirect_uri.clone();
                return self.authorize_in_browser(redirect_uri, client, asked, key).await;
            }
            GrantKind::ClientCredentials => token_request::with_credentials(resource, &asked),
            GrantKind::JwtBearer { assertion } => {
                let registered = self.flow_request.identity.registered.as_ref();
                token_request::check_audience(assertion, registered, &self.server)?;
                token_request::with_assertion(assertion, resource, &asked)
            }
            GrantKind::EnterpriseManaged(enterprise) => {
                let assertion = self.identity_assertion(enterprise, &asked).await?;
                token_request::with_assertion(&assertion, resource, &asked)
            }
        };
        self.request_tokens(client, form, asked, key, false).await
    }

    /// The ID-JAG of the enterprise's identity provider.
    async fn identity_assertion(
        &self,
        enterprise: &EnterpriseIdp,
        asked: &Scopes,
    ) -> Result<Secret, FlowError> {
        let issuer = &enterprise.issuer;
        let endpoint = match &enterprise.token_endpoint {
            Some(endpoint) => {
                checked_url(endpoint.as_str()).map_err(|_| insecure(&redacted_url(endpoint)))?
            }
            None => {
                checked_url(issuer).map_err(|_| insecure(&excerpt(issuer)))?;
                let what = "the identity provider's metadata";
                let provider = discover_server(&self.io, what, issuer, false, &self.flow_request).await?;
                provider.token_url()?
            }
        };
        let mut token_request =
            token_request::with_identity(enterprise, endpoint, &self.target, &self.server, asked);
        match token_request.send(&self.io).await? {
            Ok(tokens) => token_request::read_identity_assertion(&token_request, tokens),
            Err(refusal) => Err(FlowError::token_denied(&token_request.issuer, &refusal)),
        }
    }

    /// The authorization code grant. A registration from an earlier flow is set aside while the browser is open, and stored
    /// again after the redirect: without a redirect, the next login registers anew.
    async fn authorize_in_browser(
        &mut self,
        redirect_uri: Url,
        client: OAuthClient,
        asked: Scopes,
        key: Option<Arc<PrivateKey>>,
    ) -> Result<Option<TokenSet>, FlowError> {
        let from_earlier = client.dynamic && !self.registered;
        let id = client.id.clone();
        let (pending, url) = authorization_request(
            &self.server,
            &self.target.resource,
            redirect_uri,
            client.id.as_deref(),
            &asked,
            key.as_deref(),
        )?;
        let what = format!("the user is asked for access to {}", excerpt(&self.target.resource));
        self.io.step(FlowStep::new("opens the browser at", what).at(&url));
        let issuer = self.target.issuer.clone();
        let registered = self.stored.registrations.get(&issuer).filter(|_| from_earlier).cloned();
        let restore = registered.map(|registered| StoreUpdate::Registration {
            issuer: issuer.clone(),
            registered: Box::new(registered),
        });
        if let Some(client_id) = id.filter(|_| from_earlier) {
            self.io.store(StoreUpdate::ForgetRegistration { issuer, client_id }).await?;
        }
        let (pending, redirect) = self.io.open_browser(url, pending, restore.clone()).await?;
        let code = pending.code(&redirect);
        let came = match &code {
            Ok(Ok(_)) => "with a code, from the right authorization server",
            _ => "with nothing that can be used",
        };
        self.io.step(FlowStep::new("the browser came back to", came).at(&redirect));
        let code = code?;
        if from_earlier && code.as_ref().is_err_and(is_unknown_client) {
            self.register_again();
            return Ok(None);
        }
        if let Some(update) = restore {
            self.io.store(update).await?;
        }
        let code = code.map_err(|refusal| FlowError::authorization_denied(&self.server.issuer, &refusal))?;
        let resource = &self.target.resource;
        let form = token_request::with_code(&code, &pending.verifier, &pending.redirect_uri, resource);
        self.request_tokens(client, form, asked, key, from_earlier).await
    }

    /// Requests tokens. None means that the client is no longer known, which only matters for one `from_earlier`.
    async fn request_tokens(
        &mut self,
        client: OAuthClient,
        form: Form,
        asked: Scopes,
        key: Option<Arc<PrivateKey>>,
        from_earlier: bool,
    ) -> Result<Option<TokenSet>, FlowError> {
        let mut token_request = token_request(Some("a token"), &self.server, client, form, key)?;
        match token_request.send(&self.io).await? {
            Ok(tokens) => {
                let revocation = self.server.revocation_url();
                let (resource, now) = (&self.target.resource, self.io.now());
                token_request.grant(tokens, resource, &asked, revocation, now).map(Some)
            }
            Err(refusal) if from_earlier && is_unknown_client(&refusal) => {
                self.register_again();
                Ok(None)
            }
            Err(refusal) => Err(FlowError::token_denied(&token_request.issuer, &refusal)),
        }
    }

    /// Forgets a registration that is no longer known. The next client identity is a new registration.
    fn register_again(&mut self) {
        let why = "the authorization server no longer knows this client, which registers again";
        self.io.step(FlowStep::new("begins a new login", why));
        self.stored.registrations.remove(&self.target.issuer);
        self.answered = true;
    }
}

/// True if an error means that the client is unknown. RFC 6749 says `invalid_client`; some servers say
/// `unauthorized_client`.
fn is_unknown_client(refusal: &OAuthError) -> bool {
    matches!(refusal.error.as_str(), "invalid_client" | "unauthorized_client")
}

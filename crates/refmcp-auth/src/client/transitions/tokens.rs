//! Transitions of token requests and refreshes.

use url::Url;

use super::identity::identify;
use super::{FetchResult, FlowContext, FlowInput, TokenPurpose, fetch, registration_check};
use crate::Seconds;
use crate::client::authorization::PendingAuthorization;
use crate::client::discovery::{MetadataSearch, SearchOutcome, checked_url, read_server, search_server};
use crate::client::flow::{Stage, Transition};
use crate::client::flow_step::{FlowStep, excerpt, redacted_url};
use crate::client::identity::Client;
use crate::client::token_request::{Answer, TokenRequest};
use crate::client::{
    ChallengeResponse, ClientIdentity, FlowAction, FlowError, GrantKind, StoreUpdate, TokenSet,
    authorization, token_forms,
};
use crate::metadata::{OAuthError, ServerMetadata};
use crate::scope::Scopes;
use crate::secret::Secret;

/// Takes the stored tokens if a refresh is possible and useful. Tokens of another issuer, resource or client are not, and
/// are not shown to this issuer.
pub(super) fn refreshable_tokens(context: &mut FlowContext, steps: &mut Vec<FlowStep>) -> Option<TokenSet> {
    let FlowInput { flow_request, stored } = &mut context.input;
    let grant = stored.tokens.as_ref()?;
    let more = flow_request.challenge.as_ref().is_some_and(ChallengeResponse::is_insufficient_scope);
    let ours = flow_request.identity.registered.as_ref();
    let why_not = if grant.issuer != context.target.issuer {
        "it is of another authorization server"
    } else if grant.resource != context.target.resource {
        "it is for another resource"
    } else if more {
        "it is good for too little, which renewing does not change"
    } else if ours.is_some_and(|ours| Some(&ours.client_id) != grant.client_id.as_ref()) {
        "it is of another client"
    } else if !matches!(flow_request.grant_kind, GrantKind::AuthorizationCode { .. })
        || grant.refresh_token.is_none()
    {
        "nothing renews it"
    } else if Client::of_tokens(grant, &flow_request.identity).is_none() {
        "its client's secret or key is not at hand"
    } else {
        return stored.tokens.take();
    };
    steps.push(FlowStep::new("looked at the last login", "it is not renewed").next(why_not));
    None
}

/// Refreshes tokens.
pub(crate) fn refresh(
    grant: TokenSet,
    identity: &ClientIdentity,
    instead: Option<Box<FlowContext>>,
    now: Seconds,
) -> Transition {
    let token_request = token_forms::refresh_request(&grant, identity)?;
    ask(token_request, TokenPurpose::Refresh { old: Box::new(grant), instead }, now)
}

/// Requests tokens with the requested grant.
pub(super) fn authorize(
    context: Box<FlowContext>,
    client: Client,
    steps: &mut Vec<FlowStep>,
    now: Seconds,
) -> Transition {
    let FlowInput { flow_request, stored } = &context.input;
    let asked = authorization::choose_scopes(flow_request, stored, &context.target, &context.server, steps);
    let key = authorization::dpop_key(flow_request, &context.target, &context.server)?;
    let resource = &context.target.resource;
    let form = match &flow_request.grant_kind {
        GrantKind::AuthorizationCode { redirect_uri } => {
            let (pending, url) = authorization::authorization_request(
                &context.server,
                resource,
                redirect_uri,
                client,
                asked,
                key,
            )?;
            let what = format!("the user is asked for access to {}", excerpt(&context.target.resource));
            steps.push(FlowStep::new("opens the browser at", what).at(&url));
            return registration_check::begin_redirect(context, Box::new(pending), url);
        }
        GrantKind::ClientCredentials => token_forms::with_credentials(resource, &asked),
        GrantKind::JwtBearer { assertion } => {
            token_forms::check_audience(
                assertion,
                flow_request.identity.registered.as_ref(),
                &context.server,
            )?;
            token_forms::with_assertion(assertion, resource, &asked)
        }
        GrantKind::EnterpriseManaged(enterprise) => {
            let endpoint = enterprise.token_endpoint.clone();
            return match endpoint {
                Some(endpoint) if checked_url(endpoint.as_str()).is_err() => {
                    Err(FlowError::Insecure(redacted_url(&endpoint)))
                }
                Some(endpoint) => request_identity_assertion(context, client, endpoint, asked, now),
                None => {
                    let issuer = &enterprise.issuer;
                    checked_url(issuer).map_err(|_| FlowError::Insecure(excerpt(issuer)))?;
                    let (search, request) =
                        search_server(issuer, "the identity provider's metadata", flow_request)?;
                    Ok(fetch(Stage::IdpMetadata(context, client, search), request))
                }
            };
        }
    };
    let token_request = token_forms::token_request("a token", &context.server, client, form, key)?;
    grant(token_request, asked, &context, now)
}

fn grant(token_request: TokenRequest, asked: Scopes, context: &FlowContext, now: Seconds) -> Transition {
    let (resource, revocation) = (context.target.resource.clone(), context.server.revocation_endpoint());
    ask(token_request, TokenPurpose::NewTokens { resource, asked, revocation, again: None }, now)
}

fn ask(token_request: TokenRequest, purpose: TokenPurpose, now: Seconds) -> Transition {
    let request = token_request.request(now)?;
    Ok(fetch(Stage::TokenResponse(Box::new(token_request), purpose), request))
}

/// Reads the metadata of the enterprise's identity provider.
pub(crate) fn on_idp_metadata(
    context: Box<FlowContext>,
    client: Client,
    mut search: MetadataSearch,
    came: FetchResult,
    steps: &mut Vec<FlowStep>,
    now: Seconds,
) -> Transition {
    let GrantKind::EnterpriseManaged(enterprise) = &context.input.flow_request.grant_kind else {
        return Err(FlowError::OutOfOrder);
    };
    let issuer = &enterprise.issuer;
    let provider = match search.look::<ServerMetadata>(came, steps)? {
        SearchOutcome::Again(request) => {
            return Ok(fetch(Stage::IdpMetadata(context, client, search), request));
        }
        SearchOutcome::Found(metadata, url) => {
            read_server(metadata, &url, issuer, false, &context.input.flow_request.grant_kind)
        }
        SearchOutcome::NotFound(wrong) => {
            let why = wrong.unwrap_or_else(|| "there is nothing where it should tell".to_owned());
            Err(FlowError::NoServerMetadata { issuer: excerpt(issuer), why })
        }
    };
    let endpoint = provider?.token_endpoint()?;
    let FlowInput { flow_request, stored } = &context.input;
    let asked =
        authorization::choose_scopes(flow_request, stored, &context.target, &context.server, &mut Vec::new());
    request_identity_assertion(context, client, endpoint, asked, now)
}

fn request_identity_assertion(
    context: Box<FlowContext>,
    client: Client,
    endpoint: Url,
    asked: Scopes,
    now: Seconds,
) -> Transition {
    let GrantKind::EnterpriseManaged(enterprise) = &context.input.flow_request.grant_kind else {
        return Err(FlowError::OutOfOrder);
    };
    let token_request =
        token_forms::with_identity(enterprise, endpoint, &context.target, &context.server, &asked);
    ask(token_request, TokenPurpose::IdentityAssertion(context, client, asked), now)
}

/// Reads the redirect.
pub(crate) fn on_redirect(
    context: Box<FlowContext>,
    pending: PendingAuthorization,
    redirect: &Url,
    steps: &mut Vec<FlowStep>,
    now: Seconds,
) -> Transition {
    let code = pending.code(redirect);
    let came = match &code {
        Ok(_) => "with a code, from the right authorization server",
        Err(_) => "with nothing that can be used",
    };
    steps.push(FlowStep::new("the browser came back to", came).at(redirect));
    let PendingAuthorization { verifier, redirect_uri, client, asked, key, .. } = pending;
    let from_earlier = registration_check::is_stored_client(&context, &client);
    let code = match code {
        Err(FlowError::AuthorizationDenied { refusal, .. })
            if from_earlier && registration_check::is_unknown_client(&refusal) =>
        {
            return register_again(context, steps, now);
        }
        Err(denied @ FlowError::AuthorizationDenied { .. }) if from_earlier => {
            return registration_check::after_redirect(
                registration_check::restore_registration(&context),
                Err(denied),
                now,
            );
        }
        code => code?,
    };
    let form = token_forms::with_code(&code, &verifier, &redirect_uri, &context.target.resource);
    let token_request = token_forms::token_request("a token", &context.server, client, form, key)?;
    if !from_earlier {
        return grant(token_request, asked, &context, now);
    }
    let (resource, revocation) = (context.target.resource.clone(), context.server.revocation_endpoint());
    let keep = registration_check::restore_registration(&context);
    let purpose = TokenPurpose::NewTokens { resource, asked, revocation, again: Some(context) };
    registration_check::after_redirect(keep, Ok((Box::new(token_request), purpose)), now)
}

/// Registers again in place of a client that is no longer known.
fn register_again(mut context: Box<FlowContext>, steps: &mut Vec<FlowStep>, now: Seconds) -> Transition {
    let why = "the authorization server no longer knows this client, which registers again";
    steps.push(FlowStep::new("begins a new login", why));
    registration_check::forget_registration(&mut context);
    identify(context, steps, now)
}

/// Reads a token response.
pub(crate) fn on_token_response(
    mut token_request: Box<TokenRequest>,
    purpose: TokenPurpose,
    came: FetchResult,
    steps: &mut Vec<FlowStep>,
    now: Seconds,
) -> Transition {
    let tokens = match token_request.answer(came, now, steps)? {
        Answer::Again(request) => return Ok(fetch(Stage::TokenResponse(token_request, purpose), *request)),
        Answer::Refused(refusal) => return refused(&token_request, purpose, refusal, steps, now),
        Answer::Tokens(tokens) => *tokens,
    };
    let grant = match purpose {
        TokenPurpose::NewTokens { resource, asked, revocation, .. } => {
            token_request.grant(tokens, &resource, &asked, revocation, now)?
        }
        TokenPurpose::Refresh { old, .. } => {
            let mut new = token_request.grant(
                tokens,
                &old.resource,
                &old.scope,
                old.revocation_endpoint.clone(),
                now,
            )?;
            new.requested_scope = old.requested_scope;
            // Without a new refresh token, the old one stays valid.
            new.refresh_token = new.refresh_token.or(old.refresh_token);
            new
        }
        TokenPurpose::IdentityAssertion(context, client, asked) => {
            let assertion: Secret = token_forms::read_identity_assertion(&token_request, tokens)?;
            let key = authorization::dpop_key(&context.input.flow_request, &context.target, &context.server)?;
            let form = token_forms::with_assertion(&assertion, &context.target.resource, &asked);
            let token_request = token_forms::token_request("a token", &context.server, client, form, key)?;
            return self::grant(token_request, asked, &context, now);
        }
    };
    let grant = Box::new(grant);
    Ok((Stage::StoringTokens(grant.clone()), FlowAction::Store(StoreUpdate::Tokens(grant))))
}

/// Handles an error of the token endpoint.
fn refused(
    token_request: &TokenRequest,
    purpose: TokenPurpose,
    refusal: OAuthError,
    steps: &mut Vec<FlowStep>,
    now: Seconds,
) -> Transition {
    let issuer = token_request.issuer.clone();
    let forgotten = registration_check::is_unknown_client(&refusal) && token_request.client.dynamic;
    let context = match purpose {
        TokenPurpose::Refresh { instead: Some(context), .. } => Some(context),
        TokenPurpose::Refresh { instead: None, .. } => {
            return Err(FlowError::RefreshDenied { issuer, refusal });
        }
        TokenPurpose::NewTokens { again, .. } => again.filter(|_| forgotten),
        TokenPurpose::IdentityAssertion(..) => None,
    };
    let Some(mut context) = context else { return Err(FlowError::TokenDenied { issuer, refusal }) };
    context.answered = true;
    if forgotten {
        return register_again(context, steps, now);
    }
    steps.push(FlowStep::new("begins a new login", "the old login is over"));
    identify(context, steps, now)
}

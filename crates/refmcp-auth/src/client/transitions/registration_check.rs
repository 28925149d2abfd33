//! The check that an authorization server still knows a stored registration.
//!
//! Some authorization servers keep registrations for a limited time, and one for tests may start with none. An authorization
//! endpoint shows an error page to a client that it does not know and never redirects back, so the flow would wait in vain.
//! Therefore the token endpoint is asked first. Because some token endpoints do not tell, the registration is also set aside
//! while the browser is open, and stored again after the redirect. Without a redirect, the next login registers anew.

use url::Url;

use super::identity::identify;
use super::tokens::authorize;
use super::{AfterRedirect, FetchResult, FlowContext, FlowInput, fetch};
use crate::Seconds;
use crate::client::authorization::PendingAuthorization;
use crate::client::flow::{Stage, Transition};
use crate::client::flow_step::FlowStep;
use crate::client::identity::Client;
use crate::client::token_request::{Answer, TokenRequest};
use crate::client::{
    ChallengeResponse, FlowAction, FlowError, GrantKind, StoreUpdate, authorization, token_forms,
};
use crate::metadata::OAuthError;
use crate::pkce;
use crate::random::random_token;
use crate::secret::Secret;

/// True if nothing in this flow has shown that the client is still known.
pub(super) fn needs_check(context: &FlowContext, client: &Client) -> bool {
    let FlowInput { flow_request, stored } = &context.input;
    // A token of this client was accepted a moment ago and only lacks scopes.
    let taken = flow_request.challenge.as_ref().is_some_and(ChallengeResponse::is_insufficient_scope)
        && stored.tokens.as_ref().is_some_and(|grant| {
            grant.issuer == context.target.issuer && grant.client_id.is_some() && grant.client_id == client.id
        });
    client.dynamic && !context.answered && !taken
}

/// Sends a token request with a made-up code. A known client gets `invalid_grant`, an unknown one `invalid_client`.
pub(super) fn ask(context: Box<FlowContext>, client: Client, now: Seconds) -> Transition {
    let GrantKind::AuthorizationCode { redirect_uri } = &context.input.flow_request.grant_kind else {
        return Err(FlowError::OutOfOrder);
    };
    let no_random = |fault: crate::random::RandomError| FlowError::Crypto(fault.to_string());
    let code = Secret::from(random_token().map_err(no_random)?);
    let verifier = pkce::verifier().map_err(no_random)?;
    let form = token_forms::with_code(&code, &verifier, redirect_uri, &context.target.resource);
    // A token endpoint that demands DPoP may check the proof first.
    let key = authorization::dpop_key(&context.input.flow_request, &context.target, &context.server)?;
    let token_request = Box::new(token_forms::token_request("nothing", &context.server, client, form, key)?);
    let request = token_request.request(now)?;
    Ok(fetch(Stage::RegistrationCheck(context, token_request), request))
}

/// Reads the response to the made-up code.
pub(crate) fn on_registration_check(
    mut context: Box<FlowContext>,
    mut token_request: Box<TokenRequest>,
    came: FetchResult,
    steps: &mut Vec<FlowStep>,
    now: Seconds,
) -> Transition {
    // The step of a real token request does not fit here.
    let answer = token_request.answer(came, now, &mut Vec::new());
    let (said, then) = match answer {
        Ok(Answer::Again(request)) => {
            return Ok(fetch(Stage::RegistrationCheck(context, token_request), *request));
        }
        Ok(Answer::Refused(refusal)) if is_unknown_client(&refusal) => {
            ("the client is not known any more", Some(REGISTERS))
        }
        Ok(Answer::Refused(refusal)) if refusal.error == "invalid_grant" => {
            ("the client is still known", Some(STAYS))
        }
        // Any other response says nothing about the client.
        _ => ("it does not say", None),
    };
    let step = FlowStep::new("checked the stored registration at", said).at(&token_request.endpoint);
    steps.push(FlowStep { next: then.map(str::to_owned), ..step });
    context.answered = true;
    if then == Some(REGISTERS) {
        forget_registration(&mut context);
        return identify(context, steps, now);
    }
    authorize(context, token_request.client, steps, now)
}

const REGISTERS: &str = "this client registers again";
const STAYS: &str = "the made-up code was refused, and not the client";

/// True if an error means that the client is unknown. RFC 6749 says `invalid_client`; some servers say
/// `unauthorized_client`.
pub(super) fn is_unknown_client(refusal: &OAuthError) -> bool {
    matches!(refusal.error.as_str(), "invalid_client" | "unauthorized_client")
}

/// Forgets the stored registration.
pub(super) fn forget_registration(context: &mut FlowContext) {
    context.input.stored.registrations.remove(&context.target.issuer);
}

/// Opens the browser. A stored registration is set aside until the redirect.
pub(super) fn begin_redirect(
    context: Box<FlowContext>,
    pending: Box<PendingAuthorization>,
    url: Url,
) -> Transition {
    match (&pending.client.id, is_stored_client(&context, &pending.client)) {
        (Some(client_id), true) => {
            let save = StoreUpdate::ForgetRegistration {
                issuer: context.server.issuer().to_owned(),
                client_id: client_id.clone(),
            };
            Ok((Stage::BeforeRedirect(context, pending, url), FlowAction::Store(save)))
        }
        _ => Ok(open_browser(context, pending, url)),
    }
}

/// Opens the browser now.
pub(crate) fn open_browser(
    context: Box<FlowContext>,
    pending: Box<PendingAuthorization>,
    url: Url,
) -> (Stage, FlowAction) {
    (Stage::AwaitingRedirect(context, pending), FlowAction::OpenBrowser(url))
}

/// True if the client was registered before this flow.
pub(super) fn is_stored_client(context: &FlowContext, client: &Client) -> bool {
    client.dynamic && !context.registered
}

/// The store update for a browser that was not opened after all.
pub(crate) fn cancel_redirect(context: &FlowContext, pending: &PendingAuthorization) -> Option<StoreUpdate> {
    if is_stored_client(context, &pending.client) { restore_registration(context) } else { None }
}

/// The store update that keeps the registration again.
pub(super) fn restore_registration(context: &FlowContext) -> Option<StoreUpdate> {
    let issuer = &context.target.issuer;
    let registered = context.input.stored.registrations.get(issuer)?.clone();
    Some(StoreUpdate::Registration { issuer: issuer.clone(), registered: Box::new(registered) })
}

/// After the redirect, the registration is stored again before anything else.
pub(super) fn after_redirect(keep: Option<StoreUpdate>, then: AfterRedirect, now: Seconds) -> Transition {
    match keep {
        Some(save) => Ok((Stage::AfterRedirect(Box::new(then)), FlowAction::Store(save))),
        None => resume_after_redirect(then, now),
    }
}

/// Continues after the redirect.
pub(crate) fn resume_after_redirect(then: AfterRedirect, now: Seconds) -> Transition {
    let (token_request, purpose) = then?;
    let request = token_request.request(now)?;
    Ok(fetch(Stage::TokenResponse(token_request, purpose), request))
}

//! Transitions of client identification and registration.

use url::Url;

use super::tokens::authorize;
use super::{FetchResult, FlowContext, FlowInput, fetch, registration_check};
use crate::Seconds;
use crate::client::flow::{Stage, Transition};
use crate::client::flow_step::{FlowStep, excerpt};
use crate::client::identity::{Client, ClientChoice, choose};
use crate::client::{DpopPolicy, FlowAction, FlowError, GrantKind, StoreUpdate, authorization, registration};
use crate::metadata::ClientRegistration;

/// Chooses the client identity.
pub(super) fn identify(context: Box<FlowContext>, steps: &mut Vec<FlowStep>, now: Seconds) -> Transition {
    let FlowInput { flow_request, stored } = &context.input;
    let bound = authorization::uses_dpop(flow_request, &context.target);
    match choose(flow_request, stored, &context.server, bound, now)? {
        ClientChoice::Existing(client, why) => {
            let name = client.id.as_deref().map_or_else(|| "no client id".to_owned(), excerpt);
            steps.push(FlowStep::new("chose the client identity", name).next(why));
            if registration_check::needs_check(&context, &client) {
                return registration_check::ask(context, client, now);
            }
            authorize(context, client, steps, now)
        }
        ClientChoice::Register(endpoint) => {
            steps.push(
                FlowStep::new("chose the client identity", "none yet").next("this client registers itself"),
            );
            let scopes = authorization::choose_scopes(
                flow_request,
                stored,
                &context.target,
                &context.server,
                &mut Vec::new(),
            );
            let all = context.target.scopes.as_ref().map_or(scopes.clone(), |all| scopes.union(all));
            let scopes = if all.written() > authorization::MAX_SCOPE_BYTES { scopes } else { all };
            let (GrantKind::AuthorizationCode { redirect_uri }, Some(about)) =
                (&flow_request.grant_kind, &flow_request.identity.dynamic)
            else {
                return Err(FlowError::OutOfOrder);
            };
            let bound = flow_request.dpop == DpopPolicy::Always;
            let request = registration::ask(&endpoint, &context.server, about, redirect_uri, &scopes, bound)?;
            Ok(fetch(Stage::Registration(context, endpoint), request))
        }
    }
}

/// Reads the registration response.
pub(crate) fn on_registration(
    mut context: Box<FlowContext>,
    endpoint: &Url,
    came: FetchResult,
    steps: &mut Vec<FlowStep>,
) -> Transition {
    let GrantKind::AuthorizationCode { redirect_uri } = &context.input.flow_request.grant_kind else {
        return Err(FlowError::OutOfOrder);
    };
    let bound = context.input.flow_request.dpop == DpopPolicy::Always;
    let read = registration::read(came, endpoint, context.server.issuer(), redirect_uri, bound);
    let came = match &read {
        Ok(registered) => format!("the client id is {}", excerpt(&registered.client_id)),
        Err(_) => "the registration failed".to_owned(),
    };
    steps.push(FlowStep::new("registered at", came).at(endpoint));
    let registered = Box::new(read?);
    context.registered = true;
    let save = StoreUpdate::Registration {
        issuer: context.server.issuer().to_owned(),
        registered: registered.clone(),
    };
    Ok((Stage::StoringRegistration(context, registered), FlowAction::Store(save)))
}

/// Continues with a stored registration.
pub(crate) fn on_registration_stored(
    context: Box<FlowContext>,
    registered: &ClientRegistration,
    steps: &mut Vec<FlowStep>,
    now: Seconds,
) -> Transition {
    let client = Client::registered(registered, context.server.metadata());
    authorize(context, client, steps, now)
}

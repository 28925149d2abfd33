//! Transitions of metadata discovery.

use super::identity::identify;
use super::tokens::{refresh, refreshable_tokens};
use super::{FetchResult, FlowContext, FlowInput, fetch};
use crate::Seconds;
use crate::client::discovery::{
    MetadataSearch, SearchOutcome, Target, legacy_server, read_resource, read_server, search_resource,
    search_server,
};
use crate::client::flow::{Stage, Transition};
use crate::client::flow_step::{FlowStep, excerpt, redacted_url};
use crate::client::{FlowError, FlowRequest, StoredState};
use crate::metadata::{ResourceMetadata, ServerMetadata};
use crate::uri::canonical;

/// Starts with protected resource metadata.
pub(crate) fn begin(
    mut flow_request: FlowRequest,
    stored: StoredState,
    steps: &mut Vec<FlowStep>,
) -> Transition {
    let (search, request) = search_resource(&mut flow_request, steps)?;
    Ok(fetch(Stage::ResourceMetadata(FlowInput { flow_request, stored }, search), request))
}

/// Reads protected resource metadata.
pub(crate) fn on_resource_metadata(
    input: FlowInput,
    mut search: MetadataSearch,
    came: FetchResult,
    steps: &mut Vec<FlowStep>,
) -> Transition {
    let target = match search.look::<ResourceMetadata>(came, steps)? {
        SearchOutcome::Again(request) => return Ok(fetch(Stage::ResourceMetadata(input, search), request)),
        SearchOutcome::Found(metadata, url) => {
            let target = read_resource(&metadata, &url, &input.flow_request, &input.stored);
            let came = match &target {
                Ok(target) => {
                    format!("it is {} and trusts {}", excerpt(&target.resource), excerpt(&target.issuer))
                }
                Err(_) => UNUSABLE.to_owned(),
            };
            steps.push(search.step(came));
            target?
        }
        SearchOutcome::NotFound(wrong) => alone(&input.flow_request, wrong, steps)?,
    };
    let (search, request) = search_server(&target.issuer, AUTHORIZATION_SERVER, &input.flow_request)?;
    Ok(fetch(Stage::ServerMetadata(input, target, search), request))
}

/// The error of the flow tells the reason.
const UNUSABLE: &str = "it is there and cannot be used";

const AUTHORIZATION_SERVER: &str = "the authorization server's metadata";

/// A server without any metadata may be its own authorization server (revision 2025-03-26). A server with broken metadata,
/// or whose challenge names metadata that is missing, is not.
fn alone(
    flow_request: &FlowRequest,
    wrong: Option<String>,
    steps: &mut Vec<FlowStep>,
) -> Result<Target, FlowError> {
    let named =
        flow_request.challenge.as_ref().is_some_and(|challenge| challenge.get("resource_metadata").is_some());
    let why = match wrong {
        Some(wrong) => Some(wrong),
        None if named => Some("its refusal names a place where there is nothing".to_owned()),
        None if !flow_request.legacy_discovery => Some("there is nothing where it should tell".to_owned()),
        None => None,
    };
    if let Some(why) = why {
        return Err(FlowError::NoResourceMetadata { server: redacted_url(&flow_request.server), why });
    }
    let issuer = flow_request.server.origin().ascii_serialization();
    let step = FlowStep::new("found no metadata of the server", "it may be of the oldest kind");
    steps.push(step.next(format!("{issuer} is taken for its own authorization server")));
    let resource = canonical(&flow_request.server);
    Ok(Target { resource, issuer, scopes: None, bound: false, alone: true })
}

/// Reads authorization server metadata.
pub(crate) fn on_server_metadata(
    input: FlowInput,
    mut target: Target,
    mut search: MetadataSearch,
    came: FetchResult,
    steps: &mut Vec<FlowStep>,
    now: Seconds,
) -> Transition {
    let server = match search.look::<ServerMetadata>(came, steps)? {
        SearchOutcome::Again(request) => {
            return Ok(fetch(Stage::ServerMetadata(input, target, search), request));
        }
        SearchOutcome::Found(metadata, url) => {
            let server =
                read_server(metadata, &url, &target.issuer, target.alone, &input.flow_request.grant_kind);
            let came = match &server {
                Ok(server) => format!("it is {} and can be used", server.issuer()),
                Err(_) => UNUSABLE.to_owned(),
            };
            steps.push(search.step(came));
            server?
        }
        SearchOutcome::NotFound(None) if target.alone => {
            let step =
                FlowStep::new("found no metadata of an authorization server", "it may be of the oldest kind");
            steps.push(step.next("/authorize, /token and /register are taken for its endpoints"));
            legacy_server(&target.issuer)
        }
        SearchOutcome::NotFound(wrong) => {
            let why = wrong.unwrap_or_else(|| "there is nothing where it should tell".to_owned());
            return Err(FlowError::NoServerMetadata { issuer: excerpt(&target.issuer), why });
        }
    };
    server.issuer().clone_into(&mut target.issuer);
    let mut context = Box::new(FlowContext { input, target, server, registered: false, answered: false });
    match refreshable_tokens(&mut context, steps) {
        Some(mut grant) => {
            grant.token_endpoint = context.server.token_endpoint()?;
            let identity = context.input.flow_request.identity.clone();
            refresh(grant, &identity, Some(context), now)
        }
        None => identify(context, steps, now),
    }
}

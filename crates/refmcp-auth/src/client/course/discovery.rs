//! Finding out whom to ask.

use super::identity::identify;
use super::tokens::{fitting_grant, renew};
use super::{Came, Job, Place, fetch};
use crate::Seconds;
use crate::client::discovery::{
    Look, Search, Target, guess_server, read_resource, read_server, search_resource, search_server,
};
use crate::client::flow::{Move, Stage};
use crate::client::step::{Step, brief, place as shown};
use crate::client::{FlowError, Known, Wanted};
use crate::metadata::{ResourceMetadata, ServerMetadata};
use crate::uri::canonical;

/// Begins with what the server tells.
pub(crate) fn begin(mut wanted: Wanted, known: Known, steps: &mut Vec<Step>) -> Move {
    let (search, request) = search_resource(&mut wanted, steps)?;
    Ok(fetch(Stage::Resource(Job { wanted, known }, search), request))
}

/// What the server tells has come, or not.
pub(crate) fn resource_came(job: Job, mut search: Search, came: Came, steps: &mut Vec<Step>) -> Move {
    let target = match search.look::<ResourceMetadata>(came, steps)? {
        Look::Next(request) => return Ok(fetch(Stage::Resource(job, search), request)),
        Look::Found(metadata, url) => {
            let target = read_resource(&metadata, &url, &job.wanted, &job.known);
            let came = match &target {
                Ok(target) => {
                    format!("it is {} and trusts {}", brief(&target.resource), brief(&target.issuer))
                }
                Err(_) => UNUSABLE.to_owned(),
            };
            steps.push(search.step(came));
            target?
        }
        Look::Nowhere(wrong) => alone(&job.wanted, wrong, steps)?,
    };
    let (search, request) = search_server(&target.issuer, AUTHORIZATION_SERVER, &job.wanted)?;
    Ok(fetch(Stage::Server(job, target, search), request))
}

/// What cannot be used; why, the end of the flow tells.
const UNUSABLE: &str = "it is there and cannot be used";

const AUTHORIZATION_SERVER: &str = "the authorization server's metadata";

/// A server that tells nothing at all may be its own authorization server, by the oldest rules. One that tells something
/// wrong, or says that it tells something and does not, is not.
fn alone(wanted: &Wanted, wrong: Option<String>, steps: &mut Vec<Step>) -> Result<Target, FlowError> {
    let named = wanted.refusal.as_ref().is_some_and(|refusal| refusal.get("resource_metadata").is_some());
    let why = match wrong {
        Some(wrong) => Some(wrong),
        None if named => Some("its refusal names a place where there is nothing".to_owned()),
        None if !wanted.legacy => Some("there is nothing where it should tell".to_owned()),
        None => None,
    };
    if let Some(why) = why {
        return Err(FlowError::NoResourceMetadata { server: shown(&wanted.server), why });
    }
    let issuer = wanted.server.origin().ascii_serialization();
    let step = Step::new("found no metadata of the server", "it may be of the oldest kind");
    steps.push(step.then(format!("{issuer} is taken for its own authorization server")));
    let resource = canonical(&wanted.server);
    Ok(Target { resource, issuer, scopes: None, bound: false, alone: true })
}

/// What the authorization server tells has come, or not.
pub(crate) fn server_came(
    job: Job,
    mut target: Target,
    mut search: Search,
    came: Came,
    steps: &mut Vec<Step>,
    now: Seconds,
) -> Move {
    let server = match search.look::<ServerMetadata>(came, steps)? {
        Look::Next(request) => return Ok(fetch(Stage::Server(job, target, search), request)),
        Look::Found(metadata, url) => {
            let server = read_server(metadata, &url, &target.issuer, target.alone, &job.wanted.way);
            let came = match &server {
                Ok(server) => format!("it is {} and can be used", server.issuer()),
                Err(_) => UNUSABLE.to_owned(),
            };
            steps.push(search.step(came));
            server?
        }
        Look::Nowhere(None) if target.alone => {
            let step =
                Step::new("found no metadata of an authorization server", "it may be of the oldest kind");
            steps.push(step.then("/authorize, /token and /register are taken for its endpoints"));
            guess_server(&target.issuer)
        }
        Look::Nowhere(wrong) => {
            let why = wrong.unwrap_or_else(|| "there is nothing where it should tell".to_owned());
            return Err(FlowError::NoServerMetadata { issuer: brief(&target.issuer), why });
        }
    };
    server.issuer().clone_into(&mut target.issuer);
    let mut place = Box::new(Place { job, target, server, registered: false, answered: false });
    match fitting_grant(&mut place, steps) {
        Some(mut grant) => {
            grant.token_endpoint = place.server.token_endpoint()?;
            let identity = place.job.wanted.identity.clone();
            renew(grant, &identity, Some(place), now)
        }
        None => identify(place, steps, now),
    }
}

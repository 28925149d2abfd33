//! Being somebody there.

use url::Url;

use super::tokens::authorize;
use super::{Came, Job, Place, fetch, recognition};
use crate::Seconds;
use crate::client::flow::{Move, Stage};
use crate::client::identity::{Client, Who, choose};
use crate::client::step::{Step, brief};
use crate::client::{FlowError, Next, Proofs, Save, Way, authorize as person, register};
use crate::metadata::Registered;

/// Decides who we are.
pub(super) fn identify(place: Box<Place>, steps: &mut Vec<Step>, now: Seconds) -> Move {
    let Job { wanted, known } = &place.job;
    let bound = person::is_bound(wanted, &place.target);
    match choose(wanted, known, &place.server, bound, now)? {
        Who::Known(client, why) => {
            let name = client.id.as_deref().map_or_else(|| "nobody in particular".to_owned(), brief);
            steps.push(Step::new("chose who we are", name).then(why));
            if recognition::is_in_doubt(&place, &client) {
                return recognition::ask(place, client, now);
            }
            authorize(place, client, steps, now)
        }
        Who::Register(endpoint) => {
            steps.push(Step::new("chose who we are", "nobody yet").then("this client registers itself"));
            let scopes = person::scopes(wanted, known, &place.target, &place.server, &mut Vec::new());
            let all = place.target.scopes.as_ref().map_or(scopes.clone(), |all| scopes.union(all));
            let scopes = if all.written() > person::MOST_SCOPES { scopes } else { all };
            let (Way::Code { redirect_uri }, Some(about)) = (&wanted.way, &wanted.identity.dynamic) else {
                return Err(FlowError::OutOfTurn);
            };
            let bound = wanted.proofs == Proofs::Always;
            let request = register::ask(&endpoint, &place.server, about, redirect_uri, &scopes, bound)?;
            Ok(fetch(Stage::Registering(place, endpoint), request))
        }
    }
}

/// Our registration has come, or not.
pub(crate) fn registration_came(
    mut place: Box<Place>,
    endpoint: &Url,
    came: Came,
    steps: &mut Vec<Step>,
) -> Move {
    let Way::Code { redirect_uri } = &place.job.wanted.way else { return Err(FlowError::OutOfTurn) };
    let bound = place.job.wanted.proofs == Proofs::Always;
    let read = register::read(came, endpoint, place.server.issuer(), redirect_uri, bound);
    let came = match &read {
        Ok(registered) => format!("we are {}", brief(&registered.client_id)),
        Err(_) => "we are not known".to_owned(),
    };
    steps.push(Step::new("registered at", came).at(endpoint));
    let registered = Box::new(read?);
    place.registered = true;
    let save =
        Save::Registration { issuer: place.server.issuer().to_owned(), registered: registered.clone() };
    Ok((Stage::Registered(place, registered), Next::Save(save)))
}

/// Our registration is kept.
pub(crate) fn registration_kept(
    place: Box<Place>,
    registered: &Registered,
    steps: &mut Vec<Step>,
    now: Seconds,
) -> Move {
    let client = Client::registered(registered, place.server.metadata());
    authorize(place, client, steps, now)
}

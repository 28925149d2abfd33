//! Getting tokens, and getting them renewed.

use url::Url;

use super::identity::identify;
use super::{Came, Job, Place, Purpose, fetch, recognition};
use crate::Seconds;
use crate::client::authorize::Pending;
use crate::client::discovery::{Look, Search, read_server, search_server, usable};
use crate::client::flow::{Move, Stage};
use crate::client::identity::Client;
use crate::client::step::{Step, brief, place as shown};
use crate::client::token::{Answer, Errand};
use crate::client::{
    FlowError, Grant, Identity, Next, Refusal, Save, Way, assertion, authorize as person, exchange,
};
use crate::metadata::{OAuthError, ServerMetadata};
use crate::scope::Scopes;
use crate::secret::Secret;

/// The last grant, if it can be renewed here and a renewal is what is needed. A grant of another issuer, of another
/// resource or of another client is of no use, and nobody here is told of it.
pub(super) fn fitting_grant(place: &mut Place, steps: &mut Vec<Step>) -> Option<Grant> {
    let Job { wanted, known } = &mut place.job;
    let grant = known.grant.as_ref()?;
    let more = wanted.refusal.as_ref().is_some_and(Refusal::wants_more);
    let ours = wanted.identity.registered.as_ref();
    let why_not = if grant.issuer != place.target.issuer {
        "it is of another authorization server"
    } else if grant.resource != place.target.resource {
        "it is for another resource"
    } else if more {
        "it is good for too little, which renewing does not change"
    } else if ours.is_some_and(|ours| Some(&ours.client_id) != grant.client_id.as_ref()) {
        "it is of another client"
    } else if !matches!(wanted.way, Way::Code { .. }) || grant.refresh_token.is_none() {
        "nothing renews it"
    } else if Client::of_grant(grant, &wanted.identity).is_none() {
        "its client's secret or key is not at hand"
    } else {
        return known.grant.take();
    };
    steps.push(Step::new("looked at the last login", "it is not renewed").then(why_not));
    None
}

/// Renews a grant.
pub(crate) fn renew(grant: Grant, identity: &Identity, instead: Option<Box<Place>>, now: Seconds) -> Move {
    let errand = exchange::renewal(&grant, identity)?;
    ask(errand, Purpose::Renewal { old: Box::new(grant), instead }, now)
}

/// Asks for a token, in the way that is wanted.
pub(super) fn authorize(place: Box<Place>, client: Client, steps: &mut Vec<Step>, now: Seconds) -> Move {
    let Job { wanted, known } = &place.job;
    let asked = person::scopes(wanted, known, &place.target, &place.server, steps);
    let key = person::key(wanted, &place.target, &place.server)?;
    let resource = &place.target.resource;
    let form = match &wanted.way {
        Way::Code { redirect_uri } => {
            let (pending, url) = person::send(&place.server, resource, redirect_uri, client, asked, key)?;
            let what = format!("they are asked to let us in to {}", brief(&place.target.resource));
            steps.push(Step::new("sends a person to", what).at(&url));
            return recognition::send_out(place, Box::new(pending), url);
        }
        Way::ClientCredentials => exchange::with_credentials(resource, &asked),
        Way::JwtBearer { assertion } => {
            assertion::is_for(assertion, wanted.identity.registered.as_ref(), &place.server)?;
            exchange::with_assertion(assertion, resource, &asked)
        }
        Way::Enterprise(enterprise) => {
            let endpoint = enterprise.token_endpoint.clone();
            return match endpoint {
                Some(endpoint) if usable(endpoint.as_str()).is_err() => {
                    Err(FlowError::Insecure(shown(&endpoint)))
                }
                Some(endpoint) => vouch(place, client, endpoint, asked, now),
                None => {
                    let issuer = &enterprise.issuer;
                    usable(issuer).map_err(|_| FlowError::Insecure(brief(issuer)))?;
                    let (search, request) =
                        search_server(issuer, "the identity provider's metadata", wanted)?;
                    Ok(fetch(Stage::Provider(place, client, search), request))
                }
            };
        }
    };
    let errand = exchange::errand("a token", &place.server, client, form, key)?;
    grant(errand, asked, &place, now)
}

fn grant(errand: Errand, asked: Scopes, place: &Place, now: Seconds) -> Move {
    let (resource, revocation) = (place.target.resource.clone(), place.server.revocation_endpoint());
    ask(errand, Purpose::Grant { resource, asked, revocation, again: None }, now)
}

fn ask(errand: Errand, purpose: Purpose, now: Seconds) -> Move {
    let request = errand.request(now)?;
    Ok(fetch(Stage::Token(Box::new(errand), purpose), request))
}

/// What the enterprise's identity provider tells has come, or not.
pub(crate) fn provider_came(
    place: Box<Place>,
    client: Client,
    mut search: Search,
    came: Came,
    steps: &mut Vec<Step>,
    now: Seconds,
) -> Move {
    let Way::Enterprise(enterprise) = &place.job.wanted.way else { return Err(FlowError::OutOfTurn) };
    let issuer = &enterprise.issuer;
    let provider = match search.look::<ServerMetadata>(came, steps)? {
        Look::Next(request) => return Ok(fetch(Stage::Provider(place, client, search), request)),
        Look::Found(metadata, url) => read_server(metadata, &url, issuer, false, &place.job.wanted.way),
        Look::Nowhere(wrong) => {
            let why = wrong.unwrap_or_else(|| "there is nothing where it should tell".to_owned());
            Err(FlowError::NoServerMetadata { issuer: brief(issuer), why })
        }
    };
    let endpoint = provider?.token_endpoint()?;
    let Job { wanted, known } = &place.job;
    let asked = person::scopes(wanted, known, &place.target, &place.server, &mut Vec::new());
    vouch(place, client, endpoint, asked, now)
}

fn vouch(place: Box<Place>, client: Client, endpoint: Url, asked: Scopes, now: Seconds) -> Move {
    let Way::Enterprise(enterprise) = &place.job.wanted.way else { return Err(FlowError::OutOfTurn) };
    let errand = exchange::with_identity(enterprise, endpoint, &place.target, &place.server, &asked);
    ask(errand, Purpose::Vouching(place, client, asked), now)
}

/// The person's browser has come back.
pub(crate) fn person_came(
    place: Box<Place>,
    pending: Pending,
    redirect: &Url,
    steps: &mut Vec<Step>,
    now: Seconds,
) -> Move {
    let code = pending.code(redirect);
    let came = match &code {
        Ok(_) => "with a code, from the right authorization server",
        Err(_) => "with nothing that can be used",
    };
    steps.push(Step::new("the browser came back to", came).at(redirect));
    let Pending { verifier, redirect_uri, client, asked, key, .. } = pending;
    let from_earlier = recognition::is_from_earlier(&place, &client);
    let code = match code {
        Err(FlowError::Denied { refusal, .. }) if from_earlier && recognition::is_unknown(&refusal) => {
            return register_again(place, steps, now);
        }
        Err(denied @ FlowError::Denied { .. }) if from_earlier => {
            return recognition::is_back(recognition::kept_again(&place), Err(denied), now);
        }
        code => code?,
    };
    let form = exchange::with_code(&code, &verifier, &redirect_uri, &place.target.resource);
    let errand = exchange::errand("a token", &place.server, client, form, key)?;
    if !from_earlier {
        return grant(errand, asked, &place, now);
    }
    let (resource, revocation) = (place.target.resource.clone(), place.server.revocation_endpoint());
    let keep = recognition::kept_again(&place);
    let purpose = Purpose::Grant { resource, asked, revocation, again: Some(place) };
    recognition::is_back(keep, Ok((Box::new(errand), purpose)), now)
}

/// Registers in place of a client that is no longer known, and begins again.
fn register_again(mut place: Box<Place>, steps: &mut Vec<Step>, now: Seconds) -> Move {
    let why = "the authorization server no longer knows this client, which registers again";
    steps.push(Step::new("begins a new login", why));
    recognition::forget(&mut place);
    identify(place, steps, now)
}

/// A token endpoint has answered, or not.
pub(crate) fn tokens_came(
    mut errand: Box<Errand>,
    purpose: Purpose,
    came: Came,
    steps: &mut Vec<Step>,
    now: Seconds,
) -> Move {
    let tokens = match errand.answer(came, now, steps)? {
        Answer::Again(request) => return Ok(fetch(Stage::Token(errand, purpose), *request)),
        Answer::Refused(refusal) => return refused(&errand, purpose, refusal, steps, now),
        Answer::Tokens(tokens) => *tokens,
    };
    let grant = match purpose {
        Purpose::Grant { resource, asked, revocation, .. } => {
            errand.grant(tokens, &resource, &asked, revocation, now)?
        }
        Purpose::Renewal { old, .. } => {
            let mut new =
                errand.grant(tokens, &old.resource, &old.scope, old.revocation_endpoint.clone(), now)?;
            new.asked = old.asked;
            // Who gives no new one means the old one to go on.
            new.refresh_token = new.refresh_token.or(old.refresh_token);
            new
        }
        Purpose::Vouching(place, client, asked) => {
            let assertion: Secret = exchange::vouched(&errand, tokens)?;
            let key = person::key(&place.job.wanted, &place.target, &place.server)?;
            let form = exchange::with_assertion(&assertion, &place.target.resource, &asked);
            let errand = exchange::errand("a token", &place.server, client, form, key)?;
            return self::grant(errand, asked, &place, now);
        }
    };
    let grant = Box::new(grant);
    Ok((Stage::Saving(grant.clone()), Next::Save(Save::Grant(grant))))
}

/// A token endpoint said no.
fn refused(
    errand: &Errand,
    purpose: Purpose,
    refusal: OAuthError,
    steps: &mut Vec<Step>,
    now: Seconds,
) -> Move {
    let issuer = errand.issuer.clone();
    let forgotten = recognition::is_unknown(&refusal) && errand.client.dynamic;
    let place = match purpose {
        Purpose::Renewal { instead: Some(place), .. } => Some(place),
        Purpose::Renewal { instead: None, .. } => return Err(FlowError::NotRenewed { issuer, refusal }),
        Purpose::Grant { again, .. } => again.filter(|_| forgotten),
        Purpose::Vouching(..) => None,
    };
    let Some(mut place) = place else { return Err(FlowError::Refused { issuer, refusal }) };
    place.answered = true;
    if forgotten {
        return register_again(place, steps, now);
    }
    steps.push(Step::new("begins a new login", "the old login is over"));
    identify(place, steps, now)
}

//! The course of a flow: what follows from what came.

use bytes::Bytes;
use http::{Request, Response};
use url::Url;

use super::authorize::{self, Pending};
use super::discovery::{
    Look, Search, Server, Target, guess_server, read_resource, read_server, search_resource, search_server,
    usable,
};
use super::flow::{Move, Stage};
use super::identity::{self, Client, Who};
use super::step::{Step, brief, place as shown};
use super::token::{Answer, Errand};
use super::{FlowError, Grant, Identity, Known, Next, Save, Wanted, Way, exchange, register};
use crate::Seconds;
use crate::fetch::Unfetched;
use crate::metadata::{OAuthError, Registered, ResourceMetadata, ServerMetadata};
use crate::scope::Scopes;
use crate::secret::Secret;
use crate::uri::canonical;

/// What is wanted and known.
pub(crate) struct Job {
    wanted: Wanted,
    known: Known,
}

/// A job, once it is known where tokens are had for it.
pub(crate) struct Place {
    job: Job,
    target: Target,
    server: Server,
    /// Whether we registered in this very flow, which we do once.
    registered: bool,
}

/// What tokens are for.
pub(crate) enum Purpose {
    /// The grant that is wanted. A client that is no longer known registers again, once, if it still can.
    Grant { resource: String, asked: Scopes, revocation: Option<Url>, again: Option<Box<Place>> },
    /// To renew a grant; if that fails, a new one is got, if it is known how.
    Renewal { old: Box<Grant>, instead: Option<Box<Place>> },
    /// To be vouched for.
    Vouching(Box<Place>, Client, Scopes),
}

type Came = Result<Response<Bytes>, Unfetched>;

fn fetch(stage: Stage, request: Request<Bytes>) -> (Stage, Next) {
    (stage, Next::Fetch(request))
}

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
    let mut place = Box::new(Place { job, target, server, registered: false });
    match fitting_grant(&mut place, steps) {
        Some(mut grant) => {
            grant.token_endpoint = place.server.token_endpoint()?;
            let identity = place.job.wanted.identity.clone();
            renew(grant, &identity, Some(place), now)
        }
        None => identify(place, steps, now),
    }
}

/// The last grant, if it can be renewed here and a renewal is what is needed. A grant of another issuer, of another
/// resource or of another client is of no use, and nobody here is told of it.
fn fitting_grant(place: &mut Place, steps: &mut Vec<Step>) -> Option<Grant> {
    let Job { wanted, known } = &mut place.job;
    let grant = known.grant.as_ref()?;
    let more = wanted.refusal.as_ref().is_some_and(super::Refusal::wants_more);
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

/// Decides who we are.
fn identify(place: Box<Place>, steps: &mut Vec<Step>, now: Seconds) -> Move {
    let Job { wanted, known } = &place.job;
    match identity::choose(&wanted.identity, known, &place.server, &wanted.way, now)? {
        Who::Known(client, why) => {
            let name = client.id.as_deref().map_or_else(|| "nobody in particular".to_owned(), brief);
            steps.push(Step::new("chose who we are", name).then(why));
            authorize(place, client, steps, now)
        }
        Who::Register(endpoint) => {
            steps.push(Step::new("chose who we are", "nobody yet").then("this client registers itself"));
            let scopes = authorize::scopes(wanted, known, &place.target, &place.server, &mut Vec::new());
            let all = place.target.scopes.as_ref().map_or(scopes.clone(), |all| scopes.union(all));
            let scopes = if all.to_string().len() > authorize::MOST_SCOPES { scopes } else { all };
            let (Way::Code { redirect_uri }, Some(about)) = (&wanted.way, &wanted.identity.dynamic) else {
                return Err(FlowError::OutOfTurn);
            };
            let request = register::ask(&endpoint, &place.server, about, redirect_uri, &scopes)?;
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
    let read = register::read(came, endpoint, place.server.issuer(), redirect_uri);
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

/// Asks for a token, in the way that is wanted.
fn authorize(place: Box<Place>, client: Client, steps: &mut Vec<Step>, now: Seconds) -> Move {
    let Job { wanted, known } = &place.job;
    let asked = authorize::scopes(wanted, known, &place.target, &place.server, steps);
    let key = authorize::key(wanted, &place.target, &place.server)?;
    let resource = &place.target.resource;
    let form = match &wanted.way {
        Way::Code { redirect_uri } => {
            let (pending, url) = authorize::send(&place.server, resource, redirect_uri, client, asked, key)?;
            let what = format!("they are asked to let us in to {}", brief(&place.target.resource));
            steps.push(Step::new("sends a person to", what).at(&url));
            return Ok((Stage::Browsing(place, Box::new(pending)), Next::Browse(url)));
        }
        Way::ClientCredentials => exchange::with_credentials(resource, &asked),
        Way::JwtBearer { assertion } => exchange::with_assertion(assertion, resource, &asked),
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
    let asked = authorize::scopes(wanted, known, &place.target, &place.server, &mut Vec::new());
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
    let form = exchange::with_code(&code?, &verifier, &redirect_uri, &place.target.resource);
    let can_again = client.dynamic && !place.registered;
    let errand = exchange::errand("a token", &place.server, client, form, key)?;
    let (resource, revocation) = (place.target.resource.clone(), place.server.revocation_endpoint());
    let again = can_again.then_some(place);
    ask(errand, Purpose::Grant { resource, asked, revocation, again }, now)
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
            let key = authorize::key(&place.job.wanted, &place.target, &place.server)?;
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
    let forgotten = refusal.error == "invalid_client" && errand.client.dynamic;
    let place = match purpose {
        Purpose::Renewal { instead: Some(place), .. } => Some(place),
        Purpose::Renewal { instead: None, .. } => return Err(FlowError::NotRenewed { issuer, refusal }),
        Purpose::Grant { again, .. } => again.filter(|_| forgotten),
        Purpose::Vouching(..) => None,
    };
    let Some(mut place) = place else { return Err(FlowError::Refused { issuer, refusal }) };
    let mut why = "the old login is over";
    if forgotten {
        why = "the authorization server no longer knows this client, which registers again";
        place.job.known.registrations.remove(&issuer);
    }
    steps.push(Step::new("begins a new login", why));
    identify(place, steps, now)
}

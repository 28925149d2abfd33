//! Whether an authorization server still knows a client that registered itself there earlier.
//!
//! It may have forgotten it: some keep registrations for a time only, and one that is started anew may begin with none. A
//! person who is sent there by a client that is not known sees a page that says so and is sent back nowhere, so that
//! nobody here would ever hear of it. Therefore the token endpoint is asked before; and because some of them do not say,
//! a registration is put aside while a person is under way with it, and kept again when their browser has come back. If
//! it never does, the next login registers anew.

use url::Url;

use super::identity::identify;
use super::tokens::authorize;
use super::{Came, Job, Place, Then, fetch};
use crate::Seconds;
use crate::client::authorize::Pending;
use crate::client::flow::{Move, Stage};
use crate::client::identity::Client;
use crate::client::step::Step;
use crate::client::token::{Answer, Errand};
use crate::client::{FlowError, Next, Refusal, Save, Way, authorize as person, exchange};
use crate::metadata::OAuthError;
use crate::pkce;
use crate::random::unguessable;
use crate::secret::Secret;

/// Whether nothing in this flow shows that a client is still known.
pub(super) fn is_in_doubt(place: &Place, client: &Client) -> bool {
    let Job { wanted, known } = &place.job;
    // A token of this client was good a moment ago, only not for enough.
    let taken = wanted.refusal.as_ref().is_some_and(Refusal::wants_more)
        && known.grant.as_ref().is_some_and(|grant| {
            grant.issuer == place.target.issuer && grant.client_id.is_some() && grant.client_id == client.id
        });
    client.dynamic && !place.answered && !taken
}

/// Asks the token endpoint for a token for a code that nobody gave: a client that is known is told that there is no such
/// code, and any other that it is not known.
pub(super) fn ask(place: Box<Place>, client: Client, now: Seconds) -> Move {
    let Way::Code { redirect_uri } = &place.job.wanted.way else { return Err(FlowError::OutOfTurn) };
    let no_random = |fault: crate::random::NoRandom| FlowError::NoKeys(fault.to_string());
    let code = Secret::from(unguessable().map_err(no_random)?);
    let verifier = pkce::verifier().map_err(no_random)?;
    let form = exchange::with_code(&code, &verifier, redirect_uri, &place.target.resource);
    // Whoever wants proofs may look at nothing else first.
    let key = person::key(&place.job.wanted, &place.target, &place.server)?;
    let errand = Box::new(exchange::errand("nothing", &place.server, client, form, key)?);
    let request = errand.request(now)?;
    Ok(fetch(Stage::Recognition(place, errand), request))
}

/// The token endpoint has said whether it knows us, or something else.
pub(crate) fn recognition_came(
    mut place: Box<Place>,
    mut errand: Box<Errand>,
    came: Came,
    steps: &mut Vec<Step>,
    now: Seconds,
) -> Move {
    // The step of a token that was asked for in earnest is none of this.
    let answer = errand.answer(came, now, &mut Vec::new());
    let (said, then) = match answer {
        Ok(Answer::Again(request)) => return Ok(fetch(Stage::Recognition(place, errand), *request)),
        Ok(Answer::Refused(refusal)) if is_unknown(&refusal) => ("we are not", Some(REGISTERS)),
        Ok(Answer::Refused(refusal)) if refusal.error == "invalid_grant" => ("we are", Some(STAYS)),
        // Whatever that was, it is no reason not to try.
        _ => ("it does not say", None),
    };
    let step = Step::new("asked whether we are still known at", said).at(&errand.endpoint);
    steps.push(Step { then: then.map(str::to_owned), ..step });
    place.answered = true;
    if then == Some(REGISTERS) {
        forget(&mut place);
        return identify(place, steps, now);
    }
    authorize(place, errand.client, steps, now)
}

const REGISTERS: &str = "this client registers again";
const STAYS: &str = "a code that nobody gave was refused, and not who asked with it";

/// Whether an authorization server means that it does not know the client at all. By the letter that is the first of
/// these; there are some that say the second.
pub(super) fn is_unknown(refusal: &OAuthError) -> bool {
    matches!(refusal.error.as_str(), "invalid_client" | "unauthorized_client")
}

/// Forgets the registration that was known.
pub(super) fn forget(place: &mut Place) {
    place.job.known.registrations.remove(&place.target.issuer);
}

/// Sends a person out. A registration from an earlier flow is put aside until they are back.
pub(super) fn send_out(place: Box<Place>, pending: Box<Pending>, url: Url) -> Move {
    match (&pending.client.id, is_from_earlier(&place, &pending.client)) {
        (Some(client_id), true) => {
            let save = Save::NoRegistration {
                issuer: place.server.issuer().to_owned(),
                client_id: client_id.clone(),
            };
            Ok((Stage::SettingOut(place, pending, url), Next::Save(save)))
        }
        _ => Ok(set_out(place, pending, url)),
    }
}

/// Sends a person out, now that nothing is left to do before.
pub(crate) fn set_out(place: Box<Place>, pending: Box<Pending>, url: Url) -> (Stage, Next) {
    (Stage::Browsing(place, pending), Next::Browse(url))
}

/// Whether a client is one that registered itself before this flow.
pub(super) fn is_from_earlier(place: &Place, client: &Client) -> bool {
    client.dynamic && !place.registered
}

/// What has to be kept when the person stays after all: what was put aside is as good as before.
pub(crate) fn stays(place: &Place, pending: &Pending) -> Option<Save> {
    if is_from_earlier(place, &pending.client) { kept_again(place) } else { None }
}

/// What keeps the registration again that a person was sent out with.
pub(super) fn kept_again(place: &Place) -> Option<Save> {
    let issuer = &place.target.issuer;
    let registered = place.job.known.registrations.get(issuer)?.clone();
    Some(Save::Registration { issuer: issuer.clone(), registered: Box::new(registered) })
}

/// A person is back: the registration that they were sent out with is good, and kept again before anything else.
pub(super) fn is_back(keep: Option<Save>, then: Then, now: Seconds) -> Move {
    match keep {
        Some(save) => Ok((Stage::Back(Box::new(then)), Next::Save(save))),
        None => go_on(then, now),
    }
}

/// Goes on with a person who is back.
pub(crate) fn go_on(then: Then, now: Seconds) -> Move {
    let (errand, purpose) = then?;
    let request = errand.request(now)?;
    Ok(fetch(Stage::Token(errand, purpose), request))
}

//! The flow: where it is, and what moves it on.

use bytes::Bytes;
use http::Response;
use url::Url;

use super::authorize::Pending;
use super::course::{self, Job, Place, Purpose, Then};
use super::discovery::{Search, Target};
use super::identity::Client;
use super::token::Errand;
use super::{FlowError, Grant, Identity, Known, Next, Save, Step, Wanted};
use crate::Seconds;
use crate::fetch::Unfetched;
use crate::metadata::Registered;

/// More than any flow needs.
const MOST_FETCHES: u32 = 40;

/// One attempt to get a token.
///
/// Each call says what comes next. Whatever comes out of turn, a second callback of the same login included, ends the
/// flow.
pub struct Flow {
    stage: Stage,
    steps: Vec<Step>,
    fetches: u32,
}

/// Where a flow is: what it waits for, with all that is needed to go on from there.
pub(crate) enum Stage {
    /// For what the server tells.
    Resource(Job, Search),
    /// For what its authorization server tells.
    Server(Job, Target, Search),
    /// For what the enterprise's identity provider tells.
    Provider(Box<Place>, Client, Search),
    /// For our registration.
    Registering(Box<Place>, Url),
    /// For our registration to be kept.
    Registered(Box<Place>, Box<Registered>),
    /// For the token endpoint to show that it knows us.
    Recognition(Box<Place>, Box<Errand>),
    /// For our registration to be put aside, before a person is sent out.
    SettingOut(Box<Place>, Box<Pending>, Url),
    /// For a person.
    Browsing(Box<Place>, Box<Pending>),
    /// For our registration to be kept again, since a person is back.
    Back(Box<Then>),
    /// For an answer of a token endpoint.
    Token(Box<Errand>, Purpose),
    /// For the grant to be kept.
    Saving(Box<Grant>),
    /// For nothing more.
    Over,
}

/// Where a flow goes.
pub(crate) type Move = Result<(Stage, Next), FlowError>;

impl Flow {
    /// Begins to get a token.
    pub fn begin(wanted: Wanted, known: Known, _now: Seconds) -> (Self, Next) {
        Self::start(|steps| course::begin(wanted, known, steps))
    }

    /// Begins to renew a grant, without asking anybody but its issuer. Whether a new login is needed instead,
    /// [`FlowError::needs_login`] tells.
    pub fn refresh(grant: Grant, identity: &Identity, now: Seconds) -> (Self, Next) {
        Self::start(|_| course::renew(grant, identity, None, now))
    }

    fn start(begin: impl FnOnce(&mut Vec<Step>) -> Move) -> (Self, Next) {
        let mut flow = Self { stage: Stage::Over, steps: Vec::new(), fetches: 0 };
        let begun = begin(&mut flow.steps);
        let next = flow.go(begun);
        (flow, next)
    }

    /// Goes on with what came.
    pub fn fetched(&mut self, response: Result<Response<Bytes>, Unfetched>, now: Seconds) -> Next {
        let steps = &mut self.steps;
        let moved = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Resource(job, search) => course::resource_came(job, search, response, steps),
            Stage::Server(job, target, search) => {
                course::server_came(job, target, search, response, steps, now)
            }
            Stage::Provider(place, client, search) => {
                course::provider_came(place, client, search, response, steps, now)
            }
            Stage::Registering(place, endpoint) => {
                course::registration_came(place, &endpoint, response, steps)
            }
            Stage::Recognition(place, errand) => {
                course::recognition_came(place, errand, response, steps, now)
            }
            Stage::Token(errand, purpose) => course::tokens_came(errand, purpose, response, steps, now),
            _ => Err(FlowError::OutOfTurn),
        };
        self.go(moved)
    }

    /// Whether a browser that was sent back to this URL was sent out by this flow, which waits for it. Of several flows
    /// at once, this tells which one to tell.
    pub fn awaits(&self, redirect: &Url) -> bool {
        matches!(&self.stage, Stage::Browsing(_, pending) if pending.awaits(redirect))
    }

    /// Goes on with where the browser was sent back to.
    pub fn returned(&mut self, redirect: &Url, now: Seconds) -> Next {
        let moved = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Browsing(place, pending) => {
                course::person_came(place, *pending, redirect, &mut self.steps, now)
            }
            _ => Err(FlowError::OutOfTurn),
        };
        self.go(moved)
    }

    /// Ends the flow, since the person was not sent anywhere after all; gives what has to be kept then. Where they were,
    /// and only did not come back, the flow is to be left as it is.
    pub fn stayed(&mut self) -> Option<Save> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Browsing(place, pending) => course::stays(&place, &pending),
            _ => None,
        }
    }

    /// Goes on, now that what had to be kept is kept.
    pub fn saved(&mut self, now: Seconds) -> Next {
        let moved = match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Registered(place, registered) => {
                course::registration_kept(place, &registered, &mut self.steps, now)
            }
            Stage::SettingOut(place, pending, url) => Ok(course::set_out(place, pending, url)),
            Stage::Back(then) => course::go_on(*then, now),
            Stage::Saving(grant) => Ok((Stage::Over, Next::Done(grant))),
            _ => Err(FlowError::OutOfTurn),
        };
        self.go(moved)
    }

    /// What was done since this was last asked.
    pub fn steps(&mut self) -> Vec<Step> {
        std::mem::take(&mut self.steps)
    }

    fn go(&mut self, moved: Move) -> Next {
        let (stage, next) = match moved {
            Ok(moved) => moved,
            Err(fault) => (Stage::Over, Next::Failed(fault)),
        };
        if matches!(next, Next::Fetch(_)) {
            self.fetches += 1;
            if self.fetches > MOST_FETCHES {
                self.stage = Stage::Over;
                return Next::Failed(FlowError::TooManySteps);
            }
        }
        if let Next::Failed(fault) = &next {
            self.steps.push(Step::new("gave up", fault.to_string()).then(fault.advice()));
        }
        self.stage = stage;
        next
    }
}

impl std::fmt::Debug for Flow {
    /// Most of a flow is secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flow").field("fetches", &self.fetches).finish_non_exhaustive()
    }
}

//! A document that may be at one of several places.

use std::collections::VecDeque;

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, Request, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::super::step::{Step, brief, place};
use super::super::{Blame, FlowError, Wanted};
use super::{get, usable};
use crate::fetch::Unfetched;

/// The search for a document.
pub(crate) struct Search {
    what: &'static str,
    /// Who has it.
    whose: Blame,
    asked: Url,
    rest: VecDeque<Url>,
    /// Where the server sent us on from, which it may do once for each place.
    hopped: bool,
    /// What was there that should not be; where there is nothing, nothing is wrong.
    wrong: Option<String>,
    server: Url,
    headers: HeaderMap,
}

/// What came of looking at one place.
pub(crate) enum Look<T> {
    /// It may be elsewhere.
    Next(Request<Bytes>),
    /// Here it is.
    Found(T, Url),
    /// It is nowhere; something else was there, if this says so.
    Nowhere(Option<String>),
}

impl Search {
    /// Begins with the first place.
    pub(crate) fn begin(
        what: &'static str,
        whose: Blame,
        places: impl IntoIterator<Item = Url>,
        wanted: &Wanted,
    ) -> Result<(Self, Request<Bytes>), FlowError> {
        let mut rest: VecDeque<Url> = places.into_iter().collect();
        let asked = rest.pop_front().ok_or(FlowError::OutOfTurn)?;
        let (server, headers) = (wanted.server.clone(), wanted.headers.clone());
        let search = Self { what, whose, asked, rest, hopped: false, wrong: None, server, headers };
        let request = search.request()?;
        Ok((search, request))
    }

    fn request(&self) -> Result<Request<Bytes>, FlowError> {
        get(&self.asked, self.whose, &self.server, &self.headers)
    }

    /// Reads what came from the place that was asked.
    pub(crate) fn look<T: DeserializeOwned>(
        &mut self,
        response: Result<Response<Bytes>, Unfetched>,
        steps: &mut Vec<Step>,
    ) -> Result<Look<T>, FlowError> {
        let response = match response {
            Ok(response) => response,
            Err(why) => {
                steps.push(self.step("nothing came"));
                return Err(FlowError::Unfetched { url: place(&self.asked), whose: self.whose, why });
            }
        };
        let status = response.status();
        if status.is_redirection() {
            return self.sent_on(&response, steps);
        }
        if status.is_client_error() {
            return self.next(&format!("it is not there (status {})", status.as_u16()), false, steps);
        }
        if status != StatusCode::OK {
            return self.next(&format!("status {}", status.as_u16()), true, steps);
        }
        match read(response.body()) {
            Ok(document) => Ok(Look::Found(document, self.asked.clone())),
            Err(why) => self.next(&why, true, steps),
        }
    }

    fn next<T>(&mut self, came: &str, wrong: bool, steps: &mut Vec<Step>) -> Result<Look<T>, FlowError> {
        let step = self.step(came);
        if wrong {
            self.wrong = Some(format!("at {}: {came}", place(&self.asked)));
        }
        let Some(next) = self.rest.pop_front() else {
            steps.push(step.then("there is no other place where it could be"));
            return Ok(Look::Nowhere(self.wrong.take()));
        };
        steps.push(step.then("the next place is tried"));
        (self.asked, self.hopped) = (next, false);
        self.request().map(Look::Next)
    }

    fn sent_on<T>(
        &mut self,
        response: &Response<Bytes>,
        steps: &mut Vec<Step>,
    ) -> Result<Look<T>, FlowError> {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let to = location.and_then(|text| self.asked.join(text).ok());
        let to = to.filter(|url| usable(url.as_str()).is_ok());
        let shown = to.as_ref().map_or_else(|| brief(location.unwrap_or("nowhere")), place);
        let near = to.filter(|url| !self.hopped && url.origin() == self.asked.origin());
        let step = self.step(format!("status {}, to {shown}", response.status().as_u16()));
        let Some(to) = near else {
            steps.push(step.then("that is not followed: only one step, on the same server, would be"));
            return Err(FlowError::Redirected { from: place(&self.asked), whose: self.whose, to: shown });
        };
        steps.push(step.then("it is on the same server, so it is followed once"));
        (self.asked, self.hopped) = (to, true);
        self.request().map(Look::Next)
    }

    /// A step at the place that was asked.
    pub(crate) fn step(&self, came: impl Into<String>) -> Step {
        Step::new(format!("looked for {} at", self.what), came).at(&self.asked)
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let value: Value = serde_json::from_slice(body).map_err(|_| "something that is not JSON".to_owned())?;
    if !value.is_object() {
        return Err("JSON that is not an object".to_owned());
    }
    serde_json::from_value(value)
        .map_err(|fault| format!("JSON of another kind ({})", brief(&fault.to_string())))
}

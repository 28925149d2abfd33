//! The search for a metadata document at several URLs.

use std::collections::VecDeque;

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderMap, Request, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::super::flow_step::{FlowStep, excerpt, redacted_url};
use super::super::{Blame, FlowError, FlowRequest};
use super::{checked_url, get};
use crate::fetch::FetchError;

/// The state of a search.
pub(crate) struct MetadataSearch {
    what: &'static str,
    /// The party that publishes the document.
    whose: Blame,
    current: Url,
    rest: VecDeque<Url>,
    /// True after one redirect, which is allowed once for each URL.
    hopped: bool,
    /// The first unexpected response. A 404 is expected.
    wrong: Option<String>,
    server: Url,
    headers: HeaderMap,
}

/// The outcome of one response.
pub(crate) enum SearchOutcome<T> {
    /// Send this request next.
    Again(Request<Bytes>),
    /// The document and its URL.
    Found(T, Url),
    /// No URL has it; the text tells what was found instead.
    NotFound(Option<String>),
}

impl MetadataSearch {
    /// Starts with the first URL.
    pub(crate) fn begin(
        what: &'static str,
        whose: Blame,
        places: impl IntoIterator<Item = Url>,
        flow_request: &FlowRequest,
    ) -> Result<(Self, Request<Bytes>), FlowError> {
        let mut rest: VecDeque<Url> = places.into_iter().collect();
        let current = rest.pop_front().ok_or(FlowError::OutOfOrder)?;
        let (server, headers) = (flow_request.server.clone(), flow_request.headers.clone());
        let search = Self { what, whose, current, rest, hopped: false, wrong: None, server, headers };
        let request = search.request()?;
        Ok((search, request))
    }

    fn request(&self) -> Result<Request<Bytes>, FlowError> {
        get(&self.current, self.whose, &self.server, &self.headers)
    }

    /// Reads the response to the last request.
    pub(crate) fn look<T: DeserializeOwned>(
        &mut self,
        response: Result<Response<Bytes>, FetchError>,
        steps: &mut Vec<FlowStep>,
    ) -> Result<SearchOutcome<T>, FlowError> {
        let response = match response {
            Ok(response) => response,
            Err(why) => {
                steps.push(self.step("nothing came"));
                return Err(FlowError::Fetch { url: redacted_url(&self.current), whose: self.whose, why });
            }
        };
        let status = response.status();
        if status.is_redirection() {
            return self.redirected(&response, steps);
        }
        if status.is_client_error() {
            return self.next(&format!("it is not there (status {})", status.as_u16()), false, steps);
        }
        if status != StatusCode::OK {
            return self.next(&format!("status {}", status.as_u16()), true, steps);
        }
        match read(response.body()) {
            Ok(document) => Ok(SearchOutcome::Found(document, self.current.clone())),
            Err(why) => self.next(&why, true, steps),
        }
    }

    fn next<T>(
        &mut self,
        came: &str,
        wrong: bool,
        steps: &mut Vec<FlowStep>,
    ) -> Result<SearchOutcome<T>, FlowError> {
        let step = self.step(came);
        if wrong {
            self.wrong = Some(format!("at {}: {came}", redacted_url(&self.current)));
        }
        let Some(next) = self.rest.pop_front() else {
            steps.push(step.next("there is no other place where it could be"));
            return Ok(SearchOutcome::NotFound(self.wrong.take()));
        };
        steps.push(step.next("the next place is tried"));
        (self.current, self.hopped) = (next, false);
        self.request().map(SearchOutcome::Again)
    }

    fn redirected<T>(
        &mut self,
        response: &Response<Bytes>,
        steps: &mut Vec<FlowStep>,
    ) -> Result<SearchOutcome<T>, FlowError> {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let to = location.and_then(|text| self.current.join(text).ok());
        let to = to.filter(|url| checked_url(url.as_str()).is_ok());
        let shown = to.as_ref().map_or_else(|| excerpt(location.unwrap_or("nowhere")), redacted_url);
        let near = to.filter(|url| !self.hopped && url.origin() == self.current.origin());
        let step = self.step(format!("status {}, to {shown}", response.status().as_u16()));
        let Some(to) = near else {
            steps.push(step.next("that is not followed: only one step, on the same server, would be"));
            return Err(FlowError::UnfollowedRedirect {
                from: redacted_url(&self.current),
                whose: self.whose,
                to: shown,
            });
        };
        steps.push(step.next("it is on the same server, so it is followed once"));
        (self.current, self.hopped) = (to, true);
        self.request().map(SearchOutcome::Again)
    }

    /// A step at the current URL.
    pub(crate) fn step(&self, came: impl Into<String>) -> FlowStep {
        FlowStep::new(format!("looked for {} at", self.what), came).at(&self.current)
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let value: Value = serde_json::from_slice(body).map_err(|_| "something that is not JSON".to_owned())?;
    if !value.is_object() {
        return Err("JSON that is not an object".to_owned());
    }
    serde_json::from_value(value)
        .map_err(|fault| format!("JSON of another kind ({})", excerpt(&fault.to_string())))
}

//! The search for a metadata document at several URLs.

use bytes::Bytes;
use http::header::LOCATION;
use http::{Method, Response, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;
use url::Url;

use super::super::flow::FlowIo;
use super::super::flow_step::{FlowStep, excerpt, redacted_url};
use super::super::{Blame, FlowError, FlowErrorKind, FlowRequest};
use super::{checked_url, request};

/// A search.
pub(crate) struct MetadataSearch<'a> {
    pub(super) io: &'a FlowIo,
    pub(super) what: &'static str,
    /// The party that publishes the document.
    pub(super) whose: Blame,
    pub(super) flow_request: &'a FlowRequest,
}

impl MetadataSearch<'_> {
    /// The document and its URL. If no URL has it: the last unexpected response, if there was any. A 404 is expected.
    pub(super) async fn find<T: DeserializeOwned>(
        &self,
        places: Vec<Url>,
    ) -> Result<Result<(T, Url), Option<String>>, FlowError> {
        let mut wrong = None;
        let mut places = places.into_iter().peekable();
        while let Some(place) = places.next() {
            let (response, url) = self.get(place).await?;
            let status = response.status();
            let (came, is_wrong) = if status.is_client_error() {
                (format!("it is not there (status {})", status.as_u16()), false)
            } else if status != StatusCode::OK {
                (format!("status {}", status.as_u16()), true)
            } else {
                match read(response.body()) {
                    Ok(document) => return Ok(Ok((document, url))),
                    Err(why) => (why, true),
                }
            };
            let more = places.peek().is_some();
            let next =
                if more { "the next place is tried" } else { "there is no other place where it could be" };
            self.io.step(self.step(&url, came.as_str()).next(next));
            if is_wrong {
                wrong = Some(format!("at {}: {came}", redacted_url(&url)));
            }
        }
        Ok(Err(wrong))
    }

    /// The response at a URL, after one redirect at most, and the URL that it came from. Extra headers are sent only to the
    /// server's own origin.
    async fn get(&self, mut url: Url) -> Result<(Response<Bytes>, Url), FlowError> {
        let FlowRequest { server, headers, .. } = self.flow_request;
        let mut hopped = false;
        loop {
            let mut request = request(Method::GET, &url, self.whose, Bytes::new())?;
            if url.origin() == server.origin() {
                for (name, value) in headers {
                    request.headers_mut().append(name, value.clone());
                }
            }
            let response = self.io.fetch(request, &url, self.whose).await;
            if response.as_ref().is_err_and(|error| error.kind() == FlowErrorKind::Fetch) {
                self.io.step(self.step(&url, "nothing came"));
            }
            let response = response?;
            if !response.status().is_redirection() {
                return Ok((response, url));
            }
            url = self.follow(&url, &response, hopped)?;
            hopped = true;
        }
    }

    fn follow(&self, from: &Url, response: &Response<Bytes>, hopped: bool) -> Result<Url, FlowError> {
        let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
        let to = location.and_then(|text| from.join(text).ok());
        let to = to.filter(|url| checked_url(url.as_str()).is_ok());
        let shown = to.as_ref().map_or_else(|| excerpt(location.unwrap_or("nowhere")), redacted_url);
        let near = to.filter(|url| !hopped && url.origin() == from.origin());
        let step = self.step(from, format!("status {}, to {shown}", response.status().as_u16()));
        if let Some(to) = near {
            self.io.step(step.next("it is on the same server, so it is followed once"));
            return Ok(to);
        }
        self.io.step(step.next("that is not followed: only one step, on the same server, would be"));
        let message = format!(
            "{} sends us on to {shown}, which is not followed: it is not on the same server, or not the first time",
            redacted_url(from)
        );
        Err(FlowError::new(FlowErrorKind::UnfollowedRedirect, message).of(self.whose))
    }

    /// A step at a URL.
    pub(super) fn step(&self, url: &Url, came: impl Into<String>) -> FlowStep {
        FlowStep::new(format!("looked for {} at", self.what), came).at(url)
    }
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, String> {
    let value: Value = serde_json::from_slice(body).map_err(|_| "something that is not JSON".to_owned())?;
    if !value.is_object() {
        return Err("JSON that is not an object".to_owned());
    }
    serde_json::from_value(value)
        .map_err(|error| format!("JSON of another kind ({})", excerpt(&error.to_string())))
}

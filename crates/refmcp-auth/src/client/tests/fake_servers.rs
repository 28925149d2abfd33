//! Fake servers as tables of responses, a user who always consents, and the driver of a flow between them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use serde_json::Value;
use url::Url;

use super::{
    ClientIdentity, Flow, FlowAction, FlowError, FlowRequest, NOW, StoreUpdate, StoredState, TokenSet,
};
use crate::fetch::FetchError;

/// What was asked.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

impl Seen {
    pub(super) fn field(&self, name: &str) -> Option<String> {
        let fields = url::form_urlencoded::parse(self.body.as_bytes());
        fields.into_owned().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

type Answer = Result<Response<Bytes>, FetchError>;

/// Everybody whom a flow talks to.
pub(super) struct FakeServers {
    pages: BTreeMap<String, VecDeque<Answer>>,
    pub(super) seen: Vec<Seen>,
    pub(super) browsed: Vec<Url>,
    pub(super) saved: Vec<StoreUpdate>,
    pub(super) steps: Vec<String>,
    /// What the browser comes back with besides the state.
    pub(super) back: Vec<(&'static str, String)>,
}

impl Default for FakeServers {
    fn default() -> Self {
        let back = vec![("code", "hush-code".to_owned()), ("iss", super::ISSUER.to_owned())];
        let (pages, seen, browsed, saved) = (BTreeMap::new(), Vec::new(), Vec::new(), Vec::new());
        Self { pages, seen, browsed, saved, steps: Vec::new(), back }
    }
}

impl FakeServers {
    /// What is at a URL, in place of what was there.
    pub(super) fn json(&mut self, url: &str, body: &Value) {
        self.raw(url, 200, &[], &body.to_string());
    }

    pub(super) fn raw(&mut self, url: &str, status: u16, headers: &[(&str, &str)], body: &str) {
        self.pages.remove(url);
        self.also(url, status, headers, body);
    }

    pub(super) fn fault(&mut self, url: &str, error: FetchError) {
        self.pages.insert(url.to_owned(), [Err(error)].into());
    }

    pub(super) fn gone(&mut self, url: &str) {
        self.pages.remove(url);
    }

    /// What is at a URL the next time; the last answer stays.
    pub(super) fn also(&mut self, url: &str, status: u16, headers: &[(&str, &str)], body: &str) {
        let mut response = Response::builder().status(status);
        for (name, value) in headers {
            response = response.header(*name, *value);
        }
        let response = response.body(Bytes::copy_from_slice(body.as_bytes())).unwrap();
        self.pages.entry(url.to_owned()).or_default().push_back(Ok(response));
    }

    pub(super) fn answer(&mut self, request: Request<Bytes>) -> Answer {
        let (head, body) = request.into_parts();
        let seen = Seen {
            method: head.method,
            url: head.uri.to_string(),
            headers: head.headers,
            body: String::from_utf8(body.to_vec()).unwrap(),
        };
        let page = self.pages.get_mut(&seen.url);
        self.seen.push(seen);
        match page {
            Some(page) if page.len() > 1 => page.pop_front().unwrap(),
            Some(page) => page.front().unwrap().clone(),
            None => Ok(Response::builder().status(404).body(Bytes::new()).unwrap()),
        }
    }

    /// Where a browser that is sent out comes back to.
    pub(super) fn comes_back(&self, sent: &Url) -> Url {
        let parameter =
            |name: &str| sent.query_pairs().find(|(known, _)| known == name).unwrap().1.into_owned();
        let mut back = Url::parse(&parameter("redirect_uri")).unwrap();
        back.query_pairs_mut().append_pair("state", &parameter("state")).extend_pairs(&self.back);
        back
    }

    /// Drives a flow to its end. All secrets in these tests have a word in them that must be shown nowhere.
    pub(super) fn drive(&mut self, (mut flow, mut next): (Flow, FlowAction)) -> Result<TokenSet, FlowError> {
        for _ in 0..60 {
            assert!(!format!("{next:?} {flow:?}").contains("hush"), "{next:?}");
            for step in flow.take_steps() {
                let text = format!("{step} {}", serde_json::to_string(&step).unwrap());
                assert!(!text.contains("hush"), "{text}");
                self.steps.push(step.to_string());
            }
            next = match next {
                FlowAction::Fetch(request) => {
                    let answer = self.answer(request);
                    flow.on_response(answer, NOW)
                }
                FlowAction::Store(save) => {
                    self.saved.push(save);
                    flow.on_stored(NOW)
                }
                FlowAction::OpenBrowser(url) => {
                    let back = self.comes_back(&url);
                    self.browsed.push(url);
                    flow.on_redirect(&back, NOW)
                }
                FlowAction::Done(grant) => return Ok(*grant),
                FlowAction::Failed(error) => {
                    assert!(!format!("{error} {error:?} {}", error.advice()).contains("hush"), "{error}");
                    return Err(error);
                }
            };
        }
        panic!("the flow does not end");
    }

    pub(super) fn run(&mut self, flow_request: FlowRequest) -> Result<TokenSet, FlowError> {
        self.run_knowing(flow_request, StoredState::default())
    }

    pub(super) fn run_knowing(
        &mut self,
        flow_request: FlowRequest,
        stored: StoredState,
    ) -> Result<TokenSet, FlowError> {
        self.drive(Flow::start(flow_request, stored, NOW))
    }

    pub(super) fn refresh(
        &mut self,
        grant: &TokenSet,
        identity: &ClientIdentity,
    ) -> Result<TokenSet, FlowError> {
        self.drive(Flow::refresh(grant.clone(), identity, NOW))
    }

    /// The URLs that were asked, in order.
    pub(super) fn requested(&self) -> Vec<&str> {
        self.seen.iter().map(|seen| seen.url.as_str()).collect()
    }

    /// The requests to a URL.
    pub(super) fn to<'a>(&'a self, url: &'a str) -> impl Iterator<Item = &'a Seen> {
        self.seen.iter().filter(move |seen| seen.url == url)
    }

    /// The last request to a URL.
    pub(super) fn last_to(&self, url: &str) -> &Seen {
        self.seen.iter().rfind(|seen| seen.url == url).unwrap()
    }

    /// A parameter of the last URL that a person was sent to.
    pub(super) fn parameter(&self, name: &str) -> Option<String> {
        let pairs = self.browsed.last().unwrap().query_pairs();
        pairs.into_owned().find(|(known, _)| known == name).map(|(_, value)| value)
    }
}

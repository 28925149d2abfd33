//! The server from outside: requests in, answers out, without a socket.

mod assertions;
mod authorize;
mod code;
mod consent;
mod documents;
mod faults;
mod http_rules;
mod identity;
mod logs;
mod metadata;
mod possession;
mod random_requests;
mod refresh;
mod register;
mod tokens;

use std::cell::Cell;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use refmcp_auth::claims::{Claims, TokenError, TokenValidation};
use refmcp_auth::{Scopes, Seconds, pkce};
use refmcp_testkit::log::LeakWatch;
use serde_json::Value;
use url::{Url, form_urlencoded};

use crate::{Client, Fault, Faults, Issuer, Settings};

pub(crate) const NOW: Seconds = 1_700_000_000;
pub(crate) const ORIGIN: &str = "http://127.0.0.1:3000";
pub(crate) const RESOURCE: &str = "http://127.0.0.1:3000/mcp";
pub(crate) const CALLBACK: &str = "https://app.example/cb";
pub(crate) const SECRET: &str = "hush-little-service";
pub(crate) const VERIFIER: &str = "a-verifier-that-is-long-enough-to-be-a-verifier";

/// A server, and its time. Nothing secret of it may be logged while it is there.
pub(crate) struct World {
    pub(crate) issuer: Issuer,
    pub(crate) now: Cell<Seconds>,
    pub(crate) watch: LeakWatch,
}

/// What came back.
pub(crate) struct Answer(pub(crate) Response<Bytes>);

/// A browser on a consent page.
pub(crate) struct Page {
    pub(crate) answer: Answer,
    pub(crate) cookie: String,
    pub(crate) form_token: String,
}

/// A public client `app`, a confidential one `service` with a secret, and three scopes.
pub(crate) fn settings() -> Settings {
    let mut settings = Settings::new(Url::parse(ORIGIN).unwrap(), RESOURCE);
    settings.resources.push("http://127.0.0.1:3000/other".to_owned());
    settings.scopes = Scopes::parse("read write admin").unwrap();
    settings.default_scopes = Scopes::parse("read").unwrap();
    settings.clients = vec![
        Client::public("app").named("An app").redirecting_to([CALLBACK]),
        Client::with_secret("service", SECRET).redirecting_to([CALLBACK]),
    ];
    settings
}

pub(crate) fn world() -> World {
    World::new(settings())
}

pub(crate) fn broken(fault: Fault) -> World {
    World::new(Settings { faults: Faults::default().and(fault), ..settings() })
}

/// The parameters of a good request for authorization, with changes; an empty value takes one away.
pub(crate) fn request<'a>(changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, String)> {
    let good = [
        ("response_type", "code"),
        ("client_id", "app"),
        ("redirect_uri", CALLBACK),
        ("state", "the state"),
        ("scope", "read write"),
        ("resource", RESOURCE),
        ("code_challenge", &pkce::challenge(VERIFIER)),
        ("code_challenge_method", "S256"),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    let kept = good.into_iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    let changed = changes.iter().filter(|(_, value)| !value.is_empty());
    kept.chain(changed.map(|(name, value)| (*name, (*value).to_owned()))).collect()
}

/// The parameters that redeem a code, with changes.
pub(crate) fn redemption<'a>(code: &str, changes: &[(&'a str, &'a str)]) -> Vec<(&'a str, String)> {
    let good = [
        ("grant_type", "authorization_code"),
        ("client_id", "app"),
        ("redirect_uri", CALLBACK),
        ("resource", RESOURCE),
        ("code_verifier", VERIFIER),
        ("code", code),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    let kept = good.into_iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    let changed = changes.iter().filter(|(_, value)| !value.is_empty());
    kept.chain(changed.map(|(name, value)| (*name, (*value).to_owned()))).collect()
}

pub(crate) fn encode<V: AsRef<str>>(pairs: &[(&str, V)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        let watch = LeakWatch::begin();
        [VERIFIER, SECRET].iter().for_each(|secret| watch.sees(secret));
        Self { issuer: Issuer::new(settings).unwrap(), now: Cell::new(NOW), watch }
    }

    pub(crate) fn pass(&self, seconds: Seconds) {
        self.now.set(self.now.get() + seconds);
    }

    /// Everything that is fetched here is there at once, so no answer takes more than one step.
    pub(crate) fn ask(&self, request: Request<Bytes>) -> Answer {
        let future = pin!(self.issuer.answer(request, self.now.get()));
        match future.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(response) => {
                let answer = Answer(response);
                answer.secrets().iter().for_each(|secret| self.watch.sees(secret));
                answer
            }
            Poll::Pending => panic!("the answer does not come at once"),
        }
    }

    pub(crate) fn get(&self, target: &str) -> Answer {
        self.ask(Request::get(target).body(Bytes::new()).unwrap())
    }

    pub(crate) fn post<V: AsRef<str>>(&self, path: &str, pairs: &[(&str, V)]) -> Answer {
        self.post_with(path, &[], pairs)
    }

    pub(crate) fn post_with<V: AsRef<str>>(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        pairs: &[(&str, V)],
    ) -> Answer {
        let mut request =
            Request::post(path).header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.ask(request.body(encode(pairs).into()).unwrap())
    }

    pub(crate) fn register(&self, metadata: &Value) -> Answer {
        let request = Request::post("/register").header(header::CONTENT_TYPE, "application/json");
        self.ask(request.body(metadata.to_string().into()).unwrap())
    }

    pub(crate) fn authorize(&self, changes: &[(&str, &str)]) -> Answer {
        self.get(&format!("/authorize?{}", encode(&request(changes))))
    }

    /// Opens the page of a request.
    pub(crate) fn open(&self, changes: &[(&str, &str)]) -> Page {
        let answer = self.authorize(changes);
        assert_eq!(answer.status(), StatusCode::OK, "{}", answer.text());
        let (cookie, form_token) = (answer.cookie().unwrap(), answer.form_token().unwrap());
        Page { answer, cookie, form_token }
    }

    /// Sends the form of a page from a browser with this cookie.
    pub(crate) fn decide(&self, page: &Page, cookie: &str, decision: &str) -> Answer {
        let form = [("form_token", page.form_token.as_str()), ("user", "alice"), ("decision", decision)];
        self.post_with("/authorize", &[("cookie", cookie)], &form)
    }

    /// Goes all the way to a code.
    pub(crate) fn code(&self, changes: &[(&str, &str)]) -> String {
        let page = self.open(changes);
        let answer = self.decide(&page, &page.cookie, "allow");
        answer.returned("code").unwrap_or_else(|| panic!("{}", answer.text()))
    }

    pub(crate) fn token(&self, pairs: &[(&str, &str)]) -> Answer {
        self.post("/token", pairs)
    }

    pub(crate) fn redeem(&self, code: &str, changes: &[(&str, &str)]) -> Answer {
        self.post("/token", &redemption(code, changes))
    }

    /// Logs in and gives the answer of the token endpoint.
    pub(crate) fn log_in(&self) -> Value {
        let answer = self.redeem(&self.code(&[]), &[]);
        assert_eq!(answer.status(), StatusCode::OK, "{}", answer.text());
        answer.json()
    }

    pub(crate) fn refresh(&self, token: &Value) -> Answer {
        let token = token.as_str().unwrap();
        self.token(&[("grant_type", "refresh_token"), ("client_id", "app"), ("refresh_token", token)])
    }

    /// Whether the server itself says that a token is good.
    pub(crate) fn is_active(&self, token: &Value) -> bool {
        self.post("/introspect", &[("token", token.as_str().unwrap())]).json()["active"] == true
    }

    /// Checks an access token as a resource server does.
    pub(crate) fn check(&self, token: &Value) -> Result<Claims, TokenError> {
        let expected = TokenValidation::new(self.issuer.name(), RESOURCE);
        expected.check(token.as_str().unwrap(), &self.issuer.jwks(), self.now.get())
    }
}

impl Answer {
    pub(crate) fn status(&self) -> StatusCode {
        self.0.status()
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.body().to_vec()).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(self.0.body()).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.0.headers().get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The word for what went wrong, in JSON.
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }

    /// Where the browser is sent.
    pub(crate) fn location(&self) -> Option<Url> {
        self.0.headers().get(header::LOCATION).map(|value| Url::parse(value.to_str().unwrap()).unwrap())
    }

    /// A parameter of where the browser is sent.
    pub(crate) fn returned(&self, name: &str) -> Option<String> {
        let url = self.location()?;
        let found = url.query_pairs().find(|(known, _)| known == name);
        found.map(|(_, value)| value.into_owned())
    }

    /// What the browser is to send again.
    fn cookie(&self) -> Option<String> {
        let cookie = self.header("set-cookie").split(';').next()?;
        (!cookie.is_empty()).then(|| cookie.to_owned())
    }

    /// What the form of a page sends.
    fn form_token(&self) -> Option<String> {
        let text = String::from_utf8_lossy(self.0.body());
        let (_, rest) = text.split_once("name=\"form_token\" value=\"")?;
        rest.split('"').next().map(str::to_owned)
    }

    /// The content of a private response.
    fn secrets(&self) -> Vec<String> {
        let cookie = self.cookie().and_then(|cookie| Some(cookie.split_once('=')?.1.to_owned()));
        let body: Value = serde_json::from_slice(self.0.body()).unwrap_or_default();
        let named = ["access_token", "refresh_token", "client_secret", "registration_access_token"]
            .map(|name| body[name].as_str().map(str::to_owned));
        [cookie, self.form_token(), self.returned("code")].into_iter().chain(named).flatten().collect()
    }

    /// Asserts an error page without a redirect.
    pub(crate) fn assert_stays(&self) {
        assert!(self.status().is_client_error() && self.location().is_none(), "{}", self.status());
        assert!(self.header("content-type").starts_with("text/html"));
        assert!(!self.text().contains("<button"));
    }
}

pub(crate) fn ask_with(world: &World, method: Method, path: &str) -> Answer {
    world.ask(Request::builder().method(method).uri(path).body(Bytes::new()).unwrap())
}

//! Clients that are named by the URL of a document.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use http::StatusCode;
use refmcp_auth::fetch::{BoxFuture, Fetch, FetchError};
use serde_json::json;

use super::*;

const ID: &str = "https://client.example/app.json";

/// Gives one answer to everybody, and counts.
#[derive(Debug)]
struct Web {
    answer: Mutex<Result<Response<Bytes>, FetchError>>,
    count: AtomicUsize,
}

impl Web {
    fn set(&self, answer: Result<Response<Bytes>, FetchError>) {
        *self.answer.lock().unwrap() = answer;
    }
}

impl Fetch for Web {
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, FetchError>> {
        assert_eq!(request.method(), Method::GET);
        assert!(request.headers().get("authorization").is_none());
        self.count.fetch_add(1, Ordering::Relaxed);
        let answer = self.answer.lock().unwrap().clone();
        Box::pin(async move { answer })
    }
}

fn document(changes: &Value) -> Value {
    let mut document = json!({ "client_id": ID, "client_name": "Documented", "redirect_uris": [CALLBACK],
        "grant_types": ["authorization_code", "refresh_token"] });
    for (name, value) in changes.as_object().unwrap() {
        document[name] = value.clone();
    }
    document
}

fn served(document: &Value) -> Response<Bytes> {
    let response = Response::builder().header("content-type", "application/json; charset=utf-8");
    response.body(document.to_string().into()).unwrap()
}

fn web() -> (Arc<Web>, World) {
    let answer = Mutex::new(Ok(served(&document(&json!({})))));
    let web = Arc::new(Web { answer, count: AtomicUsize::new(0) });
    let world = World::new(Settings { fetch: Some(Arc::clone(&web) as Arc<dyn Fetch>), ..settings() });
    (web, world)
}

#[test]
fn a_client_with_a_metadata_document_logs_in() {
    let (web, world) = web();
    let told = world.get("/.well-known/oauth-authorization-server").json();
    assert_eq!(told["client_id_metadata_document_supported"], true);
    let page = world.open(&[("client_id", ID)]);
    let text = page.answer.text();
    assert!(text.contains("Documented") && text.contains("<dd>client.example</dd>"));
    let code = world.decide(&page, &page.cookie, "allow").returned("code").unwrap();
    let tokens = world.redeem(&code, &[("client_id", ID)]).json();
    assert_eq!(world.check(&tokens["access_token"]).unwrap().client_id.as_deref(), Some(ID));
    assert!(tokens["refresh_token"].is_string());
    assert_eq!(web.count.load(Ordering::Relaxed), 1);
    world.pass(300);
    world.open(&[("client_id", ID)]);
    assert_eq!(web.count.load(Ordering::Relaxed), 2);
}

/// Row 100: documents that are not about the client, too long, or somewhere that must not be asked.
#[test]
fn invalid_client_documents_are_refused() {
    let (web, world) = web();
    let long = "x".repeat(10 << 20);
    for bad in [
        json!({ "client_id": "https://client.example/other.json" }),
        json!({ "client_id": "https://client.example/app.json/" }),
        json!({ "client_id": null }),
        json!({ "client_name": null }),
        json!({ "client_name": "" }),
        json!({ "redirect_uris": [] }),
        json!({ "redirect_uris": ["javascript:alert(1)"] }),
        json!({ "redirect_uris": ["https://other.example/cb"] }),
        json!({ "token_endpoint_auth_method": "client_secret_basic" }),
        json!({ "token_endpoint_auth_method": "private_key_jwt" }),
        json!({ "client_secret": "x" }),
        json!({ "client_uri": long }),
    ] {
        web.set(Ok(served(&document(&bad))));
        world.pass(300);
        world.authorize(&[("client_id", ID)]).assert_stays();
    }
    let elsewhere = Response::builder().status(302).header("location", "http://169.254.169.254/");
    for bad in [
        Err(FetchError::Forbidden("private".into())),
        Err(FetchError::TooLarge(1)),
        Err(FetchError::TimedOut),
        Ok(elsewhere.body(Bytes::new()).unwrap()),
        Ok(Response::builder().status(404).body(Bytes::new()).unwrap()),
        Ok(Response::new(document(&json!({})).to_string().into())),
        Ok(Response::builder().header("content-type", "text/html").body(Bytes::from("<p>")).unwrap()),
    ] {
        web.set(bad);
        world.pass(300);
        let answer = world.authorize(&[("client_id", ID)]);
        answer.assert_stays();
        assert!(!answer.text().contains("169.254"));
    }
    web.set(Ok(served(&document(&json!({})))));
    world.pass(10);
    world.open(&[("client_id", ID)]);
}

#[test]
fn failed_document_fetches_are_cached_briefly() {
    let (web, world) = web();
    web.set(Err(FetchError::TimedOut));
    for _ in 0..20 {
        world.authorize(&[("client_id", ID)]).assert_stays();
    }
    assert_eq!(web.count.load(Ordering::Relaxed), 1);
    let answer = world.redeem("x", &[("client_id", ID)]);
    assert_eq!((answer.status(), answer.error().as_str()), (StatusCode::UNAUTHORIZED, "invalid_client"));
}

/// A client that names a document on this machine is not told which ports there are open, nor what answers there.
#[test]
fn documents_on_this_machine_fail_with_one_text() {
    let (web, _) = web();
    let world = World::new(Settings {
        fetch: Some(Arc::clone(&web) as Arc<dyn Fetch>),
        near_documents: true,
        ..settings()
    });
    let mut told = std::collections::HashSet::new();
    for answer in [
        Err(FetchError::Unreachable("connection refused".into())),
        Err(FetchError::Broken("it is not HTTP".into())),
        Err(FetchError::TimedOut),
        Err(FetchError::TooLarge(1)),
        Ok(Response::builder().status(404).body(Bytes::new()).unwrap()),
        Ok(Response::new(Bytes::from_static(b"hello"))),
        Ok(served(&json!({ "client_id": "http://other/" }))),
    ] {
        web.set(answer);
        world.pass(300);
        let answer = world.authorize(&[("client_id", "http://127.0.0.1:9/a")]);
        answer.assert_stays();
        told.insert(answer.text());
    }
    assert_eq!(told.len(), 1, "{told:?}");
}

/// A page may read what comes of asking for tokens. It learns nothing there of what is on this machine or near it.
#[test]
fn cors_endpoints_fetch_no_client_documents() {
    let (web, world) = web();
    let near = World::new(Settings {
        fetch: Some(Arc::clone(&web) as Arc<dyn Fetch>),
        near_documents: true,
        ..settings()
    });
    let found = || Ok(Response::builder().status(404).body(Bytes::new()).unwrap());
    let ids = [ID, "http://127.0.0.1:9/a", "http://127.0.0.1/", "https://u@c.example/a", "unknown"];
    let mut told = std::collections::HashSet::new();
    for answer in [found(), Err(FetchError::TimedOut), Err(FetchError::Unreachable("closed".into()))] {
        web.set(answer);
        for world in [&world, &near] {
            world.pass(300);
            for id in ids {
                // As a page that cannot read the answer, but can cause it.
                world.authorize(&[("client_id", id)]);
                let before = web.count.load(Ordering::Relaxed);
                for path in ["/token", "/revoke", "/introspect"] {
                    let form = redemption("x", &[("client_id", id), ("token", "x")]);
                    let answer = world.post(path, &form);
                    assert_eq!(answer.status(), StatusCode::UNAUTHORIZED);
                    told.insert(answer.text());
                }
                assert_eq!(web.count.load(Ordering::Relaxed), before, "{id}");
            }
        }
    }
    // Not even that there is a client.
    web.set(Ok(served(&document(&json!({})))));
    world.pass(300);
    world.open(&[("client_id", ID)]);
    told.insert(world.redeem("x", &[("client_id", ID)]).text());
    assert_eq!(told.len(), 1, "{told:?}");
}

#[test]
fn an_allowed_client_is_known_without_its_document() {
    let (web, world) = web();
    let code = world.code(&[("client_id", ID)]);
    let tokens = world.redeem(&code, &[("client_id", ID)]).json();
    web.set(Err(FetchError::TimedOut));
    world.pass(20 * 24 * 3600);
    world.authorize(&[("client_id", ID)]).assert_stays();
    let refresh = tokens["refresh_token"].as_str().unwrap();
    let form = [("grant_type", "refresh_token"), ("client_id", ID), ("refresh_token", refresh)];
    let answer = world.token(&form);
    assert_eq!(answer.status(), StatusCode::OK, "{}", answer.text());
}

#[test]
fn clients_with_a_document_need_consent() {
    let (web, world) = web();
    let key = refmcp_auth::jose::PrivateKey::generate().unwrap();
    let jwks = json!({ "keys": [key.public()] });
    let grants = ["authorization_code", "client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"];
    let signing =
        json!({ "token_endpoint_auth_method": "private_key_jwt", "jwks": jwks, "grant_types": grants });
    web.set(Ok(served(&document(&signing))));
    world.code(&[("client_id", ID)]);
    for grant in ["client_credentials", "urn:ietf:params:oauth:grant-type:jwt-bearer"] {
        let claims = json!({ "iss": ID, "sub": ID, "aud": ORIGIN, "exp": NOW + 60, "jti": grant });
        let assertion = key.sign(refmcp_auth::jose::Header::default(), &claims).unwrap();
        let answer = world.token(&[
            ("grant_type", grant),
            ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
            ("client_assertion", &assertion),
            ("assertion", &assertion),
        ]);
        assert_eq!(answer.error(), "unauthorized_client", "{}", answer.text());
    }
}

#[test]
fn only_secure_document_urls_are_fetched() {
    let (web, world) = web();
    for id in
        ["https://client.example", "http://client.example/a", "http://127.0.0.1:1/a", "https://u@c.example/a"]
    {
        world.authorize(&[("client_id", id)]).assert_stays();
    }
    assert_eq!(web.count.load(Ordering::Relaxed), 0);
    let near = "http://127.0.0.1:9/a";
    web.set(Ok(served(&document(&json!({ "client_id": near })))));
    let fetch = Some(Arc::clone(&web) as Arc<dyn Fetch>);
    let world = World::new(Settings { fetch, near_documents: true, ..settings() });
    world.open(&[("client_id", near)]);
}

#[test]
fn client_documents_can_be_disabled() {
    let (_, world) = web();
    let fetch = world.issuer.settings().fetch.clone();
    let faults = Faults::default().and(Fault::NoClientDocuments);
    let world = World::new(Settings { fetch, faults, ..settings() });
    world.authorize(&[("client_id", ID)]).assert_stays();
    let told = world.get("/.well-known/oauth-authorization-server").json();
    assert_eq!(told["client_id_metadata_document_supported"], false);
}

//! Clients that prove who they are.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::StatusCode;
use refmcp_auth::Secret;
use refmcp_auth::jose::{Header, Jwks, PrivateKey};
use serde_json::json;

use super::*;

const ASSERTION: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

pub(crate) fn basic(id: &str, secret: &str) -> String {
    let value = refmcp_auth::basic::credentials(id, &Secret::new(secret)).unwrap();
    value.to_str().unwrap().to_owned()
}

#[test]
fn client_credentials_with_a_secret() {
    let world = world();
    let form = [("grant_type", "client_credentials"), ("scope", "write")];
    let in_header = world.post_with("/token", &[("authorization", &basic("service", SECRET))], &form);
    let credentials = [("client_id", "service"), ("client_secret", SECRET)];
    let in_body = world.token(&[form.as_slice(), &credentials].concat());
    for answer in [in_header, in_body] {
        assert_eq!(answer.status(), StatusCode::OK, "{}", answer.text());
        let tokens = answer.json();
        assert!(tokens.get("refresh_token").is_none());
        assert_eq!(tokens["scope"], "write");
        let claims = world.check(&tokens["access_token"]).unwrap();
        assert_eq!((claims.sub.as_str(), claims.client_id.as_deref()), ("client:service", Some("service")));
    }
}

#[test]
fn wrong_credentials_are_refused() {
    let world = world();
    let form = [("grant_type", "client_credentials")];
    for header in [
        basic("service", "wrong"),
        basic("service", ""),
        basic("unknown", SECRET),
        "Basic !!!".to_owned(),
        format!("Bearer {SECRET}"),
        "Basic".to_owned(),
    ] {
        let answer = world.post_with("/token", &[("authorization", &header)], &form);
        assert_eq!((answer.status(), answer.error().as_str()), (StatusCode::UNAUTHORIZED, "invalid_client"));
        assert!(answer.header("www-authenticate").starts_with("Basic "));
        assert!(!answer.text().contains(SECRET));
    }
    assert_eq!(world.token(&form).error(), "invalid_client");
    let public = [("grant_type", "client_credentials"), ("client_id", "app")];
    assert_eq!(world.token(&public).error(), "unauthorized_client");
    let public = [("grant_type", "client_credentials"), ("client_id", "app"), ("client_secret", "x")];
    assert_eq!(world.token(&public).error(), "invalid_client");
}

#[test]
fn refused_credentials_are_told_to_the_host_and_missing_ones_are_not() {
    let world = world();
    let grant = ("grant_type", "client_credentials");
    let told = |headers: &[(&str, &str)], form: &[(&str, &str)]| {
        let answer = world.post_with("/token", headers, form);
        assert_eq!(answer.error(), "invalid_client");
        answer.0.extensions().get::<refmcp_auth::RefusedClientCredentials>().cloned()
    };
    let why = told(&[], &[grant, ("client_id", "service"), ("client_secret", "wrong")]).unwrap().0;
    assert_eq!(why, "the client's secret is wrong");
    assert!(told(&[("authorization", &basic("service", "wrong"))], &[grant]).is_some());
    assert!(told(&[("authorization", "Bearer wrong")], &[grant]).is_some());
    assert!(told(&[], &[grant, ("client_id", "unknown"), ("client_secret", "wrong")]).is_some());
    assert!(told(&[], &[grant, ("client_id", "service")]).is_none());
    assert!(told(&[], &[grant]).is_none());
}

#[test]
fn a_basic_secret_may_be_form_encoded_or_not() {
    let mut settings = settings();
    let secret = "50%+1=a:b";
    settings.clients.push(Client::with_secret("odd", secret));
    let world = World::new(settings);
    let raw = format!("Basic {}", STANDARD.encode(format!("odd:{secret}")));
    for header in [basic("odd", secret), raw] {
        let form = [("grant_type", "client_credentials")];
        let answer = world.post_with("/token", &[("authorization", &header)], &form);
        assert_eq!(answer.status(), StatusCode::OK, "{}", answer.text());
    }
}

#[test]
fn a_client_authenticates_with_one_method() {
    let world = world();
    let header = basic("service", SECRET);
    let form = [("grant_type", "client_credentials"), ("client_id", "service"), ("client_secret", SECRET)];
    let answer = world.post_with("/token", &[("authorization", &header)], &form);
    assert_eq!(answer.error(), "invalid_request");
    let other = [("grant_type", "client_credentials"), ("client_id", "app")];
    assert_eq!(world.post_with("/token", &[("authorization", &header)], &other).error(), "invalid_request");
    let twice = [("authorization", header.as_str()), ("authorization", header.as_str())];
    let form = [("grant_type", "client_credentials")];
    assert_eq!(world.post_with("/token", &twice, &form).error(), "invalid_request");
}

#[test]
fn unknown_resources_and_scopes_are_refused() {
    let world = world();
    let ask = |name, value| {
        let form = [("grant_type", "client_credentials"), (name, value)];
        world.post_with("/token", &[("authorization", &basic("service", SECRET))], &form)
    };
    assert_eq!(ask("scope", "nonsense").error(), "invalid_scope");
    assert_eq!(ask("resource", "https://elsewhere.example").error(), "invalid_target");
    let tokens = ask("resource", "http://127.0.0.1:3000/other").json();
    assert_eq!(
        (&tokens["scope"], world.check(&tokens["access_token"])),
        (&json!("read"), Err(TokenError::Audience))
    );
}

struct Signing {
    world: World,
    key: PrivateKey,
}

impl Signing {
    fn new() -> Self {
        let key = PrivateKey::generate().unwrap();
        let mut settings = settings();
        settings.clients.push(Client::with_keys("signer", Jwks { keys: vec![key.public()] }));
        Self { world: World::new(settings), key }
    }

    fn assertion(&self, changes: &Value) -> String {
        let mut claims =
            json!({ "iss": "signer", "sub": "signer", "aud": ORIGIN, "exp": NOW + 60, "jti": "one" });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.key.sign(Header::default(), &claims).unwrap()
    }

    fn ask(&self, assertion: &str) -> Answer {
        self.world.token(&[
            ("grant_type", "client_credentials"),
            ("client_assertion_type", ASSERTION),
            ("client_assertion", assertion),
        ])
    }
}

#[test]
fn client_credentials_with_a_client_assertion() {
    let signing = Signing::new();
    for (jti, audience) in
        [("a", json!(ORIGIN)), ("b", json!(format!("{ORIGIN}/token"))), ("c", json!([ORIGIN]))]
    {
        let answer = signing.ask(&signing.assertion(&json!({ "jti": jti, "aud": audience })));
        assert_eq!(answer.status(), StatusCode::OK, "{}", answer.text());
        let claims = signing.world.check(&answer.json()["access_token"]).unwrap();
        assert_eq!(claims.sub, "client:signer");
    }
}

#[test]
fn a_client_assertion_is_accepted_once() {
    let signing = Signing::new();
    let assertion = signing.assertion(&json!({}));
    assert_eq!(signing.ask(&assertion).status(), StatusCode::OK);
    assert_eq!(signing.ask(&assertion).error(), "invalid_client");
}

#[test]
fn a_flood_of_assertions_allows_no_replay() {
    let signing = Signing::new();
    let first = signing.assertion(&json!({ "jti": "first" }));
    assert_eq!(signing.ask(&first).status(), StatusCode::OK);
    let mut refused = None;
    for number in 0..20_000 {
        let answer = signing.ask(&signing.assertion(&json!({ "jti": number.to_string() })));
        if answer.status() != StatusCode::OK {
            assert_eq!(answer.error(), "temporarily_unavailable");
            refused = Some(answer.status());
            break;
        }
    }
    assert_eq!(refused, Some(StatusCode::SERVICE_UNAVAILABLE), "rather than to forget one that is good");
    assert_eq!(signing.ask(&first).error(), "invalid_client");
    // Others are not kept out by that, and neither is this one once its assertions are over.
    let service = [("grant_type", "client_credentials"), ("client_id", "service"), ("client_secret", SECRET)];
    assert_eq!(signing.world.token(&service).status(), StatusCode::OK);
    signing.world.pass(300);
    let later = signing.assertion(&json!({ "jti": "later", "exp": NOW + 360 }));
    assert_eq!(signing.ask(&later).status(), StatusCode::OK);
}

#[test]
fn every_claim_of_a_client_assertion_is_checked() {
    let signing = Signing::new();
    for changes in [
        json!({ "iss": "app" }),
        json!({ "sub": "app" }),
        json!({ "sub": "service", "iss": "service" }),
        json!({ "aud": "https://elsewhere.example" }),
        json!({ "aud": [ORIGIN, "https://elsewhere.example"] }),
        json!({ "aud": [] }),
        json!({ "exp": NOW - 60 }),
        json!({ "exp": NOW + 4000 }),
        json!({ "nbf": NOW + 61 }),
        json!({ "jti": null }),
        json!({ "exp": null }),
    ] {
        assert_eq!(signing.ask(&signing.assertion(&changes)).error(), "invalid_client", "{changes}");
    }
    let stranger = Signing { world: World::new(settings()), key: PrivateKey::generate().unwrap() };
    assert_eq!(signing.ask(&stranger.assertion(&json!({}))).error(), "invalid_client");
    for nonsense in ["a.b.c", "eyJhbGciOiJub25lIn0.e30.", "x"] {
        assert_eq!(signing.ask(nonsense).error(), "invalid_client");
    }
    let secret = [("grant_type", "client_credentials"), ("client_id", "signer"), ("client_secret", "x")];
    assert_eq!(signing.world.token(&secret).error(), "invalid_client");
    assert_eq!(signing.ask(&signing.assertion(&json!({}))).status(), StatusCode::OK);
}

//! The JWT bearer grant.

use http::StatusCode;
use refmcp_auth::jose::{Header, Jwks, PrivateKey};
use serde_json::json;

use super::*;
use crate::TrustedIssuer;

const GRANT: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";

struct Federation {
    world: World,
    key: PrivateKey,
}

impl Federation {
    fn new() -> Self {
        let key = PrivateKey::generate().unwrap();
        let trusted =
            |issuer: &str| TrustedIssuer { issuer: issuer.into(), keys: Jwks { keys: vec![key.public()] } };
        let settings = Settings {
            identity_providers: vec![trusted("https://idp.example")],
            workload_issuers: vec![trusted("https://cluster.example")],
            ..settings()
        };
        Self { world: World::new(settings), key }
    }

    fn sign(&self, typ: &str, good: Value, changes: &Value) -> String {
        let mut claims = good;
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        self.key.sign(Header::of_type(typ), &claims).unwrap()
    }

    fn id_jag(&self, changes: &Value) -> String {
        let good = json!({ "iss": "https://idp.example", "sub": "dave", "aud": ORIGIN, "exp": NOW + 300, "iat": NOW,
            "jti": "one", "client_id": "service", "resource": RESOURCE, "scope": "read write" });
        self.sign("oauth-id-jag+jwt", good, changes)
    }

    fn workload(&self, changes: &Value) -> String {
        let good =
            json!({ "iss": "https://cluster.example", "sub": "job-7", "aud": ORIGIN, "exp": NOW + 300 });
        self.sign("JWT", good, changes)
    }

    fn ask(&self, assertion: &str, more: &[(&str, &str)]) -> Answer {
        self.world.token(&[[("grant_type", GRANT), ("assertion", assertion)].as_slice(), more].concat())
    }
}

const SERVICE: [(&str, &str); 2] = [("client_id", "service"), ("client_secret", SECRET)];

#[test]
fn an_id_jag_gets_a_token() {
    let federation = Federation::new();
    let answer = federation.ask(&federation.id_jag(&json!({})), &SERVICE);
    assert_eq!(answer.status(), StatusCode::OK, "{}", answer.text());
    let tokens = answer.json();
    assert!(tokens.get("refresh_token").is_none());
    let claims = federation.world.check(&tokens["access_token"]).unwrap();
    assert_eq!(
        (claims.sub.as_str(), claims.client_id.as_deref()),
        ("employee:https://idp.example dave", Some("service"))
    );
    assert_eq!(claims.scope.to_string(), "read write");
    let fewer = federation.id_jag(&json!({ "jti": "two", "resource": [RESOURCE] }));
    let fewer = federation.ask(&fewer, &[SERVICE.as_slice(), &[("scope", "write admin")]].concat());
    assert_eq!(fewer.json()["scope"], "write");
}

#[test]
fn every_claim_of_an_id_jag_is_checked() {
    let federation = Federation::new();
    for changes in [
        json!({ "iss": "https://other.example" }),
        json!({ "iss": "https://cluster.example" }),
        json!({ "aud": "https://other.example" }),
        json!({ "aud": format!("{ORIGIN}/token") }),
        json!({ "aud": [ORIGIN, "https://other.example"] }),
        json!({ "exp": NOW - 60 }),
        json!({ "nbf": NOW + 61 }),
        json!({ "iat": NOW + 61 }),
        json!({ "client_id": "app" }),
        json!({ "client_id": null }),
        json!({ "jti": null }),
        json!({ "sub": "" }),
        json!({ "resource": "https://other.example/mcp" }),
        json!({ "resource": [RESOURCE, "http://127.0.0.1:3000/other"] }),
    ] {
        let answer = federation.ask(&federation.id_jag(&changes), &SERVICE);
        assert_eq!(
            (answer.status(), answer.error().as_str()),
            (StatusCode::BAD_REQUEST, "invalid_grant"),
            "{changes}"
        );
    }
    let scope = federation.id_jag(&json!({ "scope": "nonsense" }));
    assert_eq!(federation.ask(&scope, &SERVICE).error(), "invalid_scope");
    let other = [SERVICE.as_slice(), &[("resource", "http://127.0.0.1:3000/other")]].concat();
    assert_eq!(federation.ask(&federation.id_jag(&json!({})), &other).error(), "invalid_target");
    let good = federation.id_jag(&json!({}));
    assert_eq!(federation.ask(&good, &SERVICE).status(), StatusCode::OK);
    assert_eq!(federation.ask(&good, &SERVICE).error(), "invalid_grant");
}

#[test]
fn an_id_jag_needs_client_authentication() {
    let federation = Federation::new();
    let assertion = federation.id_jag(&json!({}));
    assert_eq!(federation.ask(&assertion, &[]).error(), "invalid_client");
    let wrong = [("client_id", "service"), ("client_secret", "wrong")];
    assert_eq!(federation.ask(&assertion, &wrong).error(), "invalid_client");
    let public = federation.id_jag(&json!({ "client_id": "app" }));
    assert_eq!(federation.ask(&public, &[("client_id", "app")]).error(), "unauthorized_client");
}

#[test]
fn a_workload_assertion_gets_a_token() {
    let federation = Federation::new();
    let assertion = federation.workload(&json!({}));
    for _ in 0..2 {
        let answer = federation.ask(&assertion, &[("resource", RESOURCE)]);
        assert_eq!(answer.status(), StatusCode::OK, "{}", answer.text());
        let claims = federation.world.check(&answer.json()["access_token"]).unwrap();
        let name = "workload:https://cluster.example job-7";
        assert_eq!((claims.sub.as_str(), claims.client_id.as_deref()), (name, Some(name)));
    }
    let named = federation.ask(&assertion, &[("client_id", "app")]).json();
    let claims = federation.world.check(&named["access_token"]).unwrap();
    assert_eq!(
        (claims.sub.as_str(), claims.client_id.as_deref()),
        ("workload:https://cluster.example job-7", Some("app"))
    );
}

#[test]
fn subjects_of_several_issuers_never_collide() {
    let federation = Federation::new();
    let who = |answer: Answer| {
        let claims = federation.world.check(&answer.json()["access_token"]).unwrap();
        (claims.sub, claims.client_id.unwrap())
    };
    let person = who(federation.world.redeem(&federation.world.code(&[]), &[]));
    assert_eq!(person, ("alice".to_owned(), "app".to_owned()));
    let service = [("grant_type", "client_credentials"), ("client_id", "service"), ("client_secret", SECRET)];
    let all = [
        person,
        who(federation.ask(&federation.workload(&json!({ "sub": "app" })), &[])),
        who(federation.ask(&federation.workload(&json!({ "sub": "service" })), &[])),
        who(federation.ask(&federation.workload(&json!({ "sub": "alice" })), &[("client_id", "app")])),
        who(federation.ask(&federation.id_jag(&json!({ "sub": "service" })), &SERVICE)),
        who(federation.world.token(&service)),
    ];
    let subjects: std::collections::HashSet<_> = all.iter().map(|(subject, _)| subject).collect();
    assert_eq!(subjects.len(), all.len(), "{all:?}");
    let alone = &all[1..3];
    assert!(alone.iter().all(|(_, client)| client != "app" && client != "service"), "{alone:?}");
    // And no person can say that they are one of these.
    for (subject, _) in &all[1..] {
        let page = federation.world.open(&[]);
        let form = [("form_token", page.form_token.as_str()), ("user", subject), ("decision", "allow")];
        let answer = federation.world.post_with("/authorize", &[("cookie", &page.cookie)], &form);
        assert_eq!(answer.returned("code"), None, "{subject}");
    }
}

#[test]
fn every_claim_of_a_workload_assertion_is_checked() {
    let federation = Federation::new();
    for changes in [
        json!({ "iss": "https://idp.example" }),
        json!({ "aud": "https://other.example" }),
        json!({ "exp": NOW - 60 }),
        json!({ "nbf": NOW + 61 }),
        json!({ "sub": "x".repeat(257) }),
    ] {
        assert_eq!(federation.ask(&federation.workload(&changes), &[]).error(), "invalid_grant", "{changes}");
    }
    let assertion = federation.workload(&json!({}));
    assert_eq!(federation.ask(&assertion, &[("client_id", "unknown")]).error(), "invalid_client");
    assert_eq!(
        federation.ask(&assertion, &[("resource", "https://other.example")]).error(),
        "invalid_target"
    );
    assert_eq!(federation.ask("", &[]).error(), "invalid_request");
    assert_eq!(federation.ask("nonsense", &[]).error(), "invalid_grant");
    let stranger = PrivateKey::generate().unwrap();
    let forged = Federation { world: world(), key: stranger }.workload(&json!({}));
    assert_eq!(federation.ask(&forged, &[]).error(), "invalid_grant");
}

#[test]
fn assertions_of_untrusted_issuers_are_refused() {
    let federation = Federation::new();
    let alone = Federation { world: world(), key: PrivateKey::generate().unwrap() };
    assert_eq!(alone.ask(&federation.workload(&json!({})), &[]).error(), "invalid_grant");
    assert_eq!(alone.ask(&federation.id_jag(&json!({})), &SERVICE).error(), "invalid_grant");
}

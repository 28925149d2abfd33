//! Asking about tokens, and giving them back.

use http::StatusCode;
use serde_json::json;

use super::*;

#[test]
fn introspection_describes_a_token() {
    let world = world();
    let tokens = world.log_in();
    let token = tokens["access_token"].as_str().unwrap();
    let answer = world.post("/introspect", &[("token", token)]);
    assert_eq!(answer.header("cache-control"), "no-store");
    let told = answer.json();
    assert_eq!((&told["active"], &told["token_type"]), (&json!(true), &json!("Bearer")));
    assert_eq!(
        (&told["sub"], &told["client_id"], &told["aud"]),
        (&json!("alice"), &json!("app"), &json!(RESOURCE))
    );
    for other in ["nonsense", "a.b.c", tokens["refresh_token"].as_str().unwrap(), &format!("{token}x")] {
        assert_eq!(world.post("/introspect", &[("token", other)]).json(), json!({ "active": false }));
    }
    world.pass(3600);
    assert!(!world.is_active(&tokens["access_token"]));
}

#[test]
fn introspection_beyond_loopback_needs_authentication() {
    let mut settings = settings();
    settings.origin = Url::parse("https://as.example").unwrap();
    let world = World::new(settings);
    let tokens = world.log_in();
    let token = ("token", tokens["access_token"].as_str().unwrap());
    assert_eq!(world.post("/introspect", &[token]).status(), StatusCode::UNAUTHORIZED);
    let named = [token, ("client_id", "app")];
    assert_eq!(world.post("/introspect", &named).status(), StatusCode::UNAUTHORIZED);
    let service = [token, ("client_id", "service"), ("client_secret", SECRET)];
    assert_eq!(world.post("/introspect", &service).json()["active"], true);
    let (id, secret) = world.issuer.resource_credentials();
    let header = super::identity::basic(id, secret.unwrap().reveal());
    let own = world.post_with("/introspect", &[("authorization", &header)], &[token]);
    assert_eq!(own.json()["active"], true);
    let form = [("grant_type", "client_credentials")];
    let no_token = world.post_with("/token", &[("authorization", &header)], &form);
    assert_eq!(no_token.error(), "unauthorized_client");
}

#[test]
fn revoking_a_refresh_token_revokes_its_family() {
    let world = world();
    let tokens = world.log_in();
    let token = tokens["refresh_token"].as_str().unwrap();
    let answer = world.post("/revoke", &[("token", token), ("client_id", "app")]);
    assert_eq!((answer.status(), answer.text().as_str()), (StatusCode::OK, ""));
    assert!(!world.is_active(&tokens["access_token"]));
    assert_eq!(world.refresh(&tokens["refresh_token"]).error(), "invalid_grant");
}

#[test]
fn revoking_an_access_token_keeps_its_family() {
    let world = world();
    let tokens = world.log_in();
    let token = tokens["access_token"].as_str().unwrap();
    assert_eq!(world.post("/revoke", &[("token", token), ("client_id", "app")]).status(), StatusCode::OK);
    assert!(!world.is_active(&tokens["access_token"]));
    assert_eq!(world.refresh(&tokens["refresh_token"]).status(), StatusCode::OK);
}

#[test]
fn a_client_revokes_only_its_own_tokens() {
    let world = world();
    let tokens = world.log_in();
    let service = [("client_id", "service"), ("client_secret", SECRET)];
    for kind in ["access_token", "refresh_token"] {
        let form = [service.as_slice(), &[("token", tokens[kind].as_str().unwrap())]].concat();
        assert_eq!(world.post("/revoke", &form).status(), StatusCode::OK);
    }
    assert!(world.is_active(&tokens["access_token"]));
    assert_eq!(world.refresh(&tokens["refresh_token"]).status(), StatusCode::OK);
    let token = ("token", tokens["access_token"].as_str().unwrap());
    assert_eq!(world.post("/revoke", &[token]).status(), StatusCode::UNAUTHORIZED);
    let wrong = [token, ("client_id", "service"), ("client_secret", "wrong")];
    assert_eq!(world.post("/revoke", &wrong).status(), StatusCode::UNAUTHORIZED);
    assert_eq!(world.post("/revoke", &[("token", "unknown"), ("client_id", "app")]).status(), StatusCode::OK);
    assert_eq!(world.post("/revoke", &[("client_id", "app")]).error(), "invalid_request");
}

#[test]
fn debug_output_contains_no_secrets() {
    let world = world();
    let tokens = world.log_in();
    let shown = format!("{:?} {:?}", world.issuer, world.issuer.settings());
    assert!(!shown.contains(SECRET));
    assert!(!shown.contains(tokens["access_token"].as_str().unwrap()));
}

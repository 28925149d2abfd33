//! Tokens for a code.

use http::StatusCode;
use serde_json::json;

use refmcp_auth::claims::Audience;

use super::*;

#[test]
fn a_code_gets_tokens_that_a_resource_server_accepts() {
    let world = world();
    let answer = world.redeem(&world.code(&[]), &[]);
    assert_eq!(answer.status(), StatusCode::OK, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), "no-store");
    let tokens = answer.json();
    assert_eq!(
        (&tokens["token_type"], &tokens["expires_in"], &tokens["scope"]),
        (&json!("Bearer"), &json!(3600), &json!("read write"))
    );
    let claims = world.check(&tokens["access_token"]).unwrap();
    assert_eq!((claims.sub.as_str(), claims.client_id.as_deref()), ("alice", Some("app")));
    assert_eq!((claims.exp, claims.iat), (NOW + 3600, Some(NOW)));
    assert!(claims.jti.is_some() && claims.aud == Audience::One(RESOURCE.to_owned()));
    let jws = refmcp_auth::jose::Jws::parse(tokens["access_token"].as_str().unwrap()).unwrap();
    assert_eq!(jws.header().typ.as_deref(), Some("at+jwt"));
    assert_eq!(jws.header().kid, world.issuer.jwks().keys[0].kid);
}

/// Row 97: the verifier is missing, wrong, or that of another login at the same time.
#[test]
fn a_code_needs_its_verifier() {
    let world = world();
    let other = "another-verifier-that-is-also-long-enough-to-be-one";
    let (first, second) = (world.code(&[]), world.code(&[("code_challenge", &pkce::challenge(other))]));
    assert_eq!(world.redeem(&first, &[("code_verifier", "")]).error(), "invalid_request");
    for wrong in [other, &pkce::challenge(VERIFIER), "short", &format!("{VERIFIER}x")] {
        assert_eq!(world.redeem(&first, &[("code_verifier", wrong)]).error(), "invalid_grant");
    }
    assert_eq!(world.redeem(&second, &[]).error(), "invalid_grant");
    assert_eq!(world.redeem(&second, &[("code_verifier", other)]).status(), StatusCode::OK);
    assert_eq!(world.redeem(&first, &[]).status(), StatusCode::OK);
}

/// Row 96: a code that comes twice takes back what it gave.
#[test]
fn a_reused_code_revokes_its_tokens() {
    let world = world();
    let code = world.code(&[]);
    let tokens = world.redeem(&code, &[]).json();
    let renewed = world.refresh(&tokens["refresh_token"]).json();
    assert!(world.is_active(&tokens["access_token"]) && world.is_active(&renewed["access_token"]));
    let replayed = world.redeem(&code, &[]);
    assert_eq!((replayed.status(), replayed.error().as_str()), (StatusCode::BAD_REQUEST, "invalid_grant"));
    assert!(!world.is_active(&tokens["access_token"]) && !world.is_active(&renewed["access_token"]));
    assert_eq!(world.refresh(&renewed["refresh_token"]).error(), "invalid_grant");
}

#[test]
fn a_reused_code_is_detected_after_it_expired() {
    let world = world();
    let code = world.code(&[]);
    let tokens = world.redeem(&code, &[]).json();
    world.pass(1000);
    assert_eq!(world.redeem(&code, &[]).error(), "invalid_grant");
    assert!(!world.is_active(&tokens["access_token"]));
}

#[test]
fn a_code_expires_after_a_minute() {
    let world = world();
    let (first, second) = (world.code(&[]), world.code(&[]));
    world.pass(59);
    assert_eq!(world.redeem(&first, &[]).status(), StatusCode::OK);
    world.pass(1);
    assert_eq!(world.redeem(&second, &[]).error(), "invalid_grant");
}

#[test]
fn a_code_is_bound_to_its_request() {
    let world = world();
    let code = world.code(&[]);
    let service = [("client_id", "service"), ("client_secret", SECRET)];
    assert_eq!(world.redeem(&code, &service).error(), "invalid_grant");
    assert_eq!(world.redeem(&code, &[("client_id", "unknown")]).error(), "invalid_client");
    for address in ["https://app.example/cb/", "https://evil.example/cb"] {
        assert_eq!(world.redeem(&code, &[("redirect_uri", address)]).error(), "invalid_grant");
    }
    for resource in ["http://127.0.0.1:3000/other", "https://elsewhere.example/"] {
        assert_eq!(world.redeem(&code, &[("resource", resource)]).error(), "invalid_target");
    }
    assert_eq!(world.redeem("unknown", &[]).error(), "invalid_grant");
    assert_eq!(world.redeem("", &[]).error(), "invalid_request");
    let tokens = world.redeem(&code, &[("resource", ""), ("scope", "admin")]).json();
    assert_eq!(tokens["scope"], "read write");
    assert!(world.check(&tokens["access_token"]).unwrap().aud == Audience::One(RESOURCE.to_owned()));
}

#[test]
fn tokens_are_for_the_requested_resource() {
    let world = world();
    let other = "http://127.0.0.1:3000/other";
    let code = world.code(&[("resource", other)]);
    let tokens = world.redeem(&code, &[("resource", other)]).json();
    assert_eq!(world.check(&tokens["access_token"]), Err(TokenError::Audience));
    let code = world.code(&[("resource", "")]);
    let tokens = world.redeem(&code, &[("resource", "")]).json();
    assert!(world.check(&tokens["access_token"]).is_ok());
}

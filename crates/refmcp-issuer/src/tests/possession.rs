//! Tokens that are bound to a key.

use http::StatusCode;
use refmcp_auth::dpop;
use refmcp_auth::jose::PrivateKey;
use serde_json::json;

use super::*;

fn prove(key: &PrivateKey, nonce: Option<&str>) -> String {
    let url = Url::parse(&format!("{ORIGIN}/token")).unwrap();
    dpop::prove(key, "POST", &url, None, nonce, NOW).unwrap()
}

fn redeem(world: &World, code: &str, proof: &str) -> Answer {
    world.post_with("/token", &[("dpop", proof)], &redemption(code, &[]))
}

fn refresh(world: &World, token: &Value, proof: &str) -> Answer {
    let token = token.as_str().unwrap();
    let form = [("grant_type", "refresh_token"), ("client_id", "app"), ("refresh_token", token)];
    world.post_with("/token", &[("dpop", proof)], &form)
}

#[test]
fn a_dpop_proof_binds_the_tokens() {
    let world = world();
    let key = PrivateKey::generate().unwrap();
    let answer = redeem(&world, &world.code(&[]), &prove(&key, None));
    assert_eq!(answer.status(), StatusCode::OK, "{}", answer.text());
    let tokens = answer.json();
    assert_eq!(tokens["token_type"], "DPoP");
    let jkt = key.public().thumbprint().unwrap();
    let claims = world.check(&tokens["access_token"]).unwrap();
    assert_eq!(claims.cnf.unwrap().jkt, Some(jkt.clone()));
    let token = tokens["access_token"].as_str().unwrap();
    let told = world.post("/introspect", &[("token", token)]).json();
    assert_eq!((&told["token_type"], &told["cnf"]["jkt"]), (&json!("DPoP"), &json!(jkt)));

    let stranger = PrivateKey::generate().unwrap();
    assert_eq!(refresh(&world, &tokens["refresh_token"], &prove(&stranger, None)).error(), "invalid_grant");
    assert_eq!(world.refresh(&tokens["refresh_token"]).error(), "invalid_grant");
    let renewed = refresh(&world, &tokens["refresh_token"], &prove(&key, None));
    assert_eq!(renewed.json()["token_type"], "DPoP");
}

#[test]
fn a_dpop_proof_is_accepted_once_and_for_this_url() {
    let world = world();
    let key = PrivateKey::generate().unwrap();
    let proof = prove(&key, None);
    assert_eq!(redeem(&world, &world.code(&[]), &proof).status(), StatusCode::OK);
    assert_eq!(redeem(&world, &world.code(&[]), &proof).error(), "invalid_dpop_proof");
    let elsewhere = Url::parse("https://elsewhere.example/token").unwrap();
    let elsewhere = dpop::prove(&key, "POST", &elsewhere, None, None, NOW).unwrap();
    for bad in ["nonsense", "a.b.c", &elsewhere] {
        let answer = redeem(&world, &world.code(&[]), bad);
        assert_eq!(
            (answer.status(), answer.error().as_str()),
            (StatusCode::BAD_REQUEST, "invalid_dpop_proof")
        );
    }
    let (one, other) = (prove(&key, None), prove(&key, None));
    let twice = [("dpop", one.as_str()), ("dpop", other.as_str())];
    let answer = world.post_with("/token", &twice, &redemption(&world.code(&[]), &[]));
    assert_eq!(answer.error(), "invalid_dpop_proof");
}

#[test]
fn a_dpop_nonce_is_demanded_when_configured() {
    let world = World::new(Settings { dpop_nonce: true, ..settings() });
    let key = PrivateKey::generate().unwrap();
    let code = world.code(&[]);
    let answer = redeem(&world, &code, &prove(&key, None));
    assert_eq!((answer.status(), answer.error().as_str()), (StatusCode::BAD_REQUEST, "use_dpop_nonce"));
    let nonce = answer.header("dpop-nonce").to_owned();
    assert!(!nonce.is_empty());
    assert!(answer.header("access-control-expose-headers").contains("DPoP-Nonce"));
    assert_eq!(redeem(&world, &code, &prove(&key, Some("another"))).error(), "use_dpop_nonce");
    assert_eq!(redeem(&world, &code, &prove(&key, Some(&nonce))).status(), StatusCode::OK);
    // The one before is still taken.
    world.pass(120);
    let next = redeem(&world, "x", &prove(&key, None)).header("dpop-nonce").to_owned();
    assert_ne!(next, nonce);
    assert_eq!(redeem(&world, &world.code(&[]), &prove(&key, Some(&nonce))).status(), StatusCode::OK);
}

#[test]
fn a_dpop_nonce_expires_without_requests() {
    let world = World::new(Settings { dpop_nonce: true, ..settings() });
    let key = PrivateKey::generate().unwrap();
    let nonce = redeem(&world, "x", &prove(&key, None)).header("dpop-nonce").to_owned();
    world.pass(3600);
    let url = Url::parse(&format!("{ORIGIN}/token")).unwrap();
    let late = dpop::prove(&key, "POST", &url, None, Some(&nonce), NOW + 3600).unwrap();
    assert_eq!(redeem(&world, &world.code(&[]), &late).error(), "use_dpop_nonce");
}

#[test]
fn failed_proofs_do_not_evict_used_ones() {
    let world = world();
    let key = PrivateKey::generate().unwrap();
    let proof = prove(&key, None);
    assert_eq!(redeem(&world, &world.code(&[]), &proof).status(), StatusCode::OK);
    let stranger = PrivateKey::generate().unwrap();
    for _ in 0..11_000 {
        assert_eq!(redeem(&world, "x", &prove(&stranger, None)).error(), "invalid_grant");
    }
    assert_eq!(redeem(&world, &world.code(&[]), &proof).error(), "invalid_dpop_proof");
}

#[test]
fn a_code_is_bound_by_dpop_jkt() {
    let world = world();
    let (key, stranger) = (PrivateKey::generate().unwrap(), PrivateKey::generate().unwrap());
    let jkt = key.public().thumbprint().unwrap();
    let code = world.code(&[("dpop_jkt", &jkt)]);
    assert_eq!(world.redeem(&code, &[]).error(), "invalid_grant");
    assert_eq!(redeem(&world, &code, &prove(&stranger, None)).error(), "invalid_grant");
    assert_eq!(redeem(&world, &code, &prove(&key, None)).status(), StatusCode::OK);
}

#[test]
fn a_dpop_bound_client_needs_a_proof() {
    let world = world();
    let metadata = json!({ "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none",
        "dpop_bound_access_tokens": true });
    let registered = world.register(&metadata).json();
    assert_eq!(registered["dpop_bound_access_tokens"], true);
    let id = registered["client_id"].as_str().unwrap();
    let code = world.code(&[("client_id", id)]);
    assert_eq!(world.redeem(&code, &[("client_id", id)]).error(), "invalid_dpop_proof");
}

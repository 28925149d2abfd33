//! What the server tells about itself.

use http::StatusCode;
use serde_json::json;

use super::*;

const PLAIN: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

#[test]
fn both_documents_name_the_same_server() {
    let world = world();
    let (plain, openid) = (world.get(PLAIN).json(), world.get(OPENID).json());
    for document in [&plain, &openid] {
        assert_eq!(document["issuer"], ORIGIN);
        assert_eq!(document["authorization_endpoint"], format!("{ORIGIN}/authorize"));
        assert_eq!(document["token_endpoint"], format!("{ORIGIN}/token"));
        assert_eq!(document["registration_endpoint"], format!("{ORIGIN}/register"));
        assert_eq!(document["jwks_uri"], format!("{ORIGIN}/jwks"));
        assert_eq!(document["code_challenge_methods_supported"], json!(["S256"]));
        assert_eq!(document["authorization_response_iss_parameter_supported"], true);
        assert_eq!(document["scopes_supported"], json!(["read", "write", "admin"]));
        assert_eq!(document["response_types_supported"], json!(["code"]));
    }
    assert_eq!(openid["subject_types_supported"], json!(["public"]));
    assert!(plain.get("subject_types_supported").is_none());
}

#[test]
fn it_says_that_it_is_a_test_tool() {
    let world = world();
    let place = world.get(PLAIN).json()["service_documentation"].as_str().unwrap().to_owned();
    let about = world.get(place.strip_prefix(ORIGIN).unwrap());
    assert_eq!(about.status(), StatusCode::OK);
    assert!(about.text().contains("test tool"));
    assert!(world.open(&[]).answer.text().contains("test tool"));
}

#[test]
fn every_endpoint_of_the_metadata_answers() {
    let world = world();
    let document = world.get(PLAIN).json();
    let told = document.as_object().unwrap().iter();
    let told = told.filter(|(name, _)| name.ends_with("_endpoint") || *name == "jwks_uri");
    let mut count = 0;
    for (name, url) in told {
        let path = url.as_str().unwrap().strip_prefix(ORIGIN).unwrap();
        assert!(world.issuer.paths().iter().any(|known| known == path), "{name}");
        assert_ne!(world.get(path).status(), StatusCode::NOT_FOUND, "{name}");
        count += 1;
    }
    assert_eq!(count, 6);
}

#[test]
fn jwt_bearer_is_offered_with_trusted_issuers() {
    let grant = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    let offers = |world: &World| world.get(PLAIN).text().contains(grant);
    assert!(!offers(&world()));
    let mut settings = settings();
    let keys = refmcp_auth::jose::Jwks::default();
    settings.identity_providers.push(crate::TrustedIssuer { issuer: "https://idp".into(), keys });
    assert!(offers(&World::new(settings)));
}

#[test]
fn keys_are_published_without_their_private_parts() {
    let world = world();
    let keys = world.get("/jwks").json();
    let key = &keys["keys"][0];
    assert_eq!((&key["kty"], &key["crv"], &key["use"]), (&json!("EC"), &json!("P-256"), &json!("sig")));
    assert!(key["kid"].is_string() && key.get("d").is_none());
}

#[test]
fn tokens_of_a_former_key_stay_valid() {
    let world = world();
    let token = world.log_in()["access_token"].clone();
    world.issuer.rotate_keys().unwrap();
    assert!(world.check(&token).is_ok() && world.is_active(&token));
    let newer = world.log_in()["access_token"].clone();
    assert!(world.check(&newer).is_ok());
    assert_eq!(world.get("/jwks").json()["keys"].as_array().unwrap().len(), 2);
}

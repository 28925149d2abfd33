//! What token endpoints are asked and what they may answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::dpop::Proof;
use crate::jose::Jws;

const TOKEN: &str = "https://as.example/token";

#[test]
fn a_client_that_registered_proves_itself_as_it_was_told() {
    for (told, expected) in [
        ("client_secret_basic", AuthMethod::Basic),
        ("client_secret_post", AuthMethod::Post),
        ("none", AuthMethod::None),
    ] {
        let mut world = world();
        world.json(
            SERVER_METADATA,
            &with(server(), &json!({ "token_endpoint_auth_methods_supported": [told] })),
        );
        let registered =
            json!({ "client_id": "d", "client_secret": "hush:1", "token_endpoint_auth_method": told });
        world.json("https://as.example/register", &registered);
        let grant = world.run(wanted()).unwrap();
        assert_eq!(grant.method, expected);
        let asked = world.last_to(TOKEN);
        let basic = format!("Basic {}", STANDARD.encode("d:hush%3A1"));
        let seen = (asked.header("authorization"), asked.field("client_id"), asked.field("client_secret"));
        match expected {
            AuthMethod::Basic => assert_eq!(seen, (Some(basic.as_str()), Some("d".into()), None)),
            AuthMethod::Post => assert_eq!(seen, (None, Some("d".into()), Some("hush:1".into()))),
            _ => assert_eq!(seen, (None, Some("d".into()), None)),
        }
        assert_eq!(world.last_to("https://as.example/register").json()["token_endpoint_auth_method"], told);
        assert_eq!(asked.header("content-type"), Some("application/x-www-form-urlencoded"));
    }
}

#[test]
fn what_is_said_of_a_method_that_is_not_ours_does_not_count() {
    let mut world = world();
    let registered =
        json!({ "client_id": "d", "client_secret": "hush", "token_endpoint_auth_method": "tls_client_auth" });
    world.json("https://as.example/register", &registered);
    // The metadata lists `none` alone, so the secret stays at home.
    assert_eq!(world.run(wanted()).unwrap().method, AuthMethod::None);
    assert!(
        !world.last_to(TOKEN).body.contains("hush&")
            && world.last_to(TOKEN).header("authorization").is_none()
    );
}

#[test]
fn only_tokens_are_taken_for_tokens() {
    for (status, body) in [
        (200, "<html>hush</html>"),
        (200, ""),
        (200, "[]"),
        (200, r#"{"access_token":"hush"}"#),
        (200, r#"{"access_token":"hush","token_type":"mac"}"#),
        (200, r#"{"access_token":"hush","token_type":"DPoP"}"#),
        (200, r#"{"access_token":"hush","token_type":"N_A"}"#),
        (200, r#"{"access_token":"hush\r\nX: y","token_type":"Bearer"}"#),
        (200, r#"{"error":"invalid_grant"}"#),
        (201, r#"{"access_token":"hush","token_type":"Bearer"}"#),
        (302, ""),
        (500, r#"{"error":"server_error"}"#),
        (429, r#"{"error":"slow_down"}"#),
        (400, "hush"),
    ] {
        let mut world = world();
        world.raw(TOKEN, status, &[("location", "https://evil.example")], body);
        let error = world.run(wanted()).unwrap_err();
        assert!(matches!(error, FlowError::BadTokenResponse { .. }), "{status} {body}: {error:?}");
        assert_eq!((error.blame(), world.to(TOKEN).count()), (Blame::Issuer, 1));
    }
    let mut world = world();
    world.json(TOKEN, &json!({ "access_token": "hush", "token_type": "bEARER", "scope": "a" }));
    let grant = world.run(challenged("Bearer scope=\"a b\"")).unwrap();
    assert_eq!((grant.scope.to_string(), grant.asked.to_string()), ("a".into(), "a b".into()));
    assert_eq!((grant.expires_at, grant.refresh_token), (None, None));
    assert_eq!(grant.token_type, TokenType::Bearer);
}

#[test]
fn a_refusal_does_not_repeat_our_secrets() {
    let mut world = world();
    let body = json!({ "error": "invalid_grant", "error_description": "the code hush-code is not good" });
    world.raw(TOKEN, 400, &[], &body.to_string());
    let error = world.run(wanted()).unwrap_err();
    assert!(matches!(error, FlowError::Refused { .. }));
    assert!(error.to_string().contains("the code … is not good"), "{error}");
}

fn proof(seen: &world::Seen) -> (Proof, String) {
    let text = seen.header("dpop").unwrap();
    let jws = Jws::parse(text).unwrap();
    let key = jws.header().jwk.clone().unwrap();
    assert!(jws.is_signed_with(&key) && jws.header().is_one_of(&["dpop+jwt"]));
    (jws.claims_unchecked().unwrap(), key.thumbprint().unwrap())
}

fn bound() -> Value {
    with(tokens(), &json!({ "token_type": "DPoP" }))
}

#[test]
fn a_token_is_bound_to_a_key_where_the_server_wants_it() {
    let mut world = world();
    world.json(TOKEN, &bound());
    world.json(SERVER_METADATA, &with(server(), &json!({ "dpop_signing_alg_values_supported": ["ES256"] })));
    let challenge = format!("DPoP algs=\"ES256\", resource_metadata=\"{PATH_METADATA}\"");
    let grant = world.run(challenged(&challenge)).unwrap();
    let (claims, print) = proof(world.last_to(TOKEN));
    assert_eq!((claims.htm.as_str(), claims.htu.as_str(), claims.iat), ("POST", TOKEN, NOW));
    assert_eq!((claims.ath, claims.nonce), (None, None));
    assert_eq!(world.parameter("dpop_jkt").unwrap(), print);
    assert_eq!(grant.token_type, TokenType::Dpop);
    assert_eq!(grant.key.unwrap().open().unwrap().public().thumbprint().unwrap(), print);
    world.json(PATH_METADATA, &with(resource(), &json!({ "dpop_bound_access_tokens_required": true })));
    assert_eq!(world.run(wanted()).unwrap().token_type, TokenType::Dpop);
}

#[test]
fn a_token_that_should_be_bound_and_is_not_is_refused() {
    let mut world = world();
    let wanted = Wanted { proofs: Proofs::Always, ..wanted() };
    assert!(matches!(world.run(wanted.clone()), Err(FlowError::BadTokenResponse { .. })));
    world.json(SERVER_METADATA, &with(server(), &json!({ "dpop_signing_alg_values_supported": ["RS256"] })));
    assert!(matches!(world.run(wanted), Err(FlowError::CannotProve { .. })));
    let never = Wanted { proofs: Proofs::Never, ..challenged("DPoP algs=\"ES256\"") };
    assert_eq!(world.run(never).unwrap().token_type, TokenType::Bearer);
    assert!(world.last_to(TOKEN).header("dpop").is_none());
}

#[test]
fn a_nonce_is_used_in_one_fresh_proof() {
    let mut world = world();
    let wants_nonce = r#"{"error":"use_dpop_nonce"}"#;
    world.raw(TOKEN, 400, &[("dpop-nonce", "n1")], wants_nonce);
    world.also(TOKEN, 200, &[], &bound().to_string());
    let wanted = Wanted { proofs: Proofs::Always, ..wanted() };
    world.run(wanted.clone()).unwrap();
    let (first, second) = (proof(&world.to(TOKEN).next().unwrap().clone()), proof(world.last_to(TOKEN)));
    assert_eq!((first.0.nonce, second.0.nonce.as_deref()), (None, Some("n1")));
    assert!(first.0.jti != second.0.jti && first.1 == second.1);
    for headers in [&[("dpop-nonce", "n1")][..], &[], &[("dpop-nonce", "")]] {
        world.raw(TOKEN, 400, headers, wants_nonce);
        world.seen.clear();
        assert!(matches!(world.run(wanted.clone()), Err(FlowError::Refused { .. })));
        assert!(world.to(TOKEN).count() <= 2);
    }
}

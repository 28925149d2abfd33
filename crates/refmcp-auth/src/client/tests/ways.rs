//! Tokens without a person in the browser.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::jose::{Algorithm, Jwks, Jws, PrivateKey, encode};

const TOKEN: &str = "https://as.example/token";

fn by(way: Way, client: Option<PreRegistered>) -> Wanted {
    Wanted::new(url(SERVER), way, Identity { registered: client, ..Identity::default() })
}

fn with_secret() -> Option<PreRegistered> {
    Some(PreRegistered::new("before", Some(Secret::new("hush-secret"))))
}

/// An authorization server for machines: it has no page for people and checks no PKCE.
fn machines(methods: &Value) -> World {
    let mut world = world();
    let changes = json!({
        "authorization_endpoint": null, "registration_endpoint": null, "code_challenge_methods_supported": null,
        "token_endpoint_auth_methods_supported": methods,
    });
    world.json(SERVER_METADATA, &with(server(), &changes));
    world
}

#[test]
fn a_client_gets_a_token_with_its_secret() {
    for (method, basic) in [("client_secret_basic", true), ("client_secret_post", false)] {
        let mut world = machines(&json!([method]));
        let mut wanted = by(Way::ClientCredentials, with_secret());
        wanted.refusal = refused(401, "Bearer scope=\"a\"");
        let grant = world.run(wanted).unwrap();
        let asked = world.last_to(TOKEN);
        assert_eq!(asked.field("grant_type").unwrap(), "client_credentials");
        assert_eq!(
            (asked.field("scope").unwrap(), asked.field("resource").unwrap()),
            ("a".into(), SERVER.into())
        );
        assert_eq!(asked.header("authorization").is_some(), basic);
        assert_eq!(asked.field("client_secret").is_some(), !basic);
        assert_eq!(grant.client_id.as_deref(), Some("before"));
        assert!(world.browsed.is_empty());
    }
}

#[test]
fn a_client_gets_a_token_with_its_key() {
    let key = Arc::new(PrivateKey::generate().unwrap());
    let client = PreRegistered { kid: Some("k".into()), ..PreRegistered::with_key("before", key.clone()) };
    let mut world = machines(&json!(["private_key_jwt"]));
    world.run(by(Way::ClientCredentials, Some(client.clone()))).unwrap();
    let asked = world.last_to(TOKEN);
    assert_eq!(
        asked.field("client_assertion_type").unwrap(),
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
    let assertion = asked.field("client_assertion").unwrap();
    let jws = Jws::parse(&assertion).unwrap();
    let claims: Value = jws.verify(&Jwks { keys: vec![key.public()] }, &[Algorithm::Es256]).unwrap();
    assert_eq!(
        (&claims["iss"], &claims["sub"], &claims["aud"]),
        (&json!("before"), &json!("before"), &json!(ISSUER))
    );
    assert!(claims["exp"].as_u64().unwrap() > NOW && claims["jti"].is_string());
    assert_eq!(jws.header().kid.as_deref(), Some("k"));
    let changes = json!({ "token_endpoint_auth_signing_alg_values_supported": ["RS256"] });
    world.json(
        SERVER_METADATA,
        &with(
            server(),
            &with(json!({ "token_endpoint_auth_methods_supported": ["private_key_jwt"] }), &changes),
        ),
    );
    let error = world.run(by(Way::ClientCredentials, Some(client))).unwrap_err();
    assert!(matches!(error, FlowError::CannotProve { .. }));
}

#[test]
fn clients_that_speak_for_themselves_do_not_register_themselves() {
    let mut world = world();
    for way in [Way::ClientCredentials, Way::Enterprise(Box::new(enterprise()))] {
        let error = world.run(Wanted { way, ..wanted() }).unwrap_err();
        assert!(matches!(error, FlowError::NoIdentity { .. }));
    }
    assert!(!world.asked().contains(&"https://as.example/register"));
}

/// Something signed for whomever this says, by a key that is none of our business.
fn signed_for(audience: &Value) -> String {
    let claims = json!({ "iss": "https://platform.example", "sub": "workload", "aud": audience });
    format!("{}.{}.hush-signature", encode(r#"{"alg":"HS256"}"#), encode(claims.to_string()))
}

#[test]
fn a_workload_asks_once_and_for_nothing_else() {
    let assertion = signed_for(&json!(ISSUER));
    let way = || Way::JwtBearer { assertion: Secret::new(assertion.as_str()) };
    let mut world = machines(&json!(["none"]));
    let grant = world.run(by(way(), Some(PreRegistered::new("workload", None)))).unwrap();
    let asked = world.last_to(TOKEN);
    assert_eq!(asked.field("grant_type").unwrap(), "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(
        (asked.field("assertion").unwrap(), asked.field("client_id").unwrap()),
        (assertion.clone(), "workload".into())
    );
    assert_eq!((grant.client_id.as_deref(), asked.field("scope")), (Some("workload"), None));
    assert_eq!(world.run(by(way(), None)).unwrap().client_id, None);
    assert_eq!(world.last_to(TOKEN).field("client_id"), None);
    for error in ["invalid_grant", "invalid_scope", "unauthorized_client", "use_dpop_nonce"] {
        let mut world = machines(&json!(["none"]));
        world.raw(TOKEN, 400, &[("dpop-nonce", "n")], &json!({ "error": error }).to_string());
        let failed = world.run(by(way(), None)).unwrap_err();
        assert!(
            matches!(&failed, FlowError::Refused { refusal, .. } if refusal.error == error),
            "{failed:?}"
        );
        assert_eq!(world.to(TOKEN).count(), 1);
    }
}

#[test]
fn what_a_platform_signed_goes_only_to_whom_it_is_for() {
    let run = |assertion: &str, client: Option<PreRegistered>| {
        let mut world = machines(&json!(["none"]));
        let came = world.run(by(Way::JwtBearer { assertion: Secret::new(assertion) }, client));
        assert_eq!(world.to(TOKEN).count(), usize::from(came.is_ok()));
        assert!(came.is_ok() || world.seen.iter().all(|seen| !seen.body.contains("hush")));
        came
    };
    for audience in [json!(ISSUER), json!(TOKEN), json!(["https://other.example", ISSUER])] {
        run(&signed_for(&audience), None).unwrap();
    }
    for (audience, shown) in [
        (json!("https://honest.example"), "it is for https://honest.example"),
        (json!("https://as.example/"), "it is for https://as.example/"),
        (json!("https://as.example/token/"), "it is for https://as.example/token/"),
        (json!("HTTPS://as.example"), "it is for HTTPS://as.example"),
        (json!([]), "it is for nobody"),
        (Value::Null, "it does not say whom it is for"),
    ] {
        let error = run(&signed_for(&audience), Some(PreRegistered::new("workload", None))).unwrap_err();
        assert!(matches!(error, FlowError::OtherAudience { .. }), "{audience}: {error:?}");
        assert!(error.to_string().ends_with(shown) && error.blame() == Blame::Settings, "{error}");
    }
    // What says nothing goes only to whom we are told that it is for.
    let pinned =
        |issuer: &str| PreRegistered { issuer: Some(issuer.into()), ..PreRegistered::new("workload", None) };
    assert!(matches!(run("hush-opaque", None), Err(FlowError::OtherAudience { .. })));
    run("hush-opaque", Some(pinned(ISSUER))).unwrap();
    let elsewhere = run("hush-opaque", Some(pinned("https://honest.example")));
    assert!(matches!(elsewhere, Err(FlowError::OtherClient { .. })));
}

const IDP: &str = "https://idp.example";

fn enterprise() -> Enterprise {
    Enterprise {
        issuer: IDP.to_owned(),
        token_endpoint: Some(url("https://idp.example/token")),
        client_id: "at-idp".to_owned(),
        client_secret: None,
        id_token: Secret::new("hush-id"),
    }
}

fn vouching() -> Value {
    json!({
        "access_token": "hush-jag", "token_type": "N_A", "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
    })
}

#[test]
fn an_enterprise_vouches_and_nobody_is_sent_anywhere() {
    let mut world = machines(&json!(["client_secret_basic"]));
    world.json("https://idp.example/token", &vouching());
    let wanted = by(Way::Enterprise(Box::new(enterprise())), with_secret());
    let grant = world.run(wanted).unwrap();
    let exchange = world.last_to("https://idp.example/token");
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("audience", ISSUER),
        ("resource", SERVER),
        ("subject_token", "hush-id"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("client_id", "at-idp"),
    ] {
        assert_eq!(exchange.field(name).as_deref(), Some(value), "{name}");
    }
    assert!(!exchange.body.contains("hush-secret") && exchange.header("authorization").is_none());
    let asked = world.last_to(TOKEN);
    assert_eq!(asked.field("grant_type").unwrap(), "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(asked.field("assertion").unwrap(), "hush-jag");
    assert!(asked.header("authorization").unwrap().starts_with("Basic ") && !asked.body.contains("hush-id"));
    assert_eq!((grant.issuer.as_str(), world.browsed.len()), (ISSUER, 0));
}

#[test]
fn an_identity_provider_is_looked_up_and_checked() {
    let mut world = machines(&json!(["client_secret_basic"]));
    world.json("https://idp.example/token", &vouching());
    let found = Enterprise { token_endpoint: None, ..enterprise() };
    let wanted = by(Way::Enterprise(Box::new(found.clone())), with_secret());
    assert!(matches!(world.run(wanted.clone()), Err(FlowError::NoServerMetadata { .. })));
    let place = "https://idp.example/.well-known/openid-configuration";
    world.json(place, &json!({ "issuer": IDP, "token_endpoint": "https://idp.example/token" }));
    world.run(wanted.clone()).unwrap();
    world.json(
        place,
        &json!({ "issuer": "https://evil.example", "token_endpoint": "https://evil.example/token" }),
    );
    assert!(matches!(world.run(wanted), Err(FlowError::OtherIssuer { .. })));
    for insecure in [
        Enterprise { token_endpoint: Some(url("http://idp.example/token")), ..found.clone() },
        Enterprise { issuer: "http://idp.example".into(), ..found.clone() },
    ] {
        let wanted = by(Way::Enterprise(Box::new(insecure)), with_secret());
        assert!(matches!(world.run(wanted), Err(FlowError::Insecure(_))));
    }
}

#[test]
fn what_does_not_vouch_is_not_handed_on() {
    for changes in [
        json!({ "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" }),
        json!({ "issued_token_type": null }),
        json!({ "token_type": "Bearer" }),
    ] {
        let mut world = machines(&json!(["client_secret_basic"]));
        world.json("https://idp.example/token", &with(vouching(), &changes));
        let error = world.run(by(Way::Enterprise(Box::new(enterprise())), with_secret())).unwrap_err();
        assert!(matches!(error, FlowError::BadTokenResponse { .. }), "{error:?}");
        assert_eq!(world.to(TOKEN).count(), 0);
    }
    let mut world = machines(&json!(["client_secret_basic"]));
    world.raw("https://idp.example/token", 400, &[], r#"{"error":"invalid_grant"}"#);
    let error = world.run(by(Way::Enterprise(Box::new(enterprise())), with_secret())).unwrap_err();
    assert!(matches!(&error, FlowError::Refused { issuer, .. } if issuer == IDP), "{error:?}");
}

//! Tokens without a person in the browser.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::jose::{Algorithm, Jwks, Jws, PrivateKey, encode};

const TOKEN: &str = "https://as.example/token";

fn by(grant_kind: GrantKind, client: Option<PreRegistered>) -> FlowRequest {
    FlowRequest::new(
        url(SERVER),
        grant_kind,
        ClientIdentity { registered: client, ..ClientIdentity::default() },
    )
}

fn with_secret() -> Option<PreRegistered> {
    Some(PreRegistered::new("before", Some(Secret::new("hush-secret"))))
}

/// An authorization server for machines: it has no page for people and checks no PKCE.
fn machines(methods: &Value) -> FakeServers {
    let mut servers = servers();
    let changes = json!({
        "authorization_endpoint": null, "registration_endpoint": null, "code_challenge_methods_supported": null,
        "token_endpoint_auth_methods_supported": methods,
    });
    servers.json(SERVER_METADATA, &with(server(), &changes));
    servers
}

#[test]
fn client_credentials_with_a_secret() {
    for (method, basic) in [("client_secret_basic", true), ("client_secret_post", false)] {
        let mut servers = machines(&json!([method]));
        let mut flow_request = by(GrantKind::ClientCredentials, with_secret());
        flow_request.challenge = refused(401, "Bearer scope=\"a\"");
        let grant = servers.run(flow_request).unwrap();
        let asked = servers.last_to(TOKEN);
        assert_eq!(asked.field("grant_type").unwrap(), "client_credentials");
        assert_eq!(
            (asked.field("scope").unwrap(), asked.field("resource").unwrap()),
            ("a".into(), SERVER.into())
        );
        assert_eq!(asked.header("authorization").is_some(), basic);
        assert_eq!(asked.field("client_secret").is_some(), !basic);
        assert_eq!(grant.client_id.as_deref(), Some("before"));
        assert!(servers.browsed.is_empty());
    }
}

#[test]
fn client_credentials_with_a_key() {
    let key = Arc::new(PrivateKey::generate().unwrap());
    let client = PreRegistered { kid: Some("k".into()), ..PreRegistered::with_key("before", key.clone()) };
    let mut servers = machines(&json!(["private_key_jwt"]));
    servers.run(by(GrantKind::ClientCredentials, Some(client.clone()))).unwrap();
    let asked = servers.last_to(TOKEN);
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
    servers.json(
        SERVER_METADATA,
        &with(
            server(),
            &with(json!({ "token_endpoint_auth_methods_supported": ["private_key_jwt"] }), &changes),
        ),
    );
    let error = servers.run(by(GrantKind::ClientCredentials, Some(client))).unwrap_err();
    assert_eq!(error.kind(), FlowErrorKind::ClientAuthentication);
}

#[test]
fn client_credentials_never_register() {
    let mut servers = servers();
    for grant_kind in [GrantKind::ClientCredentials, GrantKind::EnterpriseManaged(Box::new(enterprise()))] {
        let error = servers.run(FlowRequest { grant_kind, ..flow_request() }).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::NoClientIdentity);
    }
    assert!(!servers.requested().contains(&"https://as.example/register"));
}

/// Something signed for whomever this says, by a key that is none of our business.
fn signed_for(audience: &Value) -> String {
    let claims = json!({ "iss": "https://platform.example", "sub": "workload", "aud": audience });
    format!("{}.{}.hush-signature", encode(r#"{"alg":"HS256"}"#), encode(claims.to_string()))
}

#[test]
fn a_jwt_bearer_grant_takes_one_token_request() {
    let assertion = signed_for(&json!(ISSUER));
    let grant_kind = || GrantKind::JwtBearer { assertion: Secret::new(assertion.as_str()) };
    let mut servers = machines(&json!(["none"]));
    let grant = servers.run(by(grant_kind(), Some(PreRegistered::new("workload", None)))).unwrap();
    let asked = servers.last_to(TOKEN);
    assert_eq!(asked.field("grant_type").unwrap(), "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(
        (asked.field("assertion").unwrap(), asked.field("client_id").unwrap()),
        (assertion.clone(), "workload".into())
    );
    assert_eq!((grant.client_id.as_deref(), asked.field("scope")), (Some("workload"), None));
    assert_eq!(servers.run(by(grant_kind(), None)).unwrap().client_id, None);
    assert_eq!(servers.last_to(TOKEN).field("client_id"), None);
    for error in ["invalid_grant", "invalid_scope", "unauthorized_client", "use_dpop_nonce"] {
        let mut servers = machines(&json!(["none"]));
        servers.raw(TOKEN, 400, &[("dpop-nonce", "n")], &json!({ "error": error }).to_string());
        let failed = servers.run(by(grant_kind(), None)).unwrap_err();
        assert_eq!(failed.kind(), FlowErrorKind::TokenDenied);
        assert!(failed.to_string().ends_with(error), "{failed}");
        assert_eq!(servers.to(TOKEN).count(), 1);
    }
}

#[test]
fn an_assertion_is_sent_only_to_its_audience() {
    let run = |assertion: &str, client: Option<PreRegistered>| {
        let mut servers = machines(&json!(["none"]));
        let came = servers.run(by(GrantKind::JwtBearer { assertion: Secret::new(assertion) }, client));
        assert_eq!(servers.to(TOKEN).count(), usize::from(came.is_ok()));
        assert!(came.is_ok() || servers.seen.iter().all(|seen| !seen.body.contains("hush")));
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
        (json!([]), "its audience is empty"),
        (Value::Null, "it names no audience"),
    ] {
        let error = run(&signed_for(&audience), Some(PreRegistered::new("workload", None))).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::AssertionAudience, "{audience}: {error:?}");
        assert!(error.to_string().ends_with(shown) && error.blame() == Blame::Configuration, "{error}");
    }
    // What says nothing goes only to whom we are told that it is for.
    let pinned =
        |issuer: &str| PreRegistered { issuer: Some(issuer.into()), ..PreRegistered::new("workload", None) };
    assert_eq!(kind(run("hush-opaque", None)), FlowErrorKind::AssertionAudience);
    run("hush-opaque", Some(pinned(ISSUER))).unwrap();
    let elsewhere = run("hush-opaque", Some(pinned("https://honest.example")));
    assert_eq!(kind(elsewhere), FlowErrorKind::ClientOfOtherIssuer);
}

const IDP: &str = "https://idp.example";

fn enterprise() -> EnterpriseIdp {
    EnterpriseIdp {
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
fn enterprise_managed_authorization_opens_no_browser() {
    let mut servers = machines(&json!(["client_secret_basic"]));
    servers.json("https://idp.example/token", &vouching());
    let flow_request = by(GrantKind::EnterpriseManaged(Box::new(enterprise())), with_secret());
    let grant = servers.run(flow_request).unwrap();
    let exchange = servers.last_to("https://idp.example/token");
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
    let asked = servers.last_to(TOKEN);
    assert_eq!(asked.field("grant_type").unwrap(), "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!(asked.field("assertion").unwrap(), "hush-jag");
    assert!(asked.header("authorization").unwrap().starts_with("Basic ") && !asked.body.contains("hush-id"));
    assert_eq!((grant.issuer.as_str(), servers.browsed.len()), (ISSUER, 0));
}

#[test]
fn identity_provider_metadata_is_checked() {
    let mut servers = machines(&json!(["client_secret_basic"]));
    servers.json("https://idp.example/token", &vouching());
    let found = EnterpriseIdp { token_endpoint: None, ..enterprise() };
    let flow_request = by(GrantKind::EnterpriseManaged(Box::new(found.clone())), with_secret());
    assert_eq!(kind(servers.run(flow_request.clone())), FlowErrorKind::NoServerMetadata);
    let place = "https://idp.example/.well-known/openid-configuration";
    servers.json(place, &json!({ "issuer": IDP, "token_endpoint": "https://idp.example/token" }));
    servers.run(flow_request.clone()).unwrap();
    servers.json(
        place,
        &json!({ "issuer": "https://evil.example", "token_endpoint": "https://evil.example/token" }),
    );
    assert_eq!(kind(servers.run(flow_request)), FlowErrorKind::IssuerMismatch);
    for insecure in [
        EnterpriseIdp { token_endpoint: Some(url("http://idp.example/token")), ..found.clone() },
        EnterpriseIdp { issuer: "http://idp.example".into(), ..found.clone() },
    ] {
        let flow_request = by(GrantKind::EnterpriseManaged(Box::new(insecure)), with_secret());
        assert_eq!(kind(servers.run(flow_request)), FlowErrorKind::Insecure);
    }
}

#[test]
fn only_an_id_jag_is_sent_on() {
    for changes in [
        json!({ "issued_token_type": "urn:ietf:params:oauth:token-type:access_token" }),
        json!({ "issued_token_type": null }),
        json!({ "token_type": "Bearer" }),
    ] {
        let mut servers = machines(&json!(["client_secret_basic"]));
        servers.json("https://idp.example/token", &with(vouching(), &changes));
        let error =
            servers.run(by(GrantKind::EnterpriseManaged(Box::new(enterprise())), with_secret())).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::InvalidTokenResponse, "{error:?}");
        assert_eq!(servers.to(TOKEN).count(), 0);
    }
    let mut servers = machines(&json!(["client_secret_basic"]));
    servers.raw("https://idp.example/token", 400, &[], r#"{"error":"invalid_grant"}"#);
    let error =
        servers.run(by(GrantKind::EnterpriseManaged(Box::new(enterprise())), with_secret())).unwrap_err();
    assert_eq!(error.kind(), FlowErrorKind::TokenDenied);
    assert!(error.to_string().starts_with(&format!("{IDP} gave no token")), "{error}");
}

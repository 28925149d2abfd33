//! What token endpoints are asked and what they may answer.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::*;
use crate::dpop::ProofClaims;
use crate::jose::Jws;

const TOKEN: &str = "https://as.example/token";

#[test]
fn a_registered_client_uses_its_authentication_method() {
    for (told, expected) in [
        ("client_secret_basic", AuthMethod::Basic),
        ("client_secret_post", AuthMethod::Post),
        ("none", AuthMethod::None),
    ] {
        let mut servers = servers();
        servers.json(
            SERVER_METADATA,
            &with(server(), &json!({ "token_endpoint_auth_methods_supported": [told] })),
        );
        let registered =
            json!({ "client_id": "d", "client_secret": "hush:1", "token_endpoint_auth_method": told });
        servers.json("https://as.example/register", &registered);
        let grant = servers.run(flow_request()).unwrap();
        assert_eq!(grant.method, expected);
        let asked = servers.last_to(TOKEN);
        let basic = format!("Basic {}", STANDARD.encode("d:hush%3A1"));
        let seen = (asked.header("authorization"), asked.field("client_id"), asked.field("client_secret"));
        match expected {
            AuthMethod::Basic => assert_eq!(seen, (Some(basic.as_str()), Some("d".into()), None)),
            AuthMethod::Post => assert_eq!(seen, (None, Some("d".into()), Some("hush:1".into()))),
            _ => assert_eq!(seen, (None, Some("d".into()), None)),
        }
        assert_eq!(servers.last_to("https://as.example/register").json()["token_endpoint_auth_method"], told);
        assert_eq!(asked.header("content-type"), Some("application/x-www-form-urlencoded"));
    }
}

#[test]
fn an_unsupported_authentication_method_is_ignored() {
    let mut servers = servers();
    let registered =
        json!({ "client_id": "d", "client_secret": "hush", "token_endpoint_auth_method": "tls_client_auth" });
    servers.json("https://as.example/register", &registered);
    // The metadata lists `none` alone, so the secret stays at home.
    assert_eq!(servers.run(flow_request()).unwrap().method, AuthMethod::None);
    assert!(
        !servers.last_to(TOKEN).body.contains("hush&")
            && servers.last_to(TOKEN).header("authorization").is_none()
    );
}

#[test]
fn invalid_token_responses_are_refused() {
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
        let mut servers = servers();
        servers.raw(TOKEN, status, &[("location", "https://evil.example")], body);
        let error = servers.run(flow_request()).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::InvalidTokenResponse, "{status} {body}: {error:?}");
        assert_eq!((error.blame(), servers.to(TOKEN).count()), (Blame::AuthorizationServer, 1));
    }
    let mut servers = servers();
    servers.json(TOKEN, &json!({ "access_token": "hush", "token_type": "bEARER", "scope": "a" }));
    let grant = servers.run(challenged("Bearer scope=\"a b\"")).unwrap();
    assert_eq!((grant.scope.to_string(), grant.requested_scope.to_string()), ("a".into(), "a b".into()));
    assert_eq!((grant.expires_at, grant.refresh_token), (None, None));
    assert_eq!(grant.token_type, TokenType::Bearer);
}

#[test]
fn errors_do_not_quote_request_secrets() {
    let mut servers = servers();
    let body = json!({ "error": "invalid_grant", "error_description": "the code hush-code is not good" });
    servers.raw(TOKEN, 400, &[], &body.to_string());
    let error = servers.run(flow_request()).unwrap_err();
    assert_eq!(error.kind(), FlowErrorKind::TokenDenied);
    assert!(error.to_string().contains("the code … is not good"), "{error}");
}

fn proof(seen: &fake_servers::Seen) -> (ProofClaims, String) {
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
fn dpop_is_used_when_required() {
    let mut servers = servers();
    servers.json(TOKEN, &bound());
    servers
        .json(SERVER_METADATA, &with(server(), &json!({ "dpop_signing_alg_values_supported": ["ES256"] })));
    let challenge = format!("DPoP algs=\"ES256\", resource_metadata=\"{PATH_METADATA}\"");
    let grant = servers.run(challenged(&challenge)).unwrap();
    let (claims, print) = proof(servers.last_to(TOKEN));
    assert_eq!((claims.htm.as_str(), claims.htu.as_str(), claims.iat), ("POST", TOKEN, NOW));
    assert_eq!((claims.ath, claims.nonce), (None, None));
    assert_eq!(servers.parameter("dpop_jkt").unwrap(), print);
    assert_eq!(grant.token_type, TokenType::Dpop);
    assert_eq!(grant.key.unwrap().open().unwrap().public().thumbprint().unwrap(), print);
    servers.json(PATH_METADATA, &with(resource(), &json!({ "dpop_bound_access_tokens_required": true })));
    assert_eq!(servers.run(flow_request()).unwrap().token_type, TokenType::Dpop);
}

#[test]
fn an_unbound_token_is_refused_when_dpop_is_required() {
    let mut servers = servers();
    let flow_request = FlowRequest { dpop: DpopPolicy::Always, ..flow_request() };
    assert_eq!(kind(servers.run(flow_request.clone())), FlowErrorKind::InvalidTokenResponse);
    servers
        .json(SERVER_METADATA, &with(server(), &json!({ "dpop_signing_alg_values_supported": ["RS256"] })));
    assert_eq!(kind(servers.run(flow_request)), FlowErrorKind::ClientAuthentication);
    let never = FlowRequest { dpop: DpopPolicy::Never, ..challenged("DPoP algs=\"ES256\"") };
    assert_eq!(servers.run(never).unwrap().token_type, TokenType::Bearer);
    assert!(servers.last_to(TOKEN).header("dpop").is_none());
}

#[test]
fn a_dpop_nonce_is_used_once() {
    let mut servers = servers();
    let wants_nonce = r#"{"error":"use_dpop_nonce"}"#;
    servers.raw(TOKEN, 400, &[("dpop-nonce", "n1")], wants_nonce);
    servers.also(TOKEN, 200, &[], &bound().to_string());
    let flow_request = FlowRequest { dpop: DpopPolicy::Always, ..flow_request() };
    servers.run(flow_request.clone()).unwrap();
    let (first, second) = (proof(&servers.to(TOKEN).next().unwrap().clone()), proof(servers.last_to(TOKEN)));
    assert_eq!((first.0.nonce, second.0.nonce.as_deref()), (None, Some("n1")));
    assert!(first.0.jti != second.0.jti && first.1 == second.1);
    for headers in [&[("dpop-nonce", "n1")][..], &[], &[("dpop-nonce", "")]] {
        servers.raw(TOKEN, 400, headers, wants_nonce);
        servers.seen.clear();
        assert_eq!(kind(servers.run(flow_request.clone())), FlowErrorKind::TokenDenied);
        assert!(servers.to(TOKEN).count() <= 2);
    }
}

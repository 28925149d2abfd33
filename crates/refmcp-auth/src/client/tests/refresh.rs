//! Renewing a login, and when it must not be tried.

use serde_json::json;

use super::*;

const TOKEN: &str = "https://as.example/token";

fn logged_in() -> (FakeServers, TokenSet) {
    let mut servers = servers();
    let grant = servers.run(challenged("Bearer scope=\"a\"")).unwrap();
    servers.seen.clear();
    servers.browsed.clear();
    (servers, grant)
}

fn knowing(grant: &TokenSet) -> StoredState {
    StoredState { tokens: Some(grant.clone()), ..StoredState::default() }
}

#[test]
fn a_token_set_round_trips() {
    let (_, grant) = logged_in();
    let text = serde_json::to_string(&grant).unwrap();
    assert_eq!(serde_json::from_str::<TokenSet>(&text).unwrap(), grant);
    assert!(
        grant.ends_within(0, NOW + 3600) && grant.ends_within(60, NOW + 3540) && !grant.ends_within(60, NOW)
    );
}

#[test]
fn a_refresh_contacts_only_the_issuer() {
    let (mut servers, grant) = logged_in();
    servers.json(
        TOKEN,
        &json!({ "access_token": "hush-2", "token_type": "Bearer", "refresh_token": "hush-next" }),
    );
    let renewed = servers.refresh(&grant, &ClientIdentity::default()).unwrap();
    assert_eq!(servers.requested(), [TOKEN]);
    let asked = servers.last_to(TOKEN);
    assert_eq!(asked.field("grant_type").unwrap(), "refresh_token");
    assert_eq!(asked.field("refresh_token").unwrap(), "hush-refresh");
    assert_eq!(
        (asked.field("resource").unwrap(), asked.field("client_id").unwrap()),
        (SERVER.into(), "dynamic".into())
    );
    assert!(renewed.token.is("hush-2") && renewed.refresh_token.as_ref().unwrap().is("hush-next"));
    assert_eq!(
        (renewed.scope, renewed.requested_scope, renewed.expires_at),
        (grant.scope.clone(), grant.requested_scope.clone(), None)
    );
    // Who gives no new refresh token means the old one to go on.
    servers.json(TOKEN, &json!({ "access_token": "hush-3", "token_type": "Bearer" }));
    assert_eq!(
        servers.refresh(&grant, &ClientIdentity::default()).unwrap().refresh_token,
        grant.refresh_token
    );
}

#[test]
fn a_denied_refresh_needs_a_login() {
    let (mut servers, mut grant) = logged_in();
    // A refresh token that was used before is not taken, and all that came of it is over.
    servers.raw(
        TOKEN,
        400,
        &[],
        r#"{"error":"invalid_grant","error_description":"hush-refresh is used up"}"#,
    );
    let error = servers.refresh(&grant, &ClientIdentity::default()).unwrap_err();
    assert!(error.kind() == FlowErrorKind::RefreshDenied && error.needs_login());
    assert_eq!(servers.seen.len(), 1);
    servers.raw(TOKEN, 503, &[], "");
    assert!(!servers.refresh(&grant, &ClientIdentity::default()).unwrap_err().needs_login());
    grant.refresh_token = None;
    let error = servers.refresh(&grant, &ClientIdentity::default()).unwrap_err();
    assert!(error.kind() == FlowErrorKind::NoRefreshToken && error.needs_login());
}

#[test]
fn token_sets_contain_no_pre_registered_secrets() {
    let mut servers = servers();
    let mut flow_request = flow_request();
    flow_request.identity.registered = Some(PreRegistered::new("before", Some(Secret::new("hush-secret"))));
    let methods = json!({ "token_endpoint_auth_methods_supported": ["client_secret_basic"] });
    servers.json(SERVER_METADATA, &with(server(), &methods));
    let grant = servers.run(flow_request.clone()).unwrap();
    assert!(!serde_json::to_string(&grant).unwrap().contains("hush-secret"));
    servers.refresh(&grant, &flow_request.identity).unwrap();
    assert!(servers.last_to(TOKEN).header("authorization").unwrap().starts_with("Basic "));
    let error = servers.refresh(&grant, &ClientIdentity::default()).unwrap_err();
    assert_eq!(error.kind(), FlowErrorKind::ClientAuthentication);
    // One that registered itself keeps its own.
    servers.json("https://as.example/register", &json!({ "client_id": "d", "client_secret": "hush-own" }));
    let grant = servers.run(super::flow_request()).unwrap();
    assert!(grant.client_secret.as_ref().unwrap().is("hush-own"));
    servers.refresh(&grant, &ClientIdentity::default()).unwrap();
}

#[test]
fn a_refused_token_is_refreshed_before_a_login() {
    let (mut servers, grant) = logged_in();
    servers.run_knowing(flow_request(), knowing(&grant)).unwrap();
    assert_eq!(servers.requested(), [PATH_METADATA, SERVER_METADATA, TOKEN]);
    assert!(servers.browsed.is_empty());
    servers.raw(TOKEN, 400, &[], r#"{"error":"invalid_grant"}"#);
    servers.also(TOKEN, 200, &[], &tokens().to_string());
    servers.run_knowing(flow_request(), knowing(&grant)).unwrap();
    assert_eq!(servers.browsed.len(), 1);
    // An authorization server that does not work right now is no reason for a new login.
    servers.raw(TOKEN, 503, &[], "");
    assert!(servers.run_knowing(flow_request(), knowing(&grant)).is_err());
    assert_eq!(servers.browsed.len(), 1);
}

#[test]
fn a_refresh_uses_the_current_token_endpoint() {
    let (mut servers, grant) = logged_in();
    let moved = "https://as.example/v2/token";
    servers.json(SERVER_METADATA, &with(server(), &json!({ "token_endpoint": moved })));
    servers.json(moved, &tokens());
    let renewed = servers.run_knowing(flow_request(), knowing(&grant)).unwrap();
    assert_eq!(servers.requested(), [PATH_METADATA, SERVER_METADATA, moved]);
    assert_eq!(renewed.token_endpoint.as_str(), moved);
}

#[test]
fn tokens_of_another_issuer_are_not_refreshed() {
    let (mut servers, grant) = logged_in();
    let second = "https://as2.example";
    servers.json(PATH_METADATA, &with(resource(), &json!({ "authorization_servers": [second] })));
    servers.json(&format!("{second}/.well-known/oauth-authorization-server"), &server_at(second));
    servers.json(&format!("{second}/register"), &json!({ "client_id": "second" }));
    servers.json(&format!("{second}/token"), &tokens());
    servers.back = vec![("code", "hush-code".into()), ("iss", second.into())];
    let mut known = knowing(&grant);
    let registered = json!({ "client_id": "dynamic", "redirect_uris": [REDIRECT] });
    known.registrations.insert(ISSUER.to_owned(), serde_json::from_value(registered).unwrap());
    let new = servers.run_knowing(flow_request(), known).unwrap();
    assert_eq!((new.issuer.as_str(), new.client_id.as_deref()), (second, Some("second")));
    assert!(
        servers.seen.iter().all(|seen| !seen.body.contains("hush-refresh") && !seen.body.contains("dynamic"))
    );
    assert_eq!(servers.parameter("client_id").unwrap(), "second");
}

#[test]
fn tokens_of_another_resource_or_client_are_not_refreshed() {
    let (mut servers, grant) = logged_in();
    let other = TokenSet { resource: "https://mcp.example/other".into(), ..grant.clone() };
    servers.run_knowing(flow_request(), knowing(&other)).unwrap();
    let mut flow_request = flow_request();
    flow_request.identity.registered = Some(PreRegistered::new("before", None));
    servers.run_knowing(flow_request, knowing(&grant)).unwrap();
    assert!(servers.seen.iter().all(|seen| seen.field("refresh_token").is_none()));
    assert_eq!(servers.browsed.len(), 2);
}

#[test]
fn a_dpop_bound_token_is_refreshed_with_its_key() {
    let mut servers = servers();
    servers.json(TOKEN, &with(tokens(), &json!({ "token_type": "DPoP" })));
    let grant = servers.run(FlowRequest { dpop: DpopPolicy::Always, ..flow_request() }).unwrap();
    let renewed = servers.refresh(&grant, &ClientIdentity::default()).unwrap();
    assert_eq!((&renewed.key, renewed.token_type), (&grant.key, TokenType::Dpop));
    assert!(servers.last_to(TOKEN).header("dpop").is_some());
    let broken = BoundKey { pkcs8: Secret::new("hush"), ..grant.key.clone().unwrap() };
    let error =
        servers.refresh(&TokenSet { key: Some(broken), ..grant }, &ClientIdentity::default()).unwrap_err();
    assert_eq!(error.kind(), FlowErrorKind::Crypto);
}

#[test]
fn tokens_are_revoked_where_supported() {
    let (_, grant) = logged_in();
    assert!(revocations(&grant, &ClientIdentity::default(), NOW).unwrap().is_empty());
    let grant = TokenSet { revocation_endpoint: Some(url("https://as.example/revoke")), ..grant };
    let bodies: Vec<String> = revocations(&grant, &ClientIdentity::default(), NOW)
        .unwrap()
        .into_iter()
        .map(|request| String::from_utf8(request.into_body().to_vec()).unwrap())
        .collect();
    assert_eq!(
        bodies,
        [
            "token=hush-refresh&token_type_hint=refresh_token&client_id=dynamic",
            "token=hush-token&token_type_hint=access_token&client_id=dynamic",
        ]
    );
}

#[test]
fn a_revocation_is_authenticated_by_private_key_jwt() {
    let (_, grant) = logged_in();
    let key = std::sync::Arc::new(crate::jose::PrivateKey::generate().unwrap());
    let registered = Some(PreRegistered::with_key("before", key.clone()));
    let identity = ClientIdentity { registered, ..ClientIdentity::default() };
    let grant = TokenSet {
        client_id: Some("before".into()),
        method: AuthMethod::PrivateKey,
        revocation_endpoint: Some(url("https://as.example/revoke")),
        ..grant
    };
    let requests = revocations(&grant, &identity, NOW).unwrap();
    let keys = crate::jose::Jwks { keys: vec![key.public()] };
    let names: Vec<Value> = requests
        .into_iter()
        .map(|request| {
            let form = url::form_urlencoded::parse(request.body()).into_owned();
            let (_, assertion) = form.into_iter().find(|(name, _)| name == "client_assertion").unwrap();
            let jws = crate::jose::Jws::parse(&assertion).unwrap();
            let claims: Value = jws.verify(&keys, &crate::jose::Algorithm::ALL).unwrap();
            assert_eq!((&claims["sub"], &claims["aud"]), (&json!("before"), &json!(ISSUER)));
            claims["jti"].clone()
        })
        .collect();
    assert!(names.len() == 2 && names[0] != names[1]);
    let error = revocations(&grant, &ClientIdentity::default(), NOW).unwrap_err();
    assert_eq!(error.kind(), FlowErrorKind::ClientAuthentication);
}

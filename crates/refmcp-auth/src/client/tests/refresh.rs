//! Renewing a login, and when it must not be tried.

use serde_json::json;

use super::*;

const TOKEN: &str = "https://as.example/token";

fn logged_in() -> (World, Grant) {
    let mut world = world();
    let grant = world.run(challenged("Bearer scope=\"a\"")).unwrap();
    world.seen.clear();
    world.browsed.clear();
    (world, grant)
}

fn knowing(grant: &Grant) -> Known {
    Known { grant: Some(grant.clone()), ..Known::default() }
}

#[test]
fn a_grant_is_kept_whole() {
    let (_, grant) = logged_in();
    let text = serde_json::to_string(&grant).unwrap();
    assert_eq!(serde_json::from_str::<Grant>(&text).unwrap(), grant);
    assert!(
        grant.ends_within(0, NOW + 3600) && grant.ends_within(60, NOW + 3540) && !grant.ends_within(60, NOW)
    );
}

#[test]
fn a_grant_renews_itself_without_asking_anybody_else() {
    let (mut world, grant) = logged_in();
    world.json(
        TOKEN,
        &json!({ "access_token": "hush-2", "token_type": "Bearer", "refresh_token": "hush-next" }),
    );
    let renewed = world.refresh(&grant, &Identity::default()).unwrap();
    assert_eq!(world.asked(), [TOKEN]);
    let asked = world.last_to(TOKEN);
    assert_eq!(asked.field("grant_type").unwrap(), "refresh_token");
    assert_eq!(asked.field("refresh_token").unwrap(), "hush-refresh");
    assert_eq!(
        (asked.field("resource").unwrap(), asked.field("client_id").unwrap()),
        (SERVER.into(), "dynamic".into())
    );
    assert!(renewed.token.is("hush-2") && renewed.refresh_token.as_ref().unwrap().is("hush-next"));
    assert_eq!(
        (renewed.scope, renewed.asked, renewed.expires_at),
        (grant.scope.clone(), grant.asked.clone(), None)
    );
    // Who gives no new refresh token means the old one to go on.
    world.json(TOKEN, &json!({ "access_token": "hush-3", "token_type": "Bearer" }));
    assert_eq!(world.refresh(&grant, &Identity::default()).unwrap().refresh_token, grant.refresh_token);
}

#[test]
fn what_no_longer_renews_asks_for_a_login() {
    let (mut world, mut grant) = logged_in();
    // A refresh token that was used before is not taken, and all that came of it is over.
    world.raw(TOKEN, 400, &[], r#"{"error":"invalid_grant","error_description":"hush-refresh is used up"}"#);
    let error = world.refresh(&grant, &Identity::default()).unwrap_err();
    assert!(matches!(error, FlowError::NotRenewed { .. }) && error.needs_login());
    assert_eq!(world.seen.len(), 1);
    world.raw(TOKEN, 503, &[], "");
    assert!(!world.refresh(&grant, &Identity::default()).unwrap_err().needs_login());
    grant.refresh_token = None;
    let error = world.refresh(&grant, &Identity::default()).unwrap_err();
    assert!(matches!(error, FlowError::NotRenewable(_)) && error.needs_login());
}

#[test]
fn secrets_of_clients_that_others_registered_are_not_kept_in_grants() {
    let mut world = world();
    let mut wanted = wanted();
    wanted.identity.registered = Some(PreRegistered::new("before", Some(Secret::new("hush-secret"))));
    let methods = json!({ "token_endpoint_auth_methods_supported": ["client_secret_basic"] });
    world.json(SERVER_METADATA, &with(server(), &methods));
    let grant = world.run(wanted.clone()).unwrap();
    assert!(!serde_json::to_string(&grant).unwrap().contains("hush-secret"));
    world.refresh(&grant, &wanted.identity).unwrap();
    assert!(world.last_to(TOKEN).header("authorization").unwrap().starts_with("Basic "));
    let error = world.refresh(&grant, &Identity::default()).unwrap_err();
    assert!(matches!(error, FlowError::CannotProve { .. }));
    // One that registered itself keeps its own.
    world.json("https://as.example/register", &json!({ "client_id": "d", "client_secret": "hush-own" }));
    let grant = world.run(super::wanted()).unwrap();
    assert!(grant.client_secret.as_ref().unwrap().is("hush-own"));
    world.refresh(&grant, &Identity::default()).unwrap();
}

#[test]
fn a_refused_token_is_renewed_before_a_person_is_asked() {
    let (mut world, grant) = logged_in();
    world.run_knowing(wanted(), knowing(&grant)).unwrap();
    assert_eq!(world.asked(), [PATH_METADATA, SERVER_METADATA, TOKEN]);
    assert!(world.browsed.is_empty());
    world.raw(TOKEN, 400, &[], r#"{"error":"invalid_grant"}"#);
    world.also(TOKEN, 200, &[], &tokens().to_string());
    world.run_knowing(wanted(), knowing(&grant)).unwrap();
    assert_eq!(world.browsed.len(), 1);
    // An authorization server that does not work right now is no reason to bother anybody.
    world.raw(TOKEN, 503, &[], "");
    assert!(world.run_knowing(wanted(), knowing(&grant)).is_err());
    assert_eq!(world.browsed.len(), 1);
}

#[test]
fn a_grant_is_renewed_where_its_issuer_says_it_is_now() {
    let (mut world, grant) = logged_in();
    let moved = "https://as.example/v2/token";
    world.json(SERVER_METADATA, &with(server(), &json!({ "token_endpoint": moved })));
    world.json(moved, &tokens());
    let renewed = world.run_knowing(wanted(), knowing(&grant)).unwrap();
    assert_eq!(world.asked(), [PATH_METADATA, SERVER_METADATA, moved]);
    assert_eq!(renewed.token_endpoint.as_str(), moved);
}

#[test]
fn a_grant_is_of_no_use_to_another_authorization_server() {
    let (mut world, grant) = logged_in();
    let second = "https://as2.example";
    world.json(PATH_METADATA, &with(resource(), &json!({ "authorization_servers": [second] })));
    world.json(&format!("{second}/.well-known/oauth-authorization-server"), &server_at(second));
    world.json(&format!("{second}/register"), &json!({ "client_id": "second" }));
    world.json(&format!("{second}/token"), &tokens());
    world.back = vec![("code", "hush-code".into()), ("iss", second.into())];
    let mut known = knowing(&grant);
    let registered = json!({ "client_id": "dynamic", "redirect_uris": [REDIRECT] });
    known.registrations.insert(ISSUER.to_owned(), serde_json::from_value(registered).unwrap());
    let new = world.run_knowing(wanted(), known).unwrap();
    assert_eq!((new.issuer.as_str(), new.client_id.as_deref()), (second, Some("second")));
    assert!(
        world.seen.iter().all(|seen| !seen.body.contains("hush-refresh") && !seen.body.contains("dynamic"))
    );
    assert_eq!(world.parameter("client_id").unwrap(), "second");
}

#[test]
fn a_grant_for_another_resource_or_client_is_not_renewed() {
    let (mut world, grant) = logged_in();
    let other = Grant { resource: "https://mcp.example/other".into(), ..grant.clone() };
    world.run_knowing(wanted(), knowing(&other)).unwrap();
    let mut wanted = wanted();
    wanted.identity.registered = Some(PreRegistered::new("before", None));
    world.run_knowing(wanted, knowing(&grant)).unwrap();
    assert!(world.seen.iter().all(|seen| seen.field("refresh_token").is_none()));
    assert_eq!(world.browsed.len(), 2);
}

#[test]
fn a_bound_grant_is_renewed_with_its_own_key() {
    let mut world = world();
    world.json(TOKEN, &with(tokens(), &json!({ "token_type": "DPoP" })));
    let grant = world.run(Wanted { proofs: Proofs::Always, ..wanted() }).unwrap();
    let renewed = world.refresh(&grant, &Identity::default()).unwrap();
    assert_eq!((&renewed.key, renewed.token_type), (&grant.key, TokenType::Dpop));
    assert!(world.last_to(TOKEN).header("dpop").is_some());
    let broken = BoundKey { pkcs8: Secret::new("hush"), ..grant.key.clone().unwrap() };
    let error = world.refresh(&Grant { key: Some(broken), ..grant }, &Identity::default()).unwrap_err();
    assert!(matches!(error, FlowError::NoKeys(_)));
}

#[test]
fn a_grant_is_given_back_where_that_is_possible() {
    let (_, grant) = logged_in();
    assert!(revocations(&grant, &Identity::default(), NOW).unwrap().is_empty());
    let grant = Grant { revocation_endpoint: Some(url("https://as.example/revoke")), ..grant };
    let bodies: Vec<String> = revocations(&grant, &Identity::default(), NOW)
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
fn a_client_that_signs_gives_its_grant_back_by_its_key() {
    let (_, grant) = logged_in();
    let key = std::sync::Arc::new(crate::jose::PrivateKey::generate().unwrap());
    let registered = Some(PreRegistered::with_key("before", key.clone()));
    let identity = Identity { registered, ..Identity::default() };
    let grant = Grant {
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
    assert!(matches!(revocations(&grant, &Identity::default(), NOW), Err(FlowError::CannotProve { .. })));
}

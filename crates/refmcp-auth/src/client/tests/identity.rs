//! Who we are, and to whom.

use serde_json::json;

use super::*;
use crate::metadata::ClientRegistration;

fn registered(changes: &Value) -> ClientRegistration {
    let all = with(json!({ "client_id": "earlier", "redirect_uris": [REDIRECT] }), changes);
    serde_json::from_value(all).unwrap()
}

fn knowing(registered: ClientRegistration) -> StoredState {
    let mut stored = StoredState::default();
    stored.registrations.insert(ISSUER.to_owned(), registered);
    stored
}

const DOCUMENT: &str = "https://client.example/client.json";

fn with_all() -> FlowRequest {
    let mut flow_request = flow_request();
    flow_request.identity.registered = Some(PreRegistered::new("before", Some(Secret::new("hush-secret"))));
    flow_request.identity.document = Some(url(DOCUMENT));
    flow_request
}

#[test]
fn client_identities_are_tried_in_order() {
    let mut servers = servers();
    servers.json(SERVER_METADATA, &with(server(), &json!({ "client_id_metadata_document_supported": true })));
    let mut flow_request = with_all();
    let mut stored = knowing(registered(&json!({})));
    let mut used = |flow_request: &FlowRequest, stored: &StoredState| {
        servers.run_knowing(flow_request.clone(), stored.clone()).unwrap().client_id.unwrap()
    };
    assert_eq!(used(&flow_request, &stored), "before");
    flow_request.identity.registered = None;
    assert_eq!(used(&flow_request, &stored), DOCUMENT);
    flow_request.identity.document = None;
    assert_eq!(used(&flow_request, &stored), "earlier");
    stored.registrations.clear();
    assert_eq!(used(&flow_request, &stored), "dynamic");
}

#[test]
fn a_client_id_metadata_document_needs_support() {
    let mut servers = servers();
    let mut flow_request = flow_request();
    flow_request.identity.document = Some(url(DOCUMENT));
    assert_eq!(servers.run(flow_request.clone()).unwrap().client_id.as_deref(), Some("dynamic"));
    servers.json(SERVER_METADATA, &with(server(), &json!({ "client_id_metadata_document_supported": true })));
    for bad in ["http://localhost/client.json", "https://client.example/"] {
        flow_request.identity.document = Some(url(bad));
        assert_eq!(kind(servers.run(flow_request.clone())), FlowErrorKind::NoClientIdentity, "{bad}");
    }
}

#[test]
fn a_registration_sends_complete_metadata() {
    let mut servers = servers();
    servers.json(SERVER_METADATA, &with(server(), &json!({ "scopes_supported": ["a", "offline_access"] })));
    let mut flow_request = challenged("Bearer scope=\"a\"");
    flow_request.identity.dynamic =
        Some(ClientMetadata { client_name: Some("we".into()), ..ClientMetadata::default() });
    servers.run(flow_request.clone()).unwrap();
    let seen = servers.last_to("https://as.example/register");
    assert_eq!(seen.header("content-type"), Some("application/json"));
    assert_eq!(
        seen.json(),
        json!({
            "client_name": "we",
            "redirect_uris": [REDIRECT],
            "application_type": "native",
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "scope": "a offline_access",
        })
    );
    flow_request.grant_kind =
        GrantKind::AuthorizationCode { redirect_uri: url("https://app.example/callback") };
    servers.run(flow_request).unwrap();
    assert_eq!(servers.last_to("https://as.example/register").json()["application_type"], "web");
}

#[test]
fn a_registration_is_stored_by_issuer_before_use() {
    let mut servers = servers();
    servers.run(flow_request()).unwrap();
    match &servers.saved[0] {
        StoreUpdate::Registration { issuer, registered } => {
            assert_eq!((issuer.as_str(), registered.client_id.as_str()), (ISSUER, "dynamic"));
            // It can be found again by where people are sent back to, also when the server does not repeat it.
            assert_eq!(registered.metadata.redirect_uris, [REDIRECT]);
        }
        other => panic!("{other:?}"),
    }
    let stored = knowing(registered(&json!({})));
    servers.seen.clear();
    servers.run_knowing(flow_request(), stored).unwrap();
    assert!(!servers.requested().contains(&"https://as.example/register"));
}

#[test]
fn an_expired_or_unfit_registration_is_replaced() {
    for changes in [
        json!({ "client_secret": "hush-secret", "client_secret_expires_at": NOW }),
        json!({ "redirect_uris": ["http://127.0.0.1:1/callback"] }),
        json!({ "redirect_uris": ["http://localhost:7777/callback"] }),
    ] {
        let mut servers = servers();
        let grant = servers.run_knowing(flow_request(), knowing(registered(&changes))).unwrap();
        assert_eq!(grant.client_id.as_deref(), Some("dynamic"), "{changes}");
    }
    for changes in [
        json!({ "client_secret": "hush-secret", "client_secret_expires_at": 0 }),
        json!({ "client_secret": "hush-secret", "client_secret_expires_at": NOW + 1 }),
        json!({ "client_secret_expires_at": 1 }),
    ] {
        let mut servers = servers();
        let grant = servers.run_knowing(flow_request(), knowing(registered(&changes))).unwrap();
        assert_eq!(grant.client_id.as_deref(), Some("earlier"), "{changes}");
    }
}

#[test]
fn a_failed_registration_gives_advice() {
    for (body, redirect) in [
        (r#"{"error":"invalid_redirect_uri","error_description":"no loopback"}"#, true),
        (r#"{"error":"invalid_client_metadata"}"#, false),
        ("<html>", false),
    ] {
        let mut servers = servers();
        servers.raw("https://as.example/register", 400, &[], body);
        let error = servers.run(flow_request()).unwrap_err();
        let (refused, failed) = (FlowErrorKind::RedirectUriRefused, FlowErrorKind::RegistrationFailed);
        assert_eq!(error.kind(), if redirect { refused } else { failed }, "{error:?}");
        assert!(error.advice().contains("by hand") && error.advice().contains("redirect URI") == redirect);
    }
    for body in ["{}", "[]", r#"{"client_id":""}"#, r#"{"client_id":"a\nb"}"#, r#"{"client_id":7}"#] {
        let mut servers = servers();
        servers.raw("https://as.example/register", 201, &[], body);
        assert_eq!(kind(servers.run(flow_request())), FlowErrorKind::RegistrationFailed, "{body}");
    }
    let mut servers = servers();
    servers.json(
        "https://as.example/register",
        &json!({ "client_id": "x", "redirect_uris": ["https://evil.example"] }),
    );
    assert_eq!(kind(servers.run(flow_request())), FlowErrorKind::RedirectUriRefused);
    assert!(servers.browsed.is_empty());
}

#[test]
fn a_missing_client_identity_gives_advice() {
    let mut servers = servers();
    servers.json(SERVER_METADATA, &with(server(), &json!({ "registration_endpoint": null })));
    let error = servers.run(flow_request()).unwrap_err();
    assert_eq!(error.kind(), FlowErrorKind::NoClientIdentity);
    assert_eq!(error.blame(), Blame::Configuration);
    assert!(error.advice().contains("give its id"));
    servers.json(SERVER_METADATA, &server());
    let unwilling = FlowRequest { identity: ClientIdentity::default(), ..flow_request() };
    assert_eq!(kind(servers.run(unwilling)), FlowErrorKind::NoClientIdentity);
}

#[test]
fn a_pre_registered_client_is_bound_to_its_issuer() {
    let mut servers = servers();
    let mut flow_request = with_all();
    let grant = servers.run(flow_request.clone()).unwrap();
    servers
        .json(PATH_METADATA, &with(resource(), &json!({ "authorization_servers": ["https://as2.example"] })));
    servers.json(
        "https://as2.example/.well-known/oauth-authorization-server",
        &server_at("https://as2.example"),
    );
    servers.seen.clear();
    let stored = StoredState { tokens: Some(grant), ..StoredState::default() };
    let error = servers.run_knowing(flow_request.clone(), stored).unwrap_err();
    assert_eq!(error.kind(), FlowErrorKind::ClientOfOtherIssuer, "{error:?}");
    flow_request.identity.registered.as_mut().unwrap().issuer = Some(ISSUER.to_owned());
    assert_eq!(kind(servers.run(flow_request)), FlowErrorKind::ClientOfOtherIssuer);
    assert!(
        servers.browsed.len() == 1 && servers.requested().iter().all(|asked| asked.contains("well-known"))
    );
}

/// The server trusts these now, and all of them are there.
fn trusting(issuers: &[&str]) -> FakeServers {
    let mut servers = servers();
    servers.json(PATH_METADATA, &with(resource(), &json!({ "authorization_servers": issuers })));
    for issuer in issuers {
        servers.json(&format!("{issuer}/.well-known/oauth-authorization-server"), &server_at(issuer));
        servers.json(&format!("{issuer}/token"), &tokens());
    }
    servers
}

const SECOND: &str = "https://as2.example";

#[test]
fn a_client_stays_bound_without_tokens() {
    let grant = servers().run(with_all()).unwrap();
    let stored = StoredState { last_client: LastClient::of_tokens(&grant), ..StoredState::default() };
    assert_eq!(stored.last_client, Some(LastClient { client_id: "before".into(), issuer: ISSUER.into() }));
    for grant_kind in [with_all().grant_kind, GrantKind::ClientCredentials] {
        let mut servers = trusting(&[SECOND]);
        let flow_request = FlowRequest { grant_kind, ..with_all() };
        let error = servers.run_knowing(flow_request, stored.clone()).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::ClientOfOtherIssuer);
        assert!(error.to_string().contains(&format!("is registered with {ISSUER} and not")), "{error}");
        assert!(servers.browsed.is_empty() && servers.to(&format!("{SECOND}/token")).count() == 0);
    }
    // Another client is not meant, and one whose issuer is named goes there.
    let mut other = with_all();
    other.identity.registered = Some(PreRegistered::new("other", None));
    let mut named = with_all();
    named.identity.registered.as_mut().unwrap().issuer = Some(SECOND.into());
    for flow_request in [other, named] {
        let mut servers = trusting(&[SECOND]);
        servers.back = vec![("code", "hush-code".into()), ("iss", SECOND.into())];
        assert_eq!(servers.run_knowing(flow_request, stored.clone()).unwrap().issuer, SECOND);
    }
}

#[test]
fn the_authorization_server_of_the_client_is_preferred() {
    let grant = servers().run(with_all()).unwrap();
    let mut stored = StoredState { last_client: LastClient::of_tokens(&grant), ..StoredState::default() };
    stored.registrations.insert(SECOND.to_owned(), registered(&json!({})));
    let mut servers = trusting(&[SECOND, ISSUER]);
    assert_eq!(servers.run_knowing(with_all(), stored).unwrap().issuer, ISSUER);
}

#[test]
fn tokens_are_not_refreshed_with_the_secret_of_another_issuer() {
    let mut flow_request = with_all();
    flow_request.identity.registered.as_mut().unwrap().method = Some(AuthMethod::Basic);
    let mut servers = servers();
    let grant = servers.run(flow_request.clone()).unwrap();
    servers.refresh(&grant, &flow_request.identity).unwrap();
    servers.seen.clear();
    flow_request.identity.registered.as_mut().unwrap().issuer = Some(SECOND.to_owned());
    let error = servers.refresh(&grant, &flow_request.identity).unwrap_err();
    assert!(error.kind() == FlowErrorKind::ClientAuthentication && servers.seen.is_empty(), "{error:?}");
}

#[test]
fn the_registration_access_token_is_not_stored() {
    let mut servers = servers();
    let answer = json!({ "client_id": "d", "registration_access_token": "hush-rat", "strange": "hush" });
    servers.json("https://as.example/register", &answer);
    servers.run(flow_request()).unwrap();
    match &servers.saved[0] {
        StoreUpdate::Registration { registered, .. } => {
            let names: Vec<&String> = registered.metadata.more.keys().collect();
            assert_eq!(names, ["strange"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_registration_demands_dpop_bound_tokens() {
    const BOUND: &str = "dpop_bound_access_tokens";
    let mut servers = servers();
    servers.json("https://as.example/token", &with(tokens(), &json!({ "token_type": "DPoP" })));
    servers.run(FlowRequest { dpop: DpopPolicy::Always, ..flow_request() }).unwrap();
    assert_eq!(servers.last_to("https://as.example/register").json()[BOUND], true);
    let StoreUpdate::Registration { registered, .. } = servers.saved.remove(0) else {
        panic!("{:?}", servers.saved)
    };
    let again = servers.run_knowing(
        FlowRequest { dpop: DpopPolicy::Always, ..flow_request() },
        knowing(*registered.clone()),
    );
    assert_eq!(
        (again.unwrap().token_type, servers.to("https://as.example/register").count()),
        (TokenType::Dpop, 1)
    );
    // Such a client gets no other tokens, so that for those there has to be another.
    servers.json("https://as.example/token", &tokens());
    servers.run_knowing(flow_request(), knowing(*registered)).unwrap();
    assert_eq!(servers.to("https://as.example/register").count(), 2);
    assert_eq!(servers.last_to("https://as.example/register").json().get(BOUND), None);
}

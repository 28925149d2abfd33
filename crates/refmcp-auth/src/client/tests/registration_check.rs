//! Clients that registered themselves and may have been forgotten since.

use serde_json::json;

use super::*;
use crate::fetch::FetchError;
use crate::metadata::ClientRegistration;

const TOKEN: &str = "https://as.example/token";
const REGISTER: &str = "https://as.example/register";
const NO_SUCH_CODE: &str = r#"{"error":"invalid_grant"}"#;
const UNKNOWN: &str = r#"{"error":"invalid_client"}"#;

fn knowing() -> StoredState {
    let registered = json!({ "client_id": "earlier", "redirect_uris": [REDIRECT] });
    let registered: ClientRegistration = serde_json::from_value(registered).unwrap();
    StoredState { registrations: [(ISSUER.to_owned(), registered)].into(), ..StoredState::default() }
}

/// A servers whose token endpoint answers so the first time, and gives tokens from then on.
fn saying(status: u16, body: &str) -> FakeServers {
    let mut servers = servers();
    servers.raw(TOKEN, status, &[], body);
    servers.also(TOKEN, 200, &[], &tokens().to_string());
    servers
}

/// What was saved, by kind and client.
fn saved(servers: &FakeServers) -> Vec<(&str, &str)> {
    let told = servers.saved.iter().map(|save| match save {
        StoreUpdate::Registration { registered, .. } => ("registration", registered.client_id.as_str()),
        StoreUpdate::ForgetRegistration { client_id, .. } => ("none", client_id.as_str()),
        StoreUpdate::Tokens(grant) => ("grant", grant.client_id.as_deref().unwrap()),
    });
    told.collect()
}

#[test]
fn a_forgotten_client_registers_before_the_browser_opens() {
    for (status, body) in [(401, UNKNOWN), (400, UNKNOWN), (400, r#"{"error":"unauthorized_client"}"#)] {
        let mut servers = saying(status, body);
        let grant = servers.run_knowing(flow_request(), knowing()).unwrap();
        assert_eq!((grant.client_id.as_deref(), servers.browsed.len()), (Some("dynamic"), 1), "{body}");
        assert_eq!(servers.parameter("client_id").unwrap(), "dynamic");
        assert_eq!(saved(&servers), [("registration", "dynamic"), ("grant", "dynamic")]);
        let [asked, redeemed] = servers.to(TOKEN).collect::<Vec<_>>()[..] else {
            panic!("{:?}", servers.requested())
        };
        assert_eq!(asked.field("client_id").unwrap(), "earlier");
        assert_eq!(asked.field("grant_type").unwrap(), "authorization_code");
        // The code is made up.
        for field in ["code", "code_verifier"] {
            assert_ne!(asked.field(field), redeemed.field(field));
            assert!(asked.field(field).unwrap().len() >= 43);
        }
    }
}

#[test]
fn a_known_registration_is_reused() {
    let mut servers = saying(400, NO_SUCH_CODE);
    let grant = servers.run_knowing(flow_request(), knowing()).unwrap();
    assert_eq!((grant.client_id.as_deref(), servers.to(REGISTER).count()), (Some("earlier"), 0));
    assert!(
        servers.steps.iter().any(|step| step.contains(&format!("at {TOKEN}: the client is still known\n"))),
        "{:?}",
        servers.steps
    );
    // Put aside before the person leaves, and kept again when they are back.
    assert_eq!(saved(&servers), [("none", "earlier"), ("registration", "earlier"), ("grant", "earlier")]);
}

#[test]
fn an_inconclusive_registration_check_continues() {
    for (status, body) in [
        (503, ""),
        (400, r#"{"error":"invalid_request"}"#),
        (200, "<html>"),
        (503, UNKNOWN),
        (200, &*tokens().to_string()),
    ] {
        let mut servers = saying(status, body);
        let grant = servers.run_knowing(flow_request(), knowing()).unwrap();
        assert_eq!(
            (grant.client_id.as_deref(), servers.browsed.len()),
            (Some("earlier"), 1),
            "{status} {body}"
        );
    }
    let mut servers = servers();
    servers.fault(TOKEN, FetchError::Unreachable("gone".to_owned()));
    assert!(servers.run_knowing(flow_request(), knowing()).is_err());
    assert_eq!(servers.browsed.len(), 1);
}

#[test]
fn a_registration_without_a_redirect_is_not_reused() {
    // This one does not say that it does not know us.
    let mut servers = saying(400, NO_SUCH_CODE);
    let (mut flow, mut next) = Flow::start(flow_request(), knowing(), NOW);
    let mut known = knowing();
    while !matches!(next, FlowAction::OpenBrowser(_)) {
        next = match next {
            FlowAction::Fetch(request) => flow.on_response(servers.answer(request), NOW),
            FlowAction::Store(StoreUpdate::ForgetRegistration { issuer, client_id }) => {
                let gone = known.registrations.remove(&issuer).unwrap();
                assert_eq!(gone.client_id, client_id);
                flow.on_stored(NOW)
            }
            other => panic!("{other:?}"),
        };
    }
    let grant = servers.run_knowing(flow_request(), known).unwrap();
    assert_eq!(grant.client_id.as_deref(), Some("dynamic"));
    // A browser that was not opened says nothing about the client.
    let kept = flow.cancel_redirect();
    assert!(
        matches!(&kept, Some(StoreUpdate::Registration { registered, .. }) if registered.client_id == "earlier"),
        "{kept:?}"
    );
    assert_eq!(flow.cancel_redirect(), None);
}

#[test]
fn an_unknown_client_at_the_redirect_registers_again_once() {
    for error in ["invalid_client", "unauthorized_client"] {
        let mut servers = saying(400, NO_SUCH_CODE);
        servers.back = vec![("error", error.into()), ("iss", ISSUER.into())];
        let error = servers.run_knowing(flow_request(), knowing()).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::AuthorizationDenied, "{error:?}");
        assert_eq!((servers.browsed.len(), servers.to(REGISTER).count()), (2, 1));
        assert_eq!(saved(&servers), [("none", "earlier"), ("registration", "dynamic")]);
    }
    // The answer of another issuer does not count.
    let mut servers = saying(400, NO_SUCH_CODE);
    servers.back = vec![("error", "invalid_client".into()), ("iss", "https://evil.example".into())];
    let error = servers.run_knowing(flow_request(), knowing()).unwrap_err();
    assert!(error.kind() == FlowErrorKind::RedirectIssuer && servers.browsed.len() == 1, "{error:?}");
}

#[test]
fn access_denied_keeps_the_registration() {
    let mut servers = saying(400, NO_SUCH_CODE);
    servers.back = vec![("error", "access_denied".into()), ("iss", ISSUER.into())];
    let error = servers.run_knowing(flow_request(), knowing()).unwrap_err();
    assert_eq!(error.blame(), Blame::User);
    assert_eq!(saved(&servers), [("none", "earlier"), ("registration", "earlier")]);
}

#[test]
fn an_unknown_client_at_the_token_endpoint_registers_again_once() {
    let mut servers = saying(400, NO_SUCH_CODE);
    servers.raw(TOKEN, 400, &[], NO_SUCH_CODE);
    servers.also(TOKEN, 401, &[], UNKNOWN);
    servers.also(TOKEN, 200, &[], &tokens().to_string());
    let grant = servers.run_knowing(flow_request(), knowing()).unwrap();
    assert_eq!((grant.client_id.as_deref(), servers.browsed.len()), (Some("dynamic"), 2));
    // A server that knows no client is not asked for ever.
    servers.raw(TOKEN, 401, &[], UNKNOWN);
    servers.seen.clear();
    let error = servers.run_knowing(flow_request(), knowing()).unwrap_err();
    assert_eq!(error.kind(), FlowErrorKind::TokenDenied, "{error:?}");
    assert_eq!((servers.browsed.len(), servers.to(TOKEN).count(), servers.to(REGISTER).count()), (3, 2, 1));
}

#[test]
fn the_registration_check_is_skipped_when_the_answer_is_known() {
    let mut servers = servers();
    let grant = servers
        .run_knowing(FlowRequest { challenge: refused(401, "Bearer"), ..flow_request() }, knowing())
        .unwrap();
    assert_eq!((grant.client_id.as_deref(), servers.to(TOKEN).count()), (Some("earlier"), 2));
    // A valid token that lacks scopes was issued to a known client.
    let more = FlowRequest {
        challenge: refused(403, "Bearer error=\"insufficient_scope\", scope=\"b\""),
        ..flow_request()
    };
    servers.seen.clear();
    servers.run_knowing(more.clone(), StoredState { tokens: Some(grant.clone()), ..knowing() }).unwrap();
    assert_eq!(servers.to(TOKEN).count(), 1);
    // Another client's says nothing about this one.
    let other = TokenSet { client_id: Some("other".into()), ..grant.clone() };
    servers.seen.clear();
    servers.run_knowing(more, StoredState { tokens: Some(other), ..knowing() }).unwrap();
    assert_eq!(servers.to(TOKEN).count(), 2);
    // A renewal that is refused says as much.
    servers.raw(TOKEN, 400, &[], NO_SUCH_CODE);
    servers.also(TOKEN, 200, &[], &tokens().to_string());
    servers.seen.clear();
    servers.run_knowing(flow_request(), StoredState { tokens: Some(grant.clone()), ..knowing() }).unwrap();
    assert_eq!((servers.to(TOKEN).count(), servers.to(REGISTER).count()), (2, 0));
    servers.raw(TOKEN, 400, &[], UNKNOWN);
    servers.also(TOKEN, 200, &[], &tokens().to_string());
    servers.seen.clear();
    servers.run_knowing(flow_request(), StoredState { tokens: Some(grant), ..knowing() }).unwrap();
    assert_eq!((servers.to(TOKEN).count(), servers.to(REGISTER).count()), (2, 1));
}

#[test]
fn the_registration_check_carries_a_dpop_proof() {
    let mut servers = servers();
    servers.raw(TOKEN, 400, &[("dpop-nonce", "n")], r#"{"error":"use_dpop_nonce"}"#);
    servers.also(TOKEN, 400, &[], UNKNOWN);
    servers.also(TOKEN, 200, &[], &with(tokens(), &json!({ "token_type": "DPoP" })).to_string());
    let grant =
        servers.run_knowing(FlowRequest { dpop: DpopPolicy::Always, ..flow_request() }, knowing()).unwrap();
    assert_eq!((grant.client_id.as_deref(), servers.browsed.len()), (Some("dynamic"), 1));
    assert!(servers.to(TOKEN).all(|asked| asked.header("dpop").is_some()));
}

#[test]
fn only_dynamic_registrations_are_checked() {
    let mut servers = servers();
    let mut before = flow_request();
    before.identity.registered = Some(PreRegistered::new("before", None));
    servers.run_knowing(before, knowing()).unwrap();
    servers.json(SERVER_METADATA, &with(server(), &json!({ "client_id_metadata_document_supported": true })));
    let mut document = flow_request();
    document.identity.document = Some(url("https://client.example/client.json"));
    servers.run_knowing(document, knowing()).unwrap();
    assert_eq!(servers.to(TOKEN).count(), 2);
    assert!(servers.saved.iter().all(|save| matches!(save, StoreUpdate::Tokens(_))), "{:?}", servers.saved);
}

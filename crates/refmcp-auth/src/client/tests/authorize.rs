//! What people are sent out with, and what their browsers may come back with.

use serde_json::json;

use super::*;
use crate::pkce;

#[test]
fn the_authorization_request_has_pkce_state_and_resource() {
    let mut servers = servers();
    let endpoint =
        "https://as.example/authorize?tenant=x&state=theirs&redirect_uri=https%3A%2F%2Fevil.example";
    servers.json(SERVER_METADATA, &with(server(), &json!({ "authorization_endpoint": endpoint })));
    servers.run(flow_request()).unwrap();
    let parameter = |name: &str| servers.parameter(name);
    assert_eq!(parameter("response_type").unwrap(), "code");
    assert_eq!(parameter("client_id").unwrap(), "dynamic");
    assert_eq!(parameter("redirect_uri").unwrap(), REDIRECT);
    assert_eq!(parameter("resource").unwrap(), SERVER);
    assert_eq!(parameter("code_challenge_method").unwrap(), "S256");
    assert_eq!(parameter("tenant").unwrap(), "x");
    assert_eq!((parameter("scope"), parameter("prompt"), parameter("dpop_jkt")), (None, None, None));
    assert!(parameter("state").unwrap().len() >= 43);
    let names = servers.browsed[0].query_pairs().filter(|(name, _)| name == "state").count();
    assert_eq!(names, 1);
    let asked = servers.last_to("https://as.example/token");
    assert!(pkce::proves(&asked.field("code_verifier").unwrap(), &parameter("code_challenge").unwrap()));
    assert_eq!(asked.field("grant_type").unwrap(), "authorization_code");
    assert_eq!(
        (asked.field("code").unwrap(), asked.field("redirect_uri").unwrap()),
        ("hush-code".into(), REDIRECT.into())
    );
    assert_eq!(asked.field("resource").unwrap(), SERVER);
}

#[test]
fn scopes_come_from_the_challenge_or_the_metadata() {
    let mut servers = servers();
    let mut asked_for = |flow_request: FlowRequest| {
        let grant = servers.run(flow_request).unwrap();
        assert_eq!(grant.requested_scope.to_string(), servers.parameter("scope").unwrap_or_default());
        servers.parameter("scope")
    };
    assert_eq!(asked_for(challenged("Bearer scope=\"mcp:basic\"")).as_deref(), Some("mcp:basic"));
    assert_eq!(asked_for(flow_request()), None);
    let own = FlowRequest { scopes: scopes("mine"), ..challenged("Bearer scope=\"mcp:basic\"") };
    assert_eq!(asked_for(own).as_deref(), Some("mine mcp:basic"));
    servers.json(PATH_METADATA, &with(resource(), &json!({ "scopes_supported": ["b", "a", "c", "\"x"] })));
    let mut asked_for = |flow_request: FlowRequest| {
        servers.run(flow_request).unwrap();
        servers.parameter("scope")
    };
    assert_eq!(asked_for(flow_request()).as_deref(), Some("b a c"));
    assert_eq!(asked_for(challenged("Bearer scope=\"mcp:basic\"")).as_deref(), Some("mcp:basic"));
    assert_eq!(asked_for(FlowRequest { scopes: scopes("mine"), ..flow_request() }).as_deref(), Some("mine"));
    let many: Vec<String> = (0..5000).map(|number| format!("scope{number}")).collect();
    servers.json(PATH_METADATA, &with(resource(), &json!({ "scopes_supported": many })));
    servers.run(flow_request()).unwrap();
    assert_eq!(servers.parameter("scope"), None);
}

#[test]
fn step_up_keeps_the_previous_scopes() {
    let mut servers = servers();
    let grant = servers.run(challenged("Bearer scope=\"mcp:basic\"")).unwrap();
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"mcp:write\"";
    let flow_request = FlowRequest {
        challenge: refused(403, challenge),
        previous_scopes: scopes("mcp:old"),
        ..flow_request()
    };
    let known = StoredState { tokens: Some(grant), ..StoredState::default() };
    let stepped = servers.run_knowing(flow_request, known).unwrap();
    // Renewing would not bring more, so a person is asked.
    assert_eq!(servers.browsed.len(), 2);
    assert_eq!(servers.parameter("scope").unwrap(), "mcp:basic mcp:old mcp:write");
    assert!(stepped.scope.cover(&scopes("mcp:basic mcp:write")));
}

#[test]
fn offline_access_is_requested_where_supported() {
    let mut servers = servers();
    let plain = with(resource(), &json!({ "scopes_supported": ["a", "offline_access"] }));
    servers.json(PATH_METADATA, &plain);
    servers.run(flow_request()).unwrap();
    assert_eq!(servers.parameter("scope").unwrap(), "a");
    servers.run(challenged("Bearer scope=\"a offline_access\"")).unwrap();
    assert_eq!(servers.parameter("scope").unwrap(), "a");
    servers.json(SERVER_METADATA, &with(server(), &json!({ "scopes_supported": ["a", "offline_access"] })));
    servers.run(challenged("Bearer scope=\"b\"")).unwrap();
    assert_eq!(
        (servers.parameter("scope").unwrap(), servers.parameter("prompt").unwrap()),
        ("b offline_access".into(), "consent".into())
    );
    servers.run(FlowRequest { offline_access: false, ..challenged("Bearer scope=\"b\"") }).unwrap();
    assert_eq!(servers.parameter("scope").unwrap(), "b");
    servers.json(PATH_METADATA, &resource());
    servers.run(flow_request()).unwrap();
    assert_eq!(servers.parameter("scope"), None);
}

/// Runs a login whose browser comes back with this; nothing may be asked at the token endpoint if it is refused.
fn comes_back(metadata: &Value, back: &[(&'static str, &str)]) -> Result<TokenSet, FlowError> {
    let mut servers = servers();
    servers.json(SERVER_METADATA, &with(server(), metadata));
    servers.back = back.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let ended = servers.run(flow_request());
    assert_eq!(servers.browsed.len(), 1);
    assert_eq!(servers.to("https://as.example/token").count(), usize::from(ended.is_ok()));
    ended
}

#[test]
fn the_redirect_issuer_is_checked_first() {
    let quiet = json!({ "authorization_response_iss_parameter_supported": null });
    let code = ("code", "hush-code");
    comes_back(&json!({}), &[code, ("iss", ISSUER)]).unwrap();
    comes_back(&quiet, &[code]).unwrap();
    comes_back(&quiet, &[code, ("iss", ISSUER)]).unwrap();
    for (metadata, back) in [
        (json!({}), vec![code]),
        (json!({}), vec![code, ("iss", "https://evil.example.com")]),
        (quiet.clone(), vec![code, ("iss", "https://evil.example.com")]),
        (json!({}), vec![code, ("iss", "https://as.example/")]),
        (json!({}), vec![code, ("iss", "https://AS.example")]),
        (json!({}), vec![code, ("iss", "")]),
        // A refusal of another server is not shown either.
        (json!({}), vec![("error", "access_denied"), ("iss", "https://evil.example.com")]),
        (json!({}), vec![("error", "access_denied"), ("error_description", "call 555 1234")]),
    ] {
        let error = comes_back(&metadata, &back).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::RedirectIssuer, "{back:?}: {error:?}");
        assert!(error.blame() == Blame::Attacker && !error.to_string().contains("555"));
    }
}

#[test]
fn redirects_with_repeated_or_missing_parameters_are_refused() {
    let iss = ("iss", ISSUER);
    for back in [
        vec![iss],
        vec![iss, ("code", "")],
        vec![iss, ("code", "hush-1"), ("code", "hush-2")],
        vec![iss, iss, ("code", "hush-1")],
        vec![iss, ("code", "hush-1"), ("state", "x")],
    ] {
        let error = comes_back(&json!({}), &back).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::InvalidRedirect, "{error:?}");
    }
}

#[test]
fn a_denied_authorization_names_the_issuer() {
    let back = [("iss", ISSUER), ("error", "access_denied"), ("error_description", "no\r\nway")];
    let error = comes_back(&json!({}), &back).unwrap_err();
    assert!(error.blame() == Blame::User && error.to_string().contains("access_denied: no  way"));
    let error = comes_back(&json!({}), &[("iss", ISSUER), ("error", "server_error")]).unwrap_err();
    assert_eq!(error.blame(), Blame::AuthorizationServer);
    let both = [("iss", ISSUER), ("error", "server_error"), ("code", "hush-code")];
    assert_eq!(kind(comes_back(&json!({}), &both)), FlowErrorKind::AuthorizationDenied);
}

/// A login up to where a person is sent out.
fn sent_out(servers: &mut FakeServers) -> (Flow, Url) {
    let (mut flow, mut next) = Flow::start(flow_request(), StoredState::default(), NOW);
    loop {
        next = match next {
            FlowAction::Fetch(request) => {
                let answer = servers.answer(request);
                flow.on_response(answer, NOW)
            }
            FlowAction::Store(_) => flow.on_stored(NOW),
            FlowAction::OpenBrowser(url) => return (flow, url),
            other => panic!("{other:?}"),
        };
    }
}

#[test]
fn state_and_redirect_uri_are_compared_exactly() {
    let mut servers = servers();
    for spoil in [
        |back: &mut Url| back.set_query(Some("code=hush-code&iss=https://as.example")),
        |back: &mut Url| {
            back.query_pairs_mut().clear().extend_pairs([("state", "x"), ("code", "hush"), ("iss", ISSUER)]);
        },
        |back: &mut Url| back.set_path("/callback/more"),
        |back: &mut Url| back.set_host(Some("localhost")).unwrap(),
        |back: &mut Url| back.set_port(Some(7778)).unwrap(),
        |back: &mut Url| back.set_username("me").unwrap(),
    ] {
        let (mut flow, sent) = sent_out(&mut servers);
        let mut back = servers.comes_back(&sent);
        assert!(flow.awaits_redirect(&back));
        spoil(&mut back);
        assert!(!flow.awaits_redirect(&back), "{back}");
        assert_eq!(failure(flow.on_redirect(&back, NOW)), FlowErrorKind::InvalidRedirect, "{back}");
    }
}

#[test]
fn concurrent_logins_do_not_mix() {
    let mut servers = servers();
    let (mut one, to_one) = sent_out(&mut servers);
    let (mut other, to_other) = sent_out(&mut servers);
    let (back_one, back_other) = (servers.comes_back(&to_one), servers.comes_back(&to_other));
    assert!(one.awaits_redirect(&back_one) && !one.awaits_redirect(&back_other));
    assert!(other.awaits_redirect(&back_other) && !other.awaits_redirect(&back_one));
    // The second comes back first.
    for (flow, sent, back) in [(&mut other, &to_other, &back_other), (&mut one, &to_one, &back_one)] {
        let FlowAction::Fetch(request) = flow.on_redirect(back, NOW) else { panic!("no request") };
        servers.answer(request).unwrap();
        let seen = servers.last_to("https://as.example/token");
        let (_, challenge) = sent.query_pairs().find(|(name, _)| name == "code_challenge").unwrap();
        assert!(pkce::proves(&seen.field("code_verifier").unwrap(), &challenge));
    }
    let (mut third, _) = sent_out(&mut servers);
    assert_eq!(failure(third.on_redirect(&back_one, NOW)), FlowErrorKind::InvalidRedirect);
}

#[test]
fn a_redirect_is_accepted_once() {
    let mut servers = servers();
    let (mut flow, sent) = sent_out(&mut servers);
    let back = servers.comes_back(&sent);
    assert!(matches!(flow.on_redirect(&back, NOW), FlowAction::Fetch(_)));
    assert!(!flow.awaits_redirect(&back));
    assert_eq!(failure(flow.on_redirect(&back, NOW)), FlowErrorKind::OutOfOrder);
    let mut fresh = Flow::start(flow_request(), StoredState::default(), NOW).0;
    assert_eq!(failure(fresh.on_redirect(&back, NOW)), FlowErrorKind::OutOfOrder);
    assert_eq!(failure(fresh.on_stored(NOW)), FlowErrorKind::OutOfOrder);
}

#[test]
fn overlong_scope_lists_are_not_requested() {
    let many: Vec<String> = (0..20_000).map(|number| format!("s{number}")).collect();
    let mut servers = servers();
    servers.json(PATH_METADATA, &with(resource(), &json!({ "scopes_supported": many })));
    servers.json("https://as.example/token", &with(tokens(), &json!({ "scope": many.join(" ") })));
    let grant = servers.run(flow_request()).unwrap();
    assert_eq!(servers.parameter("scope"), None);
    assert_eq!(grant.scope.iter().count(), 1000);
}

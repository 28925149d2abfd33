//! What people are sent out with, and what their browsers may come back with.

use serde_json::json;

use super::*;
use crate::pkce;

#[test]
fn people_are_sent_with_all_that_protects_them() {
    let mut world = world();
    let endpoint =
        "https://as.example/authorize?tenant=x&state=theirs&redirect_uri=https%3A%2F%2Fevil.example";
    world.json(SERVER_METADATA, &with(server(), &json!({ "authorization_endpoint": endpoint })));
    world.run(wanted()).unwrap();
    let parameter = |name: &str| world.parameter(name);
    assert_eq!(parameter("response_type").unwrap(), "code");
    assert_eq!(parameter("client_id").unwrap(), "dynamic");
    assert_eq!(parameter("redirect_uri").unwrap(), REDIRECT);
    assert_eq!(parameter("resource").unwrap(), SERVER);
    assert_eq!(parameter("code_challenge_method").unwrap(), "S256");
    assert_eq!(parameter("tenant").unwrap(), "x");
    assert_eq!((parameter("scope"), parameter("prompt"), parameter("dpop_jkt")), (None, None, None));
    assert!(parameter("state").unwrap().len() >= 43);
    let names = world.browsed[0].query_pairs().filter(|(name, _)| name == "state").count();
    assert_eq!(names, 1);
    let asked = world.last_to("https://as.example/token");
    assert!(pkce::proves(&asked.field("code_verifier").unwrap(), &parameter("code_challenge").unwrap()));
    assert_eq!(asked.field("grant_type").unwrap(), "authorization_code");
    assert_eq!(
        (asked.field("code").unwrap(), asked.field("redirect_uri").unwrap()),
        ("hush-code".into(), REDIRECT.into())
    );
    assert_eq!(asked.field("resource").unwrap(), SERVER);
}

#[test]
fn scopes_come_from_the_challenge_else_from_the_metadata_else_from_nowhere() {
    let mut world = world();
    let mut asked_for = |wanted: Wanted| {
        let grant = world.run(wanted).unwrap();
        assert_eq!(grant.asked.to_string(), world.parameter("scope").unwrap_or_default());
        world.parameter("scope")
    };
    assert_eq!(asked_for(challenged("Bearer scope=\"mcp:basic\"")).as_deref(), Some("mcp:basic"));
    assert_eq!(asked_for(wanted()), None);
    let own = Wanted { scopes: scopes("mine"), ..challenged("Bearer scope=\"mcp:basic\"") };
    assert_eq!(asked_for(own).as_deref(), Some("mine mcp:basic"));
    world.json(PATH_METADATA, &with(resource(), &json!({ "scopes_supported": ["b", "a", "c", "\"x"] })));
    let mut asked_for = |wanted: Wanted| {
        world.run(wanted).unwrap();
        world.parameter("scope")
    };
    assert_eq!(asked_for(wanted()).as_deref(), Some("b a c"));
    assert_eq!(asked_for(challenged("Bearer scope=\"mcp:basic\"")).as_deref(), Some("mcp:basic"));
    assert_eq!(asked_for(Wanted { scopes: scopes("mine"), ..wanted() }).as_deref(), Some("mine"));
    let many: Vec<String> = (0..5000).map(|number| format!("scope{number}")).collect();
    world.json(PATH_METADATA, &with(resource(), &json!({ "scopes_supported": many })));
    world.run(wanted()).unwrap();
    assert_eq!(world.parameter("scope"), None);
}

#[test]
fn stepping_up_asks_for_the_earlier_scopes_too() {
    let mut world = world();
    let grant = world.run(challenged("Bearer scope=\"mcp:basic\"")).unwrap();
    let challenge = "Bearer error=\"insufficient_scope\", scope=\"mcp:write\"";
    let wanted = Wanted { refusal: refused(403, challenge), earlier: scopes("mcp:old"), ..wanted() };
    let known = Known { grant: Some(grant), ..Known::default() };
    let stepped = world.run_knowing(wanted, known).unwrap();
    // Renewing would not bring more, so a person is asked.
    assert_eq!(world.browsed.len(), 2);
    assert_eq!(world.parameter("scope").unwrap(), "mcp:basic mcp:old mcp:write");
    assert!(stepped.scope.cover(&scopes("mcp:basic mcp:write")));
}

#[test]
fn offline_access_is_asked_for_only_where_it_is_known() {
    let mut world = world();
    let plain = with(resource(), &json!({ "scopes_supported": ["a", "offline_access"] }));
    world.json(PATH_METADATA, &plain);
    world.run(wanted()).unwrap();
    assert_eq!(world.parameter("scope").unwrap(), "a");
    world.run(challenged("Bearer scope=\"a offline_access\"")).unwrap();
    assert_eq!(world.parameter("scope").unwrap(), "a");
    world.json(SERVER_METADATA, &with(server(), &json!({ "scopes_supported": ["a", "offline_access"] })));
    world.run(challenged("Bearer scope=\"b\"")).unwrap();
    assert_eq!(
        (world.parameter("scope").unwrap(), world.parameter("prompt").unwrap()),
        ("b offline_access".into(), "consent".into())
    );
    world.run(Wanted { offline: false, ..challenged("Bearer scope=\"b\"") }).unwrap();
    assert_eq!(world.parameter("scope").unwrap(), "b");
    world.json(PATH_METADATA, &resource());
    world.run(wanted()).unwrap();
    assert_eq!(world.parameter("scope"), None);
}

/// Runs a login whose browser comes back with this; nothing may be asked at the token endpoint if it is refused.
fn comes_back(metadata: &Value, back: &[(&'static str, &str)]) -> Result<Grant, FlowError> {
    let mut world = world();
    world.json(SERVER_METADATA, &with(server(), metadata));
    world.back = back.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    let ended = world.run(wanted());
    assert_eq!(world.browsed.len(), 1);
    assert_eq!(world.to("https://as.example/token").count(), usize::from(ended.is_ok()));
    ended
}

#[test]
fn who_answers_is_checked_before_anything_else() {
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
        // A refusal of somebody else is not shown either.
        (json!({}), vec![("error", "access_denied"), ("iss", "https://evil.example.com")]),
        (json!({}), vec![("error", "access_denied"), ("error_description", "call 555 1234")]),
    ] {
        let error = comes_back(&metadata, &back).unwrap_err();
        assert!(matches!(error, FlowError::WrongIssuer { .. }), "{back:?}: {error:?}");
        assert!(error.blame() == Blame::Meddler && !error.to_string().contains("555"));
    }
}

#[test]
fn what_says_things_twice_or_not_at_all_is_refused() {
    let iss = ("iss", ISSUER);
    for back in [
        vec![iss],
        vec![iss, ("code", "")],
        vec![iss, ("code", "hush-1"), ("code", "hush-2")],
        vec![iss, iss, ("code", "hush-1")],
        vec![iss, ("code", "hush-1"), ("state", "x")],
    ] {
        let error = comes_back(&json!({}), &back).unwrap_err();
        assert!(matches!(error, FlowError::NotOurs(_)), "{error:?}");
    }
}

#[test]
fn a_refusal_says_who_refused() {
    let back = [("iss", ISSUER), ("error", "access_denied"), ("error_description", "no\r\nway")];
    let error = comes_back(&json!({}), &back).unwrap_err();
    assert!(error.blame() == Blame::Person && error.to_string().contains("access_denied: no  way"));
    let error = comes_back(&json!({}), &[("iss", ISSUER), ("error", "server_error")]).unwrap_err();
    assert_eq!(error.blame(), Blame::Issuer);
    let both = [("iss", ISSUER), ("error", "server_error"), ("code", "hush-code")];
    assert!(matches!(comes_back(&json!({}), &both), Err(FlowError::Denied { .. })));
}

/// A login up to where a person is sent out.
fn sent_out(world: &mut World) -> (Flow, Url) {
    let (mut flow, mut next) = Flow::begin(wanted(), Known::default(), NOW);
    loop {
        next = match next {
            Next::Fetch(request) => {
                let answer = world.answer(request);
                flow.fetched(answer, NOW)
            }
            Next::Save(_) => flow.saved(NOW),
            Next::Browse(url) => return (flow, url),
            other => panic!("{other:?}"),
        };
    }
}

#[test]
fn states_are_compared_exactly_and_places_too() {
    let mut world = world();
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
        let (mut flow, sent) = sent_out(&mut world);
        let mut back = world.comes_back(&sent);
        assert!(flow.awaits(&back));
        spoil(&mut back);
        assert!(!flow.awaits(&back), "{back}");
        assert!(matches!(flow.returned(&back, NOW), Next::Failed(FlowError::NotOurs(_))), "{back}");
    }
}

#[test]
fn logins_side_by_side_do_not_mix() {
    let mut world = world();
    let (mut one, to_one) = sent_out(&mut world);
    let (mut other, to_other) = sent_out(&mut world);
    let (back_one, back_other) = (world.comes_back(&to_one), world.comes_back(&to_other));
    assert!(one.awaits(&back_one) && !one.awaits(&back_other));
    assert!(other.awaits(&back_other) && !other.awaits(&back_one));
    // The second comes back first.
    for (flow, sent, back) in [(&mut other, &to_other, &back_other), (&mut one, &to_one, &back_one)] {
        let Next::Fetch(request) = flow.returned(back, NOW) else { panic!("no request") };
        world.answer(request).unwrap();
        let seen = world.last_to("https://as.example/token");
        let (_, challenge) = sent.query_pairs().find(|(name, _)| name == "code_challenge").unwrap();
        assert!(pkce::proves(&seen.field("code_verifier").unwrap(), &challenge));
    }
    let (mut third, _) = sent_out(&mut world);
    assert!(matches!(third.returned(&back_one, NOW), Next::Failed(FlowError::NotOurs(_))));
}

#[test]
fn a_callback_counts_once() {
    let mut world = world();
    let (mut flow, sent) = sent_out(&mut world);
    let back = world.comes_back(&sent);
    assert!(matches!(flow.returned(&back, NOW), Next::Fetch(_)));
    assert!(!flow.awaits(&back));
    assert!(matches!(flow.returned(&back, NOW), Next::Failed(FlowError::OutOfTurn)));
    let mut fresh = Flow::begin(wanted(), Known::default(), NOW).0;
    assert!(matches!(fresh.returned(&back, NOW), Next::Failed(FlowError::OutOfTurn)));
    assert!(matches!(fresh.saved(NOW), Next::Failed(FlowError::OutOfTurn)));
}

#[test]
fn scopes_without_end_are_neither_asked_for_nor_kept() {
    let many: Vec<String> = (0..20_000).map(|number| format!("s{number}")).collect();
    let mut world = world();
    world.json(PATH_METADATA, &with(resource(), &json!({ "scopes_supported": many })));
    world.json("https://as.example/token", &with(tokens(), &json!({ "scope": many.join(" ") })));
    let grant = world.run(wanted()).unwrap();
    assert_eq!(world.parameter("scope"), None);
    assert_eq!(grant.scope.iter().count(), 1000);
}

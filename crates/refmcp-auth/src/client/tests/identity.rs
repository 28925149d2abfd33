//! Who we are, and to whom.

use serde_json::json;

use super::*;
use crate::metadata::Registered;

fn registered(changes: &Value) -> Registered {
    let all = with(json!({ "client_id": "earlier", "redirect_uris": [REDIRECT] }), changes);
    serde_json::from_value(all).unwrap()
}

fn knowing(registered: Registered) -> Known {
    let mut known = Known::default();
    known.registrations.insert(ISSUER.to_owned(), registered);
    known
}

const DOCUMENT: &str = "https://client.example/client.json";

fn with_all() -> Wanted {
    let mut wanted = wanted();
    wanted.identity.registered = Some(PreRegistered::new("before", Some(Secret::new("hush-secret"))));
    wanted.identity.document = Some(url(DOCUMENT));
    wanted
}

#[test]
fn identities_are_tried_in_order() {
    let mut world = world();
    world.json(SERVER_METADATA, &with(server(), &json!({ "client_id_metadata_document_supported": true })));
    let mut wanted = with_all();
    let mut known = knowing(registered(&json!({})));
    let mut used = |wanted: &Wanted, known: &Known| {
        world.run_knowing(wanted.clone(), known.clone()).unwrap().client_id.unwrap()
    };
    assert_eq!(used(&wanted, &known), "before");
    wanted.identity.registered = None;
    assert_eq!(used(&wanted, &known), DOCUMENT);
    wanted.identity.document = None;
    assert_eq!(used(&wanted, &known), "earlier");
    known.registrations.clear();
    assert_eq!(used(&wanted, &known), "dynamic");
}

#[test]
fn a_document_is_named_only_to_those_who_read_such() {
    let mut world = world();
    let mut wanted = wanted();
    wanted.identity.document = Some(url(DOCUMENT));
    assert_eq!(world.run(wanted.clone()).unwrap().client_id.as_deref(), Some("dynamic"));
    world.json(SERVER_METADATA, &with(server(), &json!({ "client_id_metadata_document_supported": true })));
    for bad in ["http://localhost/client.json", "https://client.example/"] {
        wanted.identity.document = Some(url(bad));
        assert!(matches!(world.run(wanted.clone()), Err(FlowError::NoIdentity { .. })), "{bad}");
    }
}

#[test]
fn a_registration_tells_what_it_has_to() {
    let mut world = world();
    world.json(SERVER_METADATA, &with(server(), &json!({ "scopes_supported": ["a", "offline_access"] })));
    let mut wanted = challenged("Bearer scope=\"a\"");
    wanted.identity.dynamic =
        Some(ClientMetadata { client_name: Some("we".into()), ..ClientMetadata::default() });
    world.run(wanted.clone()).unwrap();
    let seen = world.last_to("https://as.example/register");
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
    wanted.way = Way::Code { redirect_uri: url("https://app.example/callback") };
    world.run(wanted).unwrap();
    assert_eq!(world.last_to("https://as.example/register").json()["application_type"], "web");
}

#[test]
fn a_registration_is_kept_by_issuer_before_it_is_used() {
    let mut world = world();
    world.run(wanted()).unwrap();
    match &world.saved[0] {
        Save::Registration { issuer, registered } => {
            assert_eq!((issuer.as_str(), registered.client_id.as_str()), (ISSUER, "dynamic"));
            // It can be found again by where people are sent back to, also when the server does not repeat it.
            assert_eq!(registered.metadata.redirect_uris, [REDIRECT]);
        }
        other => panic!("{other:?}"),
    }
    let known = knowing(registered(&json!({})));
    world.seen.clear();
    world.run_knowing(wanted(), known).unwrap();
    assert!(!world.asked().contains(&"https://as.example/register"));
}

#[test]
fn a_registration_that_is_over_or_for_another_place_is_made_anew() {
    for changes in [
        json!({ "client_secret": "hush-secret", "client_secret_expires_at": NOW }),
        json!({ "redirect_uris": ["http://127.0.0.1:1/callback"] }),
        json!({ "redirect_uris": ["http://localhost:7777/callback"] }),
    ] {
        let mut world = world();
        let grant = world.run_knowing(wanted(), knowing(registered(&changes))).unwrap();
        assert_eq!(grant.client_id.as_deref(), Some("dynamic"), "{changes}");
    }
    for changes in [
        json!({ "client_secret": "hush-secret", "client_secret_expires_at": 0 }),
        json!({ "client_secret": "hush-secret", "client_secret_expires_at": NOW + 1 }),
        json!({ "client_secret_expires_at": 1 }),
    ] {
        let mut world = world();
        let grant = world.run_knowing(wanted(), knowing(registered(&changes))).unwrap();
        assert_eq!(grant.client_id.as_deref(), Some("earlier"), "{changes}");
    }
}

#[test]
fn a_refused_registration_says_what_can_be_done() {
    for (body, redirect) in [
        (r#"{"error":"invalid_redirect_uri","error_description":"no loopback"}"#, true),
        (r#"{"error":"invalid_client_metadata"}"#, false),
        ("<html>", false),
    ] {
        let mut world = world();
        world.raw("https://as.example/register", 400, &[], body);
        let error = world.run(wanted()).unwrap_err();
        assert!(
            matches!(&error, FlowError::Unregistered { redirect: about, .. } if *about == redirect),
            "{error:?}"
        );
        assert!(error.advice().contains("by hand") && error.advice().contains("redirect URI") == redirect);
    }
    for body in ["{}", "[]", r#"{"client_id":""}"#, r#"{"client_id":"a\nb"}"#, r#"{"client_id":7}"#] {
        let mut world = world();
        world.raw("https://as.example/register", 201, &[], body);
        assert!(matches!(world.run(wanted()), Err(FlowError::Unregistered { .. })), "{body}");
    }
    let mut world = world();
    world.json(
        "https://as.example/register",
        &json!({ "client_id": "x", "redirect_uris": ["https://evil.example"] }),
    );
    assert!(matches!(world.run(wanted()), Err(FlowError::Unregistered { redirect: true, .. })));
    assert!(world.browsed.is_empty());
}

#[test]
fn without_any_identity_the_error_says_what_to_do() {
    let mut world = world();
    world.json(SERVER_METADATA, &with(server(), &json!({ "registration_endpoint": null })));
    let error = world.run(wanted()).unwrap_err();
    assert!(matches!(error, FlowError::NoIdentity { .. }));
    assert_eq!(error.blame(), Blame::Settings);
    assert!(error.advice().contains("give its id"));
    world.json(SERVER_METADATA, &server());
    let unwilling = Wanted { identity: Identity::default(), ..wanted() };
    assert!(matches!(world.run(unwilling), Err(FlowError::NoIdentity { .. })));
}

#[test]
fn a_client_of_one_issuer_is_not_shown_to_another() {
    let mut world = world();
    let mut wanted = with_all();
    let grant = world.run(wanted.clone()).unwrap();
    world
        .json(PATH_METADATA, &with(resource(), &json!({ "authorization_servers": ["https://as2.example"] })));
    world.json(
        "https://as2.example/.well-known/oauth-authorization-server",
        &server_at("https://as2.example"),
    );
    world.seen.clear();
    let known = Known { grant: Some(grant), ..Known::default() };
    let error = world.run_knowing(wanted.clone(), known).unwrap_err();
    assert!(matches!(error, FlowError::OtherClient { .. }), "{error:?}");
    wanted.identity.registered.as_mut().unwrap().issuer = Some(ISSUER.to_owned());
    assert!(matches!(world.run(wanted), Err(FlowError::OtherClient { .. })));
    assert!(world.browsed.len() == 1 && world.asked().iter().all(|asked| asked.contains("well-known")));
}

/// The server trusts these now, and all of them are there.
fn trusting(issuers: &[&str]) -> World {
    let mut world = world();
    world.json(PATH_METADATA, &with(resource(), &json!({ "authorization_servers": issuers })));
    for issuer in issuers {
        world.json(&format!("{issuer}/.well-known/oauth-authorization-server"), &server_at(issuer));
        world.json(&format!("{issuer}/token"), &tokens());
    }
    world
}

const SECOND: &str = "https://as2.example";

#[test]
fn a_client_stays_with_its_issuer_when_its_grant_is_of_no_interest() {
    let grant = world().run(with_all()).unwrap();
    let known = Known { used: Used::of(&grant), ..Known::default() };
    assert_eq!(known.used, Some(Used { client_id: "before".into(), issuer: ISSUER.into() }));
    for way in [with_all().way, Way::ClientCredentials] {
        let mut world = trusting(&[SECOND]);
        let wanted = Wanted { way, ..with_all() };
        let error = world.run_knowing(wanted, known.clone()).unwrap_err();
        assert!(matches!(&error, FlowError::OtherClient { of, .. } if of == ISSUER), "{error:?}");
        assert!(world.browsed.is_empty() && world.to(&format!("{SECOND}/token")).count() == 0);
    }
    // Another client is not meant, and one whose issuer is named goes there.
    let mut other = with_all();
    other.identity.registered = Some(PreRegistered::new("other", None));
    let mut named = with_all();
    named.identity.registered.as_mut().unwrap().issuer = Some(SECOND.into());
    for wanted in [other, named] {
        let mut world = trusting(&[SECOND]);
        world.back = vec![("code", "hush-code".into()), ("iss", SECOND.into())];
        assert_eq!(world.run_knowing(wanted, known.clone()).unwrap().issuer, SECOND);
    }
}

#[test]
fn of_several_authorization_servers_the_one_that_knows_our_client_is_asked() {
    let grant = world().run(with_all()).unwrap();
    let mut known = Known { used: Used::of(&grant), ..Known::default() };
    known.registrations.insert(SECOND.to_owned(), registered(&json!({})));
    let mut world = trusting(&[SECOND, ISSUER]);
    assert_eq!(world.run_knowing(with_all(), known).unwrap().issuer, ISSUER);
}

#[test]
fn a_grant_of_another_issuer_is_not_renewed_with_the_secret_of_a_client_that_is_not_its() {
    let mut wanted = with_all();
    wanted.identity.registered.as_mut().unwrap().method = Some(AuthMethod::Basic);
    let mut world = world();
    let grant = world.run(wanted.clone()).unwrap();
    world.refresh(&grant, &wanted.identity).unwrap();
    world.seen.clear();
    wanted.identity.registered.as_mut().unwrap().issuer = Some(SECOND.to_owned());
    let error = world.refresh(&grant, &wanted.identity).unwrap_err();
    assert!(matches!(error, FlowError::CannotProve { .. }) && world.seen.is_empty(), "{error:?}");
}

#[test]
fn what_could_change_a_registration_is_not_kept() {
    let mut world = world();
    let answer = json!({ "client_id": "d", "registration_access_token": "hush-rat", "strange": "hush" });
    world.json("https://as.example/register", &answer);
    world.run(wanted()).unwrap();
    match &world.saved[0] {
        Save::Registration { registered, .. } => {
            let names: Vec<&String> = registered.metadata.more.keys().collect();
            assert_eq!(names, ["strange"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_that_always_proves_possession_says_so_when_it_registers() {
    const BOUND: &str = "dpop_bound_access_tokens";
    let mut world = world();
    world.json("https://as.example/token", &with(tokens(), &json!({ "token_type": "DPoP" })));
    world.run(Wanted { proofs: Proofs::Always, ..wanted() }).unwrap();
    assert_eq!(world.last_to("https://as.example/register").json()[BOUND], true);
    let Save::Registration { registered, .. } = world.saved.remove(0) else { panic!("{:?}", world.saved) };
    let again =
        world.run_knowing(Wanted { proofs: Proofs::Always, ..wanted() }, knowing(*registered.clone()));
    assert_eq!(
        (again.unwrap().token_type, world.to("https://as.example/register").count()),
        (TokenType::Dpop, 1)
    );
    // Such a client gets no other tokens, so that for those there has to be another.
    world.json("https://as.example/token", &tokens());
    world.run_knowing(wanted(), knowing(*registered)).unwrap();
    assert_eq!(world.to("https://as.example/register").count(), 2);
    assert_eq!(world.last_to("https://as.example/register").json().get(BOUND), None);
}

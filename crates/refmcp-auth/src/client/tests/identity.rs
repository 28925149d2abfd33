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

#[test]
fn a_client_that_was_forgotten_registers_again_once() {
    let mut world = world();
    world.raw("https://as.example/token", 401, &[], r#"{"error":"invalid_client"}"#);
    world.also("https://as.example/token", 200, &[], &tokens().to_string());
    let grant = world.run_knowing(wanted(), knowing(registered(&json!({})))).unwrap();
    assert_eq!((grant.client_id.as_deref(), world.browsed.len()), (Some("dynamic"), 2));
    world.raw("https://as.example/token", 401, &[], r#"{"error":"invalid_client"}"#);
    world.browsed.clear();
    let error = world.run_knowing(wanted(), knowing(registered(&json!({})))).unwrap_err();
    assert!(matches!(error, FlowError::Refused { .. }) && world.browsed.len() == 2);
}

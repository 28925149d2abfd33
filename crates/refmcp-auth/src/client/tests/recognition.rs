//! Clients that registered themselves and may have been forgotten since.

use serde_json::json;

use super::*;
use crate::fetch::Unfetched;
use crate::metadata::Registered;

const TOKEN: &str = "https://as.example/token";
const REGISTER: &str = "https://as.example/register";
const NO_SUCH_CODE: &str = r#"{"error":"invalid_grant"}"#;
const UNKNOWN: &str = r#"{"error":"invalid_client"}"#;

fn knowing() -> Known {
    let registered = json!({ "client_id": "earlier", "redirect_uris": [REDIRECT] });
    let registered: Registered = serde_json::from_value(registered).unwrap();
    Known { registrations: [(ISSUER.to_owned(), registered)].into(), ..Known::default() }
}

/// A world whose token endpoint answers so the first time, and gives tokens from then on.
fn saying(status: u16, body: &str) -> World {
    let mut world = world();
    world.raw(TOKEN, status, &[], body);
    world.also(TOKEN, 200, &[], &tokens().to_string());
    world
}

/// What was saved, by kind and client.
fn saved(world: &World) -> Vec<(&str, &str)> {
    let told = world.saved.iter().map(|save| match save {
        Save::Registration { registered, .. } => ("registration", registered.client_id.as_str()),
        Save::NoRegistration { client_id, .. } => ("none", client_id.as_str()),
        Save::Grant(grant) => ("grant", grant.client_id.as_deref().unwrap()),
    });
    told.collect()
}

#[test]
fn a_client_that_was_forgotten_registers_again_before_anybody_is_sent_out() {
    for (status, body) in [(401, UNKNOWN), (400, UNKNOWN), (400, r#"{"error":"unauthorized_client"}"#)] {
        let mut world = saying(status, body);
        let grant = world.run_knowing(wanted(), knowing()).unwrap();
        assert_eq!((grant.client_id.as_deref(), world.browsed.len()), (Some("dynamic"), 1), "{body}");
        assert_eq!(world.parameter("client_id").unwrap(), "dynamic");
        assert_eq!(saved(&world), [("registration", "dynamic"), ("grant", "dynamic")]);
        let [asked, redeemed] = world.to(TOKEN).collect::<Vec<_>>()[..] else {
            panic!("{:?}", world.asked())
        };
        assert_eq!(asked.field("client_id").unwrap(), "earlier");
        assert_eq!(asked.field("grant_type").unwrap(), "authorization_code");
        // What is asked with is nobody's, and not used in earnest.
        for field in ["code", "code_verifier"] {
            assert_ne!(asked.field(field), redeemed.field(field));
            assert!(asked.field(field).unwrap().len() >= 43);
        }
    }
}

#[test]
fn a_client_that_is_still_known_stays_who_it_is() {
    let mut world = saying(400, NO_SUCH_CODE);
    let grant = world.run_knowing(wanted(), knowing()).unwrap();
    assert_eq!((grant.client_id.as_deref(), world.to(REGISTER).count()), (Some("earlier"), 0));
    assert!(
        world.steps.iter().any(|step| step.contains(&format!("at {TOKEN}: we are\n"))),
        "{:?}",
        world.steps
    );
    // Put aside before the person leaves, and kept again when they are back.
    assert_eq!(saved(&world), [("none", "earlier"), ("registration", "earlier"), ("grant", "earlier")]);
}

#[test]
fn what_says_nothing_about_us_is_no_reason_not_to_try() {
    for (status, body) in [
        (503, ""),
        (400, r#"{"error":"invalid_request"}"#),
        (200, "<html>"),
        (503, UNKNOWN),
        (200, &*tokens().to_string()),
    ] {
        let mut world = saying(status, body);
        let grant = world.run_knowing(wanted(), knowing()).unwrap();
        assert_eq!(
            (grant.client_id.as_deref(), world.browsed.len()),
            (Some("earlier"), 1),
            "{status} {body}"
        );
    }
    let mut world = world();
    world.fault(TOKEN, Unfetched::Unreachable("gone".to_owned()));
    assert!(world.run_knowing(wanted(), knowing()).is_err());
    assert_eq!(world.browsed.len(), 1);
}

#[test]
fn with_a_client_from_whom_nobody_came_back_nobody_is_sent_out_again() {
    // This one does not say that it does not know us.
    let mut world = saying(400, NO_SUCH_CODE);
    let (mut flow, mut next) = Flow::begin(wanted(), knowing(), NOW);
    let mut known = knowing();
    while !matches!(next, Next::Browse(_)) {
        next = match next {
            Next::Fetch(request) => flow.fetched(world.answer(request), NOW),
            Next::Save(Save::NoRegistration { issuer, client_id }) => {
                let gone = known.registrations.remove(&issuer).unwrap();
                assert_eq!(gone.client_id, client_id);
                flow.saved(NOW)
            }
            other => panic!("{other:?}"),
        };
    }
    let grant = world.run_knowing(wanted(), known).unwrap();
    assert_eq!(grant.client_id.as_deref(), Some("dynamic"));
    // Somebody who did not go says nothing about the client.
    let kept = flow.stayed();
    assert!(
        matches!(&kept, Some(Save::Registration { registered, .. }) if registered.client_id == "earlier"),
        "{kept:?}"
    );
    assert_eq!(flow.stayed(), None);
}

#[test]
fn a_client_that_is_sent_back_as_unknown_registers_again_once() {
    for error in ["invalid_client", "unauthorized_client"] {
        let mut world = saying(400, NO_SUCH_CODE);
        world.back = vec![("error", error.into()), ("iss", ISSUER.into())];
        let error = world.run_knowing(wanted(), knowing()).unwrap_err();
        assert!(matches!(error, FlowError::Denied { .. }), "{error:?}");
        assert_eq!((world.browsed.len(), world.to(REGISTER).count()), (2, 1));
        assert_eq!(saved(&world), [("none", "earlier"), ("registration", "dynamic")]);
    }
    // Somebody else's word is not believed.
    let mut world = saying(400, NO_SUCH_CODE);
    world.back = vec![("error", "invalid_client".into()), ("iss", "https://evil.example".into())];
    let error = world.run_knowing(wanted(), knowing()).unwrap_err();
    assert!(matches!(error, FlowError::WrongIssuer { .. }) && world.browsed.len() == 1, "{error:?}");
}

#[test]
fn a_person_who_says_no_was_asked_by_a_client_that_is_known() {
    let mut world = saying(400, NO_SUCH_CODE);
    world.back = vec![("error", "access_denied".into()), ("iss", ISSUER.into())];
    let error = world.run_knowing(wanted(), knowing()).unwrap_err();
    assert_eq!(error.blame(), Blame::Person);
    assert_eq!(saved(&world), [("none", "earlier"), ("registration", "earlier")]);
}

#[test]
fn a_client_that_is_forgotten_amid_a_login_registers_again_once() {
    let mut world = saying(400, NO_SUCH_CODE);
    world.raw(TOKEN, 400, &[], NO_SUCH_CODE);
    world.also(TOKEN, 401, &[], UNKNOWN);
    world.also(TOKEN, 200, &[], &tokens().to_string());
    let grant = world.run_knowing(wanted(), knowing()).unwrap();
    assert_eq!((grant.client_id.as_deref(), world.browsed.len()), (Some("dynamic"), 2));
    // One that knows nobody is not asked for ever.
    world.raw(TOKEN, 401, &[], UNKNOWN);
    world.seen.clear();
    let error = world.run_knowing(wanted(), knowing()).unwrap_err();
    assert!(matches!(error, FlowError::Refused { .. }), "{error:?}");
    assert_eq!((world.browsed.len(), world.to(TOKEN).count(), world.to(REGISTER).count()), (3, 2, 1));
}

#[test]
fn nobody_asks_where_it_is_known_already() {
    let mut world = world();
    let grant = world.run_knowing(Wanted { refusal: refused(401, "Bearer"), ..wanted() }, knowing()).unwrap();
    assert_eq!((grant.client_id.as_deref(), world.to(TOKEN).count()), (Some("earlier"), 2));
    // A token that is good, and not good enough, was given to somebody who is known.
    let more =
        Wanted { refusal: refused(403, "Bearer error=\"insufficient_scope\", scope=\"b\""), ..wanted() };
    world.seen.clear();
    world.run_knowing(more.clone(), Known { grant: Some(grant.clone()), ..knowing() }).unwrap();
    assert_eq!(world.to(TOKEN).count(), 1);
    // Another client's says nothing about this one.
    let other = Grant { client_id: Some("other".into()), ..grant.clone() };
    world.seen.clear();
    world.run_knowing(more, Known { grant: Some(other), ..knowing() }).unwrap();
    assert_eq!(world.to(TOKEN).count(), 2);
    // A renewal that is refused says as much.
    world.raw(TOKEN, 400, &[], NO_SUCH_CODE);
    world.also(TOKEN, 200, &[], &tokens().to_string());
    world.seen.clear();
    world.run_knowing(wanted(), Known { grant: Some(grant.clone()), ..knowing() }).unwrap();
    assert_eq!((world.to(TOKEN).count(), world.to(REGISTER).count()), (2, 0));
    world.raw(TOKEN, 400, &[], UNKNOWN);
    world.also(TOKEN, 200, &[], &tokens().to_string());
    world.seen.clear();
    world.run_knowing(wanted(), Known { grant: Some(grant), ..knowing() }).unwrap();
    assert_eq!((world.to(TOKEN).count(), world.to(REGISTER).count()), (2, 1));
}

#[test]
fn whoever_wants_proofs_is_asked_with_one() {
    let mut world = world();
    world.raw(TOKEN, 400, &[("dpop-nonce", "n")], r#"{"error":"use_dpop_nonce"}"#);
    world.also(TOKEN, 400, &[], UNKNOWN);
    world.also(TOKEN, 200, &[], &with(tokens(), &json!({ "token_type": "DPoP" })).to_string());
    let grant = world.run_knowing(Wanted { proofs: Proofs::Always, ..wanted() }, knowing()).unwrap();
    assert_eq!((grant.client_id.as_deref(), world.browsed.len()), (Some("dynamic"), 1));
    assert!(world.to(TOKEN).all(|asked| asked.header("dpop").is_some()));
}

#[test]
fn clients_that_did_not_register_themselves_are_not_asked_about() {
    let mut world = world();
    let mut before = wanted();
    before.identity.registered = Some(PreRegistered::new("before", None));
    world.run_knowing(before, knowing()).unwrap();
    world.json(SERVER_METADATA, &with(server(), &json!({ "client_id_metadata_document_supported": true })));
    let mut document = wanted();
    document.identity.document = Some(url("https://client.example/client.json"));
    world.run_knowing(document, knowing()).unwrap();
    assert_eq!(world.to(TOKEN).count(), 2);
    assert!(world.saved.iter().all(|save| matches!(save, Save::Grant(_))), "{:?}", world.saved);
}

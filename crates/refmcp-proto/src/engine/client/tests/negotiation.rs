//! Version negotiation, and opening a lost session again.

use super::*;

#[test]
fn extensions_are_declared_only_in_revisions_that_have_them() {
    let extended = |version_policy| {
        let mut rig = Rig::new(|config| {
            config.version_policy = version_policy;
            config.capabilities.extensions = json!({ "com.example/x": {} }).as_object().cloned();
        });
        sent(&rig.seen()).clone()
    };
    let discover = extended(VersionPolicy::Modern);
    let told = &discover["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"];
    assert_eq!(told["extensions"], json!({ "com.example/x": {} }));
    for revision in Revision::ALL.into_iter().filter(|it| !it.rules().extensions) {
        let initialize = extended(VersionPolicy::Exactly(revision));
        let told = &initialize["params"]["capabilities"];
        assert_eq!(told.get("extensions"), None, "{revision:?}");
        assert!(told["roots"].is_object(), "{told}");
    }
}

#[test]
fn initialize_follows_a_discover_without_response() {
    let mut rig = Rig::new(|_| {});
    assert_eq!(sent(&rig.seen())["method"], "server/discover");
    assert_eq!(rig.pass(4_999), []);
    let seen = rig.pass(1);
    assert_eq!(seen[0], Seen::Abandoned(1));
    assert_eq!(sent(&seen)["method"], "initialize");
    assert_eq!(sent(&seen)["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(
        rig.hear(json!({ "id": 1, "error": { "code": -32601, "message": "late" } })),
        [],
        "the late answer to the first question changes nothing"
    );
    let seen = rig.hear(json!({ "id": 2, "result": initialized("2024-11-05") }));
    assert_eq!(sent(&seen)["method"], "notifications/initialized");
    assert_eq!(seen[1], Seen::Opened(Revision::V2024_11_05));
}

#[test]
fn the_probe_timeout_holds_only_where_initialize_can_follow() {
    let mut rig = Rig::new(|config| config.version_policy = VersionPolicy::Modern);
    rig.seen();
    assert_eq!(rig.pass(20_000), []);
    let needs_none = |id| json!({ "id": id, "error": { "code": -32022, "message": "no", "data": { "supported": ["2026-07-28", "2025-11-25"] } } });
    let mut rig = Rig::new(|_| {});
    rig.seen();
    rig.pass(5_000);
    assert!((2..5).all(|id| matches!(rig.hear(needs_none(id))[..], [Seen::Sent(_)])));
    assert!(matches!(rig.hear(needs_none(5))[..], [Seen::Closed(_)]));
}

#[test]
fn calls_wait_until_the_connection_is_open() {
    let mut rig = Rig::new(|config| config.version_policy = VersionPolicy::Legacy);
    rig.seen();
    let call = rig.call("tools/list", "{}", CallOptions::default());
    assert_eq!(rig.seen(), []);
    let seen = rig.hear(json!({ "id": 1, "result": initialized("2025-06-18") }));
    assert_eq!(
        seen.iter().filter(|seen| matches!(seen, Seen::Sent(message) if message["id"] == call)).count(),
        1
    );
    assert_eq!(
        rig.hear(json!({ "id": call, "result": { "tools": [] } })),
        [Seen::Done(call, Ok(json!({ "tools": [] })))]
    );
    assert_eq!(rig.engine.in_flight(), 0);
}

#[test]
fn a_failed_open_fails_waiting_calls() {
    let mut rig = Rig::new(|config| config.version_policy = VersionPolicy::Exactly(Revision::V2025_06_18));
    rig.seen();
    let call = rig.call("tools/list", "{}", CallOptions::default());
    let seen = rig.hear(json!({ "id": 1, "result": initialized("2099-01-01") }));
    let why = "no common revision: we speak 2025-06-18, the server 2099-01-01";
    let not_open = format!("the conversation is not open: {why}");
    assert_eq!(seen, [Seen::Done(call, Err(not_open.clone())), Seen::Closed(why.to_owned())]);
    let late = rig.call("ping", "{}", CallOptions::default());
    assert_eq!(rig.seen(), [Seen::Done(late, Err(not_open))]);
}

#[test]
fn a_lost_session_is_opened_once_more_and_nothing_is_repeated() {
    let mut rig = Rig::session();
    let (one, two) = (
        rig.call("tools/call", "{}", CallOptions::default()),
        rig.call("ping", "{}", CallOptions::default()),
    );
    rig.seen();
    rig.engine.ended(rig.now, ExchangeId(two), TransportError::SessionLost);
    let seen = rig.seen();
    let lost = "the server no longer knows the session".to_owned();
    assert_eq!(seen[..2], [Seen::Done(one, Err(lost.clone())), Seen::Done(two, Err(lost.clone()))]);
    assert_eq!(sent(&seen)["method"], "initialize");
    let id = sent(&seen)["id"].clone();
    let waiting = rig.call("tools/list", "{}", CallOptions::default());
    let seen = rig.hear(json!({ "id": id, "result": initialized("2025-11-25") }));
    assert!(matches!(seen.last(), Some(Seen::Sent(message)) if message["id"] == waiting), "{seen:?}");
    rig.engine.ended(rig.now, ExchangeId(one), TransportError::SessionLost);
    assert_eq!(rig.seen(), [], "what was sent before says nothing about the new session");
    rig.engine.ended(rig.now, ExchangeId(waiting), TransportError::SessionLost);
    assert_eq!(
        rig.seen(),
        [Seen::Done(waiting, Err(lost.clone())), Seen::Closed(lost)],
        "a session that is lost before anything came of it is not opened again"
    );
}

#[test]
fn a_connection_without_a_session_opens_none_when_one_is_said_to_be_lost() {
    let mut rig = Rig::stateless(TransportKind::Http);
    let call = rig.call("tools/list", "{}", CallOptions::default());
    rig.seen();
    rig.engine.ended(rig.now, ExchangeId(call), TransportError::SessionLost);
    let seen = rig.seen();
    assert!(matches!(&seen[..], [Seen::Done(ended, Err(_))] if *ended == call), "{seen:?}");
}

#[test]
fn a_session_whose_initialized_is_lost_is_given_up() {
    let lost = TransportError::Broken("reset".to_owned());
    let mut rig = Rig::new(|config| {
        config.version_policy = VersionPolicy::Legacy;
        config.transport = TransportKind::Http;
    });
    let call = rig.call("tools/list", "{}", CallOptions::default());
    rig.seen();
    let seen = rig.hear(json!({ "id": 1, "result": initialized("2025-11-25") }));
    assert_eq!(sent(&seen)["method"], "notifications/initialized");
    // The numbers of the attempt and of the call come before it.
    rig.engine.ended(rig.now, ExchangeId(3), lost.clone());
    let why = lost.to_string();
    assert_eq!(rig.seen(), [Seen::Done(call, Err(why.clone())), Seen::Closed(why)]);
    // Of any other notification nothing depends.
    let mut rig = Rig::session();
    rig.engine.notify("notifications/roots/list_changed", None);
    rig.seen();
    rig.engine.ended(rig.now, ExchangeId(3), lost);
    assert_eq!(rig.seen(), []);
    assert!(rig.engine.server().is_some());
}

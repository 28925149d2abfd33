//! Who is asked what, in which order, and what is not believed.

use serde_json::json;

use super::*;
use crate::fetch::Unfetched;

#[test]
fn a_login_asks_in_order_and_ends_with_a_grant() {
    let mut world = world();
    let challenge = format!("Bearer resource_metadata=\"{PATH_METADATA}\"");
    let grant = world.run(challenged(&challenge)).unwrap();
    assert_eq!(
        world.asked(),
        [PATH_METADATA, SERVER_METADATA, "https://as.example/register", "https://as.example/token"]
    );
    assert_eq!((grant.issuer.as_str(), grant.resource.as_str()), (ISSUER, SERVER));
    assert_eq!(grant.client_id.as_deref(), Some("dynamic"));
    assert_eq!((grant.expires_at, grant.token_type), (Some(NOW + 3600), TokenType::Bearer));
    assert!(grant.token.is("hush-token") && grant.refresh_token.as_ref().unwrap().is("hush-refresh"));
    assert_eq!(world.saved.last(), Some(&Save::Grant(Box::new(grant))));
    assert!(world.steps.iter().any(|step| step.contains(PATH_METADATA)));
    assert!(world.seen[..2].iter().all(|seen| seen.method == http::Method::GET));
    assert!(world.seen[2..].iter().all(|seen| seen.method == http::Method::POST));
    assert!(world.seen.iter().all(|seen| seen.header("accept") == Some("application/json")));
}

#[test]
fn without_a_hint_the_path_comes_before_the_root_and_openid_after_oauth() {
    let mut world = world();
    world.gone(PATH_METADATA);
    world.gone(SERVER_METADATA);
    world.json(ROOT_METADATA, &with(resource(), &json!({ "resource": "https://mcp.example" })));
    world.json(OPENID_METADATA, &server());
    let grant = world.run(wanted()).unwrap();
    assert_eq!(world.asked()[..4], [PATH_METADATA, ROOT_METADATA, SERVER_METADATA, OPENID_METADATA]);
    // The name that the server gives itself is what is sent, byte for byte.
    assert_eq!(grant.resource, "https://mcp.example");
    assert_eq!(world.parameter("resource").unwrap(), "https://mcp.example");
    assert_eq!(world.last_to("https://as.example/token").field("resource").unwrap(), "https://mcp.example");
}

#[test]
fn an_issuer_with_a_path_is_not_looked_for_at_the_root() {
    let mut world = world();
    let issuer = "https://as.example/tenant1";
    let custom = "https://mcp.example/custom/location.json";
    world.json(custom, &with(resource(), &json!({ "authorization_servers": [issuer] })));
    world.json(&format!("{issuer}/.well-known/openid-configuration"), &server_at(issuer));
    world.json(&format!("{issuer}/register"), &json!({ "client_id": "tenant" }));
    world.json(&format!("{issuer}/token"), &tokens());
    world.back = vec![("code", "hush-code".into()), ("iss", issuer.into())];
    world.run(challenged(&format!("Bearer resource_metadata=\"{custom}\""))).unwrap();
    assert_eq!(
        world.asked()[..4],
        [
            custom,
            "https://as.example/.well-known/oauth-authorization-server/tenant1",
            "https://as.example/.well-known/openid-configuration/tenant1",
            "https://as.example/tenant1/.well-known/openid-configuration",
        ]
    );
}

#[test]
fn a_document_about_another_resource_ends_it_before_anybody_else_is_asked() {
    for named in [
        "https://evil.example.com/mcp",
        "https://mcp.example/mcp/",
        "https://mcp.example",
        "https://MCP.example/mcp",
        "",
    ] {
        let mut world = world();
        world.json(PATH_METADATA, &with(resource(), &json!({ "resource": named })));
        world.json(ROOT_METADATA, &resource());
        let error = world.run(wanted()).unwrap_err();
        assert!(matches!(error, FlowError::OtherResource { .. }), "{named}: {error:?}");
        assert_eq!(error.blame(), Blame::Server);
        assert_eq!(world.asked(), [PATH_METADATA]);
    }
}

#[test]
fn metadata_of_another_issuer_is_not_used() {
    for issuer in
        ["https://attacker.example.com", "https://as.example/", "HTTPS://as.example", "http://as.example"]
    {
        let mut world = world();
        world.json(SERVER_METADATA, &with(server(), &json!({ "issuer": issuer })));
        let error = world.run(wanted()).unwrap_err();
        assert!(matches!(error, FlowError::OtherIssuer { .. }), "{issuer}: {error:?}");
        assert_eq!(world.asked(), [PATH_METADATA, SERVER_METADATA]);
        assert!(world.browsed.is_empty());
    }
}

#[test]
fn an_authorization_server_without_s256_is_refused() {
    for methods in [json!(null), json!([]), json!(["plain"]), json!(["s256"])] {
        let mut world = world();
        world.json(SERVER_METADATA, &with(server(), &json!({ "code_challenge_methods_supported": methods })));
        assert!(matches!(world.run(wanted()), Err(FlowError::NoPkce(_))), "{methods}");
        assert_eq!(world.seen.len(), 2);
    }
}

#[test]
fn people_are_sent_only_where_browsers_should_go() {
    for endpoint in [
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "cmd:calc",
        "http://as.example/authorize",
        "http://10.0.0.1/$(calc)",
        "--flag",
        "",
        "https://as.example/\r\nx",
        "https://as.example/\0",
        "https://me:hush@as.example/authorize",
        "https://as.example/authorize#part",
        &format!("https://as.example/{}", "a".repeat(100 << 10)),
    ] {
        for name in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
            let mut world = world();
            world.json(SERVER_METADATA, &with(server(), &json!({ name: endpoint })));
            let error = world.run(wanted()).unwrap_err();
            assert!(matches!(error, FlowError::BadEndpoint { .. }), "{endpoint}: {error:?}");
            assert!(world.browsed.is_empty() && world.seen.len() == 2);
            assert!(error.to_string().len() < 300);
        }
    }
}

#[test]
fn this_machine_may_be_spoken_to_without_tls() {
    let mut world = World::default();
    let metadata = "http://localhost:3000/.well-known/oauth-protected-resource/mcp";
    let issuer = "http://127.0.0.1:4000";
    world.json(
        metadata,
        &json!({ "resource": "http://localhost:3000/mcp", "authorization_servers": [issuer] }),
    );
    world.json(&format!("{issuer}/.well-known/oauth-authorization-server"), &server_at(issuer));
    world.json(&format!("{issuer}/register"), &json!({ "client_id": "dynamic" }));
    world.json(&format!("{issuer}/token"), &tokens());
    world.back = vec![("code", "hush-code".into()), ("iss", issuer.into())];
    world.run(Wanted { server: url("http://localhost:3000/mcp"), ..wanted() }).unwrap();
    let error = world.run(Wanted { server: url("http://mcp.example/mcp"), ..wanted() }).unwrap_err();
    assert!(matches!(error, FlowError::Insecure(_)) && error.blame() == Blame::Settings);
}

#[test]
fn a_websocket_is_looked_up_like_the_server_it_is_on() {
    let mut world = world();
    let grant = world.run(Wanted { server: url("wss://me:hush@mcp.example/mcp"), ..wanted() }).unwrap();
    assert_eq!(grant.resource, SERVER);
    assert_eq!(world.asked()[0], PATH_METADATA);
}

#[test]
fn issuers_that_cannot_be_used_are_the_servers_fault() {
    for issuers in [json!([]), json!(["http://as.example"]), json!(["as"]), json!(["https://as.example?x=1"])]
    {
        let mut world = world();
        world.json(PATH_METADATA, &with(resource(), &json!({ "authorization_servers": issuers })));
        let error = world.run(wanted()).unwrap_err();
        assert!(matches!(error, FlowError::NoIssuer(_)), "{error:?}");
        assert_eq!((error.blame(), world.seen.len()), (Blame::Server, 1));
    }
}

#[test]
fn of_several_authorization_servers_the_known_one_is_asked_else_the_first() {
    let several = with(resource(), &json!({ "authorization_servers": ["https://other.example", ISSUER] }));
    let mut world = world();
    world.json(PATH_METADATA, &several);
    assert!(world.run(wanted()).is_err());
    assert!(world.asked()[1].starts_with("https://other.example/"));
    let mut known = Known::default();
    let registered = json!({ "client_id": "dynamic", "redirect_uris": [REDIRECT] });
    known.registrations.insert(ISSUER.to_owned(), serde_json::from_value(registered).unwrap());
    assert_eq!(world.run_knowing(wanted(), known).unwrap().issuer, ISSUER);
}

#[test]
fn a_server_that_tells_nothing_is_its_own_authorization_server() {
    let mut world = World::default();
    let origin = "https://mcp.example";
    world.json("https://mcp.example/.well-known/oauth-authorization-server", &{
        let endpoints = json!({ "authorization_endpoint": "https://mcp.example/oauth/authorize", "token_endpoint": "https://mcp.example/oauth/token", "registration_endpoint": "https://mcp.example/oauth/register" });
        with(server_at(origin), &endpoints)
    });
    world.json("https://mcp.example/oauth/register", &json!({ "client_id": "dynamic" }));
    world.json("https://mcp.example/oauth/token", &tokens());
    world.back = vec![("code", "hush-code".into()), ("iss", origin.into())];
    let mut wanted = wanted();
    wanted.headers.insert("mcp-protocol-version", "some".parse().unwrap());
    let grant = world.run(wanted.clone()).unwrap();
    assert_eq!((grant.issuer.as_str(), grant.resource.as_str()), (origin, SERVER));
    assert_eq!(world.asked()[..2], [PATH_METADATA, ROOT_METADATA]);
    assert!(world.seen[..3].iter().all(|seen| seen.header("mcp-protocol-version") == Some("some")));
    wanted.legacy = false;
    assert!(matches!(world.run(wanted), Err(FlowError::NoResourceMetadata { .. })));
}

#[test]
fn a_server_of_the_oldest_kind_may_end_its_name_in_a_slash() {
    let mut world = World::default();
    let place = "https://mcp.example/.well-known/oauth-authorization-server";
    world.json(place, &with(server_at("https://mcp.example"), &json!({ "issuer": "https://mcp.example/" })));
    world.json("https://mcp.example/register", &json!({ "client_id": "dynamic" }));
    world.json("https://mcp.example/token", &tokens());
    world.back = vec![("code", "hush-code".into()), ("iss", "https://mcp.example/".into())];
    assert_eq!(world.run(wanted()).unwrap().issuer, "https://mcp.example/");
    world.back = vec![("code", "hush-code".into()), ("iss", "https://mcp.example".into())];
    assert!(matches!(world.run(wanted()), Err(FlowError::WrongIssuer { silent: false, .. })));
    world.json(place, &server_at("https://other.example"));
    assert!(matches!(world.run(wanted()), Err(FlowError::OtherIssuer { .. })));
}

#[test]
fn without_any_metadata_the_oldest_endpoints_are_tried() {
    let mut world = World::default();
    world.json(
        "https://mcp.example/register",
        &json!({ "client_id": "dynamic", "client_secret": "hush-secret" }),
    );
    world.json("https://mcp.example/token", &tokens());
    world.back = vec![("code", "hush-code".into())];
    let grant = world.run(wanted()).unwrap();
    assert!(world.browsed[0].as_str().starts_with("https://mcp.example/authorize?"));
    assert!(world.parameter("code_challenge").is_some());
    assert_eq!(grant.method, AuthMethod::Basic);
}

#[test]
fn the_oldest_rules_are_not_for_servers_that_tell_something_wrong() {
    for (status, body) in [(200, "<html>"), (200, "[]"), (200, "{}"), (500, ""), (204, "")] {
        let mut world = world();
        world.raw(PATH_METADATA, status, &[], body);
        world.json(
            "https://mcp.example/.well-known/oauth-authorization-server",
            &server_at("https://mcp.example"),
        );
        let error = world.run(wanted()).unwrap_err();
        assert!(matches!(error, FlowError::NoResourceMetadata { .. }), "{body}: {error:?}");
        assert_eq!(world.asked(), [PATH_METADATA, ROOT_METADATA]);
    }
    // Nor for those that name a place where there is nothing.
    let mut world = World::default();
    let error = world.run(challenged("Bearer resource_metadata=\"https://mcp.example/x\"")).unwrap_err();
    assert!(matches!(error, FlowError::NoResourceMetadata { .. }));
    assert_eq!(world.asked(), ["https://mcp.example/x", PATH_METADATA, ROOT_METADATA]);
}

#[test]
fn a_place_that_must_not_be_asked_is_left_out() {
    for named in
        ["http://mcp.example/x", "file:///etc/passwd", "/relative", "https://u:p@mcp.example/", "x y"]
    {
        let mut world = world();
        world.run(challenged(&format!("Bearer resource_metadata=\"{named}\""))).unwrap();
        assert_eq!(world.asked()[0], PATH_METADATA);
        assert!(world.steps[0].contains("not asked for"), "{}", world.steps[0]);
    }
}

#[test]
fn documents_may_move_once_and_not_to_other_servers() {
    let mut world = world();
    world.raw(PATH_METADATA, 302, &[("location", "/moved")], "");
    world.json("https://mcp.example/moved", &resource());
    world.run(wanted()).unwrap();
    world.raw("https://mcp.example/moved", 307, &[("location", "/again")], "");
    assert!(matches!(world.run(wanted()), Err(FlowError::Redirected { .. })));
    for to in [
        "https://evil.example/x",
        "http://mcp.example/x",
        "file:///x",
        "https://mcp.example:444/",
        "//evil.example/",
    ] {
        let mut world = super::world();
        world.raw(SERVER_METADATA, 301, &[("location", to)], "");
        let error = world.run(wanted()).unwrap_err();
        assert!(matches!(error, FlowError::Redirected { .. }), "{to}: {error:?}");
        assert_eq!(world.seen.len(), 2);
    }
    world.raw(PATH_METADATA, 302, &[], "");
    assert!(matches!(world.run(wanted()), Err(FlowError::Redirected { .. })));
}

#[test]
fn what_cannot_be_fetched_ends_it_with_the_reason() {
    for fault in [Unfetched::TooLong(1 << 20), Unfetched::TooSlow, Unfetched::Forbidden("private".into())] {
        for place in
            [PATH_METADATA, SERVER_METADATA, "https://as.example/register", "https://as.example/token"]
        {
            let mut world = world();
            world.fault(place, fault.clone());
            match world.run(wanted()).unwrap_err() {
                FlowError::Unfetched { url, why, .. } => assert_eq!((url.as_str(), &why), (place, &fault)),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn who_answers_nonsense_or_sends_us_on_is_to_blame() {
    for (place, whose) in [
        (PATH_METADATA, Blame::Server),
        (SERVER_METADATA, Blame::Issuer),
        ("https://as.example/register", Blame::Issuer),
        ("https://as.example/token", Blame::Issuer),
    ] {
        for fault in [Unfetched::TooLong(1 << 20), Unfetched::Broken("no".into())] {
            let mut world = world();
            world.fault(place, fault);
            let error = world.run(wanted()).unwrap_err();
            assert_eq!(error.blame(), whose, "{error}");
            let of_issuer = error.advice().contains("runs the authorization server");
            assert!(of_issuer == (whose == Blame::Issuer) && error.advice().contains("tell whoever runs"));
        }
        let mut world = world();
        world.fault(place, Unfetched::TooSlow);
        assert_eq!(world.run(wanted()).unwrap_err().blame(), Blame::Network);
    }
    for (place, whose) in [(PATH_METADATA, Blame::Server), (SERVER_METADATA, Blame::Issuer)] {
        let mut world = world();
        world.raw(place, 302, &[("location", "https://evil.example/")], "");
        let error = world.run(wanted()).unwrap_err();
        assert!(matches!(error, FlowError::Redirected { .. }) && error.blame() == whose, "{error}");
    }
}

#[test]
fn broken_metadata_of_an_authorization_server_is_its_own_fault() {
    for (status, body) in [(404, ""), (500, ""), (200, "null"), (200, "<html>"), (200, "{\"issuer\":1}")] {
        let mut world = world();
        world.raw(SERVER_METADATA, status, &[], body);
        let error = world.run(wanted()).unwrap_err();
        assert!(matches!(error, FlowError::NoServerMetadata { .. }), "{error:?}");
        assert_eq!(error.blame(), Blame::Issuer);
        assert_eq!(world.asked()[1..], [SERVER_METADATA, OPENID_METADATA]);
    }
}

#[test]
fn headers_for_the_server_go_nowhere_else() {
    let mut world = world();
    let mut wanted = wanted();
    wanted.headers.insert("x-key", "hush-key".parse().unwrap());
    world.run(wanted).unwrap();
    let with_key: Vec<&str> = world
        .seen
        .iter()
        .filter(|seen| seen.header("x-key").is_some())
        .map(|seen| seen.url.as_str())
        .collect();
    assert_eq!(with_key, [PATH_METADATA]);
}

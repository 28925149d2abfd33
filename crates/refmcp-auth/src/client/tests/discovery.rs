//! Who is asked what, in which order, and what is not believed.

use serde_json::json;

use super::*;
use crate::fetch::FetchError;

#[test]
fn a_login_takes_the_requests_in_order() {
    let mut servers = servers();
    let challenge = format!("Bearer resource_metadata=\"{PATH_METADATA}\"");
    let grant = servers.run(challenged(&challenge)).unwrap();
    assert_eq!(
        servers.requested(),
        [PATH_METADATA, SERVER_METADATA, "https://as.example/register", "https://as.example/token"]
    );
    assert_eq!((grant.issuer.as_str(), grant.resource.as_str()), (ISSUER, SERVER));
    assert_eq!(grant.client_id.as_deref(), Some("dynamic"));
    assert_eq!((grant.expires_at, grant.token_type), (Some(NOW + 3600), TokenType::Bearer));
    assert!(grant.token.is("hush-token") && grant.refresh_token.as_ref().unwrap().is("hush-refresh"));
    assert_eq!(servers.saved.last(), Some(&StoreUpdate::Tokens(Box::new(grant))));
    assert!(servers.steps.iter().any(|step| step.contains(PATH_METADATA)));
    assert!(servers.seen[..2].iter().all(|seen| seen.method == http::Method::GET));
    assert!(servers.seen[2..].iter().all(|seen| seen.method == http::Method::POST));
    assert!(servers.seen.iter().all(|seen| seen.header("accept") == Some("application/json")));
}

#[test]
fn well_known_urls_without_a_challenge_are_in_order() {
    let mut servers = servers();
    servers.gone(PATH_METADATA);
    servers.gone(SERVER_METADATA);
    servers.json(ROOT_METADATA, &with(resource(), &json!({ "resource": "https://mcp.example" })));
    servers.json(OPENID_METADATA, &server());
    let grant = servers.run(flow_request()).unwrap();
    assert_eq!(servers.requested()[..4], [PATH_METADATA, ROOT_METADATA, SERVER_METADATA, OPENID_METADATA]);
    // The name that the server gives itself is what is sent, byte for byte.
    assert_eq!(grant.resource, "https://mcp.example");
    assert_eq!(servers.parameter("resource").unwrap(), "https://mcp.example");
    assert_eq!(servers.last_to("https://as.example/token").field("resource").unwrap(), "https://mcp.example");
}

#[test]
fn an_issuer_with_a_path_has_no_metadata_at_the_root() {
    let mut servers = servers();
    let issuer = "https://as.example/tenant1";
    let custom = "https://mcp.example/custom/location.json";
    servers.json(custom, &with(resource(), &json!({ "authorization_servers": [issuer] })));
    servers.json(&format!("{issuer}/.well-known/openid-configuration"), &server_at(issuer));
    servers.json(&format!("{issuer}/register"), &json!({ "client_id": "tenant" }));
    servers.json(&format!("{issuer}/token"), &tokens());
    servers.back = vec![("code", "hush-code".into()), ("iss", issuer.into())];
    servers.run(challenged(&format!("Bearer resource_metadata=\"{custom}\""))).unwrap();
    assert_eq!(
        servers.requested()[..4],
        [
            custom,
            "https://as.example/.well-known/oauth-authorization-server/tenant1",
            "https://as.example/.well-known/openid-configuration/tenant1",
            "https://as.example/tenant1/.well-known/openid-configuration",
        ]
    );
}

#[test]
fn metadata_of_another_resource_ends_the_flow() {
    for named in [
        "https://evil.example.com/mcp",
        "https://mcp.example/mcp/",
        "https://mcp.example",
        "https://MCP.example/mcp",
        "",
    ] {
        let mut servers = servers();
        servers.json(PATH_METADATA, &with(resource(), &json!({ "resource": named })));
        servers.json(ROOT_METADATA, &resource());
        let error = servers.run(flow_request()).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::ResourceMismatch, "{named}: {error:?}");
        assert_eq!(error.blame(), Blame::Server);
        assert_eq!(servers.requested(), [PATH_METADATA]);
    }
}

#[test]
fn metadata_of_another_issuer_is_not_used() {
    for issuer in
        ["https://attacker.example.com", "https://as.example/", "HTTPS://as.example", "http://as.example"]
    {
        let mut servers = servers();
        servers.json(SERVER_METADATA, &with(server(), &json!({ "issuer": issuer })));
        let error = servers.run(flow_request()).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::IssuerMismatch, "{issuer}: {error:?}");
        assert_eq!(servers.requested(), [PATH_METADATA, SERVER_METADATA]);
        assert!(servers.browsed.is_empty());
    }
}

#[test]
fn an_authorization_server_without_s256_is_refused() {
    for methods in [json!(null), json!([]), json!(["plain"]), json!(["s256"])] {
        let mut servers = servers();
        servers
            .json(SERVER_METADATA, &with(server(), &json!({ "code_challenge_methods_supported": methods })));
        assert_eq!(kind(servers.run(flow_request())), FlowErrorKind::PkceUnsupported, "{methods}");
        assert_eq!(servers.seen.len(), 2);
    }
}

#[test]
fn the_authorization_endpoint_must_be_secure() {
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
            let mut servers = servers();
            servers.json(SERVER_METADATA, &with(server(), &json!({ name: endpoint })));
            let error = servers.run(flow_request()).unwrap_err();
            assert_eq!(error.kind(), FlowErrorKind::InvalidEndpoint, "{endpoint}: {error:?}");
            assert!(servers.browsed.is_empty() && servers.seen.len() == 2);
            assert!(error.to_string().len() < 300);
        }
    }
}

#[test]
fn loopback_needs_no_tls() {
    let mut servers = FakeServers::default();
    let metadata = "http://localhost:3000/.well-known/oauth-protected-resource/mcp";
    let issuer = "http://127.0.0.1:4000";
    servers.json(
        metadata,
        &json!({ "resource": "http://localhost:3000/mcp", "authorization_servers": [issuer] }),
    );
    servers.json(&format!("{issuer}/.well-known/oauth-authorization-server"), &server_at(issuer));
    servers.json(&format!("{issuer}/register"), &json!({ "client_id": "dynamic" }));
    servers.json(&format!("{issuer}/token"), &tokens());
    servers.back = vec![("code", "hush-code".into()), ("iss", issuer.into())];
    servers.run(FlowRequest { server: url("http://localhost:3000/mcp"), ..flow_request() }).unwrap();
    let error =
        servers.run(FlowRequest { server: url("http://mcp.example/mcp"), ..flow_request() }).unwrap_err();
    assert!(error.kind() == FlowErrorKind::Insecure && error.blame() == Blame::Configuration);
}

#[test]
fn websocket_urls_are_discovered_over_http() {
    let mut servers = servers();
    let grant =
        servers.run(FlowRequest { server: url("wss://me:hush@mcp.example/mcp"), ..flow_request() }).unwrap();
    assert_eq!(grant.resource, SERVER);
    assert_eq!(servers.requested()[0], PATH_METADATA);
}

#[test]
fn unusable_issuers_blame_the_server() {
    for issuers in [json!([]), json!(["http://as.example"]), json!(["as"]), json!(["https://as.example?x=1"])]
    {
        let mut servers = servers();
        servers.json(PATH_METADATA, &with(resource(), &json!({ "authorization_servers": issuers })));
        let error = servers.run(flow_request()).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::NoAuthorizationServer, "{error:?}");
        assert_eq!((error.blame(), servers.seen.len()), (Blame::Server, 1));
    }
}

#[test]
fn a_known_authorization_server_is_preferred() {
    let several = with(resource(), &json!({ "authorization_servers": ["https://other.example", ISSUER] }));
    let mut servers = servers();
    servers.json(PATH_METADATA, &several);
    assert!(servers.run(flow_request()).is_err());
    assert!(servers.requested()[1].starts_with("https://other.example/"));
    let mut known = StoredState::default();
    let registered = json!({ "client_id": "dynamic", "redirect_uris": [REDIRECT] });
    known.registrations.insert(ISSUER.to_owned(), serde_json::from_value(registered).unwrap());
    assert_eq!(servers.run_knowing(flow_request(), known).unwrap().issuer, ISSUER);
}

#[test]
fn without_resource_metadata_the_origin_is_the_authorization_server() {
    let mut servers = FakeServers::default();
    let origin = "https://mcp.example";
    servers.json("https://mcp.example/.well-known/oauth-authorization-server", &{
        let endpoints = json!({ "authorization_endpoint": "https://mcp.example/oauth/authorize", "token_endpoint": "https://mcp.example/oauth/token", "registration_endpoint": "https://mcp.example/oauth/register" });
        with(server_at(origin), &endpoints)
    });
    servers.json("https://mcp.example/oauth/register", &json!({ "client_id": "dynamic" }));
    servers.json("https://mcp.example/oauth/token", &tokens());
    servers.back = vec![("code", "hush-code".into()), ("iss", origin.into())];
    let mut flow_request = flow_request();
    flow_request.headers.insert("mcp-protocol-version", "some".parse().unwrap());
    let grant = servers.run(flow_request.clone()).unwrap();
    assert_eq!((grant.issuer.as_str(), grant.resource.as_str()), (origin, SERVER));
    assert_eq!(servers.requested()[..2], [PATH_METADATA, ROOT_METADATA]);
    assert!(servers.seen[..3].iter().all(|seen| seen.header("mcp-protocol-version") == Some("some")));
    flow_request.legacy_discovery = false;
    assert_eq!(kind(servers.run(flow_request)), FlowErrorKind::NoResourceMetadata);
}

#[test]
fn a_legacy_issuer_may_end_in_a_slash() {
    let mut servers = FakeServers::default();
    let place = "https://mcp.example/.well-known/oauth-authorization-server";
    servers
        .json(place, &with(server_at("https://mcp.example"), &json!({ "issuer": "https://mcp.example/" })));
    servers.json("https://mcp.example/register", &json!({ "client_id": "dynamic" }));
    servers.json("https://mcp.example/token", &tokens());
    servers.back = vec![("code", "hush-code".into()), ("iss", "https://mcp.example/".into())];
    assert_eq!(servers.run(flow_request()).unwrap().issuer, "https://mcp.example/");
    servers.back = vec![("code", "hush-code".into()), ("iss", "https://mcp.example".into())];
    let error = servers.run(flow_request()).unwrap_err();
    assert_eq!(error.kind(), FlowErrorKind::RedirectIssuer);
    assert!(error.to_string().starts_with("the browser came back from another authorization server"));
    servers.json(place, &server_at("https://other.example"));
    assert_eq!(kind(servers.run(flow_request())), FlowErrorKind::IssuerMismatch);
}

#[test]
fn without_metadata_default_endpoints_are_used() {
    let mut servers = FakeServers::default();
    servers.json(
        "https://mcp.example/register",
        &json!({ "client_id": "dynamic", "client_secret": "hush-secret" }),
    );
    servers.json("https://mcp.example/token", &tokens());
    servers.back = vec![("code", "hush-code".into())];
    let grant = servers.run(flow_request()).unwrap();
    assert!(servers.browsed[0].as_str().starts_with("https://mcp.example/authorize?"));
    assert!(servers.parameter("code_challenge").is_some());
    assert_eq!(grant.method, AuthMethod::Basic);
}

#[test]
fn broken_metadata_disables_legacy_discovery() {
    for (status, body) in [(200, "<html>"), (200, "[]"), (200, "{}"), (500, ""), (204, "")] {
        let mut servers = servers();
        servers.raw(PATH_METADATA, status, &[], body);
        servers.json(
            "https://mcp.example/.well-known/oauth-authorization-server",
            &server_at("https://mcp.example"),
        );
        let error = servers.run(flow_request()).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::NoResourceMetadata, "{body}: {error:?}");
        assert_eq!(servers.requested(), [PATH_METADATA, ROOT_METADATA]);
    }
    // Nor for those that name a place where there is nothing.
    let mut servers = FakeServers::default();
    let error = servers.run(challenged("Bearer resource_metadata=\"https://mcp.example/x\"")).unwrap_err();
    assert_eq!(error.kind(), FlowErrorKind::NoResourceMetadata);
    assert_eq!(servers.requested(), ["https://mcp.example/x", PATH_METADATA, ROOT_METADATA]);
}

#[test]
fn an_unusable_metadata_url_is_skipped() {
    for named in
        ["http://mcp.example/x", "file:///etc/passwd", "/relative", "https://u:p@mcp.example/", "x y"]
    {
        let mut servers = servers();
        servers.run(challenged(&format!("Bearer resource_metadata=\"{named}\""))).unwrap();
        assert_eq!(servers.requested()[0], PATH_METADATA);
        assert!(servers.steps[0].contains("not asked for"), "{}", servers.steps[0]);
    }
}

#[test]
fn metadata_redirects_are_followed_once_on_the_same_origin() {
    let mut servers = servers();
    servers.raw(PATH_METADATA, 302, &[("location", "/moved")], "");
    servers.json("https://mcp.example/moved", &resource());
    servers.run(flow_request()).unwrap();
    servers.raw("https://mcp.example/moved", 307, &[("location", "/again")], "");
    assert_eq!(kind(servers.run(flow_request())), FlowErrorKind::UnfollowedRedirect);
    for to in [
        "https://evil.example/x",
        "http://mcp.example/x",
        "file:///x",
        "https://mcp.example:444/",
        "//evil.example/",
    ] {
        let mut servers = super::servers();
        servers.raw(SERVER_METADATA, 301, &[("location", to)], "");
        let error = servers.run(flow_request()).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::UnfollowedRedirect, "{to}: {error:?}");
        assert_eq!(servers.seen.len(), 2);
    }
    servers.raw(PATH_METADATA, 302, &[], "");
    assert_eq!(kind(servers.run(flow_request())), FlowErrorKind::UnfollowedRedirect);
}

#[test]
fn a_fetch_error_ends_the_flow() {
    for fetch_error in
        [FetchError::TooLarge(1 << 20), FetchError::TimedOut, FetchError::Forbidden("private".into())]
    {
        for place in
            [PATH_METADATA, SERVER_METADATA, "https://as.example/register", "https://as.example/token"]
        {
            let mut servers = servers();
            servers.fault(place, fetch_error.clone());
            let error = servers.run(flow_request()).unwrap_err();
            assert_eq!(error.kind(), FlowErrorKind::Fetch);
            assert_eq!(error.to_string(), format!("no response from {place}: {fetch_error}"));
        }
    }
}

#[test]
fn broken_metadata_blames_its_publisher() {
    for (place, whose) in [
        (PATH_METADATA, Blame::Server),
        (SERVER_METADATA, Blame::AuthorizationServer),
        ("https://as.example/register", Blame::AuthorizationServer),
        ("https://as.example/token", Blame::AuthorizationServer),
    ] {
        for error in [FetchError::TooLarge(1 << 20), FetchError::Broken("no".into())] {
            let mut servers = servers();
            servers.fault(place, error);
            let error = servers.run(flow_request()).unwrap_err();
            assert_eq!(error.blame(), whose, "{error}");
            let of_issuer = error.advice().contains("authorization server's operator");
            assert!(
                of_issuer == (whose == Blame::AuthorizationServer) && error.advice().contains("operator")
            );
        }
        let mut servers = servers();
        servers.fault(place, FetchError::TimedOut);
        assert_eq!(servers.run(flow_request()).unwrap_err().blame(), Blame::Network);
    }
    for (place, whose) in [(PATH_METADATA, Blame::Server), (SERVER_METADATA, Blame::AuthorizationServer)] {
        let mut servers = servers();
        servers.raw(place, 302, &[("location", "https://evil.example/")], "");
        let error = servers.run(flow_request()).unwrap_err();
        assert!(error.kind() == FlowErrorKind::UnfollowedRedirect && error.blame() == whose, "{error}");
    }
}

#[test]
fn broken_server_metadata_blames_the_authorization_server() {
    for (status, body) in [(404, ""), (500, ""), (200, "null"), (200, "<html>"), (200, "{\"issuer\":1}")] {
        let mut servers = servers();
        servers.raw(SERVER_METADATA, status, &[], body);
        let error = servers.run(flow_request()).unwrap_err();
        assert_eq!(error.kind(), FlowErrorKind::NoServerMetadata, "{error:?}");
        assert_eq!(error.blame(), Blame::AuthorizationServer);
        assert_eq!(servers.requested()[1..], [SERVER_METADATA, OPENID_METADATA]);
    }
}

#[test]
fn extra_headers_stay_on_the_server_origin() {
    let mut servers = servers();
    let mut flow_request = flow_request();
    flow_request.headers.insert("x-key", "hush-key".parse().unwrap());
    servers.run(flow_request).unwrap();
    let with_key: Vec<&str> = servers
        .seen
        .iter()
        .filter(|seen| seen.header("x-key").is_some())
        .map(|seen| seen.url.as_str())
        .collect();
    assert_eq!(with_key, [PATH_METADATA]);
}

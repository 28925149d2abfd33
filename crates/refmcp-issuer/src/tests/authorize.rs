//! Checks of authorization requests, before the consent page.

use http::StatusCode;

use super::*;
use crate::Login;

#[test]
fn a_valid_authorization_request_ends_with_a_code() {
    let world = world();
    let page = world.open(&[]);
    let answer = world.decide(&page, &page.cookie, "allow");
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    assert!(answer.location().unwrap().as_str().starts_with("https://app.example/cb?"));
    assert_eq!(answer.returned("state").as_deref(), Some("the state"));
    assert_eq!(answer.returned("iss").as_deref(), Some(ORIGIN));
    assert!(answer.returned("code").is_some() && answer.returned("error").is_none());
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("referrer-policy"), "no-referrer");
}

/// Row 98: addresses that are not quite the one that was registered. There is no redirect to any of them.
#[test]
fn unregistered_redirect_uris_are_refused() {
    let mut settings = settings();
    settings.clients.push(Client::public("near").redirecting_to(["http://127.0.0.1:1/cb"]));
    let world = World::new(settings);
    for address in [
        "https://app.example/cb/more",
        "https://app.example/cb?x=1",
        "https://app.example/",
        "https://app.example/cb#f",
        "https://me@app.example/cb",
        "https://app.example@evil.example/cb",
        "https://evil.example/cb",
        "http://app.example/cb",
        "javascript:alert(1)",
    ] {
        world.authorize(&[("redirect_uri", address)]).assert_stays();
    }
    for address in ["http://localhost:1/cb", "http://127.0.0.1:1/cb/", "http://[::1]:1/cb", CALLBACK] {
        world.authorize(&[("client_id", "near"), ("redirect_uri", address)]).assert_stays();
    }
    let other_port = [("client_id", "near"), ("redirect_uri", "http://127.0.0.1:4711/cb")];
    let page = world.open(&other_port);
    let answer = world.decide(&page, &page.cookie, "allow");
    assert!(answer.location().unwrap().as_str().starts_with("http://127.0.0.1:4711/cb?"));
}

#[test]
fn a_single_redirect_uri_is_the_default() {
    let world = world();
    let code = world.code(&[("redirect_uri", "")]);
    assert_eq!(world.redeem(&code, &[("redirect_uri", "")]).status(), StatusCode::OK);
}

#[test]
fn the_query_of_a_redirect_uri_is_kept() {
    let mut settings = settings();
    settings.clients.push(Client::public("query").redirecting_to(["https://app.example/cb?a=b%20c"]));
    let world = World::new(settings);
    let page = world.open(&[("client_id", "query"), ("redirect_uri", "https://app.example/cb?a=b%20c")]);
    let location = world.decide(&page, &page.cookie, "deny").location().unwrap();
    assert!(
        location.as_str().starts_with("https://app.example/cb?a=b%20c&error=access_denied&"),
        "{location}"
    );
}

#[test]
fn unknown_clients_get_no_redirect() {
    let world = world();
    for id in ["", "unknown", "https://app.example/client.json", "refmcp\0", "../app", "APP"] {
        world.authorize(&[("client_id", id)]).assert_stays();
    }
    for name in ["client_id", "redirect_uri"] {
        let query = encode(&request(&[]));
        let value = if name == "client_id" { "app" } else { CALLBACK };
        world.get(&format!("/authorize?{query}&{}", encode(&[(name, value)]))).assert_stays();
    }
    world.get("/authorize").assert_stays();
    world.get(&format!("/authorize?{}&x={}", encode(&request(&[])), "x".repeat(20_000))).assert_stays();
}

/// Row 97: PKCE is not optional, and there is one kind.
#[test]
fn a_request_without_pkce_is_refused() {
    let world = world();
    let refused = |changes: &[(&str, &str)]| {
        let answer = world.authorize(changes);
        assert_eq!(answer.status(), StatusCode::FOUND);
        assert_eq!(answer.returned("error").as_deref(), Some("invalid_request"), "{changes:?}");
    };
    refused(&[("code_challenge", "")]);
    refused(&[("code_challenge_method", "")]);
    refused(&[("code_challenge_method", "plain")]);
    refused(&[("code_challenge_method", "s256")]);
    refused(&[("code_challenge", "short")]);
    refused(&[("code_challenge", &"!".repeat(43))]);
}

#[test]
fn authorization_errors_are_redirected_to_the_client() {
    let world = world();
    for (changes, error) in [
        (vec![("response_type", "")], "invalid_request"),
        (vec![("response_type", "token")], "unsupported_response_type"),
        (vec![("response_type", "code token")], "unsupported_response_type"),
        (vec![("response_mode", "fragment")], "invalid_request"),
        (vec![("request", "a.b.c")], "request_not_supported"),
        (vec![("resource", "https://elsewhere.example/mcp")], "invalid_target"),
        (vec![("resource", "http://127.0.0.1:3000/mcp#x")], "invalid_target"),
        (vec![("scope", "nonsense")], "invalid_scope"),
        (vec![("scope", "re\"ad")], "invalid_scope"),
        (vec![("dpop_jkt", "x")], "invalid_request"),
    ] {
        let answer = world.authorize(&changes);
        assert_eq!(answer.returned("error").as_deref(), Some(error), "{changes:?}");
        assert_eq!(answer.returned("state").as_deref(), Some("the state"));
        assert_eq!(answer.returned("iss").as_deref(), Some(ORIGIN));
        assert!(answer.returned("code").is_none());
        assert!(answer.location().unwrap().as_str().starts_with("https://app.example/cb?"));
    }
    let twice = |name: &str| world.get(&format!("/authorize?{}&{name}=x", encode(&request(&[]))));
    assert_eq!(twice("scope").returned("error").as_deref(), Some("invalid_request"));
    assert_eq!(twice("resource").returned("error").as_deref(), Some("invalid_target"));
    assert_eq!(twice("state").returned("error").as_deref(), Some("invalid_request"));
    assert_eq!(twice("state").returned("state"), None);
}

#[test]
fn unknown_scopes_are_left_out() {
    let world = world();
    let scope = |changes: &[(&str, &str)]| world.redeem(&world.code(changes), &[]).json()["scope"].clone();
    assert_eq!(scope(&[("scope", "offline_access write nonsense")]), "write");
    assert_eq!(scope(&[("scope", "")]), "read");
    assert_eq!(scope(&[("scope", "admin read")]), "admin read");
}

#[test]
fn automatic_login_needs_no_consent_page() {
    let world = World::new(Settings { login: Login::Auto, ..settings() });
    let subject = |changes: &[(&str, &str)]| {
        let answer = world.authorize(changes);
        assert_eq!(answer.status(), StatusCode::FOUND);
        let tokens = world.redeem(&answer.returned("code").unwrap(), &[]).json();
        world.check(&tokens["access_token"]).unwrap().sub
    };
    assert_eq!(subject(&[]), "user");
    assert_eq!(subject(&[("login_hint", "bob")]), "bob");
    assert_eq!(subject(&[("login_hint", "bo\u{0}b")]), "user");
    world.authorize(&[("redirect_uri", "https://evil.example/")]).assert_stays();
    assert!(world.authorize(&[("code_challenge", "")]).returned("code").is_none());
}

/// Row 96: the state is the client's own, whatever is in it, and comes back as it was.
#[test]
fn the_state_parameter_is_returned_unchanged() {
    let world = world();
    for state in ["a b&c=d#e?f+g%20", "ä💥\"<script>", "..//\\"] {
        let page = world.open(&[("state", state)]);
        assert_eq!(world.decide(&page, &page.cookie, "allow").returned("state").as_deref(), Some(state));
    }
    let page = world.open(&[("state", "")]);
    assert_eq!(world.decide(&page, &page.cookie, "allow").returned("state"), None);
}

//! Tokens for a refresh token.

use http::StatusCode;
use serde_json::json;

use super::*;

#[test]
fn a_refresh_gives_new_tokens() {
    let world = world();
    let tokens = world.log_in();
    world.pass(3600);
    assert!(!world.is_active(&tokens["access_token"]));
    let answer = world.refresh(&tokens["refresh_token"]);
    assert_eq!((answer.status(), answer.header("cache-control")), (StatusCode::OK, "no-store"));
    let renewed = answer.json();
    assert_ne!(renewed["refresh_token"], tokens["refresh_token"]);
    let claims = world.check(&renewed["access_token"]).unwrap();
    assert_eq!((claims.sub.as_str(), renewed["scope"].as_str()), ("alice", Some("read write")));
    assert!(world.is_active(&renewed["access_token"]));
}

/// Row 101: a refresh token that comes twice, at the same time or later, takes everything back.
#[test]
fn a_reused_refresh_token_revokes_its_family() {
    let world = world();
    let (tokens, bystander) = (world.log_in(), world.log_in());
    let second = world.refresh(&tokens["refresh_token"]).json();
    let third = world.refresh(&second["refresh_token"]).json();
    assert_eq!(world.refresh(&tokens["refresh_token"]).error(), "invalid_grant");
    assert_eq!(world.refresh(&third["refresh_token"]).error(), "invalid_grant");
    for old in [&tokens, &second, &third] {
        assert!(!world.is_active(&old["access_token"]));
    }
    assert!(world.is_active(&bystander["access_token"]));
    assert_eq!(world.refresh(&bystander["refresh_token"]).status(), StatusCode::OK);
}

/// Row 101: of two that come at once, one wins, and then both lose.
#[test]
fn concurrent_refreshes_succeed_once() {
    let world = world();
    let token = world.log_in()["refresh_token"].clone();
    let answers: Vec<StatusCode> = std::thread::scope(|scope| {
        let refresh = || {
            let world =
                World { issuer: world.issuer.clone(), now: Cell::new(NOW), watch: LeakWatch::begin() };
            let token = token.clone();
            scope.spawn(move || world.refresh(&token).status())
        };
        let running: Vec<_> = (0..8).map(|_| refresh()).collect();
        running.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(answers.iter().filter(|status| **status == StatusCode::OK).count(), 1, "{answers:?}");
}

#[test]
fn refresh_tokens_are_bound_to_their_client() {
    let world = world();
    let tokens = world.log_in();
    let token = tokens["refresh_token"].as_str().unwrap();
    let form = [
        ("grant_type", "refresh_token"),
        ("client_id", "service"),
        ("client_secret", SECRET),
        ("refresh_token", token),
    ];
    assert_eq!(world.token(&form).error(), "invalid_grant");
    assert_eq!(world.refresh(&json!("unknown")).error(), "invalid_grant");
    assert_eq!(world.refresh(&tokens["access_token"]).error(), "invalid_grant");
    assert_eq!(world.refresh(&tokens["refresh_token"]).status(), StatusCode::OK);
}

#[test]
fn a_refresh_can_narrow_scopes() {
    let world = world();
    let tokens = world.log_in();
    let refresh = |token: &Value, name: &str, value: &str| {
        let token = token.as_str().unwrap();
        let known = [("grant_type", "refresh_token"), ("client_id", "app"), ("refresh_token", token)];
        world.token(&[known.as_slice(), &[(name, value)]].concat())
    };
    let first = &tokens["refresh_token"];
    assert_eq!(refresh(first, "scope", "read admin").error(), "invalid_scope");
    assert_eq!(refresh(first, "scope", "re\"ad").error(), "invalid_scope");
    assert_eq!(refresh(first, "resource", "http://127.0.0.1:3000/other").error(), "invalid_target");
    let less = refresh(first, "scope", "read").json();
    assert_eq!(less["scope"], "read");
    let all = refresh(&less["refresh_token"], "resource", RESOURCE).json();
    assert_eq!(all["scope"], "read write");
}

#[test]
fn refresh_tokens_expire() {
    let mut settings = settings();
    settings.refresh_lifetime = std::time::Duration::from_secs(100);
    let world = World::new(settings);
    let token = world.log_in()["refresh_token"].clone();
    world.pass(100);
    assert_eq!(world.refresh(&token).error(), "invalid_grant");
}

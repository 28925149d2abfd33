//! Random requests.

use proptest::prelude::*;

use super::*;

/// Names that mean something, and others.
fn name() -> impl Strategy<Value = String> {
    let known = [
        "response_type",
        "client_id",
        "redirect_uri",
        "state",
        "scope",
        "resource",
        "code_challenge",
        "code_challenge_method",
        "login_hint",
        "decision",
        "form_token",
        "user",
        "grant_type",
        "code",
        "code_verifier",
        "refresh_token",
        "client_secret",
        "client_assertion",
        "client_assertion_type",
        "assertion",
        "token",
        "dpop_jkt",
    ];
    prop_oneof![prop::sample::select(known.to_vec()).prop_map(str::to_owned), ".{0,10}"]
}

fn value() -> impl Strategy<Value = String> {
    let known = [
        "code",
        "app",
        "service",
        SECRET,
        CALLBACK,
        RESOURCE,
        "S256",
        "plain",
        "read write",
        "allow",
        "deny",
        "authorization_code",
        "refresh_token",
        "client_credentials",
        "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        VERIFIER,
        "eyJhbGciOiJFUzI1NiJ9.e30.AA",
    ];
    prop_oneof![prop::sample::select(known.to_vec()).prop_map(str::to_owned), ".{0,40}"]
}

fn pairs() -> impl Strategy<Value = Vec<(String, String)>> {
    prop::collection::vec((name(), value()), 0..12)
}

fn references(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

proptest! {
    #[test]
    fn no_code_without_consent(
        changes in pairs(),
        form in pairs(),
        cookie in "(refmcp-consent=)?[a-zA-Z0-9_-]{0,50}",
        with_good in any::<bool>(),
    ) {
        let world = world();
        let changes = references(&changes);
        let query = if with_good { encode(&request(&changes)) } else { encode(&changes) };
        let asked = world.get(&format!("/authorize?{query}"));
        prop_assert!(asked.returned("code").is_none());
        prop_assert!(asked.location().is_none_or(|url| url.as_str().starts_with("https://app.example/cb?")));
        let decided = world.post_with("/authorize", &[("cookie", &cookie)], &references(&form));
        prop_assert!(decided.location().is_none());
        prop_assert!(decided.status().is_client_error());
    }

    #[test]
    fn no_token_without_a_grant(form in pairs(), path in prop::sample::select(vec!["/token", "/revoke", "/introspect"])) {
        let world = world();
        let answer = world.post(path, &references(&form));
        prop_assert!(!answer.status().is_server_error());
        if path == "/token" && answer.status().is_success() {
            // The secret of the service is among the values, and opens the only grant that needs nothing else.
            prop_assert!(form.iter().any(|(_, value)| value == "client_credentials"));
            prop_assert!(form.iter().any(|(_, value)| value == SECRET));
        }
    }

    #[test]
    fn arbitrary_requests_never_panic(
        body in prop::collection::vec(any::<u8>(), 0..200),
        kind in prop::sample::select(vec!["application/json", "application/x-www-form-urlencoded"]),
        authorization in "[ -~]{0,40}",
    ) {
        let world = world();
        for path in world.issuer.paths() {
            let request = Request::post(path).header("content-type", kind).header("authorization", &authorization);
            let answer = world.ask(request.header("cookie", &authorization).body(body.clone().into()).unwrap());
            prop_assert!(!answer.status().is_server_error());
        }
    }
}

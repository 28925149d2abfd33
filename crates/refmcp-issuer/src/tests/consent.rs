//! The page on which people decide.

use http::StatusCode;
use serde_json::json;

use super::*;

#[test]
fn the_consent_page_names_client_scopes_and_resource() {
    let world = world();
    let text = world.open(&[("login_hint", "carol")]).answer.text();
    for part in
        ["An app", "app.example", "<code>read</code>", "<code>write</code>", RESOURCE, "value=\"carol\""]
    {
        assert!(text.contains(part), "{part}");
    }
    assert!(!text.contains("this computer"));
    assert_eq!(text.matches("<h1>").count(), 1);
    assert!(text.contains("<html lang=\"en\">") && text.contains("<label for=\"user\">"));
    assert!(!text.contains("<script") && !text.contains("javascript:"));
    for decision in ["allow", "deny"] {
        assert!(text.contains(&format!("name=\"decision\" value=\"{decision}\"")));
    }
}

#[test]
fn the_consent_page_warns_of_loopback_redirects() {
    let mut settings = settings();
    settings.clients.push(Client::public("near"));
    let world = World::new(settings);
    for address in ["http://127.0.0.1:1/cb", "http://[::1]:1/cb", "http://localhost:1/cb"] {
        let text = world.open(&[("client_id", "near"), ("redirect_uri", address)]).answer.text();
        assert!(text.contains("Attention:"), "{address}");
    }
}

#[test]
fn the_consent_page_escapes_everything() {
    let world = world();
    let nasty = "<script>alert(1)</script>\"'&amp;\u{202e}";
    let metadata =
        json!({ "client_name": nasty, "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none" });
    let registered = world.register(&metadata).json();
    let id = registered["client_id"].as_str().unwrap();
    let text = world.open(&[("client_id", id), ("login_hint", nasty), ("state", nasty)]).answer.text();
    assert!(!text.contains("<script") && !text.contains('\u{202e}'));
    assert!(text.contains("&lt;script&gt;alert(1)&lt;/script&gt;&quot;&#39;&amp;amp;"));
    let error = world.authorize(&[("client_id", nasty)]);
    assert!(!error.text().contains("<script"));
}

/// Row 104: no other site can show the page or put something into it.
#[test]
fn the_consent_page_has_security_headers() {
    let world = world();
    let page = world.open(&[]).answer;
    let policy = page.header("content-security-policy");
    for directive in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "form-action 'self' https://app.example;",
    ] {
        assert!(policy.contains(directive), "{policy}");
    }
    assert!(policy.contains("style-src 'sha256-") && !policy.contains("unsafe"));
    for answer in [&page, &world.authorize(&[("client_id", "unknown")]), &world.get("/authorize/about")] {
        assert_eq!(answer.header("x-frame-options"), "DENY");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert_eq!(answer.header("access-control-allow-origin"), "");
        assert!(answer.header("content-security-policy").contains("frame-ancestors 'none'"));
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    }
}

#[test]
fn the_consent_cookie_is_restricted() {
    let plain = world().open(&[]).answer.header("set-cookie").to_owned();
    assert!(
        plain.starts_with("refmcp-consent=") && plain.contains("; Path=/authorize; HttpOnly; SameSite=Lax")
    );
    let mut settings = settings();
    settings.origin = Url::parse("https://as.example").unwrap();
    let secure = World::new(settings).open(&[]).answer.header("set-cookie").to_owned();
    assert!(
        secure.starts_with("__Host-refmcp-consent=")
            && secure.contains("; Path=/; Secure; HttpOnly; SameSite=Lax")
    );
}

/// A consent form of one browser, sent from another.
#[test]
fn a_consent_form_of_another_browser_is_refused() {
    let world = world();
    let (theirs, ours) = (world.open(&[]), world.open(&[]));
    assert_ne!(theirs.cookie, ours.cookie);
    let answer = world.decide(&theirs, &ours.cookie, "allow");
    assert_eq!(answer.status(), StatusCode::FORBIDDEN);
    answer.assert_stays();
    for cookie in ["", "refmcp-consent=", "refmcp-consent=x", "other=y"] {
        let answer = world.decide(&theirs, cookie, "allow");
        assert_eq!(answer.status(), StatusCode::FORBIDDEN);
        answer.assert_stays();
    }
    // The attempt does not invalidate the page.
    assert!(world.decide(&theirs, &theirs.cookie, "allow").returned("code").is_some());
    assert!(world.decide(&ours, &ours.cookie, "allow").returned("code").is_some());
}

#[test]
fn two_consent_pages_of_one_browser_are_independent() {
    let world = world();
    let first = world.open(&[("state", "one")]);
    let query = encode(&request(&[("state", "two")]));
    let again = Request::get(format!("/authorize?{query}")).header("cookie", &first.cookie);
    let answer = world.ask(again.body(Bytes::new()).unwrap());
    assert!(answer.header("set-cookie").starts_with(&first.cookie));
    let text = answer.text();
    let token =
        text.split("name=\"form_token\" value=\"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    let second = Page { answer, cookie: first.cookie.clone(), form_token: token };
    assert_eq!(world.decide(&second, &second.cookie, "deny").returned("state").as_deref(), Some("two"));
    assert_eq!(world.decide(&first, &first.cookie, "allow").returned("state").as_deref(), Some("one"));
}

#[test]
fn a_consent_form_is_accepted_once_and_expires() {
    let world = world();
    let page = world.open(&[]);
    assert!(world.decide(&page, &page.cookie, "allow").returned("code").is_some());
    let again = world.decide(&page, &page.cookie, "allow");
    assert_eq!(again.status(), StatusCode::FORBIDDEN);
    again.assert_stays();
    let late = world.open(&[]);
    world.pass(600);
    world.decide(&late, &late.cookie, "allow").assert_stays();
}

#[test]
fn a_denied_consent_redirects_with_access_denied() {
    let world = world();
    let page = world.open(&[]);
    let answer = world.decide(&page, &page.cookie, "deny");
    assert_eq!(answer.returned("error").as_deref(), Some("access_denied"));
    assert_eq!(answer.returned("iss").as_deref(), Some(ORIGIN));
    assert!(answer.returned("code").is_none());
    world.decide(&page, &page.cookie, "allow").assert_stays();
}

#[test]
fn malformed_consent_forms_are_refused() {
    let world = world();
    let page = world.open(&[]);
    for decision in ["", "yes", "ALLOW"] {
        world.decide(&page, &page.cookie, decision).assert_stays();
    }
    let cookie = [("cookie", page.cookie.as_str())];
    let token = page.form_token.as_str();
    let twice = [("form_token", token), ("decision", "deny"), ("decision", "allow")];
    world.post_with("/authorize", &cookie, &twice).assert_stays();
    world.post_with("/authorize", &cookie, &[("decision", "allow")]).assert_stays();
    let from_elsewhere = [cookie[0], ("sec-fetch-site", "cross-site")];
    let good = [("form_token", token), ("decision", "allow")];
    world.post_with("/authorize", &from_elsewhere, &good).assert_stays();
    for origin in ["https://evil.example", "http://127.0.0.1:3001", "http://localhost:3000"] {
        world.post_with("/authorize", &[cookie[0], ("origin", origin)], &good).assert_stays();
    }
    let from_here = [cookie[0], ("sec-fetch-site", "same-origin"), ("origin", ORIGIN)];
    assert!(world.post_with("/authorize", &from_here, &good).returned("code").is_some());
}

#[test]
fn the_user_name_is_chosen_on_the_consent_page() {
    let world = world();
    let subject = |user: &str| {
        let page = world.open(&[]);
        let form = [("form_token", page.form_token.as_str()), ("user", user), ("decision", "allow")];
        let answer = world.post_with("/authorize", &[("cookie", &page.cookie)], &form);
        let tokens = world.redeem(&answer.returned("code")?, &[]).json();
        Some(world.check(&tokens["access_token"]).unwrap().sub)
    };
    assert_eq!(subject("bob").as_deref(), Some("bob"));
    assert_eq!(subject(" Zoë O'Neil ").as_deref(), Some("Zoë O'Neil"));
    assert_eq!(subject("").as_deref(), Some("user"));
    assert_eq!(subject("a\nb"), None);
    assert_eq!(subject(&"x".repeat(101)), None);
}

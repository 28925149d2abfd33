//! What goes wrong when it is told to.

use std::time::Duration;

use http::StatusCode;
use refmcp_auth::jose::JwsError;
use serde_json::json;

use super::*;

const PLAIN: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

#[test]
fn fault_short_tokens() {
    let world = broken(Fault::ShortExpiry);
    let tokens = world.log_in();
    assert_eq!(tokens["expires_in"], 5);
    world.pass(5);
    assert!(!world.is_active(&tokens["access_token"]));
    assert_eq!(world.refresh(&tokens["refresh_token"]).status(), StatusCode::OK);
}

#[test]
fn fault_wrong_issuer_and_audience() {
    let wrong = |fault| {
        let world = broken(fault);
        let token = world.log_in()["access_token"].clone();
        world.check(&token).unwrap_err()
    };
    assert_eq!(wrong(Fault::WrongIssuerToken), TokenError::Issuer);
    assert_eq!(wrong(Fault::WrongAudience), TokenError::Audience);
    assert_eq!(wrong(Fault::UnknownKid), TokenError::Bad(JwsError::UnknownKey));
}

#[test]
fn fault_wrong_metadata() {
    let document = |fault| broken(fault).get(PLAIN).json();
    assert_ne!(document(Fault::WrongIssuerMetadata)["issuer"], ORIGIN);
    assert!(document(Fault::NoPkceInMetadata).get("code_challenge_methods_supported").is_none());
    let world = broken(Fault::OidcOnly);
    assert_eq!(world.get(PLAIN).status(), StatusCode::NOT_FOUND);
    assert_eq!(world.get(OPENID).json()["issuer"], ORIGIN);
}

#[test]
fn fault_issuer_with_a_path() {
    for (fault, place) in [
        (Fault::IssuerPath, format!("{PLAIN}/tenant")),
        (Fault::IssuerPathOidc, format!("{OPENID}/tenant")),
        (Fault::IssuerPathAppended, format!("/tenant{OPENID}")),
    ] {
        let world = broken(fault);
        let name = format!("{ORIGIN}/tenant");
        assert_eq!(world.issuer.name(), name);
        let url = Url::parse(&name).unwrap();
        let found: Vec<String> = refmcp_auth::uri::server_metadata(&url)
            .iter()
            .map(|url| url.path().to_owned())
            .filter(|path| world.get(path).status() == StatusCode::OK)
            .collect();
        assert_eq!(found, std::slice::from_ref(&place));
        assert_eq!(world.get(&place).json()["issuer"], name);
        assert_eq!(world.get(PLAIN).status(), StatusCode::NOT_FOUND);
        let token = world.log_in()["access_token"].clone();
        assert!(world.check(&token).is_ok());
    }
}

/// Row 96: answers that a client must not follow.
#[test]
fn fault_missing_or_foreign_iss() {
    let back = |fault| {
        let world = broken(fault);
        let page = world.open(&[]);
        world.decide(&page, &page.cookie, "allow")
    };
    assert_eq!(back(Fault::MissingIss).returned("iss"), None);
    assert_eq!(back(Fault::ForeignIss).returned("iss").as_deref(), Some("https://other-issuer.example"));
    assert_eq!(back(Fault::WrongState).returned("state").as_deref(), Some("another-state"));
    let world = broken(Fault::ExpiredCode);
    assert_eq!(world.redeem(&world.code(&[]), &[]).error(), "invalid_grant");
}

#[test]
fn fault_rotating_keys() {
    let world = broken(Fault::RotatedKeys);
    let before = world.issuer.jwks();
    let token = world.log_in()["access_token"].clone();
    let expected = TokenValidation::new(ORIGIN, RESOURCE);
    let with_old_keys = expected.check(token.as_str().unwrap(), &before, NOW);
    assert_eq!(with_old_keys, Err(TokenError::Bad(JwsError::UnknownKey)));
    assert!(world.check(&token).is_ok());
    world.log_in();
    assert!(world.check(&token).is_ok());
}

#[test]
fn fault_fewer_scopes() {
    let world = broken(Fault::RefusedScopes);
    let tokens = world.log_in();
    assert_eq!(tokens["scope"], "read");
    assert_eq!(world.check(&tokens["access_token"]).unwrap().scope.to_string(), "read");
    let one = world.redeem(&world.code(&[("scope", "admin")]), &[]).json();
    assert_eq!(one["scope"], "");
}

#[test]
fn fault_refresh_refused() {
    let world = broken(Fault::RefuseRefresh);
    assert_eq!(world.refresh(&world.log_in()["refresh_token"]).error(), "invalid_grant");
    let world = broken(Fault::NoRefreshToken);
    assert!(world.log_in().get("refresh_token").is_none());
    let grants = &world.get(PLAIN).json()["grant_types_supported"];
    assert!(!grants.as_array().unwrap().contains(&json!("refresh_token")));
}

#[test]
fn fault_opaque_tokens() {
    let world = broken(Fault::OpaqueTokens);
    let tokens = world.log_in();
    assert!(matches!(world.check(&tokens["access_token"]), Err(TokenError::Bad(JwsError::Malformed))));
    let token = tokens["access_token"].as_str().unwrap();
    let told = world.post("/introspect", &[("token", token)]).json();
    assert_eq!(
        (&told["active"], &told["sub"], &told["scope"]),
        (&json!(true), &json!("alice"), &json!("read write"))
    );
    world.post("/revoke", &[("token", token), ("client_id", "app")]);
    assert!(!world.is_active(&tokens["access_token"]));
}

#[test]
fn fault_broken_token_endpoint() {
    let answer = broken(Fault::HtmlTokenResponse).redeem("x", &[]);
    assert_eq!(
        (answer.status(), answer.header("content-type")),
        (StatusCode::OK, "text/html; charset=utf-8")
    );
    assert_eq!(broken(Fault::ServerErrorToken).redeem("x", &[]).status(), StatusCode::INTERNAL_SERVER_ERROR);
}

#[tokio::test(start_paused = true)]
async fn answers_can_come_late() {
    let took = async |world: World, request: Request<Bytes>| {
        let start = tokio::time::Instant::now();
        let answer = world.issuer.answer(request, NOW).await;
        (start.elapsed(), answer.status())
    };
    let jwks = || Request::get("/jwks").body(Bytes::new()).unwrap();
    let token = || Request::post("/token").body(Bytes::new()).unwrap();
    assert_eq!(took(broken(Fault::Slow), jwks()).await, (Duration::from_secs(5), StatusCode::OK));
    let (delay, status) = took(broken(Fault::HangingToken), token()).await;
    assert_eq!((delay, status), (Duration::from_secs(60), StatusCode::UNSUPPORTED_MEDIA_TYPE));
    assert_eq!(took(broken(Fault::HangingToken), jwks()).await, (Duration::ZERO, StatusCode::OK));
}

#[test]
fn the_about_page_lists_active_faults() {
    assert!(broken(Fault::ForeignIss).get("/authorize/about").text().contains("foreign-iss"));
    assert!(world().get("/authorize/about").text().contains("Nothing is made to go wrong"));
}

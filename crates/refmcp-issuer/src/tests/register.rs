//! Clients that make themselves known.

use http::StatusCode;
use serde_json::json;

use super::*;

fn good() -> Value {
    json!({ "client_name": "A <b>client</b>", "redirect_uris": [CALLBACK], "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"], "application_type": "native" })
}

fn with(changes: &Value) -> Value {
    let mut metadata = good();
    for (name, value) in changes.as_object().unwrap() {
        metadata[name] = value.clone();
    }
    metadata
}

#[test]
fn a_client_registers_and_logs_in() {
    let world = world();
    let answer = world.register(&good());
    assert_eq!(answer.status(), StatusCode::CREATED, "{}", answer.text());
    assert_eq!(answer.header("cache-control"), "no-store");
    let registered = answer.json();
    assert!(registered.get("client_secret").is_none());
    assert_eq!(registered["application_type"], "native");
    assert_eq!(registered["client_id_issued_at"], NOW);
    let id = registered["client_id"].as_str().unwrap();
    let code = world.code(&[("client_id", id)]);
    let tokens = world.redeem(&code, &[("client_id", id)]).json();
    assert!(tokens["access_token"].is_string() && tokens["refresh_token"].is_string());
}

#[test]
fn registered_authentication_methods_are_enforced() {
    let world = world();
    let basic = world.register(&with(&json!({ "token_endpoint_auth_method": "client_secret_basic" }))).json();
    let (id, secret) = (basic["client_id"].as_str().unwrap(), basic["client_secret"].as_str().unwrap());
    assert_eq!(basic["client_secret_expires_at"], 0);
    let code = world.code(&[("client_id", id)]);
    let posted = world.redeem(&code, &[("client_id", id), ("client_secret", secret)]);
    assert_eq!((posted.status(), posted.error().as_str()), (StatusCode::UNAUTHORIZED, "invalid_client"));
    assert_eq!(world.redeem(&code, &[("client_id", id)]).error(), "invalid_client");
    let header = super::identity::basic(id, secret);
    let form = redemption(&code, &[("client_id", "")]);
    let answer = world.post_with("/token", &[("authorization", &header)], &form);
    assert_eq!(answer.status(), StatusCode::OK, "{}", answer.text());

    // What RFC 7591 says is meant when nothing is said.
    let silent = world.register(&json!({ "redirect_uris": [CALLBACK] })).json();
    assert_eq!(silent["token_endpoint_auth_method"], "client_secret_basic");
    assert!(silent["client_secret"].is_string());
    assert_eq!(silent["grant_types"], json!(["authorization_code"]));

    let unknown = world.register(&with(&json!({ "token_endpoint_auth_method": "client_secret_jwt" })));
    assert_eq!(unknown.error(), "invalid_client_metadata");
    let keyless = world.register(&with(&json!({ "token_endpoint_auth_method": "private_key_jwt" })));
    assert_eq!(keyless.error(), "invalid_client_metadata");
}

#[test]
fn a_client_without_the_refresh_grant_gets_no_refresh_token() {
    let world = world();
    let registered = world.register(&with(&json!({ "grant_types": ["authorization_code"] }))).json();
    let id = registered["client_id"].as_str().unwrap();
    let code = world.code(&[("client_id", id)]);
    assert!(world.redeem(&code, &[("client_id", id)]).json().get("refresh_token").is_none());
    let refused = world.token(&[("grant_type", "refresh_token"), ("client_id", id), ("refresh_token", "x")]);
    assert_eq!(refused.error(), "unauthorized_client");
}

#[test]
fn dynamic_clients_need_consent() {
    let world = world();
    let bearer = "urn:ietf:params:oauth:grant-type:jwt-bearer";
    let grants = json!(["authorization_code", "client_credentials", bearer]);
    let asked = json!({ "grant_types": grants, "token_endpoint_auth_method": "client_secret_post" });
    let registered = world.register(&with(&asked)).json();
    assert_eq!(registered["grant_types"], json!(["authorization_code"]));
    let (id, secret) =
        (registered["client_id"].as_str().unwrap(), registered["client_secret"].as_str().unwrap());
    for grant in ["client_credentials", bearer] {
        let form =
            [("grant_type", grant), ("client_id", id), ("client_secret", secret), ("assertion", "e30.e30.")];
        assert!(["unauthorized_client", "invalid_grant"].contains(&&*world.token(&form).error()), "{grant}");
        let alone = world.register(&with(&json!({ "grant_types": [grant], "redirect_uris": [] })));
        assert_eq!(alone.error(), "invalid_client_metadata", "{grant}");
    }
}

/// Row 99: addresses that do harm.
#[test]
fn harmful_redirect_uris_are_refused() {
    let world = world();
    for address in [
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "vbscript:x",
        "custom:/cb",
        "http://app.example/cb",
        "https://app.example/cb#x",
        "https://me@app.example/cb",
        "not a uri",
        "",
    ] {
        let answer = world.register(&with(&json!({ "redirect_uris": [address] })));
        assert_eq!(
            (answer.status(), answer.error().as_str()),
            (StatusCode::BAD_REQUEST, "invalid_redirect_uri")
        );
    }
    assert_eq!(world.register(&with(&json!({ "redirect_uris": [] }))).error(), "invalid_redirect_uri");
}

#[test]
fn application_type_restricts_redirect_uris() {
    let world = world();
    let at = |kind: &str, address: &str| {
        world.register(&with(&json!({ "application_type": kind, "redirect_uris": [address] }))).status()
    };
    assert_eq!(at("native", "http://127.0.0.1:1/cb"), StatusCode::CREATED);
    assert_eq!(at("web", "http://127.0.0.1:1/cb"), StatusCode::BAD_REQUEST);
    assert_eq!(at("web", "https://localhost/cb"), StatusCode::BAD_REQUEST);
    assert_eq!(at("web", CALLBACK), StatusCode::CREATED);
    assert_eq!(at("toaster", CALLBACK), StatusCode::BAD_REQUEST);
}

/// Row 99: huge metadata.
#[test]
fn huge_registrations_are_refused() {
    let world = world();
    let many: Vec<String> = (0..17).map(|n| format!("{CALLBACK}/{n}")).collect();
    assert_eq!(world.register(&with(&json!({ "redirect_uris": many }))).status(), StatusCode::BAD_REQUEST);
    let named = |name: String| world.register(&with(&json!({ "client_name": name }))).status();
    assert_eq!(named("n".repeat(201)), StatusCode::BAD_REQUEST);
    assert_eq!(named("n".repeat(20_000)), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(named("n".repeat(100_000)), StatusCode::PAYLOAD_TOO_LARGE);
}

#[test]
fn what_is_not_json_is_refused() {
    let world = world();
    let send = |kind: &str, body: &'static str| {
        let request = Request::post("/register").header(header::CONTENT_TYPE, kind);
        world.ask(request.body(Bytes::from_static(body.as_bytes())).unwrap())
    };
    for body in ["", "[]", "{", "null", "{\"redirect_uris\": \"x\"}", "\u{feff}{}"] {
        let answer = send("application/json", body);
        assert_eq!(answer.error(), "invalid_client_metadata", "{body}");
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    }
    assert_eq!(send("text/plain", "{}").status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
}

/// Row 99: ten thousand registrations.
#[test]
fn a_flood_of_registrations_evicts_no_active_client() {
    let world = world();
    let registered = world.register(&good()).json();
    let id = registered["client_id"].as_str().unwrap();
    let tokens = world.redeem(&world.code(&[("client_id", id)]), &[("client_id", id)]).json();
    let second = world.register(&good()).json();
    let second = second["client_id"].as_str().unwrap();
    let page = world.open(&[("client_id", second)]);
    for _ in 0..10_000 {
        assert_eq!(world.register(&good()).status(), StatusCode::CREATED);
    }
    let count = world.issuer.registered_clients();
    assert!(count <= 2_000, "{count}");
    let token = tokens["refresh_token"].as_str().unwrap();
    let form = [("grant_type", "refresh_token"), ("client_id", id), ("refresh_token", token)];
    assert_eq!(world.token(&form).status(), StatusCode::OK);
    let code = world.decide(&page, &page.cookie, "allow").returned("code").unwrap();
    assert_eq!(world.redeem(&code, &[("client_id", second)]).status(), StatusCode::OK);
    assert!(world.log_in()["access_token"].is_string());
}

#[test]
fn registration_can_be_disabled() {
    let world = broken(Fault::NoRegistration);
    assert_eq!(world.register(&good()).status(), StatusCode::NOT_FOUND);
    let document = world.get("/.well-known/oauth-authorization-server").json();
    assert!(document.get("registration_endpoint").is_none());
    assert!(world.issuer.paths().iter().all(|path| path != "/register"));
}

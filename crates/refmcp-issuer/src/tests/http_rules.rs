//! What holds for every request.

use http::StatusCode;

use super::*;

#[test]
fn every_path_has_its_methods() {
    let world = world();
    for path in world.issuer.paths() {
        for method in [Method::PUT, Method::DELETE, Method::PATCH, Method::TRACE] {
            let answer = ask_with(&world, method, &path);
            assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED, "{path}");
            assert!(!answer.header("allow").is_empty());
        }
    }
    for path in ["/token", "/register", "/revoke", "/introspect"] {
        let answer = ask_with(&world, Method::GET, path);
        assert_eq!((answer.status(), answer.header("allow")), (StatusCode::METHOD_NOT_ALLOWED, "POST"));
    }
    let answer = ask_with(&world, Method::POST, "/jwks");
    assert_eq!((answer.status(), answer.header("allow")), (StatusCode::METHOD_NOT_ALLOWED, "GET, HEAD"));
    for path in ["/", "/nowhere", "/token/", "//token", "/TOKEN", "/.well-known/oauth-authorization-server/x"]
    {
        assert_eq!(world.get(path).status(), StatusCode::NOT_FOUND, "{path}");
    }
}

#[test]
fn cors_is_allowed_where_browser_clients_need_it() {
    let world = world();
    let open =
        ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/jwks", "/token"];
    for path in open.into_iter().chain(["/register", "/revoke"]) {
        let answer = ask_with(&world, Method::OPTIONS, path);
        assert_eq!(answer.status(), StatusCode::NO_CONTENT, "{path}");
        assert_eq!(answer.header("access-control-allow-origin"), "*");
        assert_eq!(answer.header("access-control-allow-credentials"), "");
        assert!(answer.header("access-control-allow-headers").contains("content-type"));
        assert!(!answer.header("access-control-allow-methods").is_empty());
        assert_eq!(world.get(path).header("access-control-allow-origin"), "*");
    }
    let refused = world.token(&[("grant_type", "x")]);
    assert_eq!(refused.header("access-control-allow-origin"), "*");
    for path in ["/authorize", "/introspect"] {
        let answer = ask_with(&world, Method::OPTIONS, path);
        assert_eq!(answer.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(answer.header("access-control-allow-origin"), "");
    }
}

#[test]
fn bodies_are_forms_of_a_reasonable_size() {
    let world = world();
    let send = |path: &str, kind: &str, body: String| {
        let request = Request::post(path).header(header::CONTENT_TYPE, kind);
        world.ask(request.body(body.into()).unwrap())
    };
    let form = "application/x-www-form-urlencoded";
    for path in ["/token", "/revoke", "/introspect"] {
        for kind in ["application/json", "text/plain", "multipart/form-data", ""] {
            let answer = send(path, kind, "grant_type=x".into());
            assert_eq!(answer.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
            assert_eq!(answer.error(), "invalid_request");
        }
        assert_eq!(send(path, form, "a".repeat((64 << 10) + 1)).status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(send(path, form, "a=b&".repeat(100)).status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(send(path, form, "token=a&token=a".into()).error(), "invalid_request");
        assert_eq!(send(path, form, String::new()).error(), "invalid_request");
    }
    let answer =
        send("/token", "Application/X-WWW-Form-Urlencoded; charset=utf-8", "grant_type=nonsense".into());
    assert_eq!(answer.error(), "unsupported_grant_type");
}

#[test]
fn parameters_that_come_twice_are_refused() {
    let world = world();
    let code = world.code(&[]);
    for name in ["code", "code_verifier", "client_id", "grant_type", "redirect_uri", "nonsense"] {
        let form = redemption(&code, &[]);
        let twice = [form.as_slice(), &[(name, "x".to_owned()), (name, "x".to_owned())]].concat();
        assert_eq!(world.post("/token", &twice).error(), "invalid_request", "{name}");
    }
    let twice = [redemption(&code, &[]).as_slice(), &[("resource", RESOURCE.to_owned())]].concat();
    assert_eq!(world.post("/token", &twice).error(), "invalid_target");
    assert_eq!(world.redeem(&code, &[]).status(), StatusCode::OK);
}

#[test]
fn errors_are_json_and_not_cached() {
    let world = world();
    let answer = world.redeem("unknown", &[]);
    assert_eq!(answer.header("content-type"), "application/json");
    assert_eq!(answer.header("cache-control"), "no-store");
    assert!(answer.json()["error_description"].is_string());
}

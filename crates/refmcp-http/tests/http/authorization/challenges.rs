//! Challenges: requests without a valid token are refused on every route, before anything else is checked.

use std::time::Duration;

use refmcp_http::{Endpoint, Options, ResourceServerOptions};
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::{Guarded, UPGRADE, challenge};
use crate::support::Site;
use crate::support::http1::Reply;

/// Routes without a token.
const OPEN: [&str; 1] = ["/.well-known/oauth-protected-resource"];

/// The metadata path that a challenge on a path names.
fn described(path: &str) -> &str {
    match path {
        "/mcp" | "/mcp/ws" | "/sse" => path,
        "/messages" => "/sse",
        "/healthz" | "/readyz" | "/metrics" => "/mcp",
        other => panic!("{other} is new; say whose document its challenges lead to"),
    }
}

#[tokio::test]
async fn every_route_requires_a_token_or_is_listed_as_open() {
    let guarded = Guarded::open().await;
    let bearer = guarded.bearer(json!({}));
    for path in ["/healthz", "/readyz", "/metrics"] {
        let reply = guarded.site.send("GET", path, &[("Authorization", &bearer)], b"").await;
        assert_eq!(reply.status, 200, "{path}");
    }
    let fetched = guarded.issuers.fetches("");
    for route in Endpoint::routes() {
        for method in route.methods {
            let reply = guarded.site.send(method, route.path, &[], b"{}").await;
            if OPEN.contains(&route.path) {
                assert_eq!(reply.status, 200, "{method} {}", route.path);
                continue;
            }
            assert_eq!(reply.status, 401, "{method} {}", route.path);
            let challenge = challenge(&reply);
            assert!(challenge.is("Bearer"));
            assert_eq!(challenge.get("error"), None, "nothing was presented");
            let document = guarded.document(described(route.path));
            assert_eq!(challenge.get("resource_metadata"), Some(&*document), "{method} {}", route.path);
            // Other mistakes are not reported yet.
            let bad = guarded.site.send(method, route.path, &[("Content-Type", "text/plain")], b"?").await;
            assert_eq!(bad.status, 401, "{method} {}", route.path);
            let upgrade = guarded.site.send(method, route.path, &UPGRADE, b"").await;
            assert_eq!(upgrade.status, 401, "{method} {}", route.path);
        }
        // Preflight requests have no token, and allow the headers of authorization.
        let page =
            [("Origin", "http://localhost:1"), ("Access-Control-Request-Headers", "authorization, dpop")];
        let asked = guarded.site.send("OPTIONS", route.path, &page, b"").await;
        assert_eq!(asked.status, 204, "{}", route.path);
        let allowed = asked.header("access-control-allow-headers").unwrap();
        assert!(allowed.contains("authorization") && allowed.contains("dpop"), "{allowed}");
        let exposed = asked.header("access-control-expose-headers").unwrap();
        assert!(exposed.contains("WWW-Authenticate") && exposed.contains("DPoP-Nonce"), "{exposed}");
    }
    assert_eq!(guarded.issuers.fetches(""), fetched, "nothing was fetched");
    let refused = guarded.metric("refmcp_rejections_total{reason=\"unauthorized\"}").await;
    assert!(refused > 0.0);
}

#[tokio::test]
async fn a_refusal_leaves_the_connection_usable_or_says_that_it_does_not() {
    let guarded = Guarded::open().await;
    let head = guarded.site.head("POST", "/mcp");
    let late = |length: usize| {
        let (head, address) = (format!("{head}Content-Length: {length}\r\n\r\n"), guarded.site.address);
        async move {
            let mut socket = TcpStream::connect(address).await.unwrap();
            socket.write_all(head.as_bytes()).await.unwrap();
            // Some clients send the body in a packet of its own.
            tokio::time::sleep(Duration::from_millis(20)).await;
            // One that is too long may not be taken any more.
            let _ = socket.write_all(&vec![b' '; length]).await;
            Reply::read(socket, Vec::new()).await.unwrap()
        }
    };
    let refused = late(100).await;
    assert_eq!((refused.status, refused.header("connection")), (401, None));
    let next = format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", OPEN[0], guarded.site.address);
    assert_eq!(refused.again(next.as_bytes()).await.unwrap().status, 200);
    let refused = late(100_000).await;
    assert_eq!((refused.status, refused.header("connection")), (401, Some("close")));
}

#[tokio::test]
async fn guard_and_method_are_checked_before_the_token() {
    let guarded = Guarded::open().await;
    for route in Endpoint::routes() {
        for method in route.methods {
            let reply = guarded.site.send(method, route.path, &[("Host", "evil.com")], b"{}").await;
            assert_eq!(reply.status, 403, "{method} {}", route.path);
            assert_eq!(reply.header("www-authenticate"), None);
            let reply = guarded.site.send(method, route.path, &[("Origin", "https://evil.com")], b"{}").await;
            let public = route.path.starts_with("/.well-known/");
            assert_eq!(reply.status, if public { 200 } else { 403 }, "{method} {}", route.path);
        }
        assert_eq!(guarded.site.send("PUT", route.path, &[], b"").await.status, 405, "{}", route.path);
    }
    assert_eq!(guarded.site.send("GET", "/nothing", &[], b"").await.status, 404);
}

#[tokio::test]
async fn malformed_credentials_are_refused() {
    let guarded = Guarded::open().await;
    let good = guarded.bearer(json!({}));
    let token = good.strip_prefix("Bearer ").unwrap();
    assert_eq!(guarded.ask(&[("Authorization", &good)]).await.status, 200);
    let in_url = format!("/mcp?access_token={token}");
    let twice = [("Authorization", &*good), ("Authorization", &*good)];
    for (what, path, headers) in [
        ("in the query", &*in_url, &[][..]),
        ("in the query as well", &*in_url, &twice[..1]),
        ("two headers", "/mcp", &twice),
        ("in a form", "/mcp", &[("Content-Type", "application/x-www-form-urlencoded")]),
        ("without a token", "/mcp", &[("Authorization", "Bearer")]),
        ("with two", "/mcp", &[("Authorization", "Bearer a b")]),
        ("in quotes", "/mcp", &[("Authorization", "Bearer \"a\"")]),
        ("empty", "/mcp", &[("Authorization", "")]),
    ] {
        let body = format!("access_token={token}");
        let reply = guarded.site.send("POST", path, headers, body.as_bytes()).await;
        assert_eq!(reply.status, 400, "{what}");
        assert_eq!(challenge(&reply).get("error"), Some("invalid_request"), "{what}");
    }
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let without = guarded.site.send("POST", "/mcp", &form, b"{}").await;
    assert_eq!((without.status, challenge(&without).get("error")), (401, None), "a form without a token");
    // Other schemes are unknown.
    let basic = guarded.ask(&[("Authorization", "Basic YTpi")]).await;
    assert_eq!((basic.status, challenge(&basic).get("error")), (401, None));
    let cookie = format!("access_token={token}");
    assert_eq!(guarded.ask(&[("Cookie", &cookie)]).await.status, 401);
}

#[tokio::test]
async fn challenges_name_the_scopes_to_request() {
    let wanted = refmcp_auth::Scopes::parse("a b").unwrap();
    let guarded =
        Guarded::with(ResourceServerOptions { challenge_scopes: wanted, ..ResourceServerOptions::default() })
            .await;
    assert_eq!(challenge(&guarded.ask(&[]).await).get("scope"), Some("a b"));
    let guarded = Guarded::open().await;
    assert_eq!(challenge(&guarded.ask(&[]).await).get("scope"), None);
}

#[tokio::test]
async fn without_a_resource_server_no_token_is_required() {
    let site = Site::open(Options::default()).await;
    let reply = site.stateless("tools/list", json!({}), &[("Authorization", "Bearer nonsense")]).await;
    assert_eq!(reply.status, 200);
    assert_eq!(site.send("GET", "/.well-known/oauth-protected-resource", &[], b"").await.status, 404);
    let dear = json!({ "name": "dear", "arguments": {} });
    assert_eq!(site.stateless("tools/call", dear, &[]).await.status, 200, "no scopes are asked for, either");
}

//! The guard, CORS, methods and paths: the same for every route. The tests go through the table of routes, so that a new
//! route is checked too.

use refmcp_http::{Endpoint, Options, Route};
use serde_json::json;

use crate::support::{Client, LATEST_SESSION, Site, initialize_params, request};

/// Every path with each of its methods, and the preflight request.
fn served() -> impl Iterator<Item = (&'static str, &'static str)> {
    let methods = |route: &'static Route| route.methods.iter().chain(&["OPTIONS"]);
    Endpoint::routes().iter().flat_map(move |route| methods(route).map(|method| (*method, route.path)))
}

const STRANGERS: [&[(&str, &str)]; 19] = [
    &[("Host", "evil.com")],
    &[("Host", "127.0.0.1.evil.com")],
    &[("Host", "localhost.evil.com:3000")],
    &[("Host", "localhost:1@evil")],
    &[("Host", "localhost.")],
    &[("Host", "localhost:")],
    &[("Host", "[::1")],
    &[("Host", "")],
    &[("Host", "localhost"), ("Host", "evil.com")],
    &[("Host", "localhost"), ("Host", "localhost")],
    &[("Origin", "https://evil.com")],
    &[("Origin", "null")],
    &[("Origin", "")],
    &[("Origin", "http://127.0.0.1.evil.com")],
    &[("Origin", "http://localhost:1@evil.com")],
    &[("Origin", "file://localhost")],
    &[("Origin", "http://localhost"), ("Origin", "http://evil.com")],
    &[("Origin", "http://localhost"), ("Origin", "http://localhost")],
    // One of the two is not enough.
    &[("Host", "evil.com"), ("Origin", "http://localhost")],
];

#[tokio::test]
async fn foreign_hosts_and_origins_are_refused_on_every_route() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    for (method, path) in served().chain([("PUT", "/mcp"), ("GET", "/nothing"), ("OPTIONS", "*")]) {
        for headers in STRANGERS {
            // Other mistakes of this request are not reported.
            let mut headers = headers.to_vec();
            headers.extend([("Content-Type", "text/plain"), ("Access-Control-Request-Method", "POST")]);
            let reply = site.send(method, path, &headers, b"{}").await;
            assert_eq!(reply.status, 403, "{method} {path} {headers:?}");
            let told = reply.names().find(|name| name.starts_with("access-control"));
            assert_eq!(told, None, "{method} {path} {headers:?}");
        }
        client.is_served().await;
    }
    for (method, path) in served() {
        for nameless in
            ["HTTP/1.1\r\n\r\n", "HTTP/1.0\r\n\r\n", "HTTP/1.1\r\nX-Forwarded-Host: localhost\r\n\r\n"]
        {
            let reply = site.send_raw(format!("{method} {path} {nameless}")).await.unwrap();
            assert_eq!(reply.status, 403, "{method} {path} {nameless:?}");
        }
    }
    client.is_served().await;
    site.serves().await;
}

#[tokio::test]
async fn local_hosts_and_origins_are_allowed_on_every_route() {
    let site = Site::usual().await;
    let neighbours: [&[(&str, &str)]; 7] = [
        &[],
        &[("Host", "localhost")],
        &[("Host", "LOCALHOST:3000")],
        &[("Host", "[::1]")],
        &[("Host", "[::1]:3000")],
        &[("Origin", "http://localhost:8080")],
        &[("Origin", "https://127.0.0.1")],
    ];
    for (method, path) in served() {
        for headers in neighbours {
            let reply = site.send(method, path, headers, b"{}").await;
            assert_ne!(reply.status, 403, "{method} {path} {headers:?}");
            assert_eq!(reply.header("access-control-allow-origin"), origin(headers), "{method} {path}");
        }
    }
    site.serves().await;
}

#[tokio::test]
async fn allowed_hosts_are_served() {
    let hosts = vec!["mcp.example.com".to_owned(), "port.example.com:8443".to_owned()];
    let origins = vec!["https://app.example.com".to_owned()];
    let site = Site::open(Options { hosts, origins, ..Options::default() }).await;
    for (name, value, fine) in [
        ("Host", "mcp.example.com", true),
        ("Host", "MCP.example.com:8080", true),
        ("Host", "port.example.com:8443", true),
        ("Host", "port.example.com", false),
        ("Host", "port.example.com:80", false),
        ("Host", "example.com", false),
        ("Host", "x.mcp.example.com", false),
        ("Host", "mcp.example.com.evil.com", false),
        ("Origin", "https://app.example.com", true),
        ("Origin", "https://mcp.example.com", true),
        ("Origin", "http://app.example.com", false),
        ("Origin", "https://app.example.com:8443", false),
        ("Origin", "https://app.example.com.evil.com", false),
        ("Origin", "https://app.example.com/", false),
    ] {
        for (method, path) in served() {
            let reply = site.send(method, path, &[(name, value)], b"{}").await;
            assert_eq!(reply.status != 403, fine, "{method} {path} {name}: {value}");
        }
    }
    site.serves().await;
}

fn origin<'a>(headers: &[(&str, &'a str)]) -> Option<&'a str> {
    headers.iter().find(|(name, _)| *name == "Origin").map(|(_, value)| *value)
}

#[tokio::test]
async fn allowed_origins_may_read_responses() {
    let site = Site::usual().await;
    let page = ("Origin", "http://localhost:8080");
    let readable = |reply: &crate::support::http1::Reply, what: &str| {
        assert_eq!(reply.header("access-control-allow-origin"), Some(page.1), "{what}");
        assert_eq!(reply.header("vary").map(str::to_ascii_lowercase).as_deref(), Some("origin"), "{what}");
        let exposed = reply.header("access-control-expose-headers").unwrap_or_default().to_ascii_lowercase();
        for name in ["mcp-session-id", "mcp-protocol-version", "retry-after"] {
            assert!(exposed.contains(name), "{what}: {exposed}");
        }
    };
    for (method, path) in served() {
        readable(&site.send(method, path, &[page], b"{}").await, path);
    }
    let reply = site.post(&[page], &request("initialize", initialize_params(LATEST_SESSION))).await;
    assert!(reply.header("mcp-session-id").is_some());
    readable(&reply, "initialize");
    // What is refused for another reason can be read as well.
    readable(&site.send("GET", "/nothing", &[page], b"").await, "404");
    readable(&site.send("PUT", "/mcp", &[page], b"").await, "405");
    let reply = site.send("POST", "/mcp", &[], b"{}").await;
    assert!(reply.names().all(|name| !name.starts_with("access-control")), "no page has asked");
}

#[tokio::test]
async fn preflight_requests_are_answered_on_every_route() {
    let site = Site::usual().await;
    let wanted = "content-type, mcp-session-id, mcp-protocol-version, last-event-id, mcp-param-city, x-evil";
    for route in Endpoint::routes() {
        let asking = [
            ("Origin", "http://localhost:8080"),
            ("Access-Control-Request-Method", route.methods[0]),
            ("Access-Control-Request-Headers", wanted),
        ];
        let reply = site.send("OPTIONS", route.path, &asking, b"").await;
        assert_eq!(reply.status, 204, "{}", route.path);
        assert_eq!(reply.header("access-control-allow-origin"), Some("http://localhost:8080"));
        assert_eq!(reply.header("access-control-allow-methods"), Some(&*route.methods.join(", ")));
        let allowed = reply.header("access-control-allow-headers").unwrap();
        for name in wanted.split(", ") {
            assert_eq!(allowed.split(", ").any(|known| known == name), name != "x-evil", "{name}: {allowed}");
        }
        assert!(reply.header("access-control-allow-credentials").is_none());
    }
    assert_eq!(site.send("OPTIONS", "/nothing", &[], b"").await.status, 404);
    site.serves().await;
}

#[tokio::test]
async fn a_wrong_method_is_answered_with_allow() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    for route in Endpoint::routes() {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "PRI", "BREW", "get", "post"]
        {
            if route.methods.contains(&method) {
                continue;
            }
            let reply = site.send(method, route.path, &client.headers(), b"").await;
            assert_eq!(reply.status, 405, "{method} {}", route.path);
            assert_eq!(reply.header("allow"), Some(&*route.methods.join(", ")), "{method} {}", route.path);
        }
    }
    client.is_served().await;
    site.serves().await;
}

#[tokio::test]
async fn only_exact_paths_are_served() {
    let site = Site::usual().await;
    let client = Client::open(&site, LATEST_SESSION).await;
    let here = site.address;
    for (target, status) in [
        ("/", 404),
        ("//mcp", 404),
        ("/mcp/", 404),
        ("/mcp/..", 404),
        ("/mcp/../mcp", 404),
        ("/x/../mcp", 404),
        ("/./mcp", 404),
        ("/MCP", 404),
        ("/%6dcp", 404),
        ("/mcp%2f", 404),
        ("/mcp%00", 404),
        ("/mcp;x=1", 404),
        ("/mcp/ws/", 404),
        ("/.well-known/none", 404),
        ("*", 404),
        ("/mcp?x=1", 200),
        ("/mcp?x=1?y=2", 200),
        (&format!("http://{here}/mcp"), 200),
        ("http://localhost/mcp", 200),
        (&format!("http://{here}/"), 404),
        (&format!("http://{here}//mcp"), 404),
        // The host of an absolute target is checked too.
        ("http://evil.com/mcp", 403),
        ("http://localhost:1@evil.com/mcp", 403),
        ("http://user@localhost/mcp", 403),
        ("http://localhost./mcp", 403),
        (&format!("/{}", "x".repeat(20_000)), 404),
    ] {
        let body = request("ping", json!({})).to_string();
        let reply = site.send("POST", target, &client.headers(), body.as_bytes()).await;
        assert_eq!(reply.status, status, "{target:.100}");
        client.is_served().await;
    }
    for method in ["CONNECT", "POST", "GET"] {
        for target in
            ["evil.com:443", "localhost:443", "mcp", "mcp:80", "", "@", "http://", "http:///mcp", "\u{fc}"]
        {
            let reply = site.send_raw(format!("{}\r\n", site.head(method, target))).await;
            let status = reply.map(|reply| reply.status);
            assert!(
                status.is_none_or(|status| (400..500).contains(&status)),
                "{method} {target}: {status:?}"
            );
        }
    }
    client.is_served().await;
    site.serves().await;
}

//! Who may speak to the server at all, on every route.

use crate::support::Site;

const ROUTES: [(&str, &str); 6] = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("GET", "/mcp/ws"),
    ("GET", "/sse"),
    ("POST", "/messages?sessionId=x"),
];

#[tokio::test]
async fn strangers_are_refused_everywhere() {
    let site = Site::usual().await;
    let strangers: [&[(&str, &str)]; 12] = [
        &[("Host", "evil.com")],
        &[("Host", "127.0.0.1.evil.com")],
        &[("Host", "localhost.evil.com:3000")],
        &[("Host", "localhost"), ("Host", "evil.com")],
        &[("Host", "localhost"), ("Host", "localhost")],
        &[("Host", "")],
        &[("Origin", "https://evil.com")],
        &[("Origin", "null")],
        &[("Origin", "")],
        &[("Origin", "http://127.0.0.1.evil.com")],
        &[("Origin", "file://localhost")],
        &[("Origin", "http://localhost"), ("Origin", "http://evil.com")],
    ];
    for (method, path) in ROUTES {
        for headers in strangers {
            let reply = site.send(method, path, headers, b"{}").await;
            assert_eq!(reply.status, 403, "{method} {path} {headers:?}");
        }
    }
}

#[tokio::test]
async fn neighbours_are_let_in_everywhere() {
    let site = Site::usual().await;
    let neighbours: [&[(&str, &str)]; 5] = [
        &[],
        &[("Host", "localhost:3000")],
        &[("Host", "[::1]:3000")],
        &[("Origin", "http://localhost:8080")],
        &[("Origin", "https://127.0.0.1")],
    ];
    for (method, path) in ROUTES {
        for headers in neighbours {
            let reply = site.send(method, path, headers, b"{}").await;
            assert_ne!(reply.status, 403, "{method} {path} {headers:?}");
        }
    }
}

//! Extra routes: behind the same guard, without a token.

use std::sync::Arc;

use bytes::Bytes;
use refmcp_auth::fetch::BoxFuture;
use refmcp_http::{ExtraRoutes, Options};

use super::Guarded;
use crate::support::Site;

/// The metadata path of an issuer with a path.
const TENANT: &str = "/tenant/.well-known/openid-configuration";

/// Answers with the request.
#[derive(Debug)]
struct EchoRoutes;

impl ExtraRoutes for EchoRoutes {
    fn paths(&self) -> Vec<String> {
        let paths = ["/authorize", "/token", "/.well-known/oauth-authorization-server", TENANT];
        paths.map(str::to_owned).to_vec()
    }

    fn answer(&self, request: axum::http::Request<Bytes>) -> BoxFuture<'_, axum::http::Response<Bytes>> {
        Box::pin(async move {
            let said = format!("{} {} {}", request.method(), request.uri(), request.body().len());
            axum::http::Response::builder()
                .header("access-control-allow-origin", "*")
                .body(said.into())
                .unwrap()
        })
    }
}

fn options() -> Options {
    Options { extra_routes: Some(Arc::new(EchoRoutes)), ..Options::default() }
}

#[tokio::test]
async fn extra_routes_are_served_without_a_token() {
    for site in [
        Site::open(options()).await,
        Guarded::with_options(|resource_server| resource_server, options()).await.site,
    ] {
        let reply = site.send("POST", "/token?a=b", &[], b"12345").await;
        assert_eq!((reply.status, reply.text().await.as_str()), (200, "POST /token?a=b 5"));
        assert_eq!(site.send("GET", "/authorize", &[], b"").await.status, 200);
        assert_eq!(site.send("GET", "/authorize/", &[], b"").await.status, 404);
        assert_eq!(site.send("POST", "/token", &[("Host", "evil.com")], b"").await.status, 403);
        assert_eq!(site.send("POST", "/token", &[], &[b'x'; 64 << 10]).await.status, 200);
        assert_eq!(site.send("POST", "/token", &[], &[b'x'; (64 << 10) + 1]).await.status, 413);
    }
}

#[tokio::test]
async fn foreign_pages_may_call_only_public_paths() {
    let site = Site::open(options()).await;
    let page = [("Origin", "https://page.example")];
    for (method, path) in
        [("POST", "/token"), ("GET", "/.well-known/oauth-authorization-server"), ("GET", TENANT)]
    {
        let reply = site.send(method, path, &page, b"").await;
        assert_eq!(
            (reply.status, reply.header("access-control-allow-origin")),
            (200, Some(page[0].1)),
            "{path}"
        );
        assert_eq!(reply.header("access-control-allow-credentials"), None);
        assert_eq!(site.send("OPTIONS", path, &page, b"").await.status, 204, "{path}");
    }
    for method in ["GET", "POST", "OPTIONS"] {
        let reply = site.send(method, "/authorize", &page, b"").await;
        assert_eq!((reply.status, reply.header("access-control-allow-origin")), (403, None), "{method}");
    }
    assert_eq!(site.send("POST", "/authorize", &[("Origin", "http://localhost:9")], b"").await.status, 200);
}

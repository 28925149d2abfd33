//! The protected resource metadata.

use std::sync::Arc;

use refmcp_auth::Scopes;
use refmcp_http::{Endpoint, Options, ResourceServer, ResourceServerOptions};
use serde_json::json;
use tokio::net::TcpListener;
use url::Url;

use super::Guarded;
use super::fake_issuers::{ISSUER, Issuers, OTHER_ISSUER};
use crate::support::{LATEST_SESSION, Site, initialize_params, request};

#[tokio::test]
async fn the_metadata_is_public() {
    let guarded = Guarded::with(ResourceServerOptions {
        scopes: Scopes::parse("a b").unwrap(),
        title: Some("Test".to_owned()),
        ..ResourceServerOptions::default()
    })
    .await;
    let origin = format!("http://{}", guarded.site.address);
    let place = "/.well-known/oauth-protected-resource";
    for (path, resource) in [("", "/mcp"), ("/mcp", "/mcp"), ("/mcp/ws", "/mcp/ws"), ("/sse", "/sse")] {
        let path = format!("{place}{path}");
        // Also for pages of any origin, which need it to log in.
        let reply = guarded.site.send("GET", &path, &[("Origin", "https://page.example")], b"").await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.header("content-type"), Some("application/json"));
        assert_eq!(reply.header("access-control-allow-origin"), Some("https://page.example"));
        let document = reply.json().await;
        assert_eq!(document["resource"], format!("{origin}{resource}"), "{path}");
        assert_eq!(document["authorization_servers"], json!([ISSUER, OTHER_ISSUER]));
        assert_eq!(document["scopes_supported"], json!(["a", "b"]));
        assert_eq!(document["bearer_methods_supported"], json!(["header"]));
        assert_eq!(document["resource_name"], "Test");
    }
    for path in ["/other", "/mcp/other", "/mcpx", "x"] {
        let reply = guarded.site.send("GET", &format!("{place}{path}"), &[], b"").await;
        assert_eq!(reply.status, 404, "{path}");
    }
    let stranger = guarded.site.send("GET", place, &[("Host", "evil.com")], b"").await;
    assert_eq!(stranger.status, 403, "but not by any name");
    assert_eq!(guarded.site.send("POST", place, &[], b"").await.status, 405);
}

#[tokio::test]
async fn on_loopback_the_metadata_names_the_requested_host() {
    let guarded = Guarded::open().await;
    let here = format!("localhost:{}", guarded.site.address.port());
    let named = [("Host", &*here)];
    let reply = guarded.site.send("GET", "/.well-known/oauth-protected-resource/mcp", &named, b"").await;
    assert_eq!(reply.json().await["resource"], format!("http://{here}/mcp"));
    let refused = guarded.site.send("POST", "/mcp", &named, b"{}").await;
    let document = format!("http://{here}/.well-known/oauth-protected-resource/mcp");
    assert_eq!(super::challenge(&refused).get("resource_metadata"), Some(&*document));
}

#[tokio::test]
async fn the_metadata_of_a_nested_router_is_at_the_root() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let resource = format!("http://{address}/api/mcp");
    let issuers = Arc::new(Issuers::default());
    let resource_server = ResourceServer::new(Url::parse(&resource).unwrap(), ISSUER, issuers.clone());
    let options = Options { resource_server: Some(resource_server), ..Options::default() };
    let endpoint = Endpoint::builder(crate::support::tools::server().0).options(options).build();
    let app = axum::Router::new().nest("/api", endpoint.router()).merge(endpoint.well_known());
    let site =
        Site::served_by(address, tokio::spawn(async move { axum::serve(listener, app).await.unwrap() }));
    let refused = site.send("POST", "/api/mcp", &[], b"{}").await;
    let document = super::challenge(&refused).get("resource_metadata").unwrap().to_owned();
    let path = document.strip_prefix(&format!("http://{address}")).unwrap();
    assert_eq!(path, "/.well-known/oauth-protected-resource/api/mcp");
    assert_eq!(site.send("GET", path, &[], b"").await.json().await["resource"], resource);
    let bearer = format!("Bearer {}", issuers.token(&resource, json!({})));
    let opened = request("initialize", initialize_params(LATEST_SESSION)).to_string();
    let reply = site.send("POST", "/api/mcp", &[("Authorization", &bearer)], opened.as_bytes()).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn behind_a_trusted_proxy_the_metadata_names_the_forwarded_host() {
    let trusting = |proxy: &str| Options {
        trusted_proxies: vec![proxy.parse().unwrap()],
        hosts: vec!["mcp.example".to_owned()],
        path: "/api/mcp".parse().unwrap(),
        ..Options::default()
    };
    let said = [
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "mcp.example"),
        ("X-Forwarded-For", "203.0.113.9"),
    ];
    let element = [("Forwarded", "for=203.0.113.9;proto=https;host=mcp.example")];
    let kept = [("Host", "mcp.example"), ("X-Forwarded-Proto", "https")];
    let place = "/.well-known/oauth-protected-resource";
    let issuers = Arc::new(Issuers::default());
    let named = |resource_server: ResourceServer| {
        let resource = resource_server.resource().replace("/mcp", "/api/mcp");
        ResourceServer::new(Url::parse(&resource).unwrap(), ISSUER, issuers.clone())
    };
    let guarded = Guarded::with_options(named, trusting("127.0.0.1")).await;
    for headers in [&said[..], &element, &kept] {
        for (path, resource) in [("", "/api/mcp"), ("/api/mcp", "/api/mcp"), ("/sse", "/sse")] {
            let reply = guarded.site.send("GET", &format!("{place}{path}"), headers, b"").await;
            assert_eq!(
                reply.json().await["resource"],
                format!("https://mcp.example{resource}"),
                "{headers:?}"
            );
        }
        let refused = guarded.site.send("POST", "/api/mcp", headers, b"{}").await;
        let document = format!("https://mcp.example{place}/api/mcp");
        assert_eq!(super::challenge(&refused).get("resource_metadata"), Some(&*document), "{headers:?}");
    }
    let evil = [("X-Forwarded-Host", "evil.example"), ("X-Forwarded-Proto", "https")];
    assert_eq!(guarded.site.send("GET", place, &evil, b"").await.status, 403);
    // Tokens for that name are for this server.
    let token = issuers.token("https://mcp.example/api/mcp", json!({}));
    let opened = request("initialize", initialize_params(LATEST_SESSION)).to_string();
    let mut headers = said.to_vec();
    let bearer = format!("Bearer {token}");
    headers.push(("Authorization", &bearer));
    assert_eq!(guarded.site.send("POST", "/api/mcp", &headers, opened.as_bytes()).await.status, 200);

    let stranger = Guarded::with_options(named, trusting("192.0.2.1")).await;
    let own = format!("http://{}/api/mcp", stranger.site.address);
    for headers in [&said[..], &element, &evil] {
        let reply = stranger.site.send("GET", place, headers, b"").await;
        assert_eq!(reply.json().await["resource"], own, "{headers:?}");
    }
}

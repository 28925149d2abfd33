//! `apps`: the apps of a server as a host would judge them.

use serde_json::{Value, json};

use crate::support::http::{Answer, answering};
use crate::{REFMCP, User};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

fn document(out: &str) -> Value {
    serde_json::from_str(out).unwrap_or_else(|error| panic!("{error}: {out}"))
}

#[test]
fn apps_are_listed_and_shown_in_every_revision() {
    let user = User::new();
    for version in REVISIONS {
        let listed = user.with_stdio(&["apps", "list", "-o", "json", "--protocol-version", version]);
        let listed = document(&listed.out);
        assert_eq!(listed["apps"].as_array().unwrap().len(), 8, "{version}: {listed}");
        // Titles are younger than the first two revisions.
        let name = if version < "2025-06-18" { "refmcp/sandbox" } else { "Sandbox" };
        let sandbox = &listed["apps"][6];
        let expected = json!({
            "uri": "ui://refmcp/sandbox", "name": name, "listed": true, "tools": ["app_sandbox"]
        });
        assert_eq!(*sandbox, expected);
        assert_eq!((&listed["appTools"], &listed["faults"]), (&json!(["app_echo"]), &json!([])));
        // By a tool as well as by its URI.
        for name in ["ui://refmcp/sandbox", "app_sandbox"] {
            let words =
                ["apps", "show", "-o", "json", "--protocol-version", version, name, "--", REFMCP, "stdio"];
            let shown = document(&user.run(&words).out);
            assert_eq!(shown["faults"], json!([]), "{shown}");
            assert_eq!(
                (&shown["allow"], &shown["metaFrom"]),
                (&json!("clipboard-write"), &json!("contents"))
            );
            let policy = shown["policy"].as_str().unwrap();
            assert!(policy.contains("connect-src 'self' https://declared.example;"), "{policy}");
        }
    }
    let none = user.run(&["apps", "list", "--", REFMCP, "stdio", "--profile", "conformance"]);
    assert!(none.out.is_empty() && none.err.contains("no apps"), "{none:?}");
    let unknown = user.run(&["apps", "show", "ui://nothing", "--", REFMCP, "stdio"]);
    assert!(unknown.code == 1 && unknown.err.contains("no app \"ui://nothing\""), "{unknown:?}");
}

#[test]
fn what_is_wrong_with_an_app_is_told() {
    let origin = answering(|request, _| {
        let asked = request.message();
        let declared = &asked["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]["extensions"];
        let shows =
            declared["io.modelcontextprotocol/ui"]["mimeTypes"] == json!(["text/html;profile=mcp-app"]);
        let tool = json!({
            "name": "t", "inputSchema": { "type": "object" },
            "_meta": { "ui": { "visibility": "app" }, "ui/resourceUri": "ui://a" }
        });
        let csp = json!({ "connectDomains": ["*", "https://a.example"] });
        let page = json!({ "uri": "ui://a", "mimeType": "text/html", "text": "<p>hi", "_meta": { "ui": { "csp": csp } } });
        let mut result = match asked["method"].as_str() {
            Some("server/discover") => json!({
                "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {}, "resources": {} }
            }),
            // It offers its app to hosts of apps alone.
            Some("tools/list") => json!({ "tools": if shows { json!([tool]) } else { json!([]) } }),
            Some("resources/list") => json!({ "resources": [] }),
            _ => json!({ "contents": [page] }),
        };
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
        Answer::json("200 OK", &json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result }))
    });
    let (user, url) = (User::new(), format!("{origin}/mcp"));
    let listed = document(&user.run(&["apps", "list", &url, "-o", "json"]).out);
    assert_eq!(listed["apps"], json!([{ "uri": "ui://a", "name": null, "listed": false, "tools": ["t"] }]));
    assert_eq!(listed["faults"].as_array().unwrap().len(), 3, "{listed}");
    let shown = user.run(&["apps", "show", &url, "t"]);
    for part in [
        "connect-src 'self' https://a.example\n",
        "the media type is \"text/html\"; a page has \"text/html;profile=mcp-app\"",
        "the page has no HTML5 document type",
        "csp.connectDomains has \"*\", which has no scheme",
    ] {
        assert!(shown.out.contains(part), "{part}: {shown:?}");
    }
}

//! Rules about apps.

use refmcp_proto::rule;
use serde_json::{Value, json};

use crate::exchange::{client, server};
use crate::script::{Example, Script};

const URI: &str = "ui://weather/view";

fn declared() -> Value {
    json!({"extensions": {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}})
}

fn session(client: Value) -> Script {
    Script::session("stdio", "2025-11-25", client, json!({"tools": {}, "resources": {}}))
}

/// A server lists a tool with this `_meta`.
fn tool(meta: Value) -> Script {
    let tool = json!({"name": "a", "inputSchema": {"type": "object"}, "_meta": meta});
    session(declared()).asks(1, "tools/list", json!({})).answers(1, json!({"tools": [tool]}))
}

fn app() -> Script {
    tool(json!({"ui": {"resourceUri": URI}}))
}

fn read(media_type: &str, text: &str, meta: Value) -> Script {
    let contents = json!({"uri": URI, "mimeType": media_type, "text": text, "_meta": meta});
    app().asks(2, "resources/read", json!({"uri": URI})).answers(2, json!({"contents": [contents]}))
}

fn page() -> Script {
    policy(json!({"connectDomains": ["https://*.a.example"]}))
}

fn policy(csp: Value) -> Script {
    read("text/html;profile=mcp-app", "<!doctype html><p>x", json!({"ui": {"csp": csp}}))
}

fn called(content: Value) -> Script {
    app().asks(2, "tools/call", json!({"name": "a"})).answers(2, json!({"content": content}))
}

pub(crate) fn examples() -> Vec<Example> {
    let declares = |settings: Value| {
        session(json!({"extensions": {"io.modelcontextprotocol/ui": settings}})).asks(1, "ping", json!({}))
    };
    let visible = |visibility: Value| tool(json!({"ui": {"resourceUri": URI, "visibility": visibility}}));
    let sent = |method: &str| session(declared()).asks(1, method, json!({"name": "a"}));
    vec![
        client(
            &rule::APP_01,
            declares(json!({"mimeTypes": ["text/html;profile=mcp-app"]})),
            vec![
                declares(json!({})),
                Script::new("stdio").asks_alone(
                    1,
                    "tools/list",
                    json!({}),
                    json!({"extensions": {"io.modelcontextprotocol/ui": {}}}),
                ),
            ],
        ),
        server(&rule::APP_03, app(), vec![tool(json!({"ui": {"resourceUri": "https://a.example/view"}}))]),
        server(&rule::APP_04, page(), vec![read("text/html", "<p>x", json!({}))]),
        server(&rule::APP_05, page(), vec![read("text/html;profile=mcp-app", "weather", json!({}))]),
        server(
            &rule::APP_06,
            page(),
            vec![app().asks(2, "resources/read", json!({"uri": URI})).refuses(2, -32002)],
        ),
        server(
            &rule::APP_08,
            visible(json!(["model", "app"])),
            vec![visible(json!(["user"])), visible(json!("model"))],
        ),
        server(&rule::APP_09, called(json!([{"type": "text", "text": "sunny"}])), vec![called(json!([]))]),
        server(&rule::APP_10, app(), vec![tool(json!({"ui/resourceUri": URI}))]),
        server(
            &rule::APP_11,
            page(),
            vec![
                policy(json!({"scriptDomains": []})),
                policy(json!({"connectDomains": ["*"]})),
                policy(json!({"connectDomains": ["https://a.*.example"]})),
            ],
        ),
        client(&rule::APP_53, sent("tools/call"), vec![sent("ui/open-link")]),
    ]
}

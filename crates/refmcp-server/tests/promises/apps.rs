//! Apps: pages as resources, tools that name them, and what clients without apps get in place of them.

use refmcp_server::model::{
    CallToolResult, ContentBlock, ResourceContents, UiCsp, UiPermissions, UiVisibility,
};
use refmcp_server::{App, Call, CallError, NoArguments, ResourceTemplate, Revision, Server, Tool};
use refmcp_testkit::client::TestClient;
use serde_json::{Value, json};

use crate::support::{SESSION, named};

const UI: &str = "io.modelcontextprotocol/ui";
const MIME_TYPE: &str = "text/html;profile=mcp-app";
const URI: &str = "ui://shop/cart";
const PAGE: &str = "<!doctype html><title>Cart</title>";

fn app() -> App {
    App::new(URI, PAGE)
        .title("Cart")
        .csp(UiCsp::default().connect_domains(["https://api.example.com".to_owned()]))
        .permissions(UiPermissions::default().camera(serde_json::Map::new()))
        .prefers_border(true)
}

async fn cart(_: Call, _: NoArguments) -> Result<CallToolResult, CallError> {
    Ok(CallToolResult::structured(json!({ "items": 2 })))
}

fn shop() -> Server {
    Server::builder("shop", "1")
        .app(app())
        .tool(Tool::new("cart", "Shows the cart", cart).app(URI).text_without_app("See the shop's web site."))
        .tool(named("clear").visible_to([UiVisibility::App]))
        .build()
        .unwrap()
}

async fn open(revision: Revision, shows_apps: bool) -> TestClient {
    let extensions = if shows_apps { json!({ UI: { "mimeTypes": [MIME_TYPE] } }) } else { json!({}) };
    TestClient::open_with(&shop(), revision, json!({ "extensions": extensions })).await
}

#[tokio::test]
async fn a_page_and_its_tools_are_described_in_every_revision() {
    let meta = json!({ "ui": {
        "csp": { "connectDomains": ["https://api.example.com"] },
        "permissions": { "camera": {} },
        "prefersBorder": true
    } });
    for revision in Revision::ALL {
        let mut client = open(revision, true).await;
        let resources = client.list("resources").await;
        assert_eq!((&resources[0]["uri"], &resources[0]["mimeType"]), (&json!(URI), &json!(MIME_TYPE)));
        assert_eq!(resources[0]["name"], "shop/cart");
        assert_eq!(resources[0]["_meta"], meta, "{revision}");
        let read = client.result("resources/read", json!({ "uri": URI })).await;
        assert_eq!(
            read["contents"],
            json!([{ "uri": URI, "mimeType": MIME_TYPE, "text": PAGE, "_meta": meta }]),
            "{revision}"
        );
        let tools = client.list("tools").await;
        assert_eq!(tools[0]["_meta"], json!({ "ui": { "resourceUri": URI } }), "{revision}");
        assert_eq!(tools[1]["_meta"], json!({ "ui": { "visibility": ["app"] } }), "{revision}");
    }
}

#[tokio::test]
async fn the_extension_is_declared_where_there_is_an_app() {
    for revision in Revision::ALL {
        for (server, declared) in [(shop(), json!({})), (crate::support::server([named("a")]), Value::Null)] {
            let mut client = TestClient::over(server.in_memory());
            let opened = client.start(revision, json!({})).await;
            let capabilities = if revision == Revision::LATEST {
                client.result("server/discover", json!({})).await["capabilities"].take()
            } else {
                opened["capabilities"].clone()
            };
            assert_eq!(capabilities["extensions"][UI], declared, "{revision}: {capabilities}");
        }
    }
}

#[tokio::test]
async fn clients_without_apps_get_a_text_in_their_place() {
    for revision in Revision::ALL {
        let texts = async |shows_apps| {
            let result = open(revision, shows_apps).await.tool("cart", json!({})).await;
            result["content"]
                .as_array()
                .unwrap()
                .iter()
                .map(|block| block["text"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(texts(true).await, [json!("{\"items\":2}")], "{revision}");
        assert_eq!(
            texts(false).await,
            [json!("{\"items\":2}"), json!("See the shop's web site.")],
            "{revision}"
        );
    }
}

#[tokio::test]
async fn a_tool_with_an_app_says_something_without_it() {
    let silent = |_: Call, _: NoArguments| async { Ok::<Vec<ContentBlock>, CallError>(Vec::new()) };
    let server =
        Server::builder("shop", "1").app(app()).tool(Tool::new("silent", "Says nothing", silent).app(URI));
    let mut client = TestClient::open(&server.build().unwrap(), SESSION).await;
    let error = client.error("tools/call", json!({ "name": "silent" })).await;
    assert_eq!(error["message"], "tool silent has an app and returned nothing else");
}

#[tokio::test]
async fn a_page_may_come_from_a_template() {
    let read = |_, uri: String, _| async { Ok(ResourceContents::text(uri, PAGE).mime_type(MIME_TYPE)) };
    let template = ResourceTemplate::new("ui://item/{id}", "item", read).unwrap();
    let tool = named("item").app("ui://item/7");
    assert!(Server::builder("shop", "1").template(template).tool(tool).build().is_ok());
}

#[test]
fn mistakes_are_named_when_the_server_is_built() {
    let origins = |origin: &str| UiCsp::default().connect_domains([origin.to_owned()]);
    let by_hand = json!({ "ui": { "resourceUri": "shop/cart" } });
    let error = Server::builder("shop", "1")
        .app(App::new("https://a.example", PAGE))
        .app(App::new("ui://no-page", "<p>hi</p>"))
        .app(App::new("ui://any", PAGE).csp(origins("*")))
        .app(App::new("ui://path", PAGE).csp(origins("https://a.example/api")))
        .app(App::new("ui://twice", PAGE))
        .app(App::new("ui://twice", PAGE))
        .tool(named("missing").app("ui://nowhere"))
        .tool(named("web").app("https://a.example"))
        .tool(named("no_one").app("ui://twice").visible_to([]))
        .tool(named("strangers").visible_to(["apps".into()]))
        .tool(named("by_hand").meta(by_hand.as_object().unwrap().clone()))
        .build()
        .unwrap_err();
    let expected = [
        "app https://a.example: the URI \"https://a.example\" does not begin with \"ui://\"",
        "app ui://no-page: the page has no HTML5 document type",
        "app ui://any: csp.connectDomains has \"*\", which has no scheme",
        "app ui://path: csp.connectDomains has \"https://a.example/api\", which has more than an origin",
        "resource ui://twice is there twice",
        "tool web: _meta.ui: the URI",
        "tool no_one: _meta.ui: visibility is empty",
        "tool strangers: _meta.ui: visibility has \"apps\"",
        "tool by_hand: _meta.ui: the URI \"shop/cart\"",
        "tool missing: there is no app at ui://nowhere",
    ];
    assert_eq!(error.0.len(), expected.len(), "{error:#?}");
    for (fault, expected) in error.0.iter().zip(expected) {
        assert!(fault.starts_with(expected), "{fault}");
    }
}

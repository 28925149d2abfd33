//! Metadata of tools and pages, right and wrong.

use serde_json::json;

use super::*;

const URI: &str = "ui://shop/cart";
const PAGE: &str = "<!doctype html><title>Cart</title>";

fn tool(meta: Value) -> Tool {
    let mut tool = json!({ "name": "t", "inputSchema": { "type": "object" } });
    tool["_meta"] = meta;
    serde_json::from_value(tool).unwrap()
}

fn read(contents: Value, listed: Value) -> Result<AppPage, AppError> {
    let result = ReadResourceResult::new(vec![serde_json::from_value(contents).unwrap()]);
    let mut entry = json!({ "uri": URI, "name": "cart" });
    entry["_meta"] = listed;
    let entry: Resource = serde_json::from_value(entry).unwrap();
    AppPage::read(URI, &result, entry.meta.is_some().then_some(&entry))
}

fn page(meta: Value) -> Value {
    let mut page = json!({ "uri": URI, "mimeType": APP_MIME_TYPE, "text": PAGE });
    page["_meta"] = meta;
    page
}

#[test]
fn a_tool_without_a_visibility_is_visible_to_both() {
    for (meta, model, app) in [
        (json!({}), true, true),
        (json!({ "other": 1 }), true, true),
        (json!({ "ui": {} }), true, true),
        (json!({ "ui": { "visibility": null } }), true, true),
        (json!({ "ui": { "visibility": ["model", "app"] } }), true, true),
        (json!({ "ui": { "visibility": ["model"] } }), true, false),
        (json!({ "ui": { "visibility": ["app"] } }), false, true),
        // What cannot be read opens nothing.
        (json!({ "ui": { "visibility": [] } }), false, false),
        (json!({ "ui": { "visibility": "app" } }), false, false),
        (json!({ "ui": { "visibility": ["apps"] } }), false, false),
        (json!({ "ui": { "visibility": ["app", 7] } }), false, false),
        (json!({ "ui": ["app"] }), false, false),
        (json!({ "ui": "app" }), false, false),
    ] {
        let tool = tool(meta.clone());
        let visible = (ToolUi::is_offered_to_model(&tool), ToolUi::is_callable_by_app(&tool));
        assert_eq!(visible, (model, app), "{meta}");
        let faults = ToolUi::of(&tool).map(|ui| ui.faults).unwrap_or_default();
        assert_eq!(faults.is_empty(), model || app, "{meta}: {faults:?}");
    }
    assert_eq!(ToolUi::of(&tool(json!({}))), None);
}

#[test]
fn a_tool_names_its_page_by_either_key() {
    let named = |meta: Value| {
        let ui = ToolUi::of(&tool(meta)).unwrap();
        (ui.meta.resource_uri, ui.faults)
    };
    assert_eq!(named(json!({ "ui": { "resourceUri": URI } })), (Some(URI.to_owned()), vec![]));
    assert_eq!(named(json!({ "ui/resourceUri": URI })), (Some(URI.to_owned()), vec![AppError::OldKey]));
    let both = json!({ "ui": { "resourceUri": URI }, "ui/resourceUri": "ui://old" });
    assert_eq!(named(both), (Some(URI.to_owned()), vec![]));
    for wrong in
        [json!({ "ui": { "resourceUri": "https://a.example" } }), json!({ "ui": { "resourceUri": 7 } })]
    {
        let (uri, faults) = named(wrong);
        assert_eq!((uri, faults.len()), (None, 1));
    }
    let (uri, faults) = named(json!({ "ui": "ui://a" }));
    assert_eq!((uri, faults.len()), (None, 1));
}

#[test]
fn metadata_of_the_contents_holds_as_a_whole() {
    let csp = |origin: &str| json!({ "ui": { "csp": { "connectDomains": [origin] } } });
    let (one, other) = (csp("https://one.example"), csp("https://other.example"));
    let both = read(page(one.clone()), other.clone()).unwrap();
    assert_eq!(both.source, MetaSource::Contents);
    assert_eq!(both.faults, [AppError::MetaDiffers]);
    assert_eq!(both.policy().sources("connect-src"), Some("'self' https://one.example"));
    let border = read(page(json!({ "ui": { "prefersBorder": true } })), other.clone()).unwrap();
    assert_eq!((border.meta.csp, border.meta.prefers_border), (None, Some(true)));
    let listed = read(page(json!({ "x": 1 })), other).unwrap();
    assert_eq!((listed.source, listed.faults.len()), (MetaSource::List, 0));
    assert_eq!(listed.policy().sources("connect-src"), Some("'self' https://other.example"));
    let none = read(page(Value::Null), Value::Null).unwrap();
    assert_eq!((none.source, none.policy()), (MetaSource::None, ContentSecurityPolicy::new(None)));
    assert!(read(page(one.clone()), one).unwrap().faults.is_empty());
}

#[test]
fn what_is_wrong_with_a_page_is_told() {
    let mut plain = page(Value::Null);
    plain["mimeType"] = json!("text/html");
    assert_eq!(read(plain, Value::Null).unwrap().faults, [AppError::MimeType("text/html".to_owned())]);
    let mut fragment = page(Value::Null);
    fragment["text"] = json!("<p>hi</p>");
    assert!(matches!(read(fragment, Value::Null).unwrap().faults[..], [AppError::Page(_)]));
    let mut elsewhere = page(Value::Null);
    elsewhere["uri"] = json!("ui://shop/other");
    assert!(matches!(read(elsewhere, Value::Null), Err(AppError::NoPage { .. })));
    let origins = json!({ "ui": { "csp": { "resourceDomains": ["*", "https://a.example"] } } });
    let open = read(page(origins), Value::Null).unwrap();
    assert!(matches!(open.faults[..], [AppError::Origin { list: "resourceDomains", .. }]));
    for (meta, what) in [
        (json!({ "ui": [] }), "no object"),
        (json!({ "ui": { "csp": { "connectDomains": "https://a.example" } } }), "csp: "),
        (json!({ "ui": { "permissions": { "camera": true } } }), "permissions: "),
    ] {
        let unreadable = read(page(meta.clone()), Value::Null).unwrap();
        assert!(unreadable.faults[0].to_string().contains(what), "{:?}", unreadable.faults);
        assert_eq!(unreadable.policy(), ContentSecurityPolicy::new(None));
        assert_eq!(unreadable.allow(), "");
    }
}

#[test]
fn permissions_become_features_of_the_frame() {
    let wanted = json!({ "ui": { "permissions": { "clipboardWrite": {}, "camera": {}, "tools": {} } } });
    let page = read(page(wanted), Value::Null).unwrap();
    assert_eq!((page.allow().as_str(), page.faults.len()), ("camera; clipboard-write", 0));
}

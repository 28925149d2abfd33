//! Metadata of apps: whatever a server says, a policy has no more directives than its own, and a tool whose metadata cannot be
//! read is shown to neither side.

use refmcp_proto::app::{AppPage, ContentSecurityPolicy, ToolUi, check_csp, check_page, check_uri};
use refmcp_proto::model::{ReadResourceResult, Tool, UiCsp};
use serde_json::{Value, json};

const URI: &str = "ui://fuzz/page";

/// The bytes are `_meta.ui` of a tool and of a page, the lists of a policy, and a page.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let _ = check_page(&text);
    let _ = check_uri(&text);
    let Ok(ui) = serde_json::from_slice::<Value>(bytes) else { return };
    if let Ok(csp) = serde_json::from_value::<UiCsp>(ui.clone()) {
        check_policy(&ContentSecurityPolicy::new(Some(&csp)), check_csp(&csp).is_ok());
    }
    let is_readable = ui.is_object() || ui.is_null();
    let mut tool = Tool::new("t", "a tool");
    tool.meta = json!({ "ui": ui }).as_object().cloned();
    let read = ToolUi::of(&tool);
    if let Some(uri) = read.and_then(|read| read.meta.resource_uri) {
        assert!(check_uri(&uri).is_ok(), "{uri:?}");
    }
    if !is_readable {
        assert!(!ToolUi::is_offered_to_model(&tool) && !ToolUi::is_callable_by_app(&tool));
    }
    let contents = json!({ "uri": URI, "mimeType": "text/html", "text": text, "_meta": { "ui": ui } });
    let Ok(result) = serde_json::from_value::<ReadResourceResult>(json!({ "contents": [contents] })) else {
        return;
    };
    if let Ok(page) = AppPage::read(URI, &result, None) {
        let policy = page.policy();
        check_policy(&policy, policy.faults().is_empty());
        let is_feature = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || "-_' *".contains(c));
        assert!(page.allow().split(';').all(is_feature), "{}", page.allow());
    }
}

/// A policy that is written has each directive once, and nothing that ends one or the element around it.
fn check_policy(policy: &ContentSecurityPolicy, is_right: bool) {
    assert_eq!(policy.faults().is_empty(), is_right);
    let count = policy.directives().count();
    for (name, sources) in policy.directives() {
        assert_eq!(policy.directives().filter(|(other, _)| *other == name).count(), 1, "{name}");
        assert!(!sources.contains([';', ',', '"', '<', '>', '\r', '\n']), "{sources:?}");
    }
    let written = policy.to_string();
    assert_eq!(written.split(';').count(), count);
    assert!(written.starts_with("default-src 'none';"));
}

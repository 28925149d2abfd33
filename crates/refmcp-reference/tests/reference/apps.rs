//! Apps: pages that a host can read and judge as they are, and the tools that open them. What they say of hosts is tested in a
//! browser.

use refmcp_server::app::{AppPage, ContentSecurityPolicy, ToolUi};
use refmcp_server::model::{ReadResourceResult, Resource, ResourceBody, Tool};
use serde_json::json;

use crate::client::{Client, SESSIONS, STATELESS, server};

#[tokio::test]
async fn every_app_can_be_read_and_has_nothing_wrong() {
    for revision in SESSIONS.into_iter().chain([STATELESS]) {
        let mut client = Client::new(&server(), revision).await;
        let resources = client.list("resources").await;
        let tools = client.list("tools").await;
        let tools = tools.into_iter().map(|tool| serde_json::from_value::<Tool>(tool).unwrap());
        let uis: Vec<_> = tools.filter_map(|tool| Some((tool.name.clone(), ToolUi::of(&tool)?))).collect();
        assert!(uis.iter().all(|(_, ui)| ui.faults.is_empty()), "{revision}: {uis:?}");
        let opened: Vec<_> =
            uis.iter().filter_map(|(name, ui)| Some((name, ui.meta.resource_uri.as_ref()?))).collect();
        assert_eq!(opened.len(), 8);
        for (tool, uri) in opened {
            assert_eq!(*uri, tool.replace("app_", "ui://refmcp/"));
            let listed = resources.iter().find(|resource| resource["uri"] == uri.as_str()).unwrap();
            let listed: Resource = serde_json::from_value(listed.clone()).unwrap();
            let read = client.result("resources/read", json!({ "uri": uri })).await;
            let read: ReadResourceResult = serde_json::from_value(read).unwrap();
            let page = AppPage::read(uri, &read, Some(&listed)).unwrap();
            assert_eq!(page.faults, [], "{uri}");
            let ResourceBody::Text(html) = &page.body else { panic!("{uri} is no text") };
            // Nothing is loaded, so that the strictest policy does for all but one.
            assert!(!html.contains("src=") && !html.contains("@import"), "{uri}");
            let declares = uri.ends_with("/sandbox");
            assert_eq!(page.policy() == ContentSecurityPolicy::new(None), !declares, "{uri}");
        }
    }
}

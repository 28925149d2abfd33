//! The apps that a server offers, from its lists.

use std::collections::BTreeMap;

use super::{AppError, ToolUi, URI_PREFIX};
use crate::model::{Resource, Tool, UiVisibility};

/// An app as the lists of a server have it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AppOffer {
    /// Its entry in the list of resources; servers may leave it out.
    pub listed: Option<Resource>,
    /// The tools that it shows.
    pub tools: Vec<String>,
}

/// What a server offers to a host of apps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AppOffers {
    /// The apps, by their URIs.
    pub apps: BTreeMap<String, AppOffer>,
    /// The tools that are for apps alone: hosts do not offer them to the model.
    pub app_tools: Vec<String>,
    /// What is wrong with the metadata of tools, by their names.
    pub faults: Vec<(String, AppError)>,
}

impl AppOffers {
    /// Finds the apps of a server: pages that it lists, and those that its tools name.
    pub fn of(tools: &[Tool], resources: &[Resource]) -> Self {
        let mut offers = Self::default();
        for resource in resources.iter().filter(|resource| resource.uri.starts_with(URI_PREFIX)) {
            offers.apps.entry(resource.uri.clone()).or_default().listed = Some(resource.clone());
        }
        for tool in tools {
            let Some(ui) = ToolUi::of(tool) else { continue };
            offers.faults.extend(ui.faults.into_iter().map(|fault| (tool.name.clone(), fault)));
            let visible_to = |party| ui.meta.is_visible_to(&party);
            if visible_to(UiVisibility::App) && !visible_to(UiVisibility::Model) {
                offers.app_tools.push(tool.name.clone());
            }
            if let Some(uri) = ui.meta.resource_uri {
                offers.apps.entry(uri).or_default().tools.push(tool.name.clone());
            }
        }
        offers
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn apps_are_listed_or_named_by_tools() {
        let tool = |name: &str, ui: Value| {
            let tool = json!({ "name": name, "inputSchema": { "type": "object" }, "_meta": { "ui": ui } });
            serde_json::from_value::<Tool>(tool).unwrap()
        };
        let tools = [
            tool("cart", json!({ "resourceUri": "ui://cart" })),
            tool("till", json!({ "resourceUri": "ui://cart" })),
            tool("hidden", json!({ "resourceUri": "ui://hidden" })),
            tool("clear", json!({ "visibility": ["app"] })),
            tool("no_one", json!({ "visibility": [] })),
        ];
        let resources = [
            Resource::new("ui://cart", "cart"),
            Resource::new("file:///a", "a"),
            Resource::new("ui://b", "b"),
        ];
        let offers = AppOffers::of(&tools, &resources);
        let seen: Vec<_> = offers
            .apps
            .iter()
            .map(|(uri, app)| (uri.as_str(), app.listed.is_some(), app.tools.len()))
            .collect();
        assert_eq!(seen, [("ui://b", true, 0), ("ui://cart", true, 2), ("ui://hidden", false, 1)]);
        assert_eq!(offers.app_tools, ["clear"]);
        assert_eq!(offers.faults.len(), 1);
    }
}

//! `list`: what a server offers.

use anyhow::Result;
use refmcp_client::Listed;
use serde_json::{Map, Value, json};

use super::fault;
use super::session::Session;
use crate::args::Listing;
use crate::ui::render;

/// Lists, and shows.
pub(crate) async fn list(session: &Session, what: Listing) -> Result<()> {
    let offers = session.client.server().capabilities.clone();
    let all = what == Listing::All;
    let mut document = Map::new();
    let mut text = String::new();
    let view = session.printer.view();
    let mut section = |heading: &str, shown: String| {
        if all {
            text.push_str(&format!("{}\n", view.paint.strong(&heading.to_uppercase())));
            text.push_str(&shown);
            text.push('\n');
        } else {
            text.push_str(&shown);
        }
    };
    if what == Listing::Tools || all && offers.tools.is_some() {
        let tools = whole(session).await?;
        section("tools", render::tools(&tools, view));
        document.insert("tools".to_owned(), json!(tools));
    }
    if what == Listing::Resources || all && offers.resources.is_some() {
        let resources = whole(session).await?;
        section("resources", render::resources(&resources, view));
        document.insert("resources".to_owned(), json!(resources));
    }
    if what == Listing::Templates || all && offers.resources.is_some() {
        let templates = whole(session).await?;
        section("templates", render::templates(&templates, view));
        document.insert("resourceTemplates".to_owned(), json!(templates));
    }
    if what == Listing::Prompts || all && offers.prompts.is_some() {
        let prompts = whole(session).await?;
        section("prompts", render::prompts(&prompts, view));
        document.insert("prompts".to_owned(), json!(prompts));
    }
    session.printer.show(&Value::Object(document), |_| text)
}

async fn whole<T: Listed>(session: &Session) -> Result<Vec<T>> {
    session.client.pages().all().await.map_err(|fault| fault::of_request(&fault))
}

//! `list`: what a server offers.

use std::collections::BTreeMap;

use anyhow::Result;
use refmcp_client::model::{Prompt, Resource, ResourceTemplate, Tool};
use refmcp_client::{Client, Listed};
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::value::RawValue;

use super::declared::Family;
use super::session::Session;
use super::{fault, models};
use crate::args::Listing;
use crate::ui::render;

/// Lists, and shows.
pub(crate) async fn list(session: &Session, what: Listing) -> Result<()> {
    if what == Listing::Models {
        return models::list(session).await;
    }
    let offers = session.client.server().capabilities.clone();
    let all = what == Listing::All;
    let mut document = Document::default();
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
        let tools: Vec<Tool> = document.add(whole(session).await?);
        section("tools", render::tools(&tools, view));
    }
    if what == Listing::Resources || all && offers.resources.is_some() {
        let resources: Vec<Resource> = document.add(whole(session).await?);
        section("resources", render::resources(&resources, view));
    }
    if what == Listing::Templates || all && offers.resources.is_some() {
        let templates: Vec<ResourceTemplate> = document.add(whole(session).await?);
        section("templates", render::templates(&templates, view));
    }
    if what == Listing::Prompts || all && offers.prompts.is_some() {
        let prompts: Vec<Prompt> = document.add(whole(session).await?);
        section("prompts", render::prompts(&prompts, view));
    }
    if all && Family::Models.is_in(&offers) {
        let (written, models) = models::fetch(session).await?;
        let mut members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(written.get())?;
        let texts = members.remove("models").map(|texts| serde_json::from_str(texts.get())).transpose()?;
        document.lists.insert("models", texts.unwrap_or_default());
        section("models", render::models(&models, view));
    }
    session.printer.show(&document.lists, |_| text)
}

async fn whole<T: Listed>(session: &Session) -> Result<Vec<Written<T>>> {
    session.client.pages().all().await.map_err(|fault| fault::of_request(&fault))
}

/// Lists under the names that results have for them, in the server's own words.
#[derive(Debug, Default)]
struct Document {
    lists: BTreeMap<&'static str, Vec<Box<RawValue>>>,
}

impl Document {
    /// Adds a list; gives what it means.
    fn add<T: Listed>(&mut self, list: Vec<Written<T>>) -> Vec<T> {
        let (items, texts) = list.into_iter().map(|written| (written.item, written.text)).unzip();
        self.lists.insert(member::<T>(), texts);
        items
    }
}

/// What the result calls the list.
fn member<T: Listed>() -> &'static str {
    match T::METHOD {
        "resources/templates/list" => "resourceTemplates",
        method => method.strip_suffix("/list").unwrap_or(method),
    }
}

/// Something that is listed, and how the server has written it.
#[derive(Debug)]
struct Written<T> {
    item: T,
    text: Box<RawValue>,
}

/// A page, and how the server has written what is on it.
struct WrittenPage<T: Listed> {
    page: T::Page,
    texts: Vec<Box<RawValue>>,
}

impl<T: Listed> Listed for Written<T> {
    type Page = WrittenPage<T>;
    const METHOD: &'static str = T::METHOD;

    fn take(page: WrittenPage<T>) -> (Vec<Self>, Option<String>) {
        let (items, next) = T::take(page.page);
        let written = items.into_iter().zip(page.texts).map(|(item, text)| Self { item, text });
        (written.collect(), next)
    }

    fn sift(client: &Client, items: Vec<Self>) -> Vec<Self> {
        let usable = |Self { item, text }| {
            let kept = T::sift(client, vec![item]).pop()?;
            Some(Self { item: kept, text })
        };
        items.into_iter().filter_map(usable).collect()
    }
}

impl<'de, T: Listed> Deserialize<'de> for WrittenPage<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Box::<RawValue>::deserialize(deserializer)?;
        let page = serde_json::from_str(written.get()).map_err(D::Error::custom)?;
        let mut members: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(written.get()).map_err(D::Error::custom)?;
        let texts = members.remove(member::<T>()).map(|texts| serde_json::from_str(texts.get()));
        Ok(Self { page, texts: texts.transpose().map_err(D::Error::custom)?.unwrap_or_default() })
    }
}

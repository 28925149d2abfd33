//! `list`: what a server offers; all of it, one kind, or single things by their names.

use std::collections::BTreeMap;

use anyhow::Result;
use refmcp_client::model::{Prompt, Resource, ResourceTemplate, Tool};
use refmcp_client::{Client, Listable, ListedSkill};
use refmcp_proto::jsonrpc::code;
use refmcp_proto::revision::Method;
use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::extra_methods::ExtraMethods;
use super::models::{self, Model};
use super::output::WithRawJson;
use super::session::Session;
use crate::args::{ExitReason, ListKind, UsageError};
use crate::ui::error::rpc_of;
use crate::ui::render::{self, Rendered, View};
use crate::ui::suggest::unknown;
use crate::ui::text::one_line;

/// Lists, and shows. A list that the server refuses does not keep the others from being shown.
pub(crate) async fn list(session: &Session, what: ListKind, names: &[String]) -> Result<ExitReason> {
    if what == ListKind::Models && names.is_empty() {
        return models::list(session).await.map(|()| ExitReason::Done);
    }
    let mut lists = Lists {
        session,
        what,
        names,
        text: String::new(),
        document: Document::default(),
        refused: Vec::new(),
        known: Vec::new(),
        missing: names.to_vec(),
    };
    lists
        .add(&Kind::<Tool> {
            listing: ListKind::Tools,
            heading: "tools",
            names: |tool| vec![&tool.name],
            all: render::tools,
            one: render::tool_details,
        })
        .await?;
    lists
        .add(&Kind::<Resource> {
            listing: ListKind::Resources,
            heading: "resources",
            names: |resource| vec![&resource.uri, &resource.name],
            all: render::resources,
            one: render::resource_details,
        })
        .await?;
    lists
        .add(&Kind::<ResourceTemplate> {
            listing: ListKind::Templates,
            heading: "templates",
            names: |template| vec![&template.uri_template, &template.name],
            all: render::templates,
            one: render::template_details,
        })
        .await?;
    lists
        .add(&Kind::<Prompt> {
            listing: ListKind::Prompts,
            heading: "prompts",
            names: |prompt| vec![&prompt.name],
            all: render::prompts,
            one: render::prompt_details,
        })
        .await?;
    lists
        .add(&Kind::<ListedSkill> {
            listing: ListKind::Skills,
            heading: "skills",
            names: |skill| vec![&skill.uri, &skill.name],
            all: render::skills,
            one: render::skill_details,
        })
        .await?;
    lists.add_models().await?;
    lists.show()
}

/// Something that can be listed, and how it is shown.
struct Kind<T> {
    listing: ListKind,
    heading: &'static str,
    /// What one of it can be called; the first is what it is shown by.
    names: fn(&T) -> Vec<&String>,
    all: fn(&[T], &View) -> String,
    one: fn(&T, &View) -> String,
}

/// What was listed so far.
struct Lists<'a> {
    session: &'a Session,
    what: ListKind,
    names: &'a [String],
    text: String,
    document: Document,
    /// Lists that the server did not give, and why.
    refused: Vec<(&'static str, anyhow::Error)>,
    /// Everything there is, by name.
    known: Vec<String>,
    /// The names that were asked for and not found.
    missing: Vec<String>,
}

impl Lists<'_> {
    async fn add<T: Listable>(&mut self, kind: &Kind<T>) -> Result<()> {
        if !self.wants(kind.listing, T::offered(&self.session.client.server().capabilities)) {
            return Ok(());
        }
        let listed = self.session.list::<WithRawJson<T>>().await;
        let listed = listed.map_err(|error| self.session.fault(T::METHOD.name(), &error));
        let Some(listed) = self.or_refused(kind.heading, member::<T>(), listed)? else { return Ok(()) };
        let view = self.session.printer.view();
        let (items, texts): (Vec<T>, Vec<_>) =
            listed.into_iter().map(|written| (written.item, written.text)).unzip();
        if self.names.is_empty() {
            self.whole(kind.heading, member::<T>(), &(kind.all)(&items, view), texts);
        } else {
            let one = |item: &T| (kind.one)(item, view);
            self.named(member::<T>(), items.iter().zip(texts), kind.names, one);
        }
        Ok(())
    }

    /// Models are beyond the protocol, and come in one answer.
    async fn add_models(&mut self) -> Result<()> {
        let offered = ExtraMethods::MODELS.is_in(&self.session.client.server().capabilities);
        if !self.wants(ListKind::Models, offered) {
            return Ok(());
        }
        let fetched = models::fetch(self.session).await;
        let Some(fetched) = self.or_refused("models", "models", fetched)? else { return Ok(()) };
        let (list, texts) = (fetched.item, models::texts(&fetched.text)?);
        let view = self.session.printer.view();
        if self.names.is_empty() {
            self.whole("models", "models", &render::models(&list, view), texts);
        } else {
            let one = |model: &Model| render::model_details(model, list.is_active(model), view);
            self.named("models", list.models.iter().zip(texts), |model| vec![&model.name], one);
        }
        Ok(())
    }

    fn wants(&self, listing: ListKind, offered: bool) -> bool {
        self.what == listing || self.what == ListKind::All && offered
    }

    /// What the server answered. Where several lists are wanted, one that it does not give leaves the others.
    fn or_refused<T>(
        &mut self,
        heading: &'static str,
        member: &'static str,
        answer: Result<T>,
    ) -> Result<Option<T>> {
        let error = match answer {
            Ok(answer) => return Ok(Some(answer)),
            Err(error) if self.what == ListKind::All => error,
            Err(error) => return Err(error),
        };
        let answered = rpc_of(&error).and_then(|error| serde_json::to_value(error).ok());
        let shown = answered.unwrap_or_else(|| json!({ "message": format!("{error:#}") }));
        self.document.errors.insert(member, shown);
        self.refused.push((heading, error));
        Ok(None)
    }

    /// Adds a list; it has a heading where there are several.
    fn whole(&mut self, heading: &str, member: &'static str, shown: &str, texts: Vec<Box<RawValue>>) {
        self.document.lists.insert(member, texts);
        if self.what != ListKind::All {
            return self.text.push_str(shown);
        }
        let heading = self.session.printer.view().paint.strong(&heading.to_uppercase());
        self.text.push_str(&format!("{heading}\n{shown}\n"));
    }

    /// Adds those of a list that were asked for.
    fn named<'t, T: 't>(
        &mut self,
        member: &'static str,
        items: impl Iterator<Item = (&'t T, Box<RawValue>)>,
        names: fn(&T) -> Vec<&String>,
        one: impl Fn(&T) -> String,
    ) {
        let (mut found, mut shown) = (Vec::new(), Vec::new());
        for (item, text) in items {
            let called = names(item);
            self.known.extend(called.first().map(|name| (*name).clone()));
            if self.names.iter().any(|name| called.contains(&name)) {
                self.missing.retain(|name| !called.contains(&name));
                shown.push(one(item));
                found.push(text);
            }
        }
        self.text.push_str(&shown.join("\n"));
        if !found.is_empty() {
            self.document.lists.insert(member, found);
        }
    }

    fn show(mut self) -> Result<ExitReason> {
        if let Some(name) = self.missing.first() {
            let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
            return Err(UsageError::new(unknown(self.what.one(), name, &known)).into());
        }
        if self.document.lists.is_empty()
            && let Some((_, error)) = self.refused.pop()
        {
            return Err(error);
        }
        let is_empty = self.what != ListKind::All && self.document.lists.values().all(Vec::is_empty);
        self.session.printer.show(&self.document, |view| Rendered::of_list(self.text, is_empty, view))?;
        let mut reason = ExitReason::Done;
        for (heading, error) in &self.refused {
            self.session.bars.say(&format!("refmcp: {heading}: {}\n", one_line(&format!("{error:#}"))));
            // A method that is not there is a list that is empty.
            if rpc_of(error).map(|error| error.code) != Some(code::METHOD_NOT_FOUND) {
                reason = ExitReason::of(error);
            }
        }
        Ok(reason)
    }
}

impl ListKind {
    /// One of what is listed.
    fn one(self) -> &'static str {
        match self {
            Self::Tools => "tool",
            Self::Resources => "resource",
            Self::Templates => "resource template",
            Self::Prompts => "prompt",
            Self::Skills => "skill",
            Self::Models => "model",
            Self::All => "tool, resource, prompt, skill or model",
        }
    }
}

/// Lists under the names that results have for them, in the server's own words; and the errors of those that the server
/// did not give.
#[derive(Debug, Default, Serialize)]
struct Document {
    #[serde(flatten)]
    lists: BTreeMap<&'static str, Vec<Box<RawValue>>>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    errors: BTreeMap<&'static str, Value>,
}

/// What the result calls the list.
fn member<T: Listable>() -> &'static str {
    match T::METHOD {
        Method::ListTools => "tools",
        Method::ListResources => "resources",
        Method::ListResourceTemplates => "resourceTemplates",
        Method::ListPrompts => "prompts",
        Method::ListTasks => "tasks",
        Method::ListSkills => "skills",
        _ => "items",
    }
}

/// A page, and how the server has written what is on it.
pub(crate) struct RawJsonPage<T: Listable> {
    page: T::Page,
    texts: Vec<Box<RawValue>>,
}

impl<T: Listable> Listable for WithRawJson<T> {
    type Page = RawJsonPage<T>;
    const METHOD: Method = T::METHOD;

    fn into_items(page: RawJsonPage<T>) -> (Vec<Self>, Option<String>) {
        let (items, next) = T::into_items(page.page);
        let written = items.into_iter().zip(page.texts).map(|(item, text)| Self { item, text });
        (written.collect(), next)
    }

    fn usable(client: &Client, items: Vec<Self>) -> Vec<Self> {
        let usable = |Self { item, text }| {
            let kept = T::usable(client, vec![item]).pop()?;
            Some(Self { item: kept, text })
        };
        items.into_iter().filter_map(usable).collect()
    }
}

impl<'de, T: Listable> Deserialize<'de> for RawJsonPage<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = Box::<RawValue>::deserialize(deserializer)?;
        let page = serde_json::from_str(written.get()).map_err(D::Error::custom)?;
        let mut members: BTreeMap<String, Box<RawValue>> =
            serde_json::from_str(written.get()).map_err(D::Error::custom)?;
        let texts = members.remove(member::<T>()).map(|texts| serde_json::from_str(texts.get()));
        Ok(Self { page, texts: texts.transpose().map_err(D::Error::custom)?.unwrap_or_default() })
    }
}

//! `apps`: the apps of a server, and what a host would make of each.

use anyhow::Result;
use refmcp_client::app::{AppError, AppOffers, AppPage, MetaSource};
use refmcp_client::model::{ReadResourceResult, Resource, ResourceBody, Tool};
use refmcp_proto::revision::Method;
use serde_json::{Value, json};

use super::session::Session;
use crate::args::{ExitError, ExitReason, UsageError};
use crate::ui::render::{self, Rendered};
use crate::ui::suggest::unknown;

/// `apps list`: the apps, and the tools that go with them.
pub(crate) async fn list(session: &Session) -> Result<()> {
    let offers = offers(session).await?;
    let apps = offers.apps.iter().map(|(uri, app)| {
        let name = app.listed.as_ref().map(|listed| listed.title.as_ref().unwrap_or(&listed.name));
        json!({ "uri": uri, "name": name, "listed": app.listed.is_some(), "tools": app.tools })
    });
    let faults =
        offers.faults.iter().map(|(tool, fault)| json!({ "tool": tool, "fault": fault.to_string() }));
    let document = json!({
        "apps": apps.collect::<Value>(),
        "appTools": offers.app_tools,
        "faults": faults.collect::<Value>(),
    });
    session
        .printer
        .show(&document, |view| Rendered::of_list(render::apps(&offers, view), offers.apps.is_empty(), view))
}

/// `apps show`: one app, by its URI or a tool that it shows.
pub(crate) async fn show(session: &Session, app: &str) -> Result<()> {
    let offers = offers(session).await?;
    let by_tool = || offers.apps.iter().find(|(_, offer)| offer.tools.iter().any(|tool| tool == app));
    let Some((uri, offer)) = offers.apps.get_key_value(app).or_else(by_tool) else {
        let known: Vec<&str> = offers.apps.keys().map(String::as_str).collect();
        return Err(UsageError::new(unknown("app", app, &known)).into());
    };
    let request = session.client.read_resource(uri).read_as::<ReadResourceResult>();
    let read = session.ask(request).await;
    let read = read.map_err(|error| session.fault(Method::ReadResource.name(), &error))?;
    let page = AppPage::read(uri, &read, offer.listed.as_ref())
        .map_err(|fault| ExitError::new(ExitReason::Failed, fault.to_string()))?;
    let policy = page.policy();
    let source = match page.source {
        MetaSource::Contents => "contents",
        MetaSource::List => "list",
        MetaSource::None => "none",
    };
    let (ResourceBody::Text(body) | ResourceBody::Blob(body)) = &page.body;
    let faults: Vec<String> = page.faults.iter().map(AppError::to_string).collect();
    let document = json!({
        "uri": uri,
        "tools": offer.tools,
        "characters": body.chars().count(),
        "meta": page.meta,
        "metaFrom": source,
        "policy": policy.to_string(),
        "allow": page.allow(),
        "faults": faults,
    });
    session.printer.show(&document, |view| render::app_details(&page, offer, view))
}

/// What the server lists, as far as it has lists.
async fn offers(session: &Session) -> Result<AppOffers> {
    let tools = listed::<Tool>(session).await?;
    let resources = listed::<Resource>(session).await?;
    Ok(AppOffers::of(&tools, &resources))
}

async fn listed<T: refmcp_client::Listable>(session: &Session) -> Result<Vec<T>> {
    if !T::offered(&session.client.server().capabilities) {
        return Ok(Vec::new());
    }
    session.list::<T>().await.map_err(|error| session.fault(T::METHOD.name(), &error))
}

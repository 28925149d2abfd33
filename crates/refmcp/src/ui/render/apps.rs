//! Apps: pages of a server, and what a host makes of them.

use refmcp_client::app::{AppOffer, AppOffers, AppPage, MetaSource, ToolUi};
use refmcp_proto::model::{ResourceBody, Tool, UiVisibility};

use super::View;
use super::details::{lines_of, section};
use super::lists::{bytes, heading};
use crate::ui::render::table::Table;
use crate::ui::text::one_line;

/// Apps, a line each; then the tools that are for apps alone, and what is wrong with tools.
pub(crate) fn apps(offers: &AppOffers, view: &View) -> String {
    let mut table = Table::new(&["URI", "NAME", "TOOLS"]);
    for (uri, app) in &offers.apps {
        let name = app.listed.as_ref().map(|listed| listed.title.as_ref().unwrap_or(&listed.name));
        table.row([uri, name.map_or("(not listed)", String::as_str), &app.tools.join(", ")]);
    }
    let mut out = table.render_or("no apps", view.paint, view.width);
    if !offers.app_tools.is_empty() {
        out.push_str(&format!("tools for apps alone: {}\n", one_line(&offers.app_tools.join(", "))));
    }
    for (tool, fault) in &offers.faults {
        out.push_str(&format!("{}: {}\n", one_line(tool), one_line(&fault.to_string())));
    }
    out
}

/// What a tool says of apps.
pub(super) fn app_of(tool: &Tool) -> Vec<String> {
    let Some(ToolUi { meta, faults }) = ToolUi::of(tool) else { return Vec::new() };
    let shown = meta.resource_uri.as_ref().map(|uri| format!("shown by {uri}"));
    let parties = [(UiVisibility::Model, "the model"), (UiVisibility::App, "apps")];
    let visible: Vec<&str> =
        parties.iter().filter(|(party, _)| meta.is_visible_to(party)).map(|(_, name)| *name).collect();
    let visible = match visible.as_slice() {
        [_, _] => None,
        [party] => Some(format!("for {party} alone")),
        _ => Some("for no party".to_owned()),
    };
    let lines = shown.into_iter().chain(visible).chain(faults.iter().map(|fault| format!("wrong: {fault}")));
    lines.map(|line| one_line(&line).into_owned()).collect()
}

/// An app: where it is from, what it would like, the policy of its frame, and what is wrong.
pub(crate) fn app_details(page: &AppPage, offer: &AppOffer, view: &View) -> String {
    let mut out = String::new();
    heading(&mut out, view, &page.uri, offer.listed.as_ref().and_then(|listed| listed.title.as_deref()));
    let size = match &page.body {
        ResourceBody::Text(text) => bytes(u64::try_from(text.len()).unwrap_or(u64::MAX)),
        ResourceBody::Blob(_) => "in base64".to_owned(),
    };
    let from = match page.source {
        MetaSource::Contents => "what was read",
        MetaSource::List => "the list of resources",
        MetaSource::None => "nowhere: the closed defaults hold",
    };
    let facts = [
        ("tools", offer.tools.join(", ")),
        ("size", size),
        ("metadata from", from.to_owned()),
        ("allow", page.allow()),
        ("domain", page.meta.domain.clone().unwrap_or_default()),
        (
            "border",
            page.meta.prefers_border.map(|yes| if yes { "yes" } else { "no" }.to_owned()).unwrap_or_default(),
        ),
    ];
    let known = facts.into_iter().filter(|(_, value)| !value.is_empty());
    let known: Vec<_> = known.map(|(name, value)| (name.to_owned(), value)).collect();
    section(&mut out, view, "facts", &lines_of(&known));
    let policy = page.policy();
    let policy: Vec<String> =
        policy.directives().map(|(name, sources)| format!("{name} {sources}")).collect();
    section(&mut out, view, "content security policy", &policy.join("\n"));
    let faults: Vec<String> =
        page.faults.iter().map(|fault| one_line(&fault.to_string()).into_owned()).collect();
    section(&mut out, view, "wrong", &faults.join("\n"));
    out
}

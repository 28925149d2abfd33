//! `refmcp auth login`: a new token for a server, in the way that was asked for.

use anyhow::Result;
use refmcp_client::Client;
use refmcp_client::auth::store_key;
use serde_json::json;

use super::{login_authorization, opened_store, status};
use crate::args::{BrowserOptions, ExitReason, LoginOptions, SharedOptions, Target};
use crate::command::client::{LastLines, Person, Servers, fault};
use crate::ui::output::show;
use crate::ui::progress::Bars;
use crate::ui::text::one_line;

pub(super) async fn login(
    target: &Target,
    options: &LoginOptions,
    visit: &BrowserOptions,
    shared: &SharedOptions,
) -> Result<ExitReason> {
    let bars = Bars::on_stderr();
    let person = Person::new(shared, &bars);
    let servers = Servers::new(shared, &person)?.beside(&bars);
    let place = servers.place(target).await?;
    let server = store_key(&place.url);
    let store = opened_store().await?.ignore_stored();
    let authorization = login_authorization(options, visit, store.clone(), shared, &person, &bars)?;
    let connector = servers.connector(&place, authorization)?;
    let mut builder = Client::builder("refmcp", env!("CARGO_PKG_VERSION"))
        .version_policy(shared.protocol_version)
        .timeout(shared.timeout)
        .total_timeout(shared.total_timeout)
        .open_timeout(shared.timeout);
    if let Some(observer) = servers.observer {
        builder = builder.observer(observer);
    }
    let connected = builder.connect_to(connector).await;
    if store.has_new() {
        // Without it the token could not be renewed later, whatever else goes wrong now.
        let settled = store.grants(Some(&server))?.pop().map(|(_, grant)| options.settled(&grant));
        store.keep_login_options(&server, settled.as_ref().unwrap_or(options))?;
    }
    let failed = |why| fault::of_connecting(&why, &LastLines::default());
    let client = connected.map_err(failed)?;
    client.close().await;
    if !store.has_new() {
        let nothing = json!({ "server": server, "loggedIn": false });
        let target = one_line(&target.to_string()).into_owned();
        show(shared.output, &nothing, || {
            format!("{target} lets everybody in: there was no need to log in\n")
        })?;
        return Ok(ExitReason::Done);
    }
    status::show(&store, &store.grants(Some(&server))?, shared.output)?;
    Ok(ExitReason::Done)
}

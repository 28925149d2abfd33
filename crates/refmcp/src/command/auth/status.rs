//! `refmcp auth status`: where the user is logged in. Tokens are never shown.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use refmcp_auth::Seconds;
use refmcp_auth::client::TokenSet;
use refmcp_client::auth::store_key;
use serde_json::{Value, json};

use super::opened_store;
use super::store::UserStore;
use crate::args::{ExitError, ExitReason, OutputFormat, SharedOptions, Target};
use crate::command::client::{Person, Servers};
use crate::ui::output::show_list;
use crate::ui::progress::Bars;
use crate::ui::text::one_line;

pub(super) async fn status(target: Option<&Target>, shared: &SharedOptions) -> Result<ExitReason> {
    let server = match target {
        Some(target) => {
            let person = Person::new(shared, &Bars::hidden());
            Some(store_key(&Servers::new(shared, &person)?.place(target).await?.url))
        }
        None => None,
    };
    let store = opened_store().await?;
    let grants = store.grants(server.as_deref())?;
    if let (Some(target), true) = (target, grants.is_empty()) {
        let what = format!("you are not logged in to {}", one_line(&target.to_string()));
        return Err(ExitError::new(ExitReason::Authorization, what).into());
    }
    show(&store, &grants, shared.output)?;
    Ok(ExitReason::Done)
}

/// Shows grants.
pub(super) fn show(store: &UserStore, grants: &[(String, TokenSet)], format: OutputFormat) -> Result<()> {
    let renews = |server: &str, grant: &TokenSet| store.renews(server, grant);
    let document: Vec<Value> =
        grants.iter().map(|(server, grant)| described(server, grant, renews(server, grant))).collect();
    show_list(format, &document, || {
        if grants.is_empty() {
            return "you are logged in nowhere\n".to_owned();
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        grants.iter().map(|(server, grant)| in_words(server, grant, renews(server, grant), now)).collect()
    })
}

fn described(server: &str, grant: &TokenSet, renews: bool) -> Value {
    json!({
        "server": server,
        "resource": grant.resource,
        "issuer": grant.issuer,
        "clientId": grant.client_id,
        "scopes": grant.scope.iter().collect::<Vec<_>>(),
        "tokenType": grant.token_type.name(),
        "expiresAt": grant.expires_at,
        "refreshable": renews,
    })
}

fn in_words(server: &str, grant: &TokenSet, renews: bool, now: Seconds) -> String {
    let scopes = if grant.scope.is_empty() { "none known".to_owned() } else { grant.scope.to_string() };
    let lines = [
        ("issuer", grant.issuer.clone()),
        ("client", grant.client_id.clone().unwrap_or_else(|| "none known".to_owned())),
        ("scopes", scopes),
        ("token", format!("{}, {}", grant.token_type.name(), time_left(grant, now))),
        ("renewal", if renews { "by itself" } else { "by another login" }.to_owned()),
    ];
    let lines: String =
        lines.iter().map(|(name, text)| format!("  {name:<8} {}\n", one_line(text))).collect();
    format!("{}\n{lines}", one_line(server))
}

fn time_left(grant: &TokenSet, now: Seconds) -> String {
    let Some(end) = grant.expires_at else { return "without a known end".to_owned() };
    match end.saturating_sub(now) {
        0 => "over".to_owned(),
        left @ 1..120 => format!("for {left} s"),
        left @ 120..7200 => format!("for {} min", left / 60),
        left => format!("for {} h", left / 3600),
    }
}

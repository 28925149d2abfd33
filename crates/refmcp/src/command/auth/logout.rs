//! `refmcp auth logout`: tokens are revoked at their authorization server (RFC 7009), where that can be done, and forgotten
//! in any case.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use refmcp_auth::client::{ClientIdentity, TokenSet, revocations};
use refmcp_auth::fetch::Fetch;
use refmcp_client::auth::store_key;
use serde_json::json;
use url::Url;

use super::opened_store;
use super::store::UserStore;
use crate::args::{ExitReason, SharedOptions, Target};
use crate::command::client::{Person, Servers};
use crate::command::scoped_fetch::ScopedFetcher;
use crate::ui::output::show;
use crate::ui::progress::Bars;
use crate::ui::text::one_line;

pub(super) async fn logout(target: &Target, shared: &SharedOptions) -> Result<ExitReason> {
    let person = Person::new(shared, &Bars::hidden());
    let place = Servers::new(shared, &person)?.place(target).await?;
    let server = store_key(&place.url);
    let store = opened_store().await?;
    let identity = identity_of(&store, &server);
    // The lock keeps other processes from refreshing what is revoked.
    let held = store.locked(&server).await?;
    let forgotten = store.forget(&server)?;
    drop(held);
    // The name is an address of HTTP, whatever is spoken there.
    let fetcher = ScopedFetcher::stranger(&Url::parse(&server)?);
    let mut kept: Vec<String> = Vec::new();
    for grant in &forgotten.grants {
        if let Err(fault) = give_back(grant, &identity, &fetcher).await {
            kept.push(format!("{} did not take its token back: {fault:#}", grant.issuer));
        }
    }
    kept.extend(forgotten.unreadable.iter().map(|fault| format!("{fault:#}")));
    let count = forgotten.grants.len() + forgotten.unreadable.len();
    let shown = one_line(&target.to_string()).into_owned();
    let result = json!({ "server": server, "forgotten": count, "notRevoked": kept });
    show(shared.output, &result, || {
        if count == 0 {
            return format!("you were not logged in to {shown}\n");
        }
        let faults: String = kept.iter().map(|fault| format!("{}\n", one_line(fault))).collect();
        format!("logged out of {shown}\n{faults}")
    })?;
    Ok(ExitReason::Done)
}

/// Who got the tokens: the secret or key of a client that was known before is not kept with them.
fn identity_of(store: &UserStore, server: &str) -> ClientIdentity {
    let options = store.login_options(server).map(Option::unwrap_or_default);
    options.and_then(|options| options.identity()).unwrap_or_else(|fault| {
        tracing::warn!("{fault:#}");
        ClientIdentity::default()
    })
}

/// Gives back what renews tokens, and the token.
async fn give_back(grant: &TokenSet, identity: &ClientIdentity, fetch: &dyn Fetch) -> Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let requests = revocations(grant, identity, now)?;
    if requests.is_empty() {
        bail!("it says nowhere how");
    }
    for request in requests {
        let response = fetch.fetch(request).await?;
        if !response.status().is_success() {
            bail!("status {}", response.status().as_u16());
        }
    }
    Ok(())
}

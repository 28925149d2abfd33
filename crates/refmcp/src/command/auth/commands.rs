//! The commands of `refmcp auth`: getting tokens, showing them, giving them back, and sealing their file.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use refmcp_auth::Seconds;
use refmcp_auth::client::{ClientIdentity, TokenSet, revocations};
use refmcp_auth::fetch::Fetch;
use refmcp_client::Client;
use refmcp_client::auth::store_key;
use serde_json::{Value, json};
use url::Url;

use super::store::UserStore;
use super::{login_authorization, opened_store, tokens};
use crate::args::{
    BrowserOptions, ExitError, ExitReason, KeyringAction, LoginOptions, OutputFormat, SharedOptions, Target,
    UsageError,
};
use crate::command::client::{LastLines, Person, Servers, exit_error};
use crate::command::scoped_fetch::ScopedFetcher;
use crate::store::tokens::keyring::CredentialHelper;
use crate::ui::output::{show, show_list};
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
    let place = servers.place_to_connect(target).await?;
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
    let failed = |why| exit_error::of_connecting(&why, &LastLines::default());
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
    show_grants(&store, &store.grants(Some(&server))?, shared.output)?;
    Ok(ExitReason::Done)
}

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
        if let Err(error) = give_back(grant, &identity, &fetcher).await {
            kept.push(format!("{} did not take its token back: {error:#}", grant.issuer));
        }
    }
    kept.extend(forgotten.unreadable.iter().map(|error| format!("{error:#}")));
    let count = forgotten.grants.len() + forgotten.unreadable.len();
    let shown = one_line(&target.to_string()).into_owned();
    let result = json!({ "server": server, "forgotten": count, "notRevoked": kept });
    show(shared.output, &result, || {
        if count == 0 {
            return format!("you were not logged in to {shown}\n");
        }
        let faults: String = kept.iter().map(|error| format!("{}\n", one_line(error))).collect();
        format!("logged out of {shown}\n{faults}")
    })?;
    Ok(ExitReason::Done)
}

/// Who got the tokens: the secret or key of a client that was known before is not kept with them.
fn identity_of(store: &UserStore, server: &str) -> ClientIdentity {
    let options = store.login_options(server).map(Option::unwrap_or_default);
    options.and_then(|options| options.identity()).unwrap_or_else(|error| {
        tracing::warn!("{error:#}");
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
    show_grants(&store, &grants, shared.output)?;
    Ok(ExitReason::Done)
}

/// Shows grants.
fn show_grants(store: &UserStore, grants: &[(String, TokenSet)], format: OutputFormat) -> Result<()> {
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

pub(super) async fn keyring(action: KeyringAction, shared: &SharedOptions) -> Result<ExitReason> {
    let tokens = tokens()?;
    let file = tokens.file.path();
    let wanted = match action {
        KeyringAction::Show => None,
        KeyringAction::Off => Some(None),
        KeyringAction::On { helper: None } => Some(Some(CredentialHelper::of_this_system())),
        KeyringAction::On { helper: Some(name) } => {
            Some(Some(CredentialHelper::try_from(name).map_err(|error| UsageError::new(error.to_string()))?))
        }
    };
    // The user may have to unlock the keyring.
    let helper = tokio::task::spawn_blocking(move || {
        match wanted {
            Some(wanted) if tokens.file.helper()? != wanted => tokens.file.seal(wanted.as_ref())?,
            // Whether the key is still there is worth knowing.
            Some(_) => drop(tokens.load()?),
            None => {}
        }
        tokens.file.helper()
    });
    let program = helper.await??.map(|helper| helper.program());
    let result = json!({ "file": file, "sealed": program.is_some(), "helper": program });
    show(shared.output, &result, || {
        let file = file.display();
        match &program {
            Some(program) => format!("{file} is sealed with a key that {program} keeps\n"),
            None => format!("{file} is not sealed: only you can read it\n"),
        }
    })?;
    Ok(ExitReason::Done)
}

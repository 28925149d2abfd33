//! `refmcp auth`: logging in, seeing where one is logged in, and logging out; and what every other command does with the
//! tokens that are kept.

mod browser;
mod callback;
mod commands;
mod login_options;
mod store;

use anyhow::Result;
use refmcp_auth::client::FlowStep;
use refmcp_client::auth::{Authorization, store_key};
use refmcp_client::redact;
use url::Url;

use crate::args::{
    AuthCommand, BrowserOptions, ExitError, ExitReason, LoginOptions, OutputFormat, SharedOptions, Target,
};
use crate::command::client::Person;
use crate::store::StateFolder;
use crate::store::tokens::Tokens;
use crate::ui::progress::Bars;
use crate::ui::text::multi_line;

use browser::{LocalBrowser, MARGIN};
use store::UserStore;

/// Runs a command about logins.
pub(crate) async fn run(command: AuthCommand, shared: &SharedOptions) -> Result<ExitReason> {
    match command {
        AuthCommand::Login { target, login, browser } => {
            commands::login(&target, &login, &browser, shared).await
        }
        AuthCommand::Status { target } => commands::status(target.as_ref(), shared).await,
        AuthCommand::Logout { target } => commands::logout(&target, shared).await,
        AuthCommand::Keyring { action } => commands::keyring(action, shared).await,
    }
}

/// How every other command gets in: with the tokens that are kept, which are renewed; and at a terminal, by
/// asking them to log in.
pub(crate) async fn kept(url: &Url, shared: &SharedOptions, person: &Person, bars: &Bars) -> Authorization {
    // Without a place to keep them, tokens are gone with the process.
    let store = opened_store().await.ok();
    let authorization = if person.is_there() {
        let browser =
            LocalBrowser::new(person, bars, BrowserOptions::default()).asking(&redact::url(url.as_str()));
        let usual_port = store.as_ref().and_then(UserStore::usual_port);
        Authorization::new(browser.usually_at(usual_port))
    } else {
        Authorization::without_browser()
    };
    let authorization = explained(authorization, shared, bars);
    let Some(store) = store else { return authorization };
    // What is wrong with the file is said when a token is looked for in it.
    let options = store.login_options(&store_key(url)).ok().flatten().unwrap_or_default();
    let authorization =
        authorization.store(store).login_timeout(BrowserOptions::default().login_timeout + MARGIN);
    match options.set(authorization.clone()) {
        Ok(authorization) => authorization,
        Err(error) => {
            tracing::warn!("tokens cannot be renewed as you logged in: {error:#}");
            authorization
        }
    }
}

/// Tells of every step that is taken, where that is wanted.
fn explained(authorization: Authorization, shared: &SharedOptions, bars: &Bars) -> Authorization {
    if !shared.explain {
        return authorization;
    }
    let (bars, json) = (bars.clone(), shared.output != OutputFormat::Text);
    authorization.on_step(move |step| bars.say(&format!("{}\n", step_text(step, json))))
}

fn step_text(step: &FlowStep, json: bool) -> String {
    if json {
        // Strings do not fail to be written.
        return serde_json::to_string(step).unwrap_or_default();
    }
    multi_line(&step.to_string()).into_owned()
}

/// The same error; one for want of a login says how to log in.
pub(crate) fn hinted(error: anyhow::Error, target: Option<&Target>) -> anyhow::Error {
    let Some(target) = target.filter(|_| ExitReason::of(&error) == ExitReason::Authorization) else {
        return error;
    };
    let word = redact::joined(&[target.to_string()]);
    let mut what = format!("{error:#}; to log in: refmcp auth login {word}");
    if let Some(scopes) = scopes_for(target) {
        what += &format!(" (you are logged in for {scopes}; for more, add --scope SCOPE)");
    }
    ExitError::new(ExitReason::Authorization, what).into()
}

/// What the token for a server is good for, if there is one.
fn scopes_for(target: &Target) -> Option<String> {
    let Target::Url { url, .. } = target else { return None };
    let grant = user_store().ok()?.cached_grant(&store_key(url))?;
    (!grant.scope.is_empty()).then(|| grant.scope.to_string())
}

/// The store of this user, with what it keeps at hand.
async fn opened_store() -> Result<UserStore> {
    Ok(user_store()?.opened().await)
}

fn user_store() -> Result<UserStore> {
    Ok(UserStore::new(tokens()?))
}

fn tokens() -> Result<Tokens> {
    Ok(Tokens::new(StateFolder::from_env()?))
}

/// The authorization of `auth login`.
fn login_authorization(
    options: &LoginOptions,
    visit: &BrowserOptions,
    store: UserStore,
    shared: &SharedOptions,
    person: &Person,
    bars: &Bars,
) -> Result<Authorization> {
    let authorization = if options.needs_person() {
        let browser = LocalBrowser::new(person, bars, visit.clone());
        Authorization::new(browser.usually_at(store.usual_port()))
    } else {
        Authorization::without_browser()
    };
    let authorization = authorization.store(store).login_timeout(visit.login_timeout + MARGIN);
    options.set(explained(authorization, shared, bars))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_for_want_of_a_login_is_one_told_of() {
        let target = Target::Named("a b".to_owned());
        let hint = |reason| hinted(ExitError::new(reason, "no").into(), Some(&target));
        let text = hint(ExitReason::Authorization).to_string();
        assert_eq!(text, "no; to log in: refmcp auth login 'a b'");
        assert_eq!(ExitReason::of(&hint(ExitReason::Authorization)), ExitReason::Authorization);
        assert_eq!(hint(ExitReason::Unreachable).to_string(), "no");
    }
}

//! The browser in which a user logs in.

use std::fmt;

use refmcp_auth::Secret;
use url::Url;

use crate::transport::BoxFuture;

/// Opens a URL in a browser and waits for the redirect.
pub trait Browser: Send + Sync + fmt::Debug + 'static {
    /// The redirect URI. It is asked for before every login, and its listener must be ready when the future resolves.
    fn redirect_uri(&self) -> BoxFuture<'_, Result<Url, BrowserError>>;

    /// Opens a URL and waits for the redirect to the redirect URI; returns the whole redirected URL. A redirect that does not
    /// belong to this login (see [`is_redirect_for`]) must not end the wait.
    fn visit(&self, url: Url) -> BoxFuture<'_, Result<Url, BrowserError>>;
}

/// Why there is no redirect.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserError {
    /// No user is present.
    #[error("there is no user here who could log in")]
    Unavailable,
    /// The user declined.
    #[error("the login was declined")]
    Declined,
    /// The time limit passed.
    #[error("the user did not log in in time")]
    TimedOut,
    /// No browser starts, or the listener fails.
    #[error("{0}")]
    Failed(String),
}

/// True if a redirect belongs to an authorization URL: both have the same `state`.
pub fn is_redirect_for(visited: &Url, came_back_to: &Url) -> bool {
    let state = |url: &Url| {
        let mut states =
            url.query_pairs().filter(|(name, _)| name == "state").map(|(_, value)| value.into_owned());
        // A repeated `state` matches nothing.
        states.next().filter(|_| states.next().is_none()).map(Secret::from)
    };
    state(visited).is_some_and(|sent| state(came_back_to).is_some_and(|back| back == sent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_state_of_the_question() {
        let url = |query: &str| Url::parse(&format!("https://h/x?{query}")).unwrap();
        assert!(is_redirect_for(&url("a=1&state=s%201"), &url("state=s+1&code=2")));
        for (sent, back) in
            [("state=a", "state=b"), ("state=a", ""), ("", ""), ("state=a", "state=a&state=b")]
        {
            assert!(!is_redirect_for(&url(sent), &url(back)), "{sent} {back}");
        }
    }
}

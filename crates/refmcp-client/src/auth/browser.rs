//! People who log in, and the browsers they do it with.

use std::fmt;

use refmcp_auth::Secret;
use url::Url;

use crate::wire::BoxFuture;

/// Sends a person to an authorization server and learns where their browser was sent back to.
pub trait Browser: Send + Sync + fmt::Debug + 'static {
    /// Where browsers are to be sent back to. It is asked for before every login, and whoever listens there has to be
    /// ready when this is answered.
    fn redirect_uri(&self) -> BoxFuture<'_, Result<Url, BrowserFault>>;

    /// Sends a person to a URL and waits until their browser comes back to the redirect URI: what is given back is the
    /// whole URL that it came back to. A browser that comes back with something that is no answer (see
    /// [`is_answer`]) is somebody else's and should not end the waiting.
    fn visit(&self, url: Url) -> BoxFuture<'_, Result<Url, BrowserFault>>;
}

/// Why nobody came back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BrowserFault {
    /// There is nobody who could log in.
    #[error("there is nobody here who could log in")]
    Nobody,
    /// The person does not want to.
    #[error("the login was declined")]
    Declined,
    /// It took too long.
    #[error("nobody logged in in time")]
    TooSlow,
    /// Something failed on our side: no browser starts, nobody can be waited for.
    #[error("{0}")]
    Failed(String),
}

/// Whether what a browser came back with belongs to where it was sent: both have the same `state`.
pub fn is_answer(visited: &Url, came_back_to: &Url) -> bool {
    let state = |url: &Url| {
        let mut states =
            url.query_pairs().filter(|(name, _)| name == "state").map(|(_, value)| value.into_owned());
        // Two of them are nobody's.
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
        assert!(is_answer(&url("a=1&state=s%201"), &url("state=s+1&code=2")));
        for (sent, back) in
            [("state=a", "state=b"), ("state=a", ""), ("", ""), ("state=a", "state=a&state=b")]
        {
            assert!(!is_answer(&url(sent), &url(back)), "{sent} {back}");
        }
    }
}

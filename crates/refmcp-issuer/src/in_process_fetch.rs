//! A fetcher that reaches an authorization server of the same process without a socket.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Request, Response};
use refmcp_auth::fetch::{BoxFuture, Fetch, FetchError};
use url::Url;

use crate::serve::Issuer;

/// Fetches from an authorization server in this process, and everything else with another fetcher. A resource server gets the
/// keys of its own authorization server without a socket, a proxy or a certificate in between.
#[derive(Debug, Clone)]
pub struct InProcessFetch {
    issuer: Issuer,
    elsewhere: Option<Arc<dyn Fetch>>,
}

impl InProcessFetch {
    /// A fetcher for this server, and for others if `elsewhere` is given.
    pub fn new(issuer: Issuer, elsewhere: Option<Arc<dyn Fetch>>) -> Self {
        Self { issuer, elsewhere }
    }
}

impl Fetch for InProcessFetch {
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, FetchError>> {
        let asked = Url::parse(&request.uri().to_string()).ok();
        if asked.is_some_and(|url| url.origin() == self.issuer.settings().origin.origin()) {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let answer = self.issuer.answer(request, now);
            return Box::pin(async move { Ok(answer.await) });
        }
        match &self.elsewhere {
            Some(elsewhere) => elsewhere.fetch(request),
            None => {
                let why = "only the authorization server of this process is asked".to_owned();
                Box::pin(async move { Err(FetchError::Forbidden(why)) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::tests::{ORIGIN, world};

    #[test]
    fn in_process_fetch_reaches_this_server_only() {
        let near = InProcessFetch::new(world().issuer, None);
        let fetch = |url: String| {
            let request = Request::get(url).body(Bytes::new()).unwrap();
            match pin!(near.fetch(request)).poll(&mut Context::from_waker(Waker::noop())) {
                Poll::Ready(answer) => answer,
                Poll::Pending => panic!("the answer does not come at once"),
            }
        };
        let keys = fetch(format!("{ORIGIN}/jwks")).unwrap();
        assert!(keys.body().starts_with(b"{\"keys\":["));
        for other in
            ["http://127.0.0.1:3001/jwks", "https://127.0.0.1:3000/jwks", "http://localhost:3000/jwks"]
        {
            assert!(matches!(fetch(other.to_owned()), Err(FetchError::Forbidden(_))), "{other}");
        }
    }
}

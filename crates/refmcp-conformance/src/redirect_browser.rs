//! The browser of a login: the suite's authorization servers redirect back at once.

use bytes::Bytes;
use http::header::LOCATION;
use http::{Request, StatusCode};
use refmcp_auth::fetch::Fetch;
use refmcp_client::auth::{Browser, BrowserError};
use refmcp_client::http::{AddressScope, Fetcher};
use refmcp_client::transport::BoxFuture;
use url::Url;

/// Fetches the authorization URL and returns the redirect without following it: nothing listens there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RedirectBrowser;

/// The redirect URI.
const REDIRECT: &str = "http://127.0.0.1:41999/callback";

impl Browser for RedirectBrowser {
    fn redirect_uri(&self) -> BoxFuture<'_, Result<Url, BrowserError>> {
        let url = Url::parse(REDIRECT).map_err(|error| BrowserError::Failed(error.to_string()));
        Box::pin(async move { url })
    }

    fn visit(&self, url: Url) -> BoxFuture<'_, Result<Url, BrowserError>> {
        Box::pin(async move { visit(&url).await.map_err(BrowserError::Failed) })
    }
}

async fn visit(url: &Url) -> Result<Url, String> {
    let request = Request::get(url.as_str()).body(Bytes::new()).map_err(|error| error.to_string())?;
    // The suite is on this machine.
    let fetcher = Fetcher::guarded(AddressScope::Loopback);
    let response = fetcher.fetch(request).await.map_err(|error| error.to_string())?;
    if !matches!(response.status(), StatusCode::FOUND | StatusCode::SEE_OTHER) {
        return Err(format!("the authorization server does not redirect: {}", response.status()));
    }
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let location = location.ok_or("the redirect has no location")?;
    url.join(location).map_err(|error| error.to_string())
}

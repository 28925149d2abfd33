//! A user who logs in.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use refmcp_client::auth::{Browser, BrowserError};
use refmcp_client::transport::BoxFuture;
use tokio::sync::Semaphore;
use url::Url;

use super::servers::ServerState;

/// A user who logs in when the test allows it.
#[derive(Debug, Clone)]
pub(crate) struct User {
    place: Arc<ServerState>,
    visits: Arc<AtomicUsize>,
    let_go: Arc<Semaphore>,
    busy: Arc<Semaphore>,
}

impl User {
    /// One who says yes at once.
    pub(crate) fn new(place: &Arc<ServerState>) -> Self {
        let user = Self::slow(place);
        user.agree();
        user
    }

    /// One who waits for [`Self::agree`].
    pub(crate) fn slow(place: &Arc<ServerState>) -> Self {
        let (let_go, busy) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        Self { place: place.clone(), visits: Arc::default(), let_go, busy }
    }

    /// From now on they say yes at once.
    pub(crate) fn agree(&self) {
        self.let_go.add_permits(Semaphore::MAX_PERMITS / 2);
    }

    /// They say yes the next time.
    pub(crate) fn agree_once(&self) {
        self.let_go.add_permits(1);
    }

    /// How often they had to log in.
    pub(crate) fn visits(&self) -> usize {
        self.visits.load(Ordering::SeqCst)
    }

    /// Waits until they are asked to log in.
    pub(crate) async fn is_asked(&self) {
        crate::raw_server::in_time("a login", self.busy.acquire()).await.unwrap().forget();
    }
}

impl Browser for User {
    fn redirect_uri(&self) -> BoxFuture<'_, Result<Url, BrowserError>> {
        Box::pin(async { Ok(Url::parse("http://127.0.0.1:1/callback").unwrap()) })
    }

    fn visit(&self, url: Url) -> BoxFuture<'_, Result<Url, BrowserError>> {
        Box::pin(async move {
            let number = self.visits.fetch_add(1, Ordering::SeqCst) + 1;
            self.busy.add_permits(1);
            self.let_go.acquire().await.unwrap().forget();
            let asked: HashMap<String, String> = url.query_pairs().into_owned().collect();
            let code = format!("code-{number}-{}", self.place.state().came.len());
            let scope = asked.get("scope").cloned().unwrap_or_default();
            self.place.state().codes.insert(code.clone(), scope);
            let mut back = Url::parse(&asked["redirect_uri"]).unwrap();
            back.query_pairs_mut().append_pair("code", &code).append_pair("state", &asked["state"]);
            Ok(back)
        })
    }
}

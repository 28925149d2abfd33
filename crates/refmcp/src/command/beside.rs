//! Fetching for somebody who may be near: what they name may be as near as they are, and no nearer.

use std::net::SocketAddr;

use bytes::Bytes;
use hyper::{Request, Response};
use refmcp_auth::fetch::{BoxFuture, Fetch, FetchError};
use refmcp_client::http::{Fetcher, Reach};
use url::Url;

/// Fetches what somebody at a URL names. Where they are is looked up each time, as names move.
#[derive(Debug, Clone)]
pub(crate) struct Beside {
    whose: Url,
    /// No nearer than this, whatever their name means.
    nearest: Reach,
    on_machine: Fetcher,
    in_network: Fetcher,
    in_world: Fetcher,
}

impl Beside {
    /// For somebody whose URL the person here has given, who knows what its name means.
    pub(crate) fn trusted(url: &Url) -> Self {
        Self {
            whose: url.clone(),
            nearest: Reach::Machine,
            on_machine: Fetcher::guarded(Reach::Machine),
            in_network: Fetcher::guarded(Reach::Network),
            in_world: Fetcher::guarded(Reach::World),
        }
    }

    /// For a stranger: their name may mean this machine only where it says so itself.
    pub(crate) fn stranger(url: &Url) -> Self {
        let says = Reach::of_url(url);
        Self { nearest: says.min(Reach::Network), ..Self::trusted(url) }
    }

    async fn reach(&self) -> Reach {
        let host = self.whose.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.whose.port_or_known_default().unwrap_or_default();
        match tokio::net::lookup_host((host, port)).await {
            Ok(found) => farthest(found).max(self.nearest),
            // Whoever cannot be found is nobody near.
            Err(_) => Reach::World,
        }
    }
}

/// The farthest of somebody's addresses: one near address among others is no reason to trust them near.
fn farthest(found: impl Iterator<Item = SocketAddr>) -> Reach {
    found.map(|address| Reach::of(address.ip())).max().unwrap_or(Reach::World)
}

impl Fetch for Beside {
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, FetchError>> {
        Box::pin(async move {
            let fetcher = match self.reach().await {
                Reach::Machine => &self.on_machine,
                Reach::Network => &self.in_network,
                _ => &self.in_world,
            };
            fetcher.fetch(request).await
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_is_near_may_name_what_is_as_near() {
        let at = |text: &str| Url::parse(text).unwrap();
        for (url, trusted, stranger) in [
            ("https://10.1.2.3/realm", Reach::Network, Reach::Network),
            ("https://[fd00::1]:8443/", Reach::Network, Reach::Network),
            ("http://127.0.0.1:1", Reach::Machine, Reach::Machine),
            ("http://localhost:1", Reach::Machine, Reach::Machine),
            ("https://8.8.8.8/", Reach::World, Reach::World),
        ] {
            assert_eq!(Beside::trusted(&at(url)).reach().await, trusted, "{url}");
            assert_eq!(Beside::stranger(&at(url)).reach().await, stranger, "{url}");
        }
    }

    #[test]
    fn one_far_address_makes_a_name_far() {
        let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 1);
        for (addresses, reach) in [
            (&["10.0.0.1", "127.0.0.1"][..], Reach::Network),
            (&["10.0.0.1", "8.8.8.8"], Reach::World),
            (&[], Reach::World),
        ] {
            assert_eq!(farthest(addresses.iter().map(|text| at(text))), reach, "{addresses:?}");
        }
    }
}

//! A fetcher whose address scope is that of a given host: URLs named by a host may be as local as the host itself.

use std::net::SocketAddr;

use bytes::Bytes;
use hyper::{Request, Response};
use refmcp_auth::fetch::{BoxFuture, Fetch, FetchError};
use refmcp_client::http::{AddressScope, Fetcher};
use url::Url;

/// Fetches what the host of a URL names. Its addresses are looked up each time, since names move.
#[derive(Debug, Clone)]
pub(crate) struct ScopedFetcher {
    whose: Url,
    /// No nearer than this, whatever their name means.
    nearest: AddressScope,
    on_machine: Fetcher,
    in_network: Fetcher,
    in_world: Fetcher,
}

impl ScopedFetcher {
    /// For a host whose URL the user has given.
    pub(crate) fn trusted(url: &Url) -> Self {
        Self {
            whose: url.clone(),
            nearest: AddressScope::Loopback,
            on_machine: Fetcher::guarded(AddressScope::Loopback),
            in_network: Fetcher::guarded(AddressScope::Private),
            in_world: Fetcher::guarded(AddressScope::Public),
        }
    }

    /// For a stranger: their name may mean this machine only where it says so itself.
    pub(crate) fn stranger(url: &Url) -> Self {
        let says = AddressScope::of_url(url);
        Self { nearest: says.min(AddressScope::Private), ..Self::trusted(url) }
    }

    async fn reach(&self) -> AddressScope {
        let host = self.whose.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let port = self.whose.port_or_known_default().unwrap_or_default();
        match tokio::net::lookup_host((host, port)).await {
            Ok(found) => farthest(found).max(self.nearest),
            // A host that cannot be resolved is not local.
            Err(_) => AddressScope::Public,
        }
    }
}

/// The farthest of a host's addresses: one local address among others makes it no local host.
fn farthest(found: impl Iterator<Item = SocketAddr>) -> AddressScope {
    found.map(|address| AddressScope::of_address(address.ip())).max().unwrap_or(AddressScope::Public)
}

impl Fetch for ScopedFetcher {
    fn fetch(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, FetchError>> {
        Box::pin(async move {
            let fetcher = match self.reach().await {
                AddressScope::Loopback => &self.on_machine,
                AddressScope::Private => &self.in_network,
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
    async fn the_scope_is_that_of_the_servers_address() {
        let at = |text: &str| Url::parse(text).unwrap();
        for (url, trusted, stranger) in [
            ("https://10.1.2.3/realm", AddressScope::Private, AddressScope::Private),
            ("https://[fd00::1]:8443/", AddressScope::Private, AddressScope::Private),
            ("http://127.0.0.1:1", AddressScope::Loopback, AddressScope::Loopback),
            ("http://localhost:1", AddressScope::Loopback, AddressScope::Loopback),
            ("https://8.8.8.8/", AddressScope::Public, AddressScope::Public),
        ] {
            assert_eq!(ScopedFetcher::trusted(&at(url)).reach().await, trusted, "{url}");
            assert_eq!(ScopedFetcher::stranger(&at(url)).reach().await, stranger, "{url}");
        }
    }

    #[test]
    fn one_far_address_makes_a_name_far() {
        let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 1);
        for (addresses, reach) in [
            (&["10.0.0.1", "127.0.0.1"][..], AddressScope::Private),
            (&["10.0.0.1", "8.8.8.8"], AddressScope::Public),
            (&[], AddressScope::Public),
        ] {
            assert_eq!(farthest(addresses.iter().map(|text| at(text))), reach, "{addresses:?}");
        }
    }
}

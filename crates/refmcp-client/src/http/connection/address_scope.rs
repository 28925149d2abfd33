//! Address scopes, against server-side request forgery: which addresses a remote party may make us connect to.
//!
//! A server names URLs that are then fetched: of its authorization server, of documents. It must not have us ask what only
//! we can reach: services of this machine, of the local network, of the cloud that we run in.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use refmcp_auth::uri::is_loopback;
use url::{Host, Url};

/// From where an address can be reached, the nearest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressScope {
    /// From this machine.
    Loopback,
    /// From a private network.
    Private,
    /// From everywhere.
    Public,
    /// Not an address to connect to: link-local, multicast, documentation, addresses that wrap others.
    Reserved,
}

impl AddressScope {
    /// The scope of a URL, without a lookup: only IP addresses and `localhost` are known to be near, other names count as
    /// public.
    pub fn of_url(url: &Url) -> Self {
        match url.host() {
            Some(Host::Ipv4(address)) => Self::of_address(address.into()),
            Some(Host::Ipv6(address)) => Self::of_address(address.into()),
            _ if is_loopback(url) => Self::Loopback,
            _ => Self::Public,
        }
    }

    /// The scope of an IP address.
    pub fn of_address(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

fn of_v4(address: Ipv4Addr) -> AddressScope {
    match address.octets() {
        [127, ..] => AddressScope::Loopback,
        [10, ..] | [192, 168, ..] | [172, 16..=31, ..] | [100, 64..=127, ..] => AddressScope::Private,
        // This network; links; assignments of the protocol; the relays of 6to4; benchmarks; documentation.
        [0, ..] | [169, 254, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] => {
            AddressScope::Reserved
        }
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressScope::Reserved,
        // Multicast, reserved, broadcast.
        [224..=255, ..] => AddressScope::Reserved,
        _ => AddressScope::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressScope {
    if address == Ipv6Addr::LOCALHOST {
        return AddressScope::Loopback;
    }
    match address.segments() {
        [0xfc00..=0xfdff, ..] => AddressScope::Private,
        // Teredo and others of the protocol's own; ORCHID; documentation; 6to4, which wraps any address of IPv4.
        [0x2001, 0..=0x01ff, ..] | [0x2001, 0x0db8, ..] | [0x2002, ..] | [0x3fff, ..] => {
            AddressScope::Reserved
        }
        // Global unicast. Outside of it are the unspecified address, those that map or wrap IPv4 (also for NAT64),
        // link-local, site-local, multicast and unassigned addresses.
        [0x2000..=0x3fff, ..] => AddressScope::Public,
        _ => AddressScope::Reserved,
    }
}

/// Which addresses a connection may lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressPolicy {
    /// The scope of the party that names addresses: it may name what it can reach itself.
    pub(crate) from: AddressScope,
    /// True if only this machine is allowed.
    pub(crate) only_loopback: bool,
}

impl AddressPolicy {
    fn allows(self, address: IpAddr) -> bool {
        match AddressScope::of_address(address) {
            AddressScope::Loopback => self.from == AddressScope::Loopback,
            // A party on this machine is in its networks.
            AddressScope::Private => self.from <= AddressScope::Private && !self.only_loopback,
            AddressScope::Public => !self.only_loopback,
            AddressScope::Reserved => false,
        }
    }

    /// Those of a host's addresses that are allowed; an error when none is.
    pub(crate) fn allowed(self, host: &str, addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, String> {
        let first = addresses.first().copied();
        let allowed: Vec<_> = addresses.into_iter().filter(|address| self.allows(address.ip())).collect();
        match first {
            Some(first) if allowed.is_empty() => {
                Err(format!("{host} is at {}, which is not for strangers to name", first.ip()))
            }
            _ => Ok(allowed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_addresses_have_their_scope() {
        for (scope, addresses) in [
            (
                AddressScope::Public,
                &["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "192.167.1.1", "198.20.0.1"][..],
            ),
            (AddressScope::Public, &["2606:4700::1111", "2a00:1450::1", "2001:4860::8888", "2001:200::1"]),
            (AddressScope::Loopback, &["127.0.0.1", "127.255.255.254", "::1"]),
            (
                AddressScope::Private,
                &["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.0.1", "100.64.0.1"],
            ),
            (AddressScope::Private, &["100.127.255.255", "fc00::1", "fd12:3456::1"]),
            (
                AddressScope::Reserved,
                &["0.0.0.0", "0.1.2.3", "169.254.169.254", "192.0.0.1", "192.0.2.1", "198.18.0.1"],
            ),
            (
                AddressScope::Reserved,
                &["198.51.100.1", "203.0.113.1", "224.0.0.1", "240.0.0.1", "255.255.255.255"],
            ),
            (
                AddressScope::Reserved,
                &["::", "::ffff:8.8.8.8", "::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1"],
            ),
            (
                AddressScope::Reserved,
                &["64:ff9b::8.8.8.8", "64:ff9b::a00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1"],
            ),
            (
                AddressScope::Reserved,
                &["fe80::1", "febf::1", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1", "100::1"],
            ),
        ] {
            for address in addresses {
                assert_eq!(AddressScope::of_address(address.parse().unwrap()), scope, "{address}");
            }
        }
    }

    #[test]
    fn a_policy_allows_what_the_naming_party_can_reach() {
        let at = |text: &str| SocketAddr::new(text.parse().unwrap(), 1);
        let all = || vec![at("8.8.8.8"), at("10.0.0.1"), at("127.0.0.1"), at("169.254.169.254")];
        let allowed = |from, only_loopback| AddressPolicy { from, only_loopback }.allowed("h", all());
        for (from, count) in [
            (AddressScope::Loopback, 3),
            (AddressScope::Private, 2),
            (AddressScope::Public, 1),
            (AddressScope::Reserved, 1),
        ] {
            assert_eq!(allowed(from, false), Ok(all()[..count].to_vec()), "{from:?}");
        }
        assert_eq!(allowed(AddressScope::Loopback, true), Ok(vec![at("127.0.0.1")]));
        for from in [AddressScope::Private, AddressScope::Public, AddressScope::Reserved] {
            assert!(allowed(from, true).unwrap_err().contains("8.8.8.8"), "{from:?}");
        }
        assert_eq!(
            AddressPolicy { from: AddressScope::Public, only_loopback: false }.allowed("h", Vec::new()),
            Ok(Vec::new())
        );
    }

    #[test]
    fn names_other_than_localhost_are_public() {
        for (url, scope) in [
            ("http://127.0.0.1:1/mcp", AddressScope::Loopback),
            ("http://[::1]/", AddressScope::Loopback),
            ("https://a.localhost/", AddressScope::Loopback),
            ("http://10.0.0.1/", AddressScope::Private),
            ("https://8.8.8.8/", AddressScope::Public),
            ("https://mcp.lan/", AddressScope::Public),
            ("https://127.0.0.1.example/", AddressScope::Public),
            ("http://[::ffff:127.0.0.1]/", AddressScope::Reserved),
        ] {
            assert_eq!(AddressScope::of_url(&Url::parse(url).unwrap()), scope, "{url}");
        }
    }
}
